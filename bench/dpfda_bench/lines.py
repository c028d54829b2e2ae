"""The picture that most tables ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def lines(rows: list[dict[str, Any]], x: str, *, panel: str, y: str = "", log: str = "xy") -> Any:
    """A panel for each value of `panel`, and in it a line for each other column, against `x`.

    Args:
        rows: a table with the same columns everywhere; None leaves a gap in a line.
        x: the column along the axis.
        panel: the column that tells panels apart.
        y: what the lines show.
        log: which axes are logarithmic, of ``x`` and ``y``.
    """
    from matplotlib import pyplot

    names = list(dict.fromkeys(row[panel] for row in rows))
    wide, high = min(4, len(names)), -(-len(names) // 4)
    figure, axes = pyplot.subplots(
        high, wide, figsize=(4 * wide, 3.6 * high), layout="constrained", squeeze=False
    )
    for place in axes.flat[len(names) :]:
        place.axis("off")
    for place, name in zip(axes.flat, names, strict=False):
        own = [row for row in rows if row[panel] == name]
        for label in own[0]:
            if label not in (x, panel):
                place.plot([row[x] for row in own], [row[label] for row in own], "o-", label=label)
        place.set(title=f"{panel} {name}", xlabel=x, ylabel=y)
        place.set(**{f"{axis}scale": "log" for axis in log})
    axes[0][0].legend(fontsize="x-small")
    return figure


def named_lines(
    panels: Mapping[str, Sequence[Mapping[str, Any]]],
    methods: Sequence[str],
    *,
    y: str,
    x: str = "epsilon",
    crosses: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    references: Sequence[str] = ("majority class", "non-private"),
    columns: int = 4,
) -> Any:
    """A panel for each table, with a line for each method, named beside its last point.

    Args:
        panels: rows by title; values of `x` stand at equal distances.
        methods: columns that are drawn, solid.
        y: what they show.
        x: the column along the axis.
        crosses: printed values of the same columns, by panel.
        references: columns that are drawn dashed and grey where a panel has them.
        columns: panels side by side.
    """
    from matplotlib import pyplot

    lines = -(-len(panels) // columns)
    shape = min(columns, len(panels)), lines
    figure, axes = pyplot.subplots(
        lines, shape[0], figsize=(4.6 * shape[0], 3.8 * lines), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis, (title, rows) in zip(axes.flat, panels.items(), strict=False):
        ends = {}
        for place, name in enumerate((*methods, *references)):
            if name not in rows[0]:
                continue
            plain = name in references
            values = [row[name] for row in rows]
            style = {"color": "0.5", "linestyle": "--"} if plain else {"color": f"C{place}"}
            axis.plot(values, marker="" if plain else "o", markersize=3, **style)
            ends[name] = values[-1], style["color"]
            for row_place, row in enumerate((crosses or {}).get(title, ())):
                if row.get(name) is not None:
                    axis.plot(row_place, row[name], "x", **style)
        _label_ends(axis, ends, at=len(rows) - 1)
        axis.set_xticks(range(len(rows)), [f"{row[x]:g}" for row in rows])
        axis.set(title=title, xlabel="ε" if x == "epsilon" else x)
    for axis in axes[:, 0]:
        axis.set_ylabel(y)
    return figure


def _label_ends(axis: Any, ends: Mapping[str, tuple[float, str]], *, at: float) -> None:
    """Names at the right end of lines, moved apart where they would touch."""
    low, high = axis.get_ylim()
    least, place = (high - low) / 22, low
    for name, (value, color) in sorted(ends.items(), key=lambda item: item[1][0]):
        place = max(value, place + least)
        axis.annotate(
            name, (at, value), (at + 0.25, place), fontsize=7, color=color, va="center",
            arrowprops={"arrowstyle": "-", "color": color, "lw": 0.4},
        )  # fmt: skip
    axis.set_xlim(-0.3, at + 2.2)
