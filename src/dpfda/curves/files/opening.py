"""Open a file of any format: its columns by name, and its rows, at once or in chunks.

Text is read by `text.py`; Parquet, NPZ and XLSX are read here.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.files import text
from dpfda.curves.files.cells import NUMBER, File, Table, grid_in
from dpfda.errors import InvalidData, InvalidParameter, MissingExtra

_KEYS = ("curves", "points", "X", "values")


def npz(path: File) -> tuple[Table, FloatArray | None]:
    """An archive of columns of one length, or of one table with columns beside it."""
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


def parquet(path: File, *, rows: int) -> Iterator[Table]:
    """A Parquet file, some rows at a time."""
    try:
        import pyarrow as arrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra("pyarrow", "files") from None
    try:
        first = 1
        with path.open("rb") as stream:
            for batch in ParquetFile(stream).iter_batches(batch_size=rows):
                columns = tuple(_plain(_numbers(arrow, column)) for column in batch.columns)
                yield Table(tuple(batch.schema.names), columns, first=first)
                first += batch.num_rows
    except (OSError, ValueError, EOFError, arrow.ArrowException):
        raise InvalidData(path.name, "a readable Parquet file") from None


def parquet_names(path: File) -> tuple[str, ...]:
    """The columns of a Parquet file."""
    try:
        import pyarrow as arrow
        from pyarrow.parquet import read_schema
    except ImportError:
        raise MissingExtra("pyarrow", "files") from None
    try:
        with path.open("rb") as stream:
            return tuple(read_schema(stream).names)
    except (OSError, ValueError, EOFError, arrow.ArrowException):
        raise InvalidData(path.name, "a readable Parquet file") from None


def xlsx(path: File) -> tuple[str, list[list[str]]]:
    """The first sheet of a workbook: its title, and its cells as text."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtra("openpyxl", "files") from None
    try:
        with path.open("rb") as stream:
            book = load_workbook(stream, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            rows = [["" if cell is None else str(cell) for cell in row] for row in sheet.values]
    except Exception:  # a damaged workbook raises whatever its parts raise, and quotes them
        raise InvalidData(path.name, "a readable XLSX workbook") from None
    return sheet.title, [row for row in rows if any(map(str.strip, row))]


def _numbers(arrow: Any, column: Any) -> Any:
    """A column as an array: numbers as floats with NaN for what is missing."""
    kind = column.type
    if (
        arrow.types.is_integer(kind)
        or arrow.types.is_floating(kind)
        or arrow.types.is_boolean(kind)
    ):
        return column.cast(arrow.float64()).to_numpy(zero_copy_only=False)
    return ["" if cell is None else str(cell) for cell in column.to_pylist()]


def _plain(column: Any) -> Any:
    """Numbers as they are, anything else as text."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in "fiub":
        return [str(cell) for cell in column.tolist()]
    return column


_TEXT = {"", ".csv", ".tsv", ".txt", ".tab", ".dat"}
_WITHOUT = {
    ".npz": ("--sep", "--decimal", "--header"),
    ".parquet": ("--sep", "--decimal", "--header"),
    ".xlsx": ("--sep",),
}


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The properties of a file that are known before its rows are read.

    Attributes:
        path: where it is, or its bytes.
        names: of its columns.
        said: how it was read, in words.
        header: whether names come from the file.
        decimal: in its numbers.
        grid_points: where the file itself brings them.
        chunks: starts a pass over the rows, some at a time; None: all at once.
    """

    path: File
    names: tuple[str, ...]
    chunks: Callable[[int | None], Iterator[Table]]
    said: tuple[str, ...] = ()
    header: bool = True
    decimal: str = "."
    grid_points: FloatArray | None = None

    def table(self, *, least: int = 2) -> Table:
        """All rows, two at least."""
        table = next(self.chunks(None), None)
        if table is None or len(table) < least:
            found = "one row" if table is not None and len(table) else "no row"
            raise InvalidData(self.path.name, "a table with at least two rows", found)
        return table

    def grid_of(self, names: list[str]) -> FloatArray | None:
        """Names of columns that are grid points."""
        return grid_in(names, self.decimal) if self.header else None


def open_file(
    path: File,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    asked: Collection[str] = (),
) -> Opened:
    """Open a file by its suffix; missing options are detected. `asked` are names of columns."""
    suffixes, last = {suffix.lower() for suffix in path.suffixes[-2:]}, path.suffix.lower()
    if (suffixes or {""}) & _TEXT:
        return _text(path, text.sniff(path, sep=sep, decimal=decimal, header=header, asked=asked))
    given = {"--sep": sep, "--decimal": decimal, "--header": header}
    for option in _WITHOUT.get(last, ()):
        if given[option] is not None:
            rule = f"left out for a {last} file, which says it itself"
            raise InvalidParameter(option, rule, given[option])
    if last == ".npz":
        table, grid = npz(path)
        return Opened(
            path=path, names=table.names, chunks=lambda _: iter([table]), grid_points=grid
        )
    if last == ".parquet":
        return Opened(
            path=path,
            names=parquet_names(path),
            chunks=lambda rows: parquet(path, rows=1 << 40 if rows is None else rows),
        )
    if last == ".xlsx":
        return _workbook(path, decimal=decimal or ".", header=header, asked=asked)
    raise InvalidParameter("FILE", "a .csv, .tsv, .txt, .parquet, .npz or .xlsx file", path.name)


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
    named = text.has_header(rows[: text.SAMPLE], decimal, asked) if header is None else header
    names = [name.strip() or f"{NUMBER}{place}" for place, name in enumerate(rows[0], start=1)]
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
