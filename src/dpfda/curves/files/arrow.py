"""Readers with Apache Arrow: Parquet, Feather, data frames, and numbers of large text files.

The numbers equal those of the other readers bit for bit, because both round correctly. Cells that
Arrow would read differently are left to the other readers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import IO, TYPE_CHECKING, cast

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.files.cells import MISSING, Cells, Table
from dpfda.curves.files.file import File
from dpfda.errors import InvalidData, MissingExtra

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

LARGE = 1 << 20  # bytes of text; smaller files are read faster than pyarrow is imported
_BLOCK = 1 << 23  # bytes that are parsed at once
_EMPTY = sorted({word for one in MISSING for word in (one, one.upper(), one.title())} | {"NaN"})


def floats(
    body: bytes, sep: str, decimal: str, *, width: int, places: Sequence[int]
) -> list[FloatArray] | None:
    """Columns of lines as numbers, NaN for empty cells; None if another reader must be used."""
    try:
        import pyarrow as arrow
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(place) for place in range(width)]
    wanted = [names[place] for place in places]
    try:
        table = csv.open_csv(
            arrow.BufferReader(body),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(delimiter=sep, quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, arrow.float64()),
                include_columns=wanted,
                null_values=_EMPTY,
                decimal_point=decimal,
                check_utf8=False,
            ),
        ).read_all()
    except arrow.ArrowException:
        return None
    found = [np.array(column.to_numpy(), dtype=np.float64) for column in table.columns]
    gaps = [int(np.isnan(values).sum()) for values in found]
    if gaps != [column.null_count for column in table.columns]:
        return None  # a word that only Arrow reads as NaN
    return found


@dataclass(frozen=True, eq=False)
class Batch(Table):
    """Rows of a record batch; a column becomes an array when it is read."""

    batch: RecordBatch = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def column(self, place: int) -> Cells:
        """Numbers as floats with NaN for missing values; other columns as text."""
        found = place
        if len(self.batch.schema.names) != len(self.names):  # some columns were left out
            found = self.batch.schema.get_field_index(self.names[place])
        column = self.batch.column(found)
        types, kind = _arrow().types, column.type
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            numbers = column.cast(_arrow().float64(), safe=False)
            return np.asarray(numbers.to_numpy(zero_copy_only=False))
        return ["" if cell is None else str(cell) for cell in column.to_pylist()]


def tables(
    batches: Iterable[RecordBatch], names: Sequence[str], *, rows: int | None
) -> Iterator[Table]:
    """Record batches as tables of at most `rows` rows; None for one table."""
    if rows is None:
        if every := list(batches):
            yield Batch(tuple(names), (), batch=_arrow().Table.from_batches(every))
        return
    first = 1
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            part = batch.slice(start, rows)
            yield Batch(tuple(names), (), first=first, batch=part)
            first += part.num_rows


def parquet(
    path: File, names: Sequence[str], columns: Collection[str] | None, rows: int | None
) -> Iterator[Table]:
    """Read the requested columns of a Parquet file, some rows at a time."""
    with _reading(path, "Parquet") as (stream, _):
        from pyarrow.parquet import ParquetFile

        wanted = None if columns is None else list(columns)
        file = ParquetFile(stream, pre_buffer=False)  # otherwise the whole file stays in memory
        size = rows or max(1, file.metadata.num_rows)
        yield from tables(file.iter_batches(batch_size=size, columns=wanted), names, rows=rows)


def parquet_form(path: File) -> tuple[tuple[str, ...], int]:
    """The column names and the number of rows of a Parquet file, from its footer."""
    with _reading(path, "Parquet") as (stream, _):
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(stream)
        return tuple(file.schema_arrow.names), int(file.metadata.num_rows)


def feather(path: File, names: Sequence[str], rows: int | None) -> Iterator[Table]:
    """Read an Arrow file (Feather) or stream."""
    with _reading(path, "Arrow") as (stream, arrow):
        yield from tables(_batches(stream, arrow)[1], names, rows=rows)


def feather_names(path: File) -> tuple[str, ...]:
    """The column names of an Arrow file or stream."""
    with _reading(path, "Arrow") as (stream, arrow):
        return tuple(_batches(stream, arrow)[0].names)


def _batches(stream: IO[bytes], arrow: ModuleType) -> tuple[Schema, Iterable[RecordBatch]]:
    """Schema and record batches of an Arrow file, or of a stream."""
    try:
        file = arrow.ipc.open_file(stream)
    except arrow.ArrowInvalid:
        stream.seek(0)
        opened = arrow.ipc.open_stream(stream)
        return opened.schema, opened
    return file.schema, (file.get_batch(k) for k in range(file.num_record_batches))


@contextmanager
def _reading(path: File, kind: str) -> Iterator[tuple[IO[bytes], ModuleType]]:
    arrow = _arrow()
    try:
        with path.open("rb") as stream:
            yield stream, arrow
    except (OSError, ValueError, EOFError, arrow.ArrowException):
        raise InvalidData(path.name, f"a readable {kind} file") from None


def _arrow() -> ModuleType:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise MissingExtra("pyarrow", "files") from None
    return cast("ModuleType", pyarrow)
