"""Small files that are on the disk, whole, before anybody acts on them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from dpfda.privacy._file_lock import sync_directory


def keep(path: Path, content: bytes) -> None:
    """Store or replace a file: complete or not at all, also if the power fails; its owner's only.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     keep(Path(folder) / "a", b"one")
        ...     keep(Path(folder) / "a", b"two")
        ...     (Path(folder) / "a").read_bytes()
        b'two'
    """
    draft = path.with_name(path.name + ".new")
    _write(draft, os.O_TRUNC, content)
    os.replace(draft, path)
    sync_directory(path.parent)


def claim(path: Path, content: bytes) -> bool:
    """Store a file unless it exists: whether this call, of all threads and processes, was first."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    _write(draft, os.O_EXCL, content)
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


def _write(path: Path, flag: int, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | flag | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
