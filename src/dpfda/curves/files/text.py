"""Text tables, with detection of encoding, delimiter, decimal comma and header.

A file without quotes is split as a whole; a file with quotes is read cell by cell.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO, TextIOWrapper
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np

from dpfda._validate import AnyArray, FloatArray
from dpfda.curves.files import arrow, cells
from dpfda.curves.files.cells import NUMBER, BoolArray, Cells, Table
from dpfda.curves.files.file import File
from dpfda.errors import InvalidData, InvalidParameter

_END = ord("\n")
_QUOTE = ord('"')
_CHUNK = 1 << 17  # bytes
_PART = 1 << 24  # characters that are in memory at once, up to the next end of a line
_NUMBERS = msgspec.json.Decoder(list[float])  # most numbers in files are also numbers in JSON


@dataclass(frozen=True, eq=False)
class Lines(Table):
    """Lines without quotes, all with the same number of cells.

    Numbers are read from all lines at once, which is several times faster than cell by cell.
    """

    body: bytes = field(default=b"", repr=False)
    sep: str = ","

    def __len__(self) -> int:
        return self.body.count(b"\n")

    def column(self, place: int) -> Cells:
        """The cells of a column."""
        return self._only([place]).decode().split("\n")[:-1]

    def read_ahead(self, places: Sequence[int]) -> None:
        """Read columns that consist of numbers; others are read cell by cell later."""
        places = sorted(set(places) - set(self._known))
        if not places:
            return
        if len(self.body) >= arrow.LARGE:
            width = len(self.names)
            found = arrow.floats(self.body, self.sep, self.decimal, width=width, places=places)
            if found is not None:
                self._known.update(
                    (place, (x, None)) for place, x in zip(places, found, strict=True)
                )
                return
        body = self._only(places)
        try:
            values = _floats(body, self.sep, self.decimal)
        except msgspec.DecodeError:  # words, or numbers that JSON does not allow, such as +1 or .5
            try:
                values = _more_floats(body, self.sep, self.decimal)
            except ValueError:
                return
        if values.size != len(self) * len(places):
            return  # `loadtxt` skips empty lines
        columns = np.ascontiguousarray(values.reshape(-1, len(places)).T)
        self._known.update((place, (x, None)) for place, x in zip(places, columns, strict=True))

    def _only(self, places: Sequence[int]) -> bytes:
        """The lines reduced to some columns, in the order of the file."""
        if len(places) == len(self.names):
            return self.body
        kept = np.zeros(len(self.names), dtype=bool)
        kept[list(places)] = True
        return b"".join(_some(part, self.sep, kept) for part in _blocks(self.body))


def plain(text: str, sep: str, width: int) -> bytes | None:
    """Text as the body of `Lines`; None if delimiters alone do not separate its cells."""
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


# The following functions work block by block, so that data stay in the processor cache.


def _blocks(body: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(body):
        end = body.find(b"\n", min(start + _CHUNK, len(body) - 1)) + 1
        yield body[start:end]
        start = end


def _regular(part: bytes, sep: str, width: int) -> bool:
    """Whether every line has `width` cells, of which at least one is not empty.

    The other reader skips lines that consist of delimiters and spaces, so these need it.
    """
    letters = np.frombuffer(part, np.uint8)
    ends, between = np.flatnonzero(letters == _END), np.flatnonzero(letters == ord(sep))
    if width == 1 or between.size != ends.size * (width - 1):
        return False
    cuts, starts = between.reshape(-1, width - 1), np.append(0, ends[:-1] + 1)
    blank = (letters[starts] <= ord(" ")) | (letters[starts] == ord(sep))
    return bool(
        (cuts[:, 0] >= starts).all()
        and (cuts[:, -1] < ends).all()
        and all(
            part[start:end].replace(sep.encode(), b"").strip()
            for start, end in zip(starts[blank], ends[blank], strict=True)
        )
    )


def _quotes_are_idle(part: bytes, sep: str) -> bool:
    """Whether every pair of quotes encloses one cell that does not need quotes."""
    letters = np.frombuffer(part, np.uint8)
    quotes = np.flatnonzero(letters == _QUOTE)
    if quotes.size % 2:
        return False
    ends = np.flatnonzero(_marks(letters, sep))
    first, last = quotes[::2], quotes[1::2]
    cell = np.searchsorted(ends, first)
    begins = np.append(0, ends + 1)[cell]
    return bool((begins == first).all() and (ends[cell] == last + 1).all())


def _some(part: bytes, sep: str, kept: BoolArray) -> bytes:
    """Lines reduced to the columns to keep."""
    letters = np.frombuffer(part, np.uint8)
    lengths = np.diff(np.flatnonzero(_marks(letters, sep)), prepend=-1).reshape(-1, len(kept))
    chosen = letters[np.repeat(np.broadcast_to(kept, lengths.shape).ravel(), lengths.ravel())]
    chosen[np.cumsum(lengths[:, kept].sum(axis=1)) - 1] = _END
    return bytes(chosen.tobytes())


def _marks(letters: AnyArray, sep: str) -> BoolArray:
    return np.asarray((letters == ord(sep)) | (letters == _END))


def _floats(body: bytes, sep: str, decimal: str) -> FloatArray:
    """All numbers of lines that consist of numbers, as one array."""
    swaps = {sep: ",", "\n": ","} | ({decimal: ".", ".": "x"} if decimal != "." else {})
    swap = bytes.maketrans("".join(swaps).encode(), "".join(swaps.values()).encode())
    found = []
    for part in _blocks(body):
        values = _NUMBERS.decode(b"[" + part.translate(swap)[:-1] + b"]")
        found.append(np.fromiter(values, dtype=np.float64, count=len(values)))
    return np.concatenate(found)


def _more_floats(body: bytes, sep: str, decimal: str) -> FloatArray:
    """All numbers of such lines, in every format that C accepts."""
    lines = body.decode().split("\n")[:-1]
    if decimal != ".":
        lines = [line.replace(".", "x").replace(decimal, ".") for line in lines]
    return np.loadtxt(lines, delimiter=sep, comments=None, ndmin=2).ravel()


SAMPLE = 200  # lines from which delimiter, decimals and header are detected
_BLOCK = 1 << 20
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SEPARATORS = ";\t|,"
_BETWEEN = {";": "';'", "\t": "tabs", "|": "'|'", ",": "','", " ": "spaces"}
_TITLES = 9  # largest number of title lines
_BELOW = 3  # fewest cells and rows below a title, as R writes one name above two columns
_PLACES = 5  # a first row of this many numbers 1, 2, 3, ... is a header, not a curve
_UNSUSPICIOUS = 2  # this many numbers of a first row may increase by chance


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The format of a text file.

    Attributes:
        encoding: utf-8, utf-8-sig (with a byte order mark), utf-16 or cp1252.
        sep: between columns; empty for a single column, a space for any run of spaces.
        decimal: in numbers.
        header: whether the first row holds names.
        names: of the columns.
        titles: number of title lines above the table.
    """

    encoding: str
    sep: str
    decimal: str
    header: bool
    names: tuple[str, ...]
    titles: int = 0

    @property
    def said(self) -> tuple[str, ...]:
        """A sentence about the detected format."""
        return (
            f"{_BETWEEN.get(self.sep, repr(self.sep))} between columns"
            if self.sep
            else "one column",
            f"{self.decimal!r} decimals",
            f"first row is {'a header' if self.header else 'data'}",
            "utf-8 with a mark" if self.encoding == "utf-8-sig" else self.encoding,
            *left_out(self.titles),
        )


def sniff(
    path: File,
    *,
    sep: str | None,
    decimal: str | None,
    header: bool | None,
    asked: Collection[str] = (),
) -> Dialect:
    """Detect the format of a file, as far as options leave it open; `asked` are column names."""
    encoding = _encoding(path)
    with _reading(path, encoding) as stream:
        sample = list(islice(_telling(stream), SAMPLE))
    if not sample:
        raise InvalidData(path.name, "a table with at least two rows", "an empty file")
    if sep is not None:
        sep = {"\\t": "\t", "tab": "\t"}.get(sep, sep)
        if len(sep) != 1:
            raise InvalidParameter("--sep", "one character, or tab", sep)
    if decimal is not None and decimal not in (".", ","):
        raise InvalidParameter("--decimal", "'.' or ','", decimal)
    among = _SEPARATORS.replace(decimal or "", "")
    between = sep or _separator(sample, among)
    above = titles(list(split(sample, between)))
    sep = sep or _separator(sample[above:], among)
    if sep == decimal:
        raise InvalidParameter("--decimal", "another character than --sep", decimal)
    rows = list(split(sample[above:], sep))
    if decimal is None:
        decimal = "," if sep != "," and cells.has_decimal_commas(list(chain(*rows))) else "."
    width = max(len(rows[0]), len(rows[1]) if len(rows) > 1 else 0)
    if width > 1 and all(len(row) < width or not row[-1].strip() for row in rows):
        width -= 1  # every line ends with a delimiter
    if len(rows[0]) < width - 1:
        found = f"{len(rows[0])} in its first row, {width} in the next (a title above?)"
        raise InvalidData(path.name, "a table with equally many cells in every row", found)
    certain = has_header(rows, decimal, asked) if header is None else header
    header = certain is not False
    names = [name.strip() for name in rows[0][:width]] if certain else []
    names = [""] * (width - len(names)) * header + names  # a column of row names has no name
    shown = tuple(name or f"{NUMBER}{place}" for place, name in enumerate(names, start=1))
    named = shown if header else tuple(str(place + 1) for place in range(width))
    return Dialect(
        encoding=encoding, sep=sep, decimal=decimal, header=header, names=named, titles=above
    )


def titles(rows: Sequence[Sequence[str]]) -> int:
    """Number of title rows above a table: rows of one word cell, above rows of several cells."""
    for count, row in enumerate(rows[: _TITLES + 1]):
        filled = [cell for cell in row if cell.strip()]
        if len(filled) >= _BELOW and len(rows) >= count + _BELOW:
            return count
        if len(filled) != 1 or cells.number(filled[0]) is not None:
            return 0
    return 0


def left_out(titles: int) -> tuple[str, ...]:
    """A sentence about the rows that were left out above a table."""
    return (f"{titles} line{'s' * (titles > 1)} above the table left out",) * (titles > 0)


def tables(path: File, dialect: Dialect, rows: int | None) -> Iterator[Table]:
    """The rows below the header, in chunks, or (None) all at once.

    Lines without quotes come in parts of `_PART` characters. After the first cell that needs its
    quotes, the rest of the file comes in parts of `rows` rows.
    """
    width, first = len(dialect.names), 1
    with _reading(path, dialect.encoding) as stream:
        lines = _telling(stream)
        deque(islice(split(lines, dialect.sep), dialect.titles + dialect.header), maxlen=0)
        while part := stream.read(-1 if rows is None else _PART):
            part += stream.readline()
            body = None if "#" in part else plain(part, dialect.sep, width)
            if body is None:
                part = "".join(_telling(StringIO(part, newline="")))
                body = plain(part, dialect.sep, width) if part else b""
            if body is None:
                break
            if body:
                table = Lines(dialect.names, (), dialect.decimal, first, body=body, sep=dialect.sep)
                yield table
                first += len(table)
        # The rest is read cell by cell, because a quoted cell may span several lines.
        rest = chain(StringIO(part, newline=""), lines)
        careful = _checked(split(rest, dialect.sep), path, width, first)
        while cut := list(islice(careful, rows)):
            yield Table(dialect.names, tuple(zip(*cut, strict=True)), dialect.decimal, first)
            first += len(cut)


def _checked(rows: Iterator[list[str]], path: File, width: int, first: int) -> Iterator[list[str]]:
    """Check that every row has as many cells as there are names."""
    for number, row in enumerate(rows, start=first):
        if len(row) == width + 1 and not row[-1].strip():
            row.pop()
        if len(row) != width:
            found = f"{len(row)} cells in row {number}, where there are {width} columns"
            raise InvalidData(path.name, "a table with equally many cells in every row", found)
        yield row


def split(lines: Iterable[str], sep: str) -> Iterator[list[str]]:
    """Split lines into cells; empty lines are left out."""
    rows: Iterator[list[str]]
    if sep:
        lines = map(str.strip, lines) if sep == " " else lines
        rows = csv.reader(lines, delimiter=sep, skipinitialspace=True)
    else:
        rows = ([line.strip()] for line in lines)
    try:
        yield from (row for row in rows if any(map(str.strip, row)))
    except csv.Error:
        raise InvalidData("FILE", "a table of cells whose quotes are closed") from None


def _telling(lines: Iterable[str]) -> Iterator[str]:
    """Lines with content: no empty lines, no comments (#)."""
    return (line for line in lines if line.strip() and not line.lstrip().startswith("#"))


@contextmanager
def _reading(path: File, encoding: str) -> Iterator[TextIOWrapper]:
    """Open a file as text, compressed or not."""
    try:
        with _opened(path) as raw, TextIOWrapper(raw, encoding, newline="") as stream:
            yield stream
    except (UnicodeError, OSError, EOFError, zlib.error):
        raise _unreadable(path) from None


@contextmanager
def _opened(path: File) -> Iterator[Any]:
    with path.open("rb") as raw:
        yield gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else raw


def _unreadable(path: File) -> InvalidData:
    return InvalidData(path.name, "a readable text file in UTF-8, UTF-16 with a mark, or cp1252")


def _encoding(path: File) -> str:
    """The encoding: by the byte order mark, UTF-8 if valid, otherwise cp1252 (Western Excel)."""
    try:
        with _opened(path) as stream:
            start = stream.read(4)
            for mark, name in _MARKS.items():
                if start.startswith(mark):
                    return name
            stream.seek(0)
            decoder, utf8 = codecs.getincrementaldecoder("utf-8")(), True
            while block := stream.read(_BLOCK):
                if b"\0" in block:
                    raise _unreadable(path)
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    utf8 = False
                    break
            return "utf-8" if utf8 else "cp1252"
    except (OSError, EOFError, zlib.error):
        raise _unreadable(path) from None


def _separator(sample: list[str], among: str) -> str:
    """The delimiter that splits all lines equally; other delimiters take precedence over commas."""
    counts = {sep: _width(sample, sep) if sep in among else 0 for sep in _SEPARATORS}
    for sep in (";", "\t", "|"):
        # If commas split a line into at most one cell more than `sep` does, they are decimal
        # commas.
        if counts[sep] > 1 and counts[sep] + 1 >= counts[","]:
            return sep
    if counts[","] > 1:
        return ","
    if _width(sample, " ") > 1:
        return " "
    # No delimiter splits all lines equally: take the most frequent; `_checked` then raises errors.
    most = max(among, key=lambda sep: sum(line.count(sep) for line in sample))
    return most if any(most in line for line in sample) else ""


def _width(sample: list[str], sep: str) -> int:
    """Number of cells of every line, 0 if it varies; the first line may have one cell less."""
    widths = [len(row) for row in split(sample, sep)]
    body = set(widths[1:] or widths)
    return widths[-1] if len(body) == 1 and widths[0] in (widths[-1], widths[-1] - 1) else 0


def has_header(rows: list[list[str]], decimal: str, asked: Collection[str] = ()) -> bool | None:
    """Whether the first row holds names; an error if this is ambiguous.

    None for words above words: usually a header, but possibly data of a person. These words are
    then not used as names, and no message quotes them.
    """
    first, body = rows[0], rows[1:]
    if any(cell.strip() in asked and cells.number(cell, decimal) is None for cell in first):
        return True  # one of its words was given as a column name
    words = [place for place, cell in enumerate(first) if cells.number(cell, decimal) is None]
    columns = [[row[place] for row in body if place < len(row)] for place in range(len(first))]
    if len(first) < max(map(len, body), default=0):
        return True  # R writes one name fewer than columns
    for place in words:
        if cells.numbers(columns[place], decimal)[1] is None:
            return True  # a word above numbers
    others = [cell for place, cell in enumerate(first) if place not in words]
    rising = len(others) > _UNSUSPICIOUS and cells.grid_in(others, decimal) is not None
    if words and not rising:
        # Words above words are names, unless the first row also contains numbers.
        return False if others else None
    if words:
        named = all(
            re.fullmatch(r"[^\W\d]+", first[place].strip()) and first[place] not in columns[place]
            for place in words
        )
        if named:
            return True
    if rising and _counted(others, decimal) and not _any_rises(body, words, decimal):
        return True
    if rising:
        rule = "unambiguous: a first row of increasing numbers may be grid points or a curve"
        raise InvalidData("FILE", f"{rule} (pass --header or --no-header)")
    return False


def _counted(row: list[str], decimal: str) -> bool:
    """Whether a row is 0, 1, 2, ... or 1, 2, 3, ..., with at least `_PLACES` numbers."""
    found, size = [cells.number(cell, decimal) for cell in row], len(row)
    return size >= _PLACES and found in (list(range(size)), list(range(1, size + 1)))


def _any_rises(rows: list[list[str]], words: list[int], decimal: str) -> bool:
    """Whether some row below could also be grid points."""
    return any(
        cells.grid_in([cell for place, cell in enumerate(row) if place not in words], decimal)
        is not None
        for row in rows
    )
