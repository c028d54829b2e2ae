"""A file from somebody else is read in a process of its own, with little memory, time and rights.

Whatever is in the file, the process that asked goes on: archives that unpack to more than there is
room for, cells without end, or bytes that make a library fall over end the other process only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np

from dpfda.curves.files import Handed, Reading
from dpfda.errors import DpfdaError, InvalidData
from dpfda.planning.people_file import public_people

_SECONDS = 20
_MEMORY = 1 << 30
_CELLS, _ROWS = 2_000_000, 20_000  # of what is handed back
_KEPT = ("PATH", "PYTHONPATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "HOME")


class _Asked(msgspec.Struct):
    name: str
    content: bytes
    reading: dict[str, Any]
    classes: list[str] | None


class _Told(msgspec.Struct):
    """Curves on one grid are one block of numbers; curves of their own are pairs (t, x)."""

    refusal: str = ""
    said: str = ""
    labels: list[str | float] = []
    block: bytes = b""
    pairs: list[tuple[bytes, bytes]] = []
    points: list[float] | None = None


def public_people_apart(
    file: Handed, reading: Reading, *, classes: list[str] | None
) -> tuple[tuple[Any, ...], str]:
    """What `public_people` finds, from a file that nobody has looked at; it is written nowhere."""
    asked = _Asked(file.name, file.content, asdict(reading), classes)
    # No secret of this process is in the other one's environment.
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
    program = [sys.executable, "-P", "-B", "-m", __name__]
    rule = f"a file that is read within {_SECONDS} seconds and {_MEMORY >> 30} GiB of memory"
    try:
        done = subprocess.run(
            program,
            input=msgspec.msgpack.encode(asked),
            capture_output=True,
            timeout=_SECONDS,
            env=env,
            check=True,
        )
        told = msgspec.msgpack.decode(done.stdout, type=_Told)
    except (subprocess.SubprocessError, msgspec.DecodeError):
        raise InvalidData(file.name, rule) from None
    if told.refusal:
        raise DpfdaError(told.refusal)
    X: Any = np.frombuffer(told.block).reshape(len(told.labels), -1)
    if told.pairs:
        X = [(np.frombuffer(t), np.frombuffer(x)) for t, x in told.pairs]
    labels = np.array(told.labels, dtype=np.float64 if classes is None else object)
    return (X, labels, told.points), told.said


def _limit() -> None:
    """Little memory and time, and no file may be written, not even that of a crash."""
    with suppress(ImportError):
        import resource

        limits = {"AS": _MEMORY, "CPU": _SECONDS, "FSIZE": 0, "CORE": 0}
        for name, most in limits.items():
            with suppress(ValueError, OSError):  # a system may not know it, or allow less already
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def _read(asked: _Asked) -> _Told:
    file, reading = Handed(asked.name, asked.content), Reading(**asked.reading)
    try:
        (X, labels, points), said = public_people(file, reading, classes=asked.classes)
    except DpfdaError as refusal:
        return _Told(refusal=str(refusal))
    pairs = isinstance(X, list)
    cells = sum(len(x) for _, x in X) if pairs else X.size
    if cells > _CELLS or len(labels) > _ROWS:
        rule = f"of at most {_ROWS:,} curves and {_CELLS:,} numbers here (dpfda plan takes more)"
        return _Told(refusal=f"{file.name} must be {rule}, got {len(labels):,} and {cells:,}")
    return _Told(
        said=said,
        labels=labels.tolist(),
        block=b"" if pairs else np.ascontiguousarray(X, dtype=np.float64).tobytes(),
        pairs=[(t.tobytes(), x.tobytes()) for t, x in X] if pairs else [],
        points=None if points is None else points.tolist(),
    )


if __name__ == "__main__":
    _limit()
    told = _read(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Asked))
    sys.stdout.buffer.write(msgspec.msgpack.encode(told))
