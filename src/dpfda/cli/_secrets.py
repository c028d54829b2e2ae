"""Secrets of the command line: from a file that nobody else reads, or the environment.

Never from an argument, because every user of a machine sees the arguments of every process.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from dpfda.errors import InvalidParameter

_OTHERS = stat.S_IRWXO | stat.S_IWGRP


def read_secret(option: str, file: Path) -> str:
    """The text of a file, which others on this machine may not read."""
    try:
        with file.open(encoding="utf-8") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if mode & _OTHERS:
                rule = f"closed to other users (chmod 600 {file.name})"
                raise InvalidParameter(option, rule, f"{file.name} with mode {mode:o}")
            return stream.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise InvalidParameter(option, f"a file that can be read ({reason})", str(file)) from None


def holds_password(url: str) -> bool:
    """Whether a URL tells a password.

    Examples:
        >>> [holds_password(f"postgresql://{u}h/d") for u in ("", "u@", "u:p@", ":p@")]
        [False, False, True, True]
        >>> holds_password("postgresql://h/d?user=u&password=p")
        True
    """
    try:
        parts = urlsplit(url)
        told = parts.password is not None
    except ValueError:  # no URL: refused elsewhere, and maybe one with a typing error
        return "@" in url
    return told or any("password" in name for name, _ in parse_qsl(parts.query))
