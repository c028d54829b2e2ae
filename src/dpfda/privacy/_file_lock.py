"""An exclusive lock on an open file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform == "win32":
    import msvcrt
    import time

    _FAR = 1 << 40  # a byte that no ledger reaches: Windows hides locked bytes from readers

    def _lock(descriptor: int) -> None:
        while True:
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            try:
                return msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(0.005)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        # flock, not lockf: it belongs to the open file and so excludes threads as well.
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        # Not left to `close`: a child forked meanwhile shares the open file and would keep it.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Wait for the lock and hold it. A process that dies lets go of it."""
    _lock(descriptor)
    try:
        yield
    finally:
        _unlock(descriptor)


def sync_directory(directory: os.PathLike[str]) -> None:
    """Make a newly created name durable, where the system needs that."""
    if sys.platform != "win32":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
