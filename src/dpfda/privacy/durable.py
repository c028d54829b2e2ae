"""Durable, atomic writes of small files, and locks on files."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
    import time

    _FAR = 1 << 40  # beyond the end of every ledger: on Windows, others cannot read a locked byte

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
        # flock, not lockf: its locks belong to open files, so threads exclude each other as well.
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        # Explicit, because a child process forked meanwhile shares the open file and keeps its
        # lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Wait for the lock and hold it. The system releases it if the process dies."""
    _lock(descriptor)
    try:
        yield
    finally:
        _unlock(descriptor)


def sync_directory(directory: os.PathLike[str]) -> None:
    """Make a new file name durable on systems that need this step."""
    if sys.platform != "win32":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def keep(path: Path, content: bytes) -> None:
    """Write a file atomically, even if the power fails; only its owner may read it.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     keep(Path(folder) / "a", b"one")
        ...     keep(Path(folder) / "a", b"two")
        ...     (Path(folder) / "a").read_bytes()
        b'two'
    """
    draft = _drafted(path, content)
    try:
        os.replace(draft, path)
    except BaseException:
        draft.unlink()
        raise
    sync_directory(path.parent)


def claim(path: Path, content: bytes) -> bool:
    """Create a file atomically; False if another thread or process has created it before."""
    draft = _drafted(path, content)
    try:
        os.link(draft, path)  # unlike a rename, it fails if the name is taken
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync_directory(path.parent)
    return True


def forget(path: Path) -> None:
    """Remove a file durably."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def _drafted(path: Path, content: bytes) -> Path:
    """Write the content to a new file beside `path`, under a unique name."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft
