"""What released moments show: sentences and pictures."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.moments.anova import about_small, large, pvalue
from dpfda.central.moments.bands import difference, interval
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.curves.band import Band
from dpfda.protocol.plan import Label

_SURE = 0.05  # p-value below which groups are said to differ


def pairs(moments: CurveMoments) -> list[tuple[Label, Label]]:
    """Every two groups that are large enough, the later first: it is compared with the earlier."""
    names = [moments.groups[place] for place in large(moments)]
    return list(combinations(reversed(names), 2))


def differ(moments: CurveMoments) -> bool:
    """Whether the groups are said to differ."""
    return pvalue(moments) <= _SURE


def differences_in_words(moments: CurveMoments, level: float = 0.95) -> str:
    """Which groups are too small, whether the others differ, and where; in a few sentences."""
    small = [f"{text[0].upper()}{text[1:]}." for text in about_small(moments)]
    return " ".join([*small, compared(moments, level)])


def compared(moments: CurveMoments, level: float = 0.95) -> str:
    """Whether groups differ, and where, in a sentence or two; also when nothing was found.

    Bands of all pairs hold together with probability `level` at least (Bonferroni), so that many
    groups do not make false differences likely.
    """
    if len(large(moments)) < 2:
        return "Fewer than two groups are large enough to be compared."
    p = pvalue(moments)
    which = "groups"
    if len(large(moments)) < len(moments.groups):  # of means, not all of the small ones are named
        which = "larger groups" if moments.look.emphasis == "means" else "other groups"
    if p > _SURE:
        return (
            f"No difference between the {which} was found (p = {p:.2g}): they may be alike, or too "
            "few people or too small an ε hide it."
        )
    told, both = [f"The {which} differ (p = {p:.2g})."], pairs(moments)
    each = 1 - (1 - level) / len(both)
    for one, other in both:
        found = difference(moments, one, other, each)
        places = "; ".join(_where(moments.grid_points, found)) or "nowhere beyond its band"
        told.append(f"{one} minus {other}: {places}.")
    return " ".join(told)


def _where(t: FloatArray, found: Band) -> list[str]:
    """The stretches of t where a band excludes 0, and the largest effect there."""
    told = []
    for word, outside in (("above", found.low > 0), ("below", found.high < 0)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], outside.astype(np.int64), [0]])))
        told += [
            f"{word} 0 from t = {t[start]:g} to {t[stop - 1]:g}"
            for start, stop in edges.reshape(-1, 2)
        ]
    if told:
        sure = (found.low > 0) | (found.high < 0)
        most = int(np.argmax(np.where(sure, np.abs(found.middle), 0.0)))
        told.append(f"largest {found.middle[most]:.2g} at t = {t[most]:g}")
    return told


def plot_means(moments: CurveMoments, ax: Any = None, *, level: float = 0.95) -> Any:
    """Draw the mean of every group with its band; returns the axes."""
    bands = {name: interval(moments, level, group=name) for name in moments.groups or (None,)}
    ax = _plot(moments, {name or "mean": band for name, band in bands.items()}, ax, level)
    ax.set_ylabel("mean")
    ax.set_title(str(moments.guarantee), fontsize="small")
    return ax


def plot_differences(moments: CurveMoments, ax: Any = None, *, level: float = 0.95) -> Any:
    """Draw the difference of every two groups with its band; returns the axes."""
    bands = {
        f"{one} minus {other}": difference(moments, one, other, level)
        for one, other in pairs(moments)
    }
    ax = _plot(moments, bands, ax, level)
    ax.axhline(0.0, color="0.5", linewidth=0.8)
    ax.set_ylabel("difference of means")
    ax.set_title(f"p = {pvalue(moments):.2g}; {moments.guarantee}", fontsize="small")
    return ax


def _plot(moments: CurveMoments, bands: dict[Any, Band], ax: Any, level: float) -> Any:
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1] if ax is None else ax
    t = moments.grid_points
    for name, band in bands.items():
        (line,) = ax.plot(t, band.middle, label=str(name))
        shade = {"color": line.get_color(), "alpha": 0.15, "linewidth": 0}
        ax.fill_between(t, band.low, band.high, **shade)
    ax.set_xlabel("t")
    told = f"{100 * level:g} % bands, whole curve: noise and sampling"
    ax.legend(title=told, fontsize="small", title_fontsize="small")
    return ax
