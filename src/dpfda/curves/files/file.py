"""Files on disk, at an address, or given as bytes, with one interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any

from dpfda.errors import InvalidParameter, MissingExtra


@dataclass(frozen=True)
class Handed:
    r"""Bytes with a name, with the interface of a path; nothing is written to disk.

    Examples:
        >>> from dpfda.curves.files import Reading
        >>> Reading().rows(Handed("a.csv", b"1;2,5\n3;4\n")).X.tolist()
        [[1.0, 2.5], [3.0, 4.0]]
    """

    name: str
    content: bytes = field(repr=False)

    @property
    def suffix(self) -> str:
        """The suffix of the name, which states the format of the file."""
        return PurePath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """All suffixes of the name."""
        return PurePath(self.name).suffixes

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open the bytes."""
        return BytesIO(self.content)


@dataclass(frozen=True)
class Place:
    """A file on disk or at an address, with columns that the names of its folders define.

    Attributes:
        address: a path, or an address for fsspec: ``s3://…``, ``https://…``, ``memory://…``. Fsspec
            finds credentials in the usual places of each store.
        columns: names and values of further columns, which are constant in the file.

    Examples:
        >>> Place("s3://lake/ward=3/part-0.csv.gz").suffixes
        ['.csv', '.gz']
    """

    address: str
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self._path.name

    @property
    def suffix(self) -> str:
        """The suffix of the name, which states the format of the file."""
        return self._path.suffix

    @property
    def suffixes(self) -> list[str]:
        """All suffixes of the name."""
        return self._path.suffixes

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open the file; of a remote file, only the parts that are read are fetched."""
        if "://" not in self.address:
            return Path(self.address).open(mode)
        store, path = store_of(self.address)
        stream: IO[bytes] = store.open(path, mode)
        return stream

    @property
    def _path(self) -> PurePosixPath:
        return PurePosixPath(self.address.partition("://")[2].partition("?")[0] or self.address)


def store_of(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtra("fsspec", "files") from None
    try:
        store, path = url_to_fs(address)
    except (ValueError, ImportError):
        rule = "an address that fsspec opens: its protocol is unknown or its library is missing"
        raise InvalidParameter("FILE", rule, without_secrets(address)) from None
    return store, path


def without_secrets(address: str) -> str:
    """Protocol and last name of an address; the rest may contain a password.

    Examples:
        >>> without_secrets("s3://user:secret@host/lake/rows.csv?key=1")
        's3://…/rows.csv'
    """
    protocol, found, path = address.partition("://")
    if not found:
        return address
    return f"{protocol}://…/{PurePosixPath(path.partition('?')[0]).name.rpartition('@')[2]}"


File = Path | Handed | Place
