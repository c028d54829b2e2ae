"""Reading a curator's file: CSV, Parquet or NPZ, as named columns of numbers.

Errors name the rule and where it is broken (a row or column number), never a value.
"""

from __future__ import annotations

import csv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.errors import InvalidData, InvalidParameter, MissingExtra

_MISSING = {"", "na", "nan", "null", "none", "."}
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

    def columns(self, names: list[str]) -> FloatArray:
        """Some columns by name."""
        return self.values[:, self._places(names)]

    def without(self, names: list[str]) -> Table:
        """All other columns."""
        dropped = set(self._places(names))
        kept = [place for place in range(len(self.names)) if place not in dropped]
        return Table(self.values[:, kept], tuple(self.names[place] for place in kept))

    def _places(self, names: list[str]) -> list[int]:
        for name in names:
            if name not in self.names:
                raise InvalidParameter("column", "a column of the file", name)
        return [self.names.index(name) for name in names]


def read_table(path: Path) -> Table:
    """A file by its suffix: .csv (also .csv.gz), .parquet, .npz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".csv" in suffixes or suffixes[-1:] == [".txt"]:
        return _checked(_read_csv(path))
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
    if np.isinf(table.values).any():
        raise InvalidData("file", "finite (no infinity)")
    return table


def _read_csv(path: Path) -> Table:
    import gzip

    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            lines = [line for line in csv.reader(stream) if line and any(map(str.strip, line))]
    except (UnicodeDecodeError, csv.Error, OSError):
        raise InvalidData("file", "a readable CSV file in UTF-8") from None
    if not lines:
        raise InvalidData("file", "a table with at least two rows", "an empty file")
    width = len(lines[0])
    for number, line in enumerate(lines, start=1):
        if len(line) != width:
            found = f"{len(line)} columns in row {number}, {width} in row 1"
            raise InvalidData("file", "a table with equally many columns in every row", found)
    names = _header(lines[0])
    body = lines[1:] if names else lines
    values = np.array([[_number(cell) for cell in line] for line in body], dtype=np.float64)
    wrong = np.argwhere(values == _WRONG)
    if wrong.size:
        row, column = wrong[0] + 1
        place = f"something else in row {row}, column {column}"
        raise InvalidData("file", "made of numbers", place)
    values = values.reshape(len(body), width)
    return Table(values, names or tuple(str(place) for place in range(1, width + 1)))


_WRONG = -1.2345678901234567e300  # stands for "not a number at all" until the table is complete


def _number(cell: str) -> float:
    text = cell.strip()
    if text.lower() in _MISSING:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        return _WRONG


def _header(line: list[str]) -> tuple[str, ...] | None:
    """The first row as names, if any of its cells is text."""
    cells = [cell.strip() for cell in line]
    if all(_number(cell) != _WRONG for cell in cells):
        return None
    return tuple(cells)


def _read_parquet(path: Path) -> Table:
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas and pyarrow", "files") from None
    try:
        frame = pandas.read_parquet(path)
    except (OSError, ValueError):
        raise InvalidData("file", "a readable Parquet file") from None
    for place, kind in enumerate(frame.dtypes, start=1):
        if kind.kind not in "fiub":
            raise InvalidData("file", "made of numbers", f"another type in column {place}")
    return Table(frame.to_numpy(dtype=np.float64), tuple(map(str, frame.columns)))


def _read_npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile):
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
