"""Tables with a column of times: from Fitbit, Google Fit, Oura, Samsung, Withings, or typed."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from dpfda.client.exports.series import Series, Zone, order_of, read_time, unix_time
from dpfda.errors import InvalidData

_MOST_ROWS, _MOST_COLUMNS, _MOST_CELLS = 500_000, 5_000, 5_000_000
_FIRST = 1_000  # rows that are used to detect the kind of a column
_MISSING = re.compile(r"(na|nan|null|-|--)?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_UNIX = re.compile(r"\d{10,19}(\.\d+)?")
_OFFSET = re.compile(r"UTC([+-])(\d\d)(\d\d)")
_TIMELY = re.compile(
    r"(^t$|time|date|stamp|unix|epoch|start|zeit|datum|uhr|when|heure|fecha|hora)", re.IGNORECASE
)
_LATER = re.compile(r"(end|until|to$|ende|creat|updat|modif|offset|zone|durat)", re.IGNORECASE)
_IDENTITY = re.compile(
    r"(^|[_\s.])(id|uuid|uid|guid|key|pkg_name|deviceuuid|custom|source|version|ver|nr)$|^id",
    re.IGNORECASE,
)
_LENGTH = re.compile(r"durat|dauer|elapsed|total|gesamt|length|pace", re.IGNORECASE)


@dataclass(frozen=True, repr=False, eq=False)
class Cells:
    """Cells of a file by rows, and whether commas are decimal separators."""

    names: list[str]
    rows: list[list[str]]
    commas: bool

    def column(self, place: int) -> list[str]:
        """The cells of a column."""
        return [row[place] for row in self.rows]

    @property
    def head(self) -> Cells:
        """The first rows."""
        return replace(self, rows=self.rows[:_FIRST])


def table_series(text: str, zone: Zone) -> list[Series]:
    """The columns of measurements, with the most likely column of times; empty without times."""
    table = joined(_unfolded(_cells(text)))
    clocks = _time_columns(table, zone)
    if not clocks:
        return []
    moments = _times(table, clocks[0], zone)
    assert moments is not None
    wall, dated = [at for at, _ in moments], moments[0][1]
    return [
        Series.in_order(table.names[k], wall, _numbers(table, k), dated=dated)
        for k in _value_columns(table, clocks)
    ]


def _cells(text: str) -> Cells:
    lines = [line for line in re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")) if line.strip()]
    if not 0 < len(lines) <= _MOST_ROWS:
        raise InvalidData("FILE", f"a table of 1 to {_MOST_ROWS} lines")
    lines = lines[1:] if _titled(lines) else lines
    separator = next((one for one in ";\t," if one in lines[0]), ";")
    if lines[0].count(separator) >= _MOST_COLUMNS:
        raise InvalidData("FILE", f"a table of at most {_MOST_COLUMNS} columns")
    if lines[0].count(separator) * len(lines) > _MOST_CELLS:
        raise InvalidData("FILE", f"a table of at most {_MOST_CELLS} cells")
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    except csv.Error:  # a cell of more than 128 kB
        raise InvalidData("FILE", "a table whose cells are shorter than 128 kB") from None
    width = len(rows[0])
    for k, row in enumerate(rows, start=1):
        if len(row) == width + 1 and not row[-1]:
            row.pop()  # a separator at the end of a line
        if len(row) != width:
            raise InvalidData(f"line {k} of FILE", f"as wide as the first, {width} columns")
    commas = separator != ","
    if all(_plain(cell, commas) for cell in rows[0]):
        return Cells([f"column {k + 1}" for k in range(width)], rows, commas)
    return Cells(rows[0], rows[1:], commas)


def _plain(cell: str, commas: bool) -> bool:
    text = cell.replace(",", ".", 1) if commas else cell
    known = _MISSING.fullmatch(cell) or _NUMBER.fullmatch(text) or cell.startswith("[")
    return bool(known) or read_time(cell, "month", int) is not None


def _titled(lines: Sequence[str]) -> bool:
    """Whether a title line precedes the names: a single cell above several, or a Samsung title."""
    if len(lines) < 2:
        return False
    alone = not re.search(r"[;,\t]", lines[0]) and bool(re.search(r"[^\d\s.,;-]", lines[0]))
    several = len(re.split(r"[;,\t]", lines[1])) > 2
    return lines[0].startswith("com.samsung.") or (alone and several)


def _numbers(table: Cells, place: int) -> list[float]:
    """A column as numbers; commas are read as thousands separators if all cells permit that."""
    cells = table.column(place)
    inner = [] if table.commas else [cell for cell in cells if "," in cell]
    if inner and all(_THOUSANDS.fullmatch(cell) for cell in inner):
        return [_number(cell.replace(",", "")) for cell in cells]
    decimal = table.commas or bool(inner)
    return [_number(cell.replace(",", ".", 1) if decimal else cell) for cell in cells]


def _number(cell: str) -> float:
    return float(cell) if _NUMBER.fullmatch(cell) else math.nan


def _times(table: Cells, place: int, zone: Zone) -> list[tuple[int, bool]] | None:
    """A column as times; None if most cells are no times, an error if only some are not."""
    cells = table.column(place)
    order, as_number = order_of(cells), _is_unix(table, place)
    found: list[tuple[int, bool] | None] = []
    for cell in cells:
        instant = unix_time(float(cell)) if as_number and _UNIX.fullmatch(cell) else None
        found.append(read_time(cell, order, zone) if instant is None else (zone(instant), True))
    read = [one for one in found if one is not None]
    if 2 * len(read) < len(found) or not read:
        return None
    for k, one in enumerate(found, start=1):
        if one is None or one[1] != read[0][1]:
            rule = "times like 2026-11-16 07:30 in all of its cells"
            raise InvalidData(f"row {k}, column {table.names[place]!r}", rule)
    ahead = _offsets(table, place)
    return [(wall + more, dated) for (wall, dated), more in zip(read, ahead, strict=True)]


def _offsets(table: Cells, place: int) -> list[int]:
    """Offsets from UTC: Samsung writes UTC, and the offset in another column, as UTC+0100."""
    beside = [k for k, name in enumerate(table.names) if name.endswith("time_offset")]
    none = [0] * len(table.rows)
    if not beside or not table.names[place].endswith("start_time"):
        return none
    found = [_OFFSET.fullmatch(cell) for cell in table.column(beside[0])]
    signed = [
        (-1 if one[1] == "-" else 1) * (60 * int(one[2]) + int(one[3])) * 60_000
        for one in found
        if one is not None
    ]
    return signed if len(signed) == len(found) else none


def _is_unix(table: Cells, place: int) -> bool:
    cells = table.head.column(place)
    if not all(_UNIX.fullmatch(cell) for cell in cells):
        return False
    found = [unix_time(float(cell)) for cell in cells]
    if None in found:
        return False
    grows = all(a < b for a, b in pairwise(found))  # type: ignore[operator]
    several = len(table.names) > 1 and len(table.rows) > 1
    return bool(_TIMELY.search(table.names[place])) or (several and grows)


def _time_columns(table: Cells, zone: Zone) -> list[int]:
    """Columns that hold times, the most likely first; starts precede ends."""

    def holds(place: int) -> bool:
        try:
            return _times(table.head, place, zone) is not None
        except InvalidData:  # some cells are no times: reading the column raises the error
            return True

    def rank(place: int) -> tuple[int, int]:
        name = table.names[place]
        return (2 if _LATER.search(name) else 0 if _TIMELY.search(name) else 1), place

    return sorted((k for k in range(len(table.names)) if holds(k)), key=rank)


def _value_columns(table: Cells, clocks: Sequence[int]) -> list[int]:
    """Columns of measurements: numbers that are neither times nor identifiers."""
    found = []
    for place, name in enumerate(table.names):
        later = _LATER.search(name) and _TIMELY.search(name)
        if place in clocks or _IDENTITY.search(name) or later:
            continue
        cells, numbers = table.head.column(place), _numbers(table.head, place)
        pairs = list(zip(cells, numbers, strict=True))
        odd = sum(math.isnan(x) and not _MISSING.fullmatch(cell) for cell, x in pairs)
        if 2 * odd <= len(cells) and not all(map(math.isnan, numbers)):
            found.append(place)
    return found


def _unfolded(table: Cells) -> Cells:
    """Expand the lists in cells of a Withings export to one row per entry."""
    names = ("start", "duration", "value")
    if not all(name in table.names for name in names):
        return table
    start, duration, value = (table.names.index(name) for name in names)
    if not all(re.fullmatch(r"\[.*\]", row[value]) for row in table.rows):
        return table
    rows = []
    for row in table.rows:
        after = 0.0
        lengths = [_number(one.strip()) for one in row[duration][1:-1].split(",")]
        for k, one in enumerate(row[value][1:-1].split(",")):
            rows.append([_shifted(row[start], after), one.strip()])
            after += lengths[k] if k < len(lengths) else 0.0
    return Cells(["start", "value"], rows, table.commas)


def joined(table: Cells) -> Cells:
    """Join a column of dates and a column of times of day to one column of times.

    A column of times of day uses the nearest column of dates before it, or otherwise the first one.
    Columns whose names suggest durations are not times of day.

    Examples:
        >>> joined(Cells(["Date", "Time", "Pulse"], [["16.11.2026", "07:30", "61"]], True)).rows
        [['16.11.2026 07:30', '61']]
    """
    kinds = [_kind_of_time(cells) for cells in zip(*table.head.rows, strict=True)]
    dates = [k for k, kind in enumerate(kinds) if kind == "date"]
    pairs = {
        k: max((date for date in dates if date < k), default=dates[0])
        for k, kind in enumerate(kinds)
        if kind == "clock" and dates and not _LENGTH.search(table.names[k])
    }
    places = [k for k in range(len(table.names)) if k not in pairs.values()]
    name = {k: f"{table.names[date]} {table.names[k]}" for k, date in pairs.items()}

    def cell(row: list[str], k: int) -> str:
        if k not in pairs:
            return row[k]
        return f"{row[pairs[k]]} {row[k]}" if row[pairs[k]] and row[k] else ""

    names = [name.get(k, table.names[k]) for k in places]
    return replace(table, names=names, rows=[[cell(row, k) for k in places] for row in table.rows])


def _kind_of_time(cells: Sequence[str]) -> str:
    """The common kind of all non-empty cells: "date", "clock", or "" for others."""
    order = order_of(cells)
    read = [read_time(cell, order, int) for cell in cells if not _MISSING.fullmatch(cell)]
    if not read or None in read:
        return ""
    dated = {one[1] for one in read if one is not None}
    if any(":" in cell for cell in cells):
        return "clock" if dated == {False} else ""
    return "date" if dated == {True} else ""


def _shifted(time: str, seconds: float) -> str:
    """A time as text, moved by this many seconds in the same zone."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(.*)", time)
    if found is None or not math.isfinite(seconds) or seconds == 0:
        return time
    later = datetime.fromisoformat(f"{found[1]}T{found[2]}") + timedelta(seconds=seconds)
    return later.isoformat(timespec="seconds") + found[3]
