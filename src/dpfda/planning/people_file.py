"""Reading a file of public people for a forecast.

A file from somebody else is read in a separate process with limited memory, time and rights.
Malicious or damaged files, such as archives that unpack to more than the memory or bytes that crash
a library, can only end this process, and not the calling one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np

from dpfda._validate import AnyArray
from dpfda.curves.files import File, Handed, Reading
from dpfda.curves.files.cells import Table
from dpfda.curves.files.reading import Rows
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import DpfdaError, InvalidData, InvalidParameter
from dpfda.estimators.file_block import check_labels, frame


def public_people(
    file: File, reading: Reading, *, classes: Sequence[str] | None, feature_ranges: object = None
) -> tuple[tuple[Any, ...], str]:
    r"""The `sample` of a forecast (rows, labels, grid points), and how the file was read.

    Without classes, labels are numbers.

    Examples:
        >>> from dpfda.curves.files import Handed
        >>> file = Handed("public.csv", b"sex;0;0,5;1\nf;1;2;3,5\nm;4;5;6\n")
        >>> (X, y, points), said = public_people(file, Reading(label="sex"), classes=["f", "m"])
        >>> X.tolist(), y.tolist(), points.tolist()
        ([[1.0, 2.0, 3.5], [4.0, 5.0, 6.0]], ['f', 'm'], [0.0, 0.5, 1.0])
    """
    if reading.label is None:
        rule = "given with a file of public people: the column of classes, or of numbers"
        raise InvalidParameter("--label", rule, None)
    if isinstance(feature_ranges, dict):
        opened = reading.open(file, aside=feature_ranges)
        table = opened.table(least=2)
        said = reading.said(opened, len(table))
        labels = _labels(table, reading.label, numbers=classes is None)
        row: Callable[[int], int] = _below_header
        found: tuple[Any, ...] = (
            frame(table, PublicColumns.of(feature_ranges), gaps=reading.fill),
            labels,
        )
    else:
        rows = reading.rows(file, curves=feature_ranges is None)
        said, row = rows.said, rows.row
        labels = _labels(rows, reading.label, numbers=classes is None)
        found = rows.X, labels, rows.grid_points
    if classes is not None:
        check_labels(labels, classes, reading.label, row=row)
    return found, said


def _below_header(place: int) -> int:
    return place + 1


def _labels(rows: Rows | Table, column: str, *, numbers: bool) -> AnyArray:
    return rows.numbers([column])[:, 0] if numbers else rows.text(column)


_SECONDS = 20
_MEMORY = 1 << 30
_CELLS, _ROWS = 2_000_000, 20_000  # largest numbers of values and of rows in the result
_KEPT = ("PATH", "PYTHONPATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "HOME")


class _Asked(msgspec.Struct):
    name: str
    content: bytes
    reading: dict[str, Any]
    classes: list[str] | None


class _Told(msgspec.Struct):
    """The result: curves on one grid are one block of numbers, other curves pairs (t, x)."""

    refusal: str = ""
    said: str = ""
    labels: list[str | float] = []
    block: bytes = b""
    pairs: list[tuple[bytes, bytes]] = []
    points: list[float] | None = None


def public_people_in_subprocess(
    file: Handed, reading: Reading, *, classes: list[str] | None
) -> tuple[tuple[Any, ...], str]:
    """Run `public_people` on an untrusted file in a separate process, without storing the file."""
    asked = _Asked(file.name, file.content, asdict(reading), classes)
    # The environment of the other process contains no secrets of this one.
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
    X: object = np.frombuffer(told.block).reshape(len(told.labels), -1)
    if told.pairs:
        X = [(np.frombuffer(t), np.frombuffer(x)) for t, x in told.pairs]
    labels = np.array(told.labels, dtype=np.float64 if classes is None else object)
    return (X, labels, told.points), told.said


def _limit() -> None:
    """Limit memory and time of this process, and forbid writing files, including core dumps."""
    with suppress(ImportError):
        import resource

        limits = {"AS": _MEMORY, "CPU": _SECONDS, "FSIZE": 0, "CORE": 0}
        for name, most in limits.items():
            with suppress(
                ValueError, OSError
            ):  # the system may not support the limit, or may have a lower one
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
