"""Named series of measurements with times, and the curve of one day or of the average day.

Times are read in the formats of common devices, as local time of the person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from dpfda._validate import FloatArray
from dpfda.errors import InvalidData, InvalidParameter

Order = Literal["month", "day"]
"""The first number of a date: whether 3/4/2026 is in March or in April."""

DAY = 86_400_000  # milliseconds
EPOCH = date(1970, 1, 1).toordinal()
_LONGEST = 48  # characters of a time
_UNIX = (946_684_800, 4_102_444_800)  # seconds of 2000 and 2100: numbers in between are times
_NAMES = ("jan", "feb", "m[aä]r|mrz", "apr", "may|mai", "jun", "jul", "aug", "sep", "o[ck]t", "nov")
_MONTHS = [re.compile(name, re.IGNORECASE) for name in (*_NAMES, "de[cz]")]
_CLOCK = (
    r"(\d{1,2}):(\d\d)(?::(\d\d(?:[.,]\d{1,9})?))?(?: ?([AaPp])\.?[Mm]\.?)?"
    r"(?: ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?"
)
_WITH_TIME = rf"(?:(?:[T_]|,? +){_CLOCK})?"
_WORD = "[A-Za-zä]{3,9}"
_ALONE = re.compile(_CLOCK)
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_WITH_TIME}")
_DOTTED = re.compile(rf"(\d{{1,2}})(\.) ?(\d{{1,2}})\. ?(\d{{4}}|\d\d){_WITH_TIME}")
_SLASHED = re.compile(rf"(\d{{1,2}})([-/])(\d{{1,2}})\2(\d{{4}}|\d\d){_WITH_TIME}")
_DAY_WORD = re.compile(rf"(\d{{1,2}})(\.?[ -])({_WORD})\.?[ -](\d{{4}}){_WITH_TIME}")
_WORD_DAY = re.compile(rf"({_WORD})(\.? )(\d{{1,2}}),? (\d{{4}}){_WITH_TIME}")
_ORDERED = re.compile(r"(\d{1,2})[-/](\d{1,2})[-/](\d{4}|\d\d)(?!\d)")
_UTC = re.compile(r"Z|UTC|GMT|[+-]00:?(00)?")

Zone = Callable[[int], int]
"""Converts an instant (UTC) to local time, both in milliseconds since 1970."""


def zone_of(name: str | None) -> Zone:
    """The conversion for a time zone such as Europe/Berlin; by default that of this machine."""
    try:
        place = None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidParameter("--time-zone", "a time zone like Europe/Berlin", name) from None
    start, offsets = datetime(1970, 1, 1, tzinfo=UTC), dict[int, int]()

    def wall(instant: int) -> int:
        quarter = instant // 900_000  # no clock changes within a quarter of an hour
        if quarter not in offsets:
            there = (start + timedelta(minutes=15 * quarter)).astimezone(place)
            offsets[quarter] = round((there.utcoffset() or timedelta()).total_seconds() * 1000)
        return instant + offsets[quarter]

    return wall


def read_time(text: str, order: Order, zone: Zone) -> tuple[int, bool] | None:
    """Milliseconds of local time, and whether there is a date; None for other text.

    A time in UTC is converted to the zone. A time with another offset is taken as local. Without a
    date the time counts from midnight.

    Examples:
        >>> read_time("7:30 PM", "month", zone_of("UTC"))
        (70200000, False)
        >>> same = [read_time(text, "day", zone_of("Europe/Berlin")) for text in
        ...     ("16.11.2026 07:30", "2026-11-16T06:30:00Z", "Nov 16, 2026 7:30 am")]
        >>> same[0] == same[1] == same[2]
        True
    """
    if len(text) > _LONGEST:
        return None
    alone = _ALONE.fullmatch(text)
    if alone:
        within = _clock(*alone.groups()[:4])
        return None if within is None else (within, False)
    found, year, month, day = _date(text, order)
    if found is None:
        return None
    hour, minute, second, half, offset = found.groups()[-5:]
    within = 0 if hour is None else _clock(hour, minute, second, half)
    full = 2000 + year if year < 100 else year
    try:
        midnight = (date(full, month, day).toordinal() - EPOCH) * DAY
    except ValueError:
        return None
    if within is None or not 1900 <= full < 2200:
        return None
    wall = midnight + within
    return (zone(wall) if offset is not None and _UTC.fullmatch(offset) else wall), True


def _date(text: str, order: Order) -> tuple[re.Match[str] | None, int, int, int]:
    if found := _YEAR_FIRST.fullmatch(text):
        return found, int(found[1]), int(found[3]), int(found[4])
    if found := _DOTTED.fullmatch(text):
        return found, int(found[4]), int(found[3]), int(found[1])
    if found := _SLASHED.fullmatch(text):
        a, b = int(found[1]), int(found[3])
        return found, int(found[4]), *((a, b) if order == "month" else (b, a))
    if found := _DAY_WORD.fullmatch(text):
        return found, int(found[4]), _month(found[3]), int(found[1])
    if found := _WORD_DAY.fullmatch(text):
        return found, int(found[4]), _month(found[1]), int(found[3])
    return None, 0, 0, 0


def _month(name: str) -> int:
    return next((k for k, known in enumerate(_MONTHS, start=1) if known.match(name)), 0)


def _clock(hour: str, minute: str, second: str | None, half: str | None) -> int | None:
    h, m, s = int(hour), int(minute), float((second or "0").replace(",", "."))
    if m > 59 or s >= 61 or h > 24 or (half is not None and not 1 <= h <= 12):
        return None
    full = h if half is None else h % 12 + (12 if half in "pP" else 0)
    return int((full * 3600 + m * 60 + s) * 1000 + 0.5)


def order_of(cells: Sequence[str]) -> Order:
    """The order of day and month in a column of dates.

    A number above 12, or AM and PM, decides. Otherwise the order with the smaller span of dates is
    chosen.

    Examples:
        >>> order_of(["01/11/2026", "02/11/2026"]), order_of(["4/12/2016 7:21:00 AM"])
        ('day', 'month')
    """
    days: tuple[list[int], list[int]] = ([], [])
    for cell in cells:
        found = _ORDERED.match(cell)
        if found is None:
            continue
        a, b, year = (int(part) for part in found.groups())
        if a > 12:
            return "day"
        if b > 12 or re.search(r"[ap]\.?m\.?$", cell, re.IGNORECASE):
            return "month"
        for kept, (month, day) in zip(days, ((a, b), (b, a)), strict=True):
            kept.append(372 * year + 31 * month + day)
    spans = [max(kept) - min(kept) if kept else 0 for kept in days]
    return "day" if spans[1] < spans[0] else "month"


def unix_time(value: float) -> int | None:
    """Convert seconds, milli-, micro- or nanoseconds since 1970 to milliseconds, or None."""
    for per_second in (1, 10**3, 10**6, 10**9):
        seconds = value / per_second
        if _UNIX[0] <= seconds < _UNIX[1]:
            return int(seconds * 1000 + 0.5)
    return None


_QUARTER = 900_000  # the average day has a point every quarter of an hour
_KINDS = {
    "heart rate": r"heart.?rate|\bhr\b|bpm|pulse|puls\b|herz(frequenz|schlag)|beats|count/min",
    "steps": r"step|schritt",
    "glucose": r"gluc|gluk|blood sugar|blutzucker|mg/dl|mmol",
    "weight": r"weight|body.?mass\b|gewicht",
    "temperature": r"temp|°c",
    "oxygen": r"spo2|oxygen|sauerstoff",
    "energy": r"energy|calorie|kalorie|kcal",
    "distance": r"distance|distanz|strecke",
    "altitude": r"altitude|elevation|\bele\b|höhe",
    "cadence": r"cadence|kadenz",
    "power": r"\bwatt|\bpower\b|leistung",
    "variability": r"variability|sdnn|rmssd|\bhrv\b",
    "resting": r"resting|ruhe",
    "speed": r"speed|geschwindigkeit",
}
"""Patterns of words for the same quantity, in names of series and in titles of studies."""


@dataclass(frozen=True, repr=False, eq=False)
class Series:
    """One measured quantity: ascending local times in milliseconds, and a value at each.

    It holds private data and is shown only to the person.
    """

    name: str
    times: FloatArray
    values: FloatArray
    dated: bool = True

    @classmethod
    def in_order(
        cls, name: str, times: Sequence[float], values: Sequence[float], *, dated: bool = True
    ) -> Series:
        """Build a series; drop missing values and average values of the same time."""
        t, x = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
        t, x = t[np.isfinite(x)], x[np.isfinite(x)]
        moments, place = np.unique(t, return_inverse=True)
        sums = np.bincount(place, weights=x, minlength=len(moments))
        return cls(name, moments, sums / np.bincount(place, minlength=len(moments)), dated)

    @property
    def days(self) -> dict[str, int]:
        """The number of measurements on each day."""
        found, counts = np.unique(self.times // DAY, return_counts=True)
        names = (date.fromordinal(EPOCH + int(day)).isoformat() for day in found)
        return dict(zip(names, counts.tolist(), strict=True))


@dataclass(frozen=True, repr=False, eq=False)
class DayCurve:
    """Hours since midnight, and values; `day` is a date, "average", or "all" (no dates)."""

    name: str
    day: str
    hours: FloatArray
    values: FloatArray


def day_curve(
    series: Sequence[Series], *, wanted: str = "", day: str | None = None, until: float = 24.0
) -> DayCurve:
    """The curve of one day, or of the average day.

    Args:
        series: the series of a file.
        wanted: words for the quantity, such as "heart rate"; needed if there are several.
        day: a date such as 2026-11-16, or "average"; by default the day with the most measurements,
            the latest one of several.
        until: number of hours after midnight that belong to the curve.
    """
    place = chosen([one.name for one in series], wanted)
    if place is None:
        names = ", ".join(one.name for one in series)
        raise InvalidData("FILE", f"one series of measurements (choose by --series from: {names})")
    one = series[place]
    if not one.dated:
        return DayCurve(one.name, "all", one.times / 3_600_000, one.values)
    if day == "average":
        return DayCurve(one.name, day, *_average(one))
    counts = one.days
    taken = day or max(counts, key=lambda known: (counts[known], known))
    try:
        first = (date.fromisoformat(taken).toordinal() - EPOCH) * DAY
    except ValueError:
        raise InvalidParameter("--day", "a date like 2026-11-16, or average", day) from None
    hours = (one.times - first) / 3_600_000
    inside = (hours >= 0) & (hours <= until)
    return DayCurve(one.name, taken, hours[inside], one.values[inside])


def _average(one: Series) -> tuple[FloatArray, FloatArray]:
    """For each quarter of an hour, the mean over days of the daily means."""
    cells, place = np.unique(one.times // _QUARTER, return_inverse=True)
    means = np.bincount(place, weights=one.values) / np.bincount(place)
    quarters, place = np.unique(cells % 96, return_inverse=True)
    values = np.bincount(place, weights=means) / np.bincount(place)
    return (quarters + 0.5) / 4, values


def chosen(names: Sequence[str], wanted: str) -> int | None:
    """Position of the only name that fits the words; None if none or several fit.

    Examples:
        >>> chosen(["steps", "resting heart rate", "heart rate"], "Pulse over a day")
        2
        >>> chosen(["steps", "heart rate"], "A study")
    """
    if len(names) == 1:
        return 0
    words = wanted.strip().lower()
    same = [k for k, name in enumerate(names) if name.lower() == words]
    within = [k for k, name in enumerate(names) if words and words in name.lower()]
    for places in (same, within):
        if len(places) == 1:
            return places[0]
    asked = _kinds(wanted)
    scores = [_score(name, asked) for name in names]
    best = max(scores, default=0.0)
    fitting = [k for k, score in enumerate(scores) if score == best > 0]
    shortest = sorted(fitting, key=lambda k: len(names[k]))
    if not shortest:
        return None
    tied = len(shortest) > 1 and len(names[shortest[0]]) == len(names[shortest[1]])
    return None if tied else shortest[0]


def _score(name: str, asked: set[str]) -> float:
    own = _kinds(name)
    if not own & asked:
        return 0.0
    part = bool(re.search(r"\b(max|min)|goal|zone", name, re.IGNORECASE))
    return len(own & asked) - 0.1 * len(own - asked) - 0.5 * part


def _kinds(words: str) -> set[str]:
    return {kind for kind, known in _KINDS.items() if re.search(known, words, re.IGNORECASE)}
