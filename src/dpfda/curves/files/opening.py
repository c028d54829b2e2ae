"""Open a file of any format, with its columns by name, and its rows at once or in chunks.

Text is read by `text.py`, Parquet and Feather by `arrow.py`; NPZ and XLSX are read here.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.files import arrow, text
from dpfda.curves.files.cells import NUMBER, Cells, Table, grid_in
from dpfda.curves.files.file import File, Place
from dpfda.errors import InvalidData, InvalidParameter, MissingExtra

_KEYS = ("curves", "points", "X", "values")


def npz(path: File) -> tuple[Table, FloatArray | None]:
    """Read an archive of columns of one length, or of one table with further columns."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError):
        raise InvalidData(path.name, "a readable NPZ file without pickled objects") from None
    grid = arrays.pop("grid_points", None)
    tables = {name: part for name, part in arrays.items() if part.ndim == 2}
    main = next((name for name in (*_KEYS, *tables) if name in tables), None)
    if len(tables) > 1 and main not in _KEYS:
        rule = f"an archive with a table named {' or '.join(_KEYS)}"
        raise InvalidData(path.name, rule, f"arrays {', '.join(sorted(arrays))}")
    columns: dict[str, Any] = {}
    if main is not None:
        width = tables[main].shape[1]
        columns = {f"{main}.{place + 1}": tables[main][:, place] for place in range(width)}
        if grid is not None and grid.shape == (width,):
            columns = dict(zip(map(str, grid.tolist()), columns.values(), strict=True))
        elif grid is not None:
            raise InvalidData("grid_points", f"one number for each of the {width} columns")
    columns |= {name: part for name, part in arrays.items() if part.ndim == 1}
    if len({len(column) for column in columns.values()}) != 1:
        rule = "an archive of one table, or of one-dimensional arrays of one length"
        raise InvalidData(path.name, rule, f"arrays {', '.join(sorted(arrays)) or 'of no name'}")
    return Table(tuple(columns), tuple(map(_plain, columns.values()))), grid


def xlsx(path: File) -> tuple[str, list[list[str]]]:
    """Read the first sheet of a workbook: its title, and its cells as text."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtra("openpyxl", "files") from None
    try:
        with path.open("rb") as stream:
            book = load_workbook(stream, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            rows = [["" if cell is None else str(cell) for cell in row] for row in sheet.values]
    except Exception:  # errors about a damaged workbook have any type and may quote cells
        raise InvalidData(path.name, "a readable XLSX workbook") from None
    return sheet.title, [row for row in rows if any(map(str.strip, row))]


def _plain(column: Cells) -> Cells:
    """Numbers unchanged, other cells as text."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in "fiub":
        return [str(cell) for cell in column.tolist()]
    return column


_TEXT = {"", ".csv", ".tsv", ".txt", ".tab", ".dat"}
FORMATS = (_TEXT - {""}) | {".parquet", ".feather", ".arrow", ".npz", ".xlsx"}
"""Suffixes of supported files; text may be compressed (.csv.gz)."""
_WITHOUT = {
    ".npz": ("--sep", "--decimal", "--header"),
    ".parquet": ("--sep", "--decimal", "--header"),
    ".feather": ("--sep", "--decimal", "--header"),
    ".arrow": ("--sep", "--decimal", "--header"),
    ".xlsx": ("--sep",),
}


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The properties of a file that are known before its rows are read.

    Attributes:
        path: the file.
        names: names of its columns.
        said: sentences on how it was read.
        header: whether the file contains the names.
        decimal: decimal mark of its numbers.
        grid_points: grid points that the file contains, if any.
        chunks: starts a pass over the rows in chunks of a given size; None for one chunk.
        rows: number of rows, if it is known without a pass.
        reads: starts a pass over some columns only, if the format supports that.
    """

    path: File
    names: tuple[str, ...]
    chunks: Callable[[int | None], Iterator[Table]]
    said: tuple[str, ...] = ()
    header: bool = True
    decimal: str = "."
    grid_points: FloatArray | None = None
    rows: int | None = None
    reads: Callable[[Collection[str], int | None], Iterator[Table]] | None = None

    @property
    def name(self) -> str:
        """Name of the file, or of the frame."""
        return self.path.name

    def only(self, names: Collection[str]) -> Opened:
        """The same file, read only in these columns; its tables may lack the others."""
        if self.reads is None or len(set(self.names)) < len(self.names):
            return self
        return replace(self, chunks=partial(self.reads, names))

    def table(self, *, least: int = 2) -> Table:
        """All rows, at least `least`."""
        table = next(self.chunks(None), None)
        if table is None or len(table) < least:
            found = "one row" if table is not None and len(table) else "no row"
            raise InvalidData(self.path.name, "a table with at least two rows", found)
        return table

    def grid_of(self, names: list[str]) -> FloatArray | None:
        """The grid points that are column names; None if there are none."""
        return grid_in(names, self.decimal) if self.header else None


def open_file(
    path: File | Opened,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    asked: Collection[str] = (),
) -> Opened:
    """Open a file by its suffix; missing options are detected. `asked` are names of columns."""
    if isinstance(path, Opened):
        return path
    if isinstance(path, Place) and path.columns:
        inner = open_file(
            replace(path, columns=()), sep=sep, decimal=decimal, header=header, asked=asked
        )
        return beside(inner, path.columns)
    suffixes, last = {suffix.lower() for suffix in path.suffixes[-2:]}, path.suffix.lower()
    if (suffixes or {""}) & _TEXT:
        return _text(path, text.sniff(path, sep=sep, decimal=decimal, header=header, asked=asked))
    given = {"--sep": sep, "--decimal": decimal, "--header": header}
    for option in _WITHOUT.get(last, ()):
        if given[option] is not None:
            rule = f"left out for a {last} file, whose format is fixed"
            raise InvalidParameter(option, rule, given[option])
    if last == ".npz":
        table, grid = npz(path)
        return Opened(
            path=path, names=table.names, chunks=lambda _: iter([table]), grid_points=grid
        )
    if last == ".parquet":
        names, rows = arrow.parquet_form(path)
        reads = partial(arrow.parquet, path, names)
        return Opened(path=path, names=names, rows=rows, reads=reads, chunks=partial(reads, None))
    if last in (".feather", ".arrow"):
        names = arrow.feather_names(path)
        return Opened(path=path, names=names, chunks=partial(arrow.feather, path, names))
    if last == ".xlsx":
        return _workbook(path, decimal=decimal or ".", header=header, asked=asked)
    rule = "a .csv, .tsv, .txt, .parquet, .feather, .arrow, .npz or .xlsx file"
    raise InvalidParameter("FILE", rule, path.name)


def beside(opened: Opened, columns: tuple[tuple[str, str], ...]) -> Opened:
    """A table with further constant columns, unless the file has a column of that name."""
    added = tuple((name, value) for name, value in columns if name not in opened.names)

    def chunks(rows: int | None) -> Iterator[Table]:
        return (
            _Wider(names, (), table.decimal, table.first, whole=table, added=added)
            for table in opened.chunks(rows)
        )

    names = (*opened.names, *(name for name, _ in added))
    return replace(opened, names=names, chunks=chunks, reads=None)


@dataclass(frozen=True, eq=False)
class _Wider(Table):
    """A table with further constant columns."""

    whole: Table = field(default=Table((), ()), repr=False)
    added: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.whole)

    def column(self, place: int) -> Cells:
        width = len(self.whole.names)
        if place < width:
            return self.whole.column(place)
        return [self.added[place - width][1]] * len(self)

    def read_ahead(self, places: Sequence[int]) -> None:
        inner = [place for place in places if place < len(self.whole.names)]
        self.whole.read_ahead(inner)
        self._known.update({k: self.whole._known[k] for k in inner if k in self.whole._known})


def _text(path: File, dialect: text.Dialect) -> Opened:
    return Opened(
        path=path,
        names=dialect.names,
        chunks=lambda rows: text.tables(path, dialect, rows),
        said=dialect.said,
        header=dialect.header,
        decimal=dialect.decimal,
    )


def _workbook(path: File, *, decimal: str, header: bool | None, asked: Collection[str]) -> Opened:
    title, rows = xlsx(path)
    if not rows:
        raise InvalidData(path.name, "a table with at least two rows", "an empty sheet")
    titles = text.titles(rows)
    rows = rows[titles:]
    certain = text.has_header(rows[: text.SAMPLE], decimal, asked) if header is None else header
    named = certain is not False
    names = [name.strip() * bool(certain) or f"{NUMBER}{k}" for k, name in enumerate(rows[0], 1)]
    names = names if named else [str(place + 1) for place in range(len(names))]
    table = Table(tuple(names), tuple(zip(*rows[named:], strict=True)), decimal)
    first = f"first row is {'a header' if named else 'data'}"
    return Opened(
        path=path,
        names=tuple(names),
        chunks=lambda _: iter([table] * (len(table) > 0)),
        said=(f"sheet {title!r}", first, *text.left_out(titles)),
        header=named,
        decimal=decimal,
    )
