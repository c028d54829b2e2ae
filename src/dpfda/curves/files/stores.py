"""Files that are not text: Parquet, NPZ and XLSX."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.files.handed import File
from dpfda.curves.files.table import Table
from dpfda.errors import InvalidData, MissingExtra

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
