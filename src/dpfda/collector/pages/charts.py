"""Coordinates of small charts; `charts.html` draws them, and the style sheet colors them.

No library is used: the pages need only a line with a band, dots with bars, and an interval. This
SVG can be printed, needs no script and follows the color scheme. uPlot (50 kB) draws on a canvas,
which does not work in screen readers and saved reports, and Observable Plot needs D3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

WIDE = 1.96
"""Standard errors on either side of a line with a band."""
_W, _H, _LEFT, _BOTTOM, _TOP = 640.0, 260.0, 88.0, 32.0, 30.0


def curve(
    title: str,
    points: Sequence[float],
    values: Sequence[float],
    errors: Sequence[float] | None = None,
    *,
    units: tuple[str, str] = ("", ""),
) -> dict[str, Any]:
    """A line over t, with a band of 1.96 standard errors if they are known.

    Args:
        title: text for screen readers.
        points: t.
        values: the line.
        errors: standard errors of the values.
        units: of t and of the values.

    Examples:
        >>> drawn = curve("β(t)", [0.0, 1.0], [0.0, 2.0])
        >>> drawn["line"], drawn["band"]
        ('88.0,228.0 632.0,30.0', '')
    """
    apart = [WIDE * error for error in errors or [0.0] * len(values)]
    below = [value - away for value, away in zip(values, apart, strict=True)]
    above = [value + away for value, away in zip(values, apart, strict=True)]
    low, high = min(0.0, *below), max(0.0, *above)
    scale = _Scale(points[0], points[-1], low, high if high > low else low + 1)
    band = scale.line(points, below) + " " + scale.line(points[::-1], above[::-1])
    return {
        "title": title,
        "frame": scale.frame(units=units),
        "line": scale.line(points, values),
        "band": band if errors else "",
    }


def steps(title: str, counts: Sequence[tuple[float, int]], ends: tuple[str, str]) -> dict[str, Any]:
    """A step chart of a count over time.

    Examples:
        >>> steps("answers", [(0.0, 0), (1.0, 5)], ("Monday", "Tuesday"))["line"]
        '88.0,228.0 632.0,228.0 632.0,30.0'
    """
    first, last = counts[0][0], max(counts[-1][0], counts[0][0] + 1e-9)
    scale = _Scale(first, last, 0.0, max(1.0, *(number for _, number in counts)))
    corners = [(first, counts[0][1])]
    for time, number in counts[1:]:
        corners += [(time, corners[-1][1]), (time, number)]
    line = scale.line([time for time, _ in corners], [number for _, number in corners])
    frame = scale.frame(ends)
    return {"title": title, "frame": frame, "line": line, "band": ""}


def members(title: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Accuracy of every member with its interval; reversed ones are marked; weights below."""
    scale = _Scale(-0.5, len(rows) - 0.5, 0.0, 1.0)
    most = max((row["weight"] or 0.0 for row in rows), default=0.0) or 1.0
    marks = []
    for place, row in enumerate(rows):
        bar = scale.y(0.25 * (row["weight"] or 0.0) / most)
        known = row["low"] is not None and row["high"] is not None
        marks.append(
            {
                "x": scale.x(place),
                "y": scale.y(_cut(row["accuracy"])),
                "bar": bar,
                "height": scale.y(0) - bar,
                "span": [scale.y(_cut(row[end])) for end in ("low", "high")] if known else None,
                "reversed": row["reversed"],
                "told": f"member {place + 1}: {row['accuracy']:.3f}"
                + (", reversed" if row["reversed"] else ""),
                "weight": f"weight {row['weight'] or 0.0:.3f}",
            }
        )
    frame = scale.frame(("member 1", f"{len(rows)}"))
    return {"title": title, "frame": frame, "half": scale.y(0.5), "marks": marks}


def interval(
    title: str, ends: tuple[float, float, float], beside: Mapping[str, float]
) -> dict[str, Any]:
    """A number with its interval on a line from 0, with other named numbers.

    Examples:
        >>> interval("error", (0.1, 0.2, 0.3), {"guessing": 0.5})["marks"]
        [{'x': 600.0, 'told': 'guessing 50.0 %', 'anchor': 'end'}]
    """
    most = max(*ends, *beside.values(), 1e-9)
    low, value, high = (_place(end, most) for end in ends)
    marks = [
        {
            "x": _place(number, most),
            "told": f"{name} {100 * number:.1f} %",
            "anchor": "end" if number > most / 2 else "start",
        }
        for name, number in beside.items()
    ]
    told = f"{100 * ends[1]:.1f} % ({100 * ends[0]:.1f} to {100 * ends[2]:.1f})"
    return {"title": title, "low": low, "value": value, "high": high, "told": told, "marks": marks}


def _place(number: float, most: float) -> float:
    """The position of a number on a line from 40 to 600."""
    return 40.0 + 560.0 * min(max(number, 0.0), most) / most


class _Scale:
    def __init__(self, left: float, right: float, low: float, high: float) -> None:
        self._left, self._right, self._low, self._high = left, right, low, high

    def x(self, value: float) -> float:
        return _LEFT + (value - self._left) / (self._right - self._left) * (_W - _LEFT - 8)

    def y(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return _H - _BOTTOM - share * (_H - _BOTTOM - _TOP)

    def line(self, points: Sequence[float], values: Sequence[float]) -> str:
        """Corners of a line."""
        pairs = zip(points, values, strict=True)
        return " ".join(f"{self.x(t):.1f},{self.y(value):.1f}" for t, value in pairs)

    def frame(
        self, ends: tuple[str, str] | None = None, *, units: tuple[str, str] = ("", "")
    ) -> dict[str, Any]:
        """Size, axes with ticks and units, and zero; `ends` are labels instead of ticks."""
        across = [(self.x(at), word) for at, word in ticks(self._left, self._right)]
        if ends is not None:
            across = [(self.x(self._left), ends[0]), (self.x(self._right), ends[1])]
        return {
            "width": _W, "height": _H, "left": _LEFT, "top": _TOP, "bottom": _H - _BOTTOM,
            "zero": self.y(min(max(0.0, self._low), self._high)),
            "across": [{"x": x, "told": word, "anchor": self._anchor(x)} for x, word in across],
            "down": [{"y": self.y(at), "told": word} for at, word in ticks(self._low, self._high)],
            "units": units,
        }  # fmt: skip

    def _anchor(self, x: float) -> str:
        if x < _LEFT + 40:
            return "start"
        return "end" if x > _W - 48 else "middle"


_STEPS = (1, 2, 5)
_EXACT = (1, 2, 5, 6, 3, 4)  # steps that are tried if they divide the range, as 6 divides 24 hours
_MOST_TICKS = 5


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round numbers from low to high, with their labels.

    Examples:
        >>> [word for _, word in ticks(0.0, 24.0)]
        ['0', '6', '12', '18', '24']
        >>> [word for _, word in ticks(-0.38, 1.3)]
        ['0.0', '0.5', '1.0']
        >>> [word for _, word in ticks(0.0, 12_000.0)]
        ['0', '3,000', '6,000', '9,000', '12,000']
    """
    power = math.floor(math.log10(high - low)) - 1
    sizes = [(step, power + more) for more in range(3) for step in _STEPS]
    fits = [(step, p) for step, p in sizes if (high - low) / (step * 10.0**p) < _MOST_TICKS]
    step, power = fits[0]
    for exact in ((one, p) for p in (power - 1, power) for one in _EXACT):
        count, start = ((high - low) / _size(*exact), low / _size(*exact))
        whole = abs(count - round(count)) < _NEAR and abs(start - round(start)) < _NEAR
        if whole and _MOST_TICKS - 2 <= round(count) < _MOST_TICKS:
            step, power = exact
            break
    size = _size(step, power)
    first, last = math.ceil(low / size - _NEAR), math.floor(high / size + _NEAR)
    return [
        (place * size, f"{place * size:,.{max(0, -power)}f}") for place in range(first, last + 1)
    ]


_NEAR = 1e-9


def _size(step: int, power: int) -> float:
    return step * 10.0**power


def bars(rows: Sequence[tuple[float, float] | None]) -> list[dict[str, float] | None]:
    """Positions of numbers and of 1.96 standard errors on either side, scaled to 0 to 200.

    Examples:
        >>> bars([(1.0, 0.5), None])[0]["zero"]
        2.0
    """
    known = [row for row in rows if row is not None]
    low = min([0.0, *(value - WIDE * error for value, error in known)])
    high = max([0.0, *(value + WIDE * error for value, error in known)])
    size = 196.0 / (high - low if high > low else 1.0)

    def place(number: float) -> float:
        return 2.0 + (number - low) * size

    return [
        None
        if row is None
        else {
            "zero": place(0.0), "value": place(row[0]),
            "from": place(row[0] - WIDE * row[1]), "to": place(row[0] + WIDE * row[1]),
        }
        for row in rows
    ]  # fmt: skip


def _cut(value: float) -> float:
    return min(max(value, 0.0), 1.0)
