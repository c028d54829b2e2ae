"""A file of any kind, opened: its columns by name, and its rows, at once or in chunks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from dpfda._validate import FloatArray
from dpfda.curves.files import stores, text
from dpfda.curves.files.cells import grid_in
from dpfda.curves.files.handed import File
from dpfda.curves.files.table import NUMBER, Table
from dpfda.errors import InvalidData, InvalidParameter

_TEXT = {"", ".csv", ".tsv", ".txt", ".tab", ".dat"}
_WITHOUT = {
    ".npz": ("--sep", "--decimal", "--header"),
    ".parquet": ("--sep", "--decimal", "--header"),
    ".xlsx": ("--sep",),
}


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What is known of a file before its rows are read.

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
    """Open a file by its suffix; what is not given is sniffed. `asked` may be names of columns."""
    suffixes, last = {suffix.lower() for suffix in path.suffixes[-2:]}, path.suffix.lower()
    if (suffixes or {""}) & _TEXT:
        return _text(path, text.sniff(path, sep=sep, decimal=decimal, header=header, asked=asked))
    given = {"--sep": sep, "--decimal": decimal, "--header": header}
    for option in _WITHOUT.get(last, ()):
        if given[option] is not None:
            rule = f"left out for a {last} file, which says it itself"
            raise InvalidParameter(option, rule, given[option])
    if last == ".npz":
        table, grid = stores.npz(path)
        return Opened(
            path=path, names=table.names, chunks=lambda _: iter([table]), grid_points=grid
        )
    if last == ".parquet":
        return Opened(
            path=path,
            names=stores.parquet_names(path),
            chunks=lambda rows: stores.parquet(path, rows=1 << 40 if rows is None else rows),
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
    title, rows = stores.xlsx(path)
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
