"""Plain lines of text, read all at once: cells stand between delimiters and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.files.cells import Table

_END = ord("\n")
_QUOTE = ord('"')
_BLOCK = 1 << 17  # bytes
_NUMBERS = msgspec.json.Decoder(list[float])  # JSON's numbers are most people's numbers


@dataclass(frozen=True, eq=False)
class Lines(Table):
    """Lines without quotes, all of the same number of cells.

    Numbers are read off all lines at once, several times faster than cell by cell.
    """

    body: bytes = field(default=b"", repr=False)
    sep: str = ","

    def __len__(self) -> int:
        return self.body.count(b"\n")

    def column(self, place: int) -> Any:
        """The cells of a column."""
        return self._only([place]).decode().split("\n")[:-1]

    def read_ahead(self, places: Sequence[int]) -> None:
        """Read columns that hold nothing but numbers; others are read cell by cell."""
        places = sorted(set(places) - set(self._known))
        if not places:
            return
        body = self._only(places)
        try:
            values = _floats(body, self.sep, self.decimal)
        except msgspec.DecodeError:  # numbers that JSON has not, like +1 or .5, or no numbers
            try:
                values = _more_floats(body, self.sep, self.decimal)
            except ValueError:
                return
        if values.size != len(self) * len(places):
            return  # lines with nothing in them are none to `loadtxt`
        columns = np.ascontiguousarray(values.reshape(-1, len(places)).T)
        self._known.update((place, (x, None)) for place, x in zip(places, columns, strict=True))

    def _only(self, places: Sequence[int]) -> bytes:
        """The lines with some of their cells, in the order of the file."""
        if len(places) == len(self.names):
            return self.body
        kept = np.zeros(len(self.names), dtype=bool)
        kept[list(places)] = True
        return b"".join(_some(part, self.sep, kept) for part in _blocks(self.body))


def plain(text: str, sep: str, width: int) -> bytes | None:
    """Text as the body of `Lines`; None where its cells cannot be told by delimiters alone."""
    if len(sep) != 1 or sep == " " or not sep.isascii():
        return None
    body = text.encode()
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    body = body if body.endswith(b"\n") else body + b"\n"
    if b'"' in body:
        if not all(_quotes_are_idle(part, sep) for part in _blocks(body)):
            return None
        body = body.replace(b'"', b"")
    return body if all(_regular(part, sep, width) for part in _blocks(body)) else None


# What follows is done block by block, so that nothing leaves the processor's cache.


def _blocks(body: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(body):
        end = body.find(b"\n", min(start + _BLOCK, len(body) - 1)) + 1
        yield body[start:end]
        start = end


def _regular(part: bytes, sep: str, width: int) -> bool:
    """Whether every line has as many cells, and none has nothing in all of them.

    Lines that hold nothing but delimiters and spaces are left out by whoever reads cell by cell.
    """
    letters = np.frombuffer(part, np.uint8)
    ends, between = np.flatnonzero(letters == _END), np.flatnonzero(letters == ord(sep))
    if width == 1 or between.size != ends.size * (width - 1):
        return False
    cuts, starts = between.reshape(-1, width - 1), np.append(0, ends[:-1] + 1)
    blank = letters[starts] <= ord(" ")
    return bool(
        (cuts[:, 0] > starts).all()
        and (cuts[:, -1] < ends).all()
        and all(
            part[start:end].replace(sep.encode(), b"").strip()
            for start, end in zip(starts[blank], ends[blank], strict=True)
        )
    )


def _quotes_are_idle(part: bytes, sep: str) -> bool:
    """Whether each pair of quotes stands around one cell, which has no need of it."""
    letters = np.frombuffer(part, np.uint8)
    quotes = np.flatnonzero(letters == _QUOTE)
    if quotes.size % 2:
        return False
    ends = np.flatnonzero(_marks(letters, sep))
    first, last = quotes[::2], quotes[1::2]
    cell = np.searchsorted(ends, first)
    begins = np.append(0, ends + 1)[cell]
    return bool((begins == first).all() and (ends[cell] == last + 1).all())


def _some(part: bytes, sep: str, kept: Any) -> bytes:
    """Lines with those cells alone that are kept."""
    letters = np.frombuffer(part, np.uint8)
    lengths = np.diff(np.flatnonzero(_marks(letters, sep)), prepend=-1).reshape(-1, len(kept))
    chosen = letters[np.repeat(np.broadcast_to(kept, lengths.shape).ravel(), lengths.ravel())]
    chosen[np.cumsum(lengths[:, kept].sum(axis=1)) - 1] = _END
    return bytes(chosen.tobytes())


def _marks(letters: Any, sep: str) -> Any:
    return (letters == ord(sep)) | (letters == _END)


def _floats(body: bytes, sep: str, decimal: str) -> FloatArray:
    """All numbers of lines that hold nothing else, one after the other."""
    swaps = {sep: ",", "\n": ","} | ({decimal: ".", ".": "x"} if decimal != "." else {})
    swap = bytes.maketrans("".join(swaps).encode(), "".join(swaps.values()).encode())
    found = []
    for part in _blocks(body):
        values = _NUMBERS.decode(b"[" + part.translate(swap)[:-1] + b"]")
        found.append(np.fromiter(values, dtype=np.float64, count=len(values)))
    return np.concatenate(found)


def _more_floats(body: bytes, sep: str, decimal: str) -> FloatArray:
    """The same for whatever is a number to C."""
    lines = body.decode().split("\n")[:-1]
    if decimal != ".":
        lines = [line.replace(".", "x").replace(decimal, ".") for line in lines]
    return np.loadtxt(lines, delimiter=sep, comments=None, ndmin=2).ravel()
