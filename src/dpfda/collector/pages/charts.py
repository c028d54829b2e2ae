"""Small pictures as SVG, drawn on the server; colors come from the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

_W, _H, _LEFT, _BOTTOM, _TOP = 640.0, 260.0, 64.0, 32.0, 16.0


def curve(title: str, points: Sequence[float], values: Sequence[float]) -> str:
    """A line over t.

    Example:
        >>> curve("β(t)", [0.0, 1.0], [0.0, 2.0]).startswith("<svg")
        True
    """
    low, high = min([0.0, *values]), max([0.0, *values])
    scale = _Scale(points[0], points[-1], low, high if high > low else low + 1)
    pairs = zip(points, values, strict=True)
    path = " ".join(f"{scale.x(t):.1f},{scale.y(v):.1f}" for t, v in pairs)
    return _svg(title, f'{scale.frame()}<polyline class="line" points="{path}"/>')


def members(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """Accuracy of every member with its interval; reversed ones are marked; weights below."""
    scale = _Scale(-0.5, len(rows) - 0.5, 0.0, 1.0)
    drawn = scale.frame(("member 1", f"{len(rows)}"))
    half = scale.y(0.5)
    drawn += f'<line class="half" x1="{_LEFT}" x2="{_W}" y1="{half:.1f}" y2="{half:.1f}"/>'
    most = max((row["weight"] or 0.0 for row in rows), default=0.0) or 1.0
    for place, row in enumerate(rows):
        x = scale.x(place)
        weight = 0.25 * (row["weight"] or 0.0) / most
        drawn += (
            f'<rect class="bar" x="{x - 3:.1f}" width="6" y="{scale.y(weight):.1f}" '
            f'height="{scale.y(0) - scale.y(weight):.1f}">'
            f"<title>weight {row['weight']:.3f}</title></rect>"
        )
        if row["low"] is not None and row["high"] is not None:
            drawn += (
                f'<line class="span" x1="{x:.1f}" x2="{x:.1f}" '
                f'y1="{scale.y(_cut(row["low"])):.1f}" y2="{scale.y(_cut(row["high"])):.1f}"/>'
            )
        kind = "reversed" if row["reversed"] else "dot"
        said = f"member {place + 1}: {row['accuracy']:.3f}" + (
            ", reversed" if row["reversed"] else ""
        )
        y = scale.y(_cut(row["accuracy"]))
        drawn += (
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">'
            f"<title>{said}</title></circle>"
        )
    return _svg(title, drawn)


class _Scale:
    def __init__(self, left: float, right: float, low: float, high: float) -> None:
        self._left, self._right, self._low, self._high = left, right, low, high

    def x(self, value: float) -> float:
        return _LEFT + (value - self._left) / (self._right - self._left) * (_W - _LEFT - 8)

    def y(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return _H - _BOTTOM - share * (_H - _BOTTOM - _TOP)

    def frame(self, ends: tuple[str, str] | None = None) -> str:
        """Axes with the ends of both ranges, and zero."""
        first, last = ends or (f"{self._left:.2g}", f"{self._right:.2g}")
        zero = self.y(min(max(0.0, self._low), self._high))
        return (
            f'<line class="axis" x1="{_LEFT}" x2="{_LEFT}" y1="{_TOP}" y2="{_H - _BOTTOM}"/>'
            f'<line class="axis" x1="{_LEFT}" x2="{_W}" y1="{zero:.1f}" y2="{zero:.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{_TOP + 6}" text-anchor="end">{self._high:.2g}</text>'
            f'<text x="{_LEFT - 6}" y="{_H - _BOTTOM}" text-anchor="end">{self._low:.2g}</text>'
            f'<text x="{_LEFT}" y="{_H - 4}">{first}</text>'
            f'<text x="{_W - 8}" y="{_H - 4}" text-anchor="end">{last}</text>'
        )


def _cut(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _svg(title: str, drawn: str) -> str:
    return (
        f'<svg viewBox="0 0 {_W:g} {_H:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{drawn}</svg>"
    )
