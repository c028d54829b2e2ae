"""One process at a time in a folder: two that serve one plan would only be in each other's way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpfda.errors import ProtocolError

if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return True
        return False

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file, or refuse; a process that dies lets go of it.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "lock"
        >>> with alone(path, "the study"), alone(path, "the study"):
        ...     pass
        Traceback (most recent call last):
        dpfda.errors.ProtocolError: the study is run by another process already
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if _taken(descriptor):
            raise ProtocolError(f"{what} is run by another process already")
        yield
    finally:
        os.close(descriptor)
