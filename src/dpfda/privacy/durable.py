"""Small files that are on the disk, whole, before anybody acts on them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from dpfda.privacy._file_lock import sync_directory


def keep(path: Path, content: bytes) -> None:
    """Store or replace a file: complete or not at all, also if the power fails; its owner's only.

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
    """Store a file unless it exists: whether this call, of all threads and processes, was first."""
    draft = _drafted(path, content)
    try:
        os.link(draft, path)  # unlike a rename, it fails where the name is taken
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync_directory(path.parent)
    return True


def forget(path: Path) -> None:
    """Remove a file for good."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def _drafted(path: Path, content: bytes) -> Path:
    """The content beside the path, under a name that no other thread or process has."""
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
