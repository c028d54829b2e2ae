"""A file on disk, or one that was handed over as bytes: both are read by the same code."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePath
from typing import IO


@dataclass(frozen=True)
class Handed:
    r"""Bytes with a name, opened as a path is; nothing is written to disk.

    Examples:
        >>> from dpfda.curves.files import Reading
        >>> Reading().rows(Handed("a.csv", b"1;2,5\n3;4\n")).X.tolist()
        [[1.0, 2.5], [3.0, 4.0]]
    """

    name: str
    content: bytes = field(repr=False)

    @property
    def suffix(self) -> str:
        """The end of the name: what kind of file it is said to be."""
        return PurePath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """All ends of the name."""
        return PurePath(self.name).suffixes

    def open(self, mode: str = "rb") -> IO[bytes]:
        """The bytes, from the beginning."""
        return BytesIO(self.content)


File = Path | Handed
