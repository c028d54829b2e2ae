"""The picture that most tables ask for."""

from __future__ import annotations

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
    figure, axes = pyplot.subplots(
        1, len(names), figsize=(4 * len(names), 3.6), layout="constrained", squeeze=False
    )
    for place, name in zip(axes[0], names, strict=True):
        own = [row for row in rows if row[panel] == name]
        for label in own[0]:
            if label not in (x, panel):
                place.plot([row[x] for row in own], [row[label] for row in own], "o-", label=label)
        place.set(title=f"{panel} {name}", xlabel=x, ylabel=y)
        place.set(**{f"{axis}scale": "log" for axis in log})
    axes[0][0].legend(fontsize="x-small")
    return figure
