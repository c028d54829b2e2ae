"""Measurements with their times, by name; one day of them, or the average day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from dpfda._validate import FloatArray
from dpfda.client.exports.times import DAY, EPOCH
from dpfda.errors import InvalidData, InvalidParameter

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
"""Words for the same quantity, in names of series and in titles of studies."""


@dataclass(frozen=True, repr=False, eq=False)
class Series:
    """One measured quantity: milliseconds on the wall's clock, ascending, and a value at each.

    It holds private data: it is shown to nobody but the person.
    """

    name: str
    times: FloatArray
    values: FloatArray
    dated: bool = True

    @classmethod
    def in_order(
        cls, name: str, times: Sequence[float], values: Sequence[float], *, dated: bool = True
    ) -> Series:
        """Without missing values; values of the same moment become their mean."""
        t, x = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
        t, x = t[np.isfinite(x)], x[np.isfinite(x)]
        moments, place = np.unique(t, return_inverse=True)
        sums = np.bincount(place, weights=x, minlength=len(moments))
        return cls(name, moments, sums / np.bincount(place, minlength=len(moments)), dated)

    @property
    def days(self) -> dict[str, int]:
        """The days on which something was measured, and how often."""
        found, counts = np.unique(self.times // DAY, return_counts=True)
        names = (date.fromordinal(EPOCH + int(day)).isoformat() for day in found)
        return dict(zip(names, counts.tolist(), strict=True))


@dataclass(frozen=True, repr=False, eq=False)
class DayCurve:
    """Hours since midnight and values; `day` is a date, "average", or "all" without dates."""

    name: str
    day: str
    hours: FloatArray
    values: FloatArray


def day_curve(
    series: Sequence[Series], *, wanted: str = "", day: str | None = None, until: float = 24.0
) -> DayCurve:
    """The curve of one day, or of the average day.

    Args:
        series: of a file.
        wanted: words for the quantity, as "heart rate"; needed where there are several.
        day: as 2026-11-16, or "average"; by default the latest day with the most measurements.
        until: how many hours after midnight belong to it.
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
    """The mean over days of each day's mean, in each quarter of an hour of some day."""
    cells, place = np.unique(one.times // _QUARTER, return_inverse=True)
    means = np.bincount(place, weights=one.values) / np.bincount(place)
    quarters, place = np.unique(cells % 96, return_inverse=True)
    values = np.bincount(place, weights=means) / np.bincount(place)
    return (quarters + 0.5) / 4, values


def chosen(names: Sequence[str], wanted: str) -> int | None:
    """The one of some names that words ask for; None where none does, or it is open which.

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
