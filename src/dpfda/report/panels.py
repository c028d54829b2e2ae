"""Axes for pictures: one panel per curve, with titles and legends that fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL, _HEAD = 1.7, 0.8  # inches of height
_WIDE = 6.0  # inches from which two panels are drawn side by side


def axes_or_new(ax: Axes | None) -> Axes:
    """The given axes, or those of a new figure with a constrained layout."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def panels(ax: Axes | None, names: Sequence[str], *, title: str) -> list[Axes]:
    """One panel for each name, each with its own scale, in the place of the given axes.

    With one name, the axes are kept. A figure without other axes gets the title and is made high
    enough for the panels.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> figure = Figure(layout="constrained")
        >>> ages, sexes = panels(figure.subplots(), ["age", "sex"], title="coefficients")
        >>> ages.get_title(), sexes.get_title(), figure.get_suptitle()
        ('age', 'sex', 'coefficients')
    """
    ax = axes_or_new(ax)
    if len(names) == 1:
        return [headed(ax, title)]
    figure, spec = ax.figure, ax.get_subplotspec()
    columns = 2 if figure.bbox.width / figure.dpi >= _WIDE else 1
    rows = -(-len(names) // columns)
    if figure.axes == [ax]:
        figure.set_figheight(max(figure.get_figheight(), _PANEL * rows + _HEAD))
        figure.suptitle(title, fontsize="small", wrap=True)
    ax.remove()
    grid = spec.subgridspec(rows, columns) if spec else figure.add_gridspec(rows, columns)
    places: list[Axes] = []
    for place, name in zip(grid, names, strict=False):
        places.append(figure.add_subplot(place, sharex=places[0] if places else None))
        headed(places[-1], name)
    for place in places[-columns:]:
        place.set_xlabel("t")
    return places


def headed(ax: Axes, title: str) -> Axes:
    """Set a title, which is wrapped to the width of the figure."""
    ax.set_title(title, fontsize="small", wrap=True)
    return ax


def legend_below(ax: Axes, *, columns: int = 2, title: str | None = None) -> None:
    """Draw a legend below the axes, where it hides no curve."""
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.17),
        ncols=columns,
        frameon=False,
        fontsize="small",
        title=title,
        title_fontsize="small",
    )
