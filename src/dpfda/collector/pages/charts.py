"""Coordinates of small charts; `charts.html` draws them, and the style sheet colors them.

Own SVG, not a library: a page needs one line with a band, dots with bars, and an interval, in a
hundred lines that also print, need no script and follow the color scheme; uPlot (50 kB) draws on a
canvas that screen readers and saved reports do not have, and Observable Plot brings D3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDE = 1.96
"""Standard errors on either side of a line with a band."""
_W, _H, _LEFT, _BOTTOM, _TOP = 640.0, 260.0, 88.0, 32.0, 16.0


def curve(
    title: str,
    points: Sequence[float],
    values: Sequence[float],
    errors: Sequence[float] | None = None,
) -> dict[str, Any]:
    """A line over t, with a band of two standard errors where they are known.

    Examples:
        >>> drawn = curve("β(t)", [0.0, 1.0], [0.0, 2.0])
        >>> drawn["line"], drawn["band"]
        ('88.0,228.0 632.0,16.0', '')
    """
    apart = [WIDE * error for error in errors or [0.0] * len(values)]
    below = [value - away for value, away in zip(values, apart, strict=True)]
    above = [value + away for value, away in zip(values, apart, strict=True)]
    low, high = min(0.0, *below), max(0.0, *above)
    scale = _Scale(points[0], points[-1], low, high if high > low else low + 1)
    band = scale.line(points, below) + " " + scale.line(points[::-1], above[::-1])
    return {
        "title": title,
        "frame": scale.frame(),
        "line": scale.line(points, values),
        "band": band if errors else "",
    }


def steps(title: str, counts: Sequence[tuple[float, int]], ends: tuple[str, str]) -> dict[str, Any]:
    """A step chart of a count over time.

    Examples:
        >>> steps("answers", [(0.0, 0), (1.0, 5)], ("Monday", "Tuesday"))["line"]
        '88.0,228.0 632.0,228.0 632.0,16.0'
    """
    first, last = counts[0][0], max(counts[-1][0], counts[0][0] + 1e-9)
    scale = _Scale(first, last, 0.0, max(1.0, *(number for _, number in counts)))
    corners = [(first, counts[0][1])]
    for time, number in counts[1:]:
        corners += [(time, corners[-1][1]), (time, number)]
    line = scale.line([time for time, _ in corners], [number for _, number in corners])
    frame = scale.frame(ends) | {"high": f"{max(number for _, number in counts):,}"}
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

    def frame(self, ends: tuple[str, str] | None = None) -> dict[str, Any]:
        """Size, axes, the ends of both ranges, and zero."""
        first, last = ends or (_short(self._left), _short(self._right))
        return {
            "width": _W, "height": _H, "left": _LEFT, "top": _TOP, "bottom": _H - _BOTTOM,
            "zero": self.y(min(max(0.0, self._low), self._high)),
            "low": _short(self._low), "high": _short(self._high), "first": first, "last": last,
        }  # fmt: skip


def _cut(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _short(value: float) -> str:
    """Two digits, and no power of ten that a reader has to work out.

    Examples:
        >>> _short(0.1234), _short(-548.7), _short(1e7)
        ('0.12', '-549', '1e+07')
    """
    return f"{value:.0f}" if 100 <= abs(value) < 1e5 else f"{value:.2g}"
