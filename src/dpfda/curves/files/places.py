"""Tables in several files, or in memory: folders, patterns, object stores, datasets, frames.

    place ── tables_at ──> files, or parts of a frame ── open_file ──> chunks of rows

A folder is one table. Subfolders with names like ``ward=3`` define columns, as in Hive and Spark.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dpfda._validate import unquoted_engine
from dpfda.curves.files.arrow import parquet_form, tables
from dpfda.curves.files.cells import Table
from dpfda.curves.files.file import File, Place, store_of, without_secrets
from dpfda.curves.files.opening import FORMATS, Opened
from dpfda.errors import InvalidParameter

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from pyarrow import RecordBatch, Schema
    from pyarrow.dataset import Dataset, Fragment

_MARKS = frozenset("*?[")
_NOBODY = "__HIVE_DEFAULT_PARTITION__"  # a missing value in Hive and Spark
_ROWS = 100_000  # rows of one batch of an engine


def tables_at(place: object) -> list[File | Opened]:
    """The files of a path, folder, pattern or address; the parts of a dataset; or a frame.

    Examples:
        >>> tables_at("rows.csv")
        [PosixPath('rows.csv')]
    """
    if isinstance(place, (str, Path)):
        return list(_files(str(place)))
    if isinstance(place, Opened):
        return [place]
    if hasattr(place, "get_fragments"):
        return _fragments(place)
    return [frame(place)]


def count_in(file: File | Opened) -> int | None:
    """Number of rows, if it is known without a pass: for example from a Parquet footer."""
    if isinstance(file, Opened):
        return file.rows
    return parquet_form(file)[1] if file.suffix.lower() == ".parquet" else None


def is_frame(given: object) -> bool:
    """Whether it is a table with named columns, of any library that exports Arrow batches."""
    known = ("__arrow_c_stream__", "collect_batches", "get_fragments")
    return any(hasattr(given, name) for name in known)


def frame(given: Any) -> Opened:
    """A frame of polars, pandas, pyarrow or DuckDB, which is read again in every pass."""
    if hasattr(given, "read_next_batch") or not is_frame(given):
        rule = "a table that can be read in every pass, a file, or a function that starts a pass"
        raise InvalidParameter("chunks", rule, type(given).__name__)
    lazy = hasattr(given, "collect_schema")
    found = given.collect_schema().names() if lazy else getattr(given, "column_names", None)
    names = tuple(map(str, given.columns if found is None else found))
    reads = partial(_unquoted, _of_frame, given, names)
    path = Path(type(given).__name__)
    return Opened(path=path, names=names, chunks=partial(reads, None), reads=reads)


def _unquoted(
    reads: Callable[..., Iterator[Table]], given: object, *rest: object
) -> Iterator[Table]:
    with unquoted_engine(given, name="chunks"):
        yield from reads(given, *rest)


def _of_frame(
    given: Any, names: tuple[str, ...], columns: Collection[str] | None, rows: int | None
) -> Iterator[Table]:
    """A pass over a frame; a lazy engine reads only the requested columns."""
    wanted = list(names if columns is None else columns)
    if hasattr(given, "collect_batches"):  # polars
        lazy = given.select(wanted).collect_batches(chunk_size=rows or _ROWS, maintain_order=True)
        batches: Iterable[RecordBatch] = (batch for part in lazy for batch in _stream(part))
    else:
        if hasattr(given, "project"):  # DuckDB
            quoted = (name.replace('"', '""') for name in wanted)
            given = given.project(", ".join(f'"{name}"' for name in quoted))
        batches = _stream(given)
    yield from tables(batches, names, rows=rows)


def _stream(given: object) -> Iterable[RecordBatch]:
    from pyarrow import RecordBatchReader

    found: Iterable[RecordBatch] = RecordBatchReader.from_stream(given)
    return found


def _fragments(dataset: Dataset) -> list[File | Opened]:
    """The files of an Arrow dataset; folders define columns, and footers state rows."""
    names = tuple(dataset.schema.names)
    found: list[File | Opened] = []
    for fragment in dataset.get_fragments():
        reads = partial(_unquoted, _of_fragment, fragment, dataset.schema)
        path = Path(getattr(fragment, "path", "fragment"))
        rows = fragment.count_rows() if _is_parquet(fragment) else None
        part = Opened(path=path, names=names, chunks=partial(reads, None), rows=rows, reads=reads)
        found.append(part)
    return found


def _is_parquet(fragment: Fragment) -> bool:
    kind = getattr(fragment, "format", None)
    return kind is not None and bool(kind.default_extname == "parquet")


def _of_fragment(
    fragment: Fragment, schema: Schema, columns: Collection[str] | None, rows: int | None
) -> Iterator[Table]:
    wanted = list(schema.names if columns is None else columns)
    # Read by row groups: a scan of the whole file would keep all read rows in memory.
    parts = fragment.split_by_row_group() if _is_parquet(fragment) else [fragment]
    how: dict[str, Any] = {"schema": schema, "columns": wanted, "batch_size": rows or _ROWS}
    batches = (batch for part in parts for batch in part.to_batches(**how))
    yield from tables(batches, schema.names, rows=rows)


def _files(place: str) -> Iterator[Path | Place]:
    """The files of a path, folder, pattern or address, sorted by name."""
    store, path = store_of(place) if "://" in place else (None, place)
    is_folder = Path(path).is_dir() if store is None else store.isdir(path)
    is_pattern = bool(_MARKS & set(path)) and not (store is None and Path(path).exists())
    if not is_folder and not is_pattern:
        yield Path(place) if store is None else Place(place)
        return
    pattern = f"{path.rstrip('/')}/**" if is_folder else path
    found = glob.glob(pattern, recursive=True) if store is None else store.glob(pattern)
    base = len(_fixed(PurePosixPath(path)).parts)
    count = 0
    for one in sorted(set(found)):
        parts = PurePosixPath(one).parts[base:]
        hidden = any(part.startswith((".", "_")) for part in parts)
        known = FORMATS & {suffix.lower() for suffix in PurePosixPath(one).suffixes[-2:]}
        if hidden or (is_folder and not known) or _is_folder(store, one):
            continue
        count += 1
        columns = _columns(parts[:-1])
        if store is None and not columns:
            yield Path(one)
        else:
            yield Place(one if store is None else store.unstrip_protocol(one), columns)
    if not count:
        rule = "a folder with data files" if is_folder else "a pattern that matches a file"
        raise InvalidParameter("FILE", rule, without_secrets(place))


def _is_folder(store: AbstractFileSystem | None, path: str) -> bool:
    return bool(Path(path).is_dir() if store is None else store.isdir(path))


def _fixed(path: PurePosixPath) -> PurePosixPath:
    """The folders of a pattern before its first wildcard."""
    while _MARKS & set(str(path)):
        path = path.parent
    return path


def _columns(folders: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Columns that names of folders define: ``ward=3``."""
    pairs = (part.split("=", 1) for part in folders if "=" in part)
    return tuple((unquote(key), "" if value == _NOBODY else unquote(value)) for key, value in pairs)
