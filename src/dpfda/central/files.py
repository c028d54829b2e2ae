"""Reading a curator's file: CSV, Parquet or NPZ, as named columns of numbers.

Errors name the rule and where it is broken (a row or column number), never a value.
"""

from __future__ import annotations

import csv
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.errors import InvalidData, InvalidParameter, MissingExtra

_MISSING = {"", "na", "nan", "null", "none", "."}
_MOST_UNSUSPICIOUS = 2  # columns of a first row that may increase by chance, as points do
_KEYS = ("curves", "points", "X", "values")


@dataclass(frozen=True)
class Table:
    """Rows of numbers and the names of their columns; NaN where a cell is empty.

    Example:
        >>> Table(values=np.ones((2, 3)), names=("a", "b", "c")).columns(["c"]).shape
        (2, 1)
    """

    values: FloatArray
    names: tuple[str, ...]
    grid_points: FloatArray | None = None
    header: bool | None = None  # whether the first row of a CSV file was taken for names

    def columns(self, names: list[str]) -> FloatArray:
        """Some columns by name."""
        return self.values[:, self._places(names)]

    def without(self, names: list[str]) -> Table:
        """All other columns."""
        dropped = set(self._places(names))
        kept = [place for place in range(len(self.names)) if place not in dropped]
        others = tuple(self.names[place] for place in kept)
        grid = _grid_in(others) if self.header else None
        return Table(self.values[:, kept], others, grid, self.header)

    def place_of(self, cells: Any) -> str:
        """Where the first True of a mask is, in words; rows are counted without the header."""
        row, column = np.argwhere(cells)[0] + 1
        return f"row {row}{' below the header' if self.header else ''}, column {column}"

    def _places(self, names: list[str]) -> list[int]:
        for name in names:
            if name not in self.names:
                raise InvalidParameter("column", "a column of the file", name)
        return [self.names.index(name) for name in names]


def read_table(path: Path, *, header: bool | None = None) -> Table:
    """A file by its suffix: .csv (also .csv.gz), .parquet, .npz.

    Args:
        path: the file.
        header: whether the first row of a CSV file holds names (numeric, strictly increasing ones
            are grid points). None: it does if any of its cells is text; a first row of three or
            more increasing numbers, which may be either, is refused.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".csv" in suffixes or suffixes[-1:] == [".txt"]:
        return _checked(_read_csv(path, header))
    if suffixes[-1:] == [".parquet"]:
        return _checked(_read_parquet(path))
    if suffixes[-1:] == [".npz"]:
        return _checked(_read_npz(path))
    raise InvalidParameter("file", "a .csv, .parquet or .npz file", path.name)


def _checked(table: Table) -> Table:
    rows, columns = table.values.shape
    if rows == 0 or columns == 0:
        raise InvalidData("file", "a table with at least two rows", "an empty table")
    if rows == 1:
        raise InvalidData("file", "a table with at least two rows", "one row")
    infinite = np.isinf(table.values)
    if infinite.any():
        raise InvalidData("file", "finite", f"an infinity in {table.place_of(infinite)}")
    return table


def _read_csv(path: Path, header: bool | None) -> Table:
    import gzip

    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            lines = [line for line in csv.reader(stream) if line and any(map(str.strip, line))]
    except (UnicodeDecodeError, csv.Error, OSError, EOFError, zlib.error):
        raise InvalidData("file", "a readable CSV file in UTF-8") from None
    if not lines:
        raise InvalidData("file", "a table with at least two rows", "an empty file")
    _refuse_other_delimiters(lines[0])
    width = len(lines[0])
    for number, line in enumerate(lines, start=1):
        if len(line) != width:
            found = f"{len(line)} columns in row {number}, {width} in row 1"
            raise InvalidData("file", "a table with equally many columns in every row", found)
    named = _has_header(lines[0]) if header is None else header
    body = lines[1:] if named else lines
    cells = lines[0] if named else map(str, range(1, width + 1))
    names = tuple(cell.strip() for cell in cells)
    values = np.array([[_number(cell) for cell in line] for line in body], dtype=np.float64)
    values = values.reshape(len(body), width)
    table = Table(values, names, _grid_in(names) if named else None, named)
    if (values == _WRONG).any():
        place = f"something else in {table.place_of(values == _WRONG)}"
        raise InvalidData("file", "made of numbers", place)
    return table


_WRONG = -1.2345678901234567e300  # stands for "not a number at all" until the table is complete


def _number(cell: str) -> float:
    text = cell.strip()
    if text.lower() in _MISSING:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        return _WRONG


def _has_header(line: list[str]) -> bool:
    """Whether the first row holds names; refused where it may as well be a curve."""
    if any(_number(cell) == _WRONG for cell in line):
        return True
    if len(line) > _MOST_UNSUSPICIOUS and _grid_in(tuple(line)) is not None:
        rule = "clear about its first row: increasing numbers may be grid points or a curve"
        raise InvalidData("file", f"{rule} (pass --header or --no-header)")
    return False


def _grid_in(names: tuple[str, ...]) -> FloatArray | None:
    """Names as grid points, where they are strictly increasing numbers."""
    points = np.array([_number(name) for name in names])
    usable = points.size > 1 and bool(np.all(np.isfinite(points) & (points != _WRONG)))
    return points if usable and bool(np.all(np.diff(points) > 0)) else None


def _refuse_other_delimiters(line: list[str]) -> None:
    """K parts of at most K + 1 cells: commas, if any, are decimal ones."""
    text = ",".join(line)
    for delimiter, name in ((";", "semicolons"), ("\t", "tabs")):
        parts = text.split(delimiter)
        if len(parts) > 1 and len(parts) + 1 >= len(line):
            rule = "a table with commas between columns and points in numbers"
            raise InvalidData("file", rule, f"{name}; write it anew with the delimiter ','")


def _read_parquet(path: Path) -> Table:
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas and pyarrow", "files") from None
    try:
        frame = pandas.read_parquet(path)
    except (OSError, ValueError, EOFError):
        raise InvalidData("file", "a readable Parquet file") from None
    for place, kind in enumerate(frame.dtypes, start=1):
        if kind.kind not in "fiub":
            raise InvalidData("file", "made of numbers", f"another type in column {place}")
    return Table(frame.to_numpy(dtype=np.float64, na_value=np.nan), tuple(map(str, frame.columns)))


def _read_npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError):
        raise InvalidData("file", "a readable NPZ file without pickled objects") from None
    grid = arrays.pop("grid_points", None)
    numeric = {name: array for name, array in arrays.items() if array.dtype.kind in "fiub"}
    main = next((name for name in _KEYS if name in numeric), None)
    if main is None and len(numeric) == 1:
        main = next(iter(numeric))
    if main is None or numeric[main].ndim not in (1, 2):
        rule = f"an archive with a table named {' or '.join(_KEYS)}"
        raise InvalidData("file", rule, f"arrays {', '.join(sorted(arrays)) or 'of no name'}")
    parts, names = [], []
    for name in [main, *(other for other in numeric if other != main)]:
        part = numeric[name].astype(np.float64)
        part = part[:, None] if part.ndim == 1 else part
        if part.ndim != 2 or len(part) != len(numeric[main]):
            continue
        parts.append(part)
        single = part.shape[1] == 1 and name != main
        names += [name] if single else [f"{name}.{k}" for k in range(1, part.shape[1] + 1)]
    own = parts[0].shape[1]
    if grid is not None and (grid.ndim != 1 or grid.size != own):
        raise InvalidData("grid_points", f"one number for each of the {own} columns")
    return Table(np.hstack(parts), tuple(names), grid)
