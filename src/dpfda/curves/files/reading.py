"""Read a file as input of a method: curves or features, with labels and persons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from dpfda._validate import AnyArray, FloatArray, IntArray
from dpfda.curves.files.cells import NUMBER, Table, place_of, places_of, shown, strays
from dpfda.curves.files.file import File
from dpfda.curves.files.opening import Opened, open_file
from dpfda.errors import InvalidData, InvalidParameter

_LONG = 3  # columns of a long table: id, t, x
# share of the domain: points this far outside are moved to its end, as slightly early or late
_NEAR = 0.01
_UNNAMED = ". Its first row was taken as a header: pass --no-header if it holds data"

#: The options for reading a file, with their help.
OPTIONS = {
    "sep": "Column separator: ';', ',', '|' or tab. Default: detected.",
    "decimal": "Decimal mark: '.' or ','. Default: detected.",
    "columns": "Columns to read as numbers: age,weight or t0..t92; @3 is the third.",
    "drop": "Columns to leave out.",
    "id": "Column that identifies a curve; it repeats in long form (id, t, x).",
    "label": "Column of classes.",
    "groups": "Column of persons, if a person may have several rows: the guarantee is per person.",
    "grid": "Grid points: 0:24 (evenly) or 0,0.5,2. Default: the header, if it holds "
    "numbers, or else evenly on 0:1.",
    "header": "Whether the first row of a text file holds names (numbers: grid points).",
    "fill": (
        "Fill empty cells: along a curve by interpolation, otherwise with the center "
        "of the public range. A missing category counts as none of those listed."
    ),
    "drop_empty": "Leave out curves without any value, and rows whose target, label or (without "
    "--fill) feature is empty. Which rows these are becomes public; the guarantee states this.",
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Curves or features of a file, and further columns with one entry per curve.

    Attributes:
        X: an array (n, T), with NaN for empty cells if `fill` is set; or one pair (t, x) per curve,
            for individual grids.
        names: names of the columns of X; empty for curves in long form.
        grid_points: grid points of an array, if the file or the caller stated them.
        said: how the file was read, on one line.
    """

    X: Any
    names: tuple[str, ...]
    grid_points: FloatArray | None
    said: str
    _table: Table = field(repr=False)
    _long: tuple[IntArray, IntArray] | None = field(default=None, repr=False)
    """In long form: the first row of each curve, and the curve of each row."""

    def text(self, name: str, *, gaps: bool = False) -> AnyArray:
        """A column of labels, ids or persons; with `gaps`, "" for empty cells."""
        return self._of_curves(self._table.text(name, gaps=gaps), name)

    def numbers(self, names: Sequence[str], *, gaps: bool = False) -> FloatArray:
        """Further columns of numbers, (n, k); with `gaps`, NaN for empty cells."""
        found = self._table.numbers(names, gaps=gaps)
        return np.asarray(self._of_curves(found, ",".join(names)))

    def row(self, place: int) -> int:
        """The first row of a curve in the file, counted below the header."""
        return self._table.row_number(place if self._long is None else int(self._long[0][place]))

    def _of_curves(self, column: AnyArray, name: str) -> AnyArray:
        if self._long is None:
            return column
        first, whose = self._long
        differs = (column != column[first][whose]).reshape(len(column), -1).any(axis=1)
        if differs.any():
            row = self._table.row_number(int(np.argmax(differs)))
            where = f"row {row}, column {name!r}"
            raise InvalidData(where, "the same in all rows of one id", "another entry")
        return column[first]


@dataclass(frozen=True, kw_only=True)
class Reading:
    r"""Options for reading a file; an option of None is detected.

    Attributes:
        sep, decimal, header: of a text file.
        columns: columns of the curve or features, ``age,weight`` or ``t0..t92``; by default all
            that have no other role.
        drop: columns to leave out.
        id: column that identifies a curve; in long form (id, t, x) it repeats.
        label: column of classes.
        groups: column of persons.
        fill: allow empty cells.
        drop_empty: leave out rows without data. Which rows these are becomes public.
        grid: grid points, ``0:24`` (equidistant) or ``0,0.5,2``.
        asked_by: the option that stated `columns`, for errors.
        centers: with `fill`, the public number that replaces an empty cell of a column.
        center: with `fill`, the public value of curves without any value; None to refuse them.
        domain_range: public range of t; in long form, points near its ends are moved to them.

    Examples:
        >>> from dpfda.curves.files import Handed
        >>> file = Handed("curves.csv", b"who;0;0,5;1\na;1,5;2;3\nb;2,5;3;4\n")
        >>> rows = Reading(id="who").rows(file)
        >>> print(rows.said, rows.X.tolist(), sep="\n")  # doctest: +ELLIPSIS
        read 2 rows × 4 columns: ';' between columns, ',' decimals, first row is a header, ...
        [[1.5, 2.0, 3.0], [2.5, 3.0, 4.0]]
    """

    sep: str | None = None
    decimal: str | None = None
    header: bool | None = None
    columns: str | None = None
    drop: str | None = None
    id: str | None = None
    label: str | None = None
    groups: str | None = None
    fill: bool = False
    drop_empty: bool = False
    grid: str | None = None
    asked_by: str = field(default="--columns", repr=False)
    centers: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    center: float | None = field(default=None, repr=False)
    domain_range: tuple[float, float] | None = field(default=None, repr=False)

    def choosing(self, names: Sequence[str], *, by: str = "--columns") -> Reading:
        """The same reading of these columns; errors name the option `by`."""
        return replace(self, columns=",".join(names), asked_by=by)

    def at(self, opened: Opened, *, aside: Mapping[str, str] | None = None) -> Reading:
        """The same reading with its columns fixed, for further rows of an open file."""
        names = self.chosen(opened, aside=aside)
        places = [f"{NUMBER}{place_of(name, opened.names) + 1}" for name in names]
        return replace(self, columns=",".join(places), drop=None)

    def open(self, path: File | Opened, *, aside: Iterable[str] = ()) -> Opened:
        """Open the file before its rows are read; the requested columns are known."""
        lists = [part.split(",") for part in (self.columns, self.drop) if part is not None]
        asked = {name.strip() for name in (*aside, *chain(*lists))}
        asked |= {self.id, self.label, self.groups} - {None}  # type: ignore[arg-type]
        return open_file(path, sep=self.sep, decimal=self.decimal, header=self.header, asked=asked)

    def chosen(self, opened: Opened, *, aside: Mapping[str, str] | None = None) -> list[str]:
        """Names of the columns to read as numbers: those requested, or all without another role."""
        names = opened.names
        roles = {"--id": self.id, "--label": self.label, "--groups": self.groups}
        taken = {place_of(name, names, option=key) for key, name in roles.items() if name}
        beside = (aside or {}).items()
        taken |= {place_of(name, names, option=option) for name, option in beside}
        if self.columns is not None:
            kept = places_of(self.columns, names, option=self.asked_by)
            if taken & set(kept):
                both = names[min(taken & set(kept))]
                raise InvalidParameter(
                    self.asked_by, "without columns that have another role", both
                )
        else:
            kept = [place for place in range(len(names)) if place not in taken]
        if self.drop is not None:
            dropped = places_of(self.drop, names, option="--drop")
            kept = [place for place in kept if place not in dropped]
        if not kept:
            rule = "a table with at least one column that is not dropped and has no other role"
            raise InvalidData("FILE", rule)
        return [
            names[place] if names.count(names[place]) == 1 else f"{NUMBER}{place + 1}"
            for place in kept
        ]

    def rows(
        self,
        path: File | Opened,
        *,
        aside: Mapping[str, str] | None = None,
        curves: bool = True,
        least: int = 2,
    ) -> Rows:
        """Read the whole file: curves in wide or long form, or (curves=False) features.

        `aside` maps columns with another role to the option that states this role.
        """
        opened = self.open(path, aside=aside or ())
        names, whole = self.chosen(opened, aside=aside), opened.table(least=least)
        self.refuse_others(whole, names)
        long = curves and self.id is not None and len(names) == _LONG - 1
        table = self.prepared(whole, names, beside=aside or (), curves=curves and not long)
        said = self.said(opened, len(whole))
        if len(table) < len(whole):
            said += f"; {len(whole) - len(table)} rows without data were left out"
        if len(table) < least:
            raise InvalidData(path.name, f"a table with at least {least} rows that hold data")
        if long:
            order: dict[str, int] = {}  # ids in the order of appearance
            found = [order.setdefault(who, len(order)) for who in table.text(str(self.id))]
            if len(order) < len(table):
                return self._long(table, names, np.array(found), said)
        if curves and self.columns is None and _seems_long(table, names):
            rule = (
                "unambiguous: three columns like id, t, x may be in long form (pass --id) or be "
                "curves (pass --columns)"
            )
            raise InvalidData("FILE", rule)
        if curves:
            self._refuse_strays(opened, names)
        X = table.numbers(names, gaps=self.fill and curves)
        if curves:
            self._fill_empty_curves(X, table.row_number)
        grid = self._grid(opened, names) if curves else None
        if grid is not None:
            said += f"; {grid.size} grid points from {grid[0]:.6g} to {grid[-1]:.6g}"
        elif curves and len(names) > 1:
            ends = [shown(place_of(name, table.names), table.names) for name in names]
            said += f"; curves of {len(names)} points, {ends[0]} to {ends[-1]}"
        return Rows(X, tuple(names), grid, said, table)

    def prepared(
        self,
        table: Table,
        names: Sequence[str],
        *,
        beside: Iterable[str] = (),
        curves: bool = False,
    ) -> Table:
        """The table with public numbers for empty cells, and without rows that hold no data."""
        if self.fill and self.centers:
            table = replace(table, centers=dict(self.centers))
        if not self.drop_empty:
            return table
        needed = {*beside, *filter(None, (self.label,))}
        gaps = table.is_empty(names)
        lacks = gaps.all(axis=1) if curves or self.fill else gaps.any(axis=1)
        lacks = np.logical_or(lacks, table.is_empty(sorted(needed)).any(axis=1))
        return table.only(np.logical_not(lacks))

    def _fill_empty_curves(self, X: FloatArray, row: Callable[[int], int]) -> None:
        """Replace curves without values by the public center; without a center, refuse them."""
        empty = np.isnan(X).all(axis=1)
        if not empty.any():
            return
        if self.center is None:
            rule = "a curve with a value at one point at least (--drop-empty leaves out such rows; "
            rule += "--fill with --range answers the middle of the range)"
            raise InvalidData(f"row {row(int(np.argmax(empty)))}", rule)
        X[empty] = self.center

    def head(
        self, path: File | Opened, *, aside: Mapping[str, str] | None = None, curves: bool = True
    ) -> Rows:
        """Read only the public header of a file in wide form: columns and grid points."""
        opened = self.open(path, aside=aside or ())
        names = self.chosen(opened, aside=aside)
        if curves:
            self._refuse_strays(opened, names)
        none = Table(opened.names, tuple([] for _ in opened.names), opened.decimal)
        said = ", ".join(opened.said)
        grid = self._grid(opened, names) if curves else None
        return Rows(np.empty((0, len(names))), tuple(names), grid, said, none)

    def said(self, opened: Opened, rows: int) -> str:
        """One line on how the file was read."""
        columns = len(opened.names)
        line = f"read {rows} row{'s' * (rows != 1)} × {columns} column{'s' * (columns != 1)}"
        return f"{line}: {', '.join(opened.said)}" if opened.said else line

    def refuse_others(self, table: Table, names: Sequence[str]) -> None:
        """Refuse columns that are not numbers, in one error that names their kinds of content."""
        if self.columns is not None:
            return  # requested by name: errors will name the invalid cell
        places = [place_of(name, table.names) for name in names]
        table.read_ahead(places)
        kinds = ((place, table.kind(place)) for place in places)
        odd = {place: kind for place, kind in kinds if kind != "numbers"}
        if odd:
            names = table.names
            text = "; ".join(f"{shown(at, names)}, which looks like {odd[at]}" for at in odd)
            several = ("columns that do", "their")
            column, role = several if len(odd) > 1 else ("a column that does", "its")
            raise InvalidData.saying(
                "FILE",
                f"has {column} not hold numbers: {text}. {_leave_out(list(odd), names)}, choose "
                f"columns with --columns, or state {role} role with --id, --label or --groups"
                + _UNNAMED
                * all(name == f"{NUMBER}{k}" for k, name in enumerate(names, start=1)),
            )

    def _refuse_strays(self, opened: Opened, names: Sequence[str]) -> None:
        """Refuse columns of numbers that are probably not points of a curve."""
        if self.columns is not None or self.grid is not None:
            return  # requested by name, or by the length of the grid
        places = [place_of(name, opened.names) for name in names]
        odd = [places[place] for place in strays([opened.names[place] for place in places])]
        if odd:
            text = ", ".join(shown(place, opened.names) for place in odd)
            raise InvalidData.saying(
                "FILE",
                f"has columns that are named unlike the points of its curves: {text}. "
                f"{_leave_out(odd, opened.names)}, state their role with --id, --label or "
                "--groups, or name the points with --columns",
            )

    def _grid(self, opened: Opened, names: list[str]) -> FloatArray | None:
        if self.grid is None:
            own = opened.grid_points
            return opened.grid_of(names) if own is None or own.size != len(names) else own
        try:
            if ":" in self.grid:
                low, high = map(float, self.grid.split(":"))
                return np.linspace(low, high, len(names))
            points = np.array([float(part) for part in self.grid.split(",")])
        except ValueError:
            rule = "like 0:24 (evenly) or 0,0.5,2"
            raise InvalidParameter("--grid", rule, self.grid) from None
        if points.size != len(names):
            raise InvalidParameter("--grid", f"{len(names)} points, one per column", points.size)
        return points

    def _in_domain(self, t: FloatArray, table: Table) -> FloatArray:
        """Check that points lie in the domain, if known; move points just outside to its end."""
        if self.domain_range is None:
            return t
        low, high = self.domain_range
        near = _NEAR * (high - low)
        outside = (t < low - near) | (t > high + near)
        if outside.any():
            where = f"row {table.row_number(int(np.argmax(outside)))}"
            raise InvalidData(where, f"a point inside --domain-range {low:g} {high:g}")
        return np.clip(t, low, high)

    def _long(self, table: Table, names: list[str], whose: IntArray, said: str) -> Rows:
        """Rows (id, t, x) as curves, in the order in which their ids appear."""
        t, x = table.numbers(names, gaps=self.fill).T
        _, first = np.unique(whose, return_index=True)
        order = np.lexsort((t, whose))
        again = (np.diff(t[order]) == 0) & (np.diff(whose[order]) == 0)
        if again.any():
            row = table.row_number(int(order[1:][again].min()))
            raise InvalidData(f"row {row}", "the only row with its id and t", "a repeated one")
        t = self._in_domain(t, table)
        seen = np.where(np.bincount(whose, weights=~np.isnan(x)) > 0, 0.0, np.nan)[:, None]
        self._fill_empty_curves(seen, lambda place: table.row_number(int(first[place])))
        x = np.where(seen[whose, 0] == 0, x, self.center or 0.0)
        ends = np.cumsum(np.bincount(whose))[:-1]
        parts = list(zip(np.split(t[order], ends), np.split(x[order], ends), strict=True))
        shared = all(np.array_equal(points, parts[0][0]) for points, _ in parts)
        grid = parts[0][0] if shared and parts[0][0].size > 1 else None
        X: object = np.stack([values for _, values in parts]) if grid is not None else parts
        said += f"; long form: {len(parts)} curves at "
        said += f"{grid.size} common points" if grid is not None else "individual points"
        return Rows(X, (), grid, said, table, (first, whose))


def _seems_long(table: Table, names: Sequence[str]) -> bool:
    """Whether three columns may be (id, t, x): the first has runs in which the second increases."""
    if len(names) != _LONG or len(table.names) != _LONG or len(table) < 2:
        return False
    who, t, _ = table.numbers(names, gaps=True).T
    same = np.diff(who) == 0
    return bool(same.mean() >= 0.5 and np.all(np.diff(t)[same] > 0))


def _leave_out(places: Sequence[int], names: Sequence[str]) -> str:
    """Advice on columns that are not measurements."""
    asked = [shown(place, names).removeprefix("column ").strip("'") for place in places]
    # characters that a shell or --drop would interpret
    if any(set(one) & set(", '\"$") for one in asked):
        asked = [f"{NUMBER}{place + 1}" for place in places]
    return f"Leave {'them' if len(asked) > 1 else 'it'} out with --drop {','.join(asked)}"
