"""What a command writes: checked before anything is spent, written before anything is printed."""

from __future__ import annotations

import os
from pathlib import Path

from dpfda.errors import InvalidParameter, MissingExtra

_PICTURES = (".png", ".pdf", ".svg")


def check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is spent."""
    if path is None:
        return
    folder = path.parent
    if not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise InvalidParameter(option, "in a folder that exists and may be written", str(path))


def check_picture(path: Path | None) -> None:
    """Refuse a picture that could not be drawn or written, before anything is spent."""
    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:
        raise InvalidParameter("--plot", f"a {', '.join(_PICTURES)} file", path.name)
    check_writable("--plot", path)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
