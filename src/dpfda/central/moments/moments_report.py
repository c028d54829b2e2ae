"""Reports of released moments: sentences, verdict, tables and pictures."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import DOUBTED
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.inference import about_small, difference, errors, interval, large, pvalue
from dpfda.central.release_report import NARROW, public_span, remedy
from dpfda.curves.band import Band
from dpfda.protocol.plan import Label
from dpfda.report import Contents, Picture, Table, Verdict, worst_of
from dpfda.report.panels import axes_or_new, headed, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SURE = 0.05  # level of the test whether groups differ


def pairs(moments: CurveMoments) -> list[tuple[Label, Label]]:
    """All pairs of groups that are large enough for a test, each with the later group first."""
    names = [moments.groups[place] for place in large(moments)]
    return list(combinations(reversed(names), 2))


def differ(moments: CurveMoments) -> bool:
    """Whether the test finds that the groups differ."""
    return pvalue(moments) <= _SURE


def differences_in_words(moments: CurveMoments, level: float = 0.95) -> str:
    """Sentences on which groups are too small, and on whether and where the others differ."""
    small = [f"{text[0].upper()}{text[1:]}." for text in about_small(moments)]
    return " ".join([*small, compared(moments, level)])


def compared(moments: CurveMoments, level: float = 0.95) -> str:
    """A few sentences on whether and where the groups differ.

    The bands of all pairs hold together with probability at least `level` (Bonferroni), so that
    many groups do not make false differences likely.
    """
    if len(large(moments)) < 2:
        return "Fewer than two groups are large enough to be compared."
    p = pvalue(moments)
    which = "groups"
    if len(large(moments)) < len(moments.groups):  # for means, not all small groups are named
        which = "larger groups" if moments.query.emphasis == "means" else "other groups"
    if p > _SURE:
        return (
            f"No difference between the {which} was found (p = {p:.2g}): they may be alike, or too "
            "few people or too small an ε hide it."
        )
    text, both = [f"The {which} differ (p = {p:.2g})."], pairs(moments)
    each = 1 - (1 - level) / len(both)
    for one, other in both:
        found = difference(moments, one, other, each)
        places = "; ".join(_where(moments.grid_points, found)) or "nowhere beyond its band"
        text.append(f"{one} minus {other}: {places}.")
    return " ".join(text)


def _where(t: FloatArray, found: Band) -> list[str]:
    """The stretches of t where a band excludes 0, and the largest effect there."""
    text = []
    for word, outside in (("above", found.low > 0), ("below", found.high < 0)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], outside.astype(np.int64), [0]])))
        text += [
            f"{word} 0 from t = {t[start]:g} to {t[stop - 1]:g}"
            for start, stop in edges.reshape(-1, 2)
        ]
    if text:
        sure = (found.low > 0) | (found.high < 0)
        most = int(np.argmax(np.where(sure, np.abs(found.middle), 0.0)))
        text.append(f"largest {found.middle[most]:.2g} at t = {t[most]:g}")
    return text


def plot_means(moments: CurveMoments, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
    """Draw the mean of every group with its band, and return the axes."""
    bands = {name: interval(moments, level, group=name) for name in moments.groups or (None,)}
    ax = headed(axes_or_new(ax), str(moments.guarantee))
    for name, band in bands.items():
        _draw(ax, moments, name or "mean", band)
    ax.set(xlabel="t", ylabel="mean")
    legend_below(ax, title=_told(level))
    return ax


def plot_differences(moments: CurveMoments, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
    """Draw the difference of every pair of groups with its band, and return the axes.

    Several differences have one panel each; the first panel is returned.
    """
    both = pairs(moments)
    names = [f"{one} minus {other}" for one, other in both]
    title = f"p = {pvalue(moments):.2g}; {moments.guarantee}"
    places = panels(ax, names, title=title if len(both) == 1 else f"{title}\n{_told(level)}")
    for place, name, (one, other) in zip(places, names, both, strict=True):
        _draw(place, moments, name, difference(moments, one, other, level))
        place.axhline(0.0, color="0.5", linewidth=0.8)
    if len(both) == 1:
        places[0].set(xlabel="t", ylabel="difference of means")
        legend_below(places[0], title=_told(level))
    return places[0]


def _told(level: float) -> str:
    return f"{100 * level:g} % bands, whole curve: noise and sampling"


def _draw(ax: Axes, moments: CurveMoments, name: Label, band: Band) -> None:
    t = moments.grid_points
    (line,) = ax.plot(t, band.middle, label=str(name))
    shade = {"color": line.get_color(), "alpha": 0.15, "linewidth": 0}
    ax.fill_between(t, band.low, band.high, **shade)


_DRAWS = 400  # number of simulated errors for a mean square


def verdict_of(moments: CurveMoments) -> Verdict:
    """The verdict on moments of one group or of several."""
    parts = []
    if moments.query.emphasis == "means":
        parts.append(_means(moments))
    if moments.query.emphasis == "covariances":
        parts.append(_covariances(moments))
    if len(moments.groups) > 1:
        parts.append(_differences(moments))
    return worst_of(parts)


def _means(moments: CurveMoments) -> Verdict:
    """Whether the means differ from the public center beyond noise, or have narrow bands."""
    belief, length = moments.posterior, float(np.ptp(moments.grid_points))
    error, span = belief.error, public_span(moments.parameters)
    doubt = error.sum() / (error.sum() + (belief.mean**2).sum())
    # Narrow bands are informative even if the means are close to the center.
    if span is not None and 4 * math.sqrt(error.mean() / length) <= NARROW * span:
        return Verdict()
    if doubt <= DOUBTED:
        return Verdict()
    text = "mean: noise hides where the curves are: their public center may be as close."
    text = f"{text} {remedy(moments.warnings)}"
    return Verdict(kind="noise", sentences=(text,))


def _covariances(moments: CurveMoments) -> Verdict:
    """Whether the largest eigenvalue of a covariance exceeds that of noise alone."""
    few = moments.query.second
    for table, products in enumerate(moments.products):
        # The largest eigenvalue of a symmetric matrix of noise is about 2σ√J.
        if np.linalg.eigvalsh(products)[-1] > 2 * np.sqrt(few) * moments.product_noise(table):
            return Verdict()
    text = "covariance: noise hides how curves vary, and synthetic curves vary by noise."
    text = f"{text} {remedy(moments.warnings)}"
    return Verdict(kind="noise", sentences=(text,))


def _differences(moments: CurveMoments) -> Verdict:
    """Whether groups differ; if not, whether privacy noise exceeds sampling error."""
    text = (compared(moments),)
    if (
        differ(moments) or moments.query.emphasis == "means"
    ):  # with the emphasis on means, a difference is not required
        return Verdict(sentences=text)
    noise, whole = (
        float((_apart(errors(moments, sampling=sampling, size=_DRAWS)) ** 2).mean())
        for sampling in (False, True)
    )
    return Verdict(kind="unclear" if noise > whole / 2 else "signal", sentences=text)


def _apart(drawn: FloatArray) -> FloatArray:
    """Errors of the groups minus their mean over groups."""
    return np.asarray(drawn - drawn.mean(axis=1, keepdims=True))


_ROWS = 10  # rows of the table of a curve
_BAND = "with a 95 % band for the whole curve, of noise and sampling"


def contents(moments: CurveMoments) -> Contents:
    """Means, sizes and differences of groups, and a sentence on whether they differ."""
    pictures = [Picture.of(lambda axes: plot_means(moments, axes), f"Released means, {_BAND}.")]
    tables = [means(moments)]
    if moments.groups:
        sizes = zip(moments.groups, moments.sizes, strict=True)
        rows = [{"group": str(name), "about how many": round(float(size))} for name, size in sizes]
        tables.append(Table.of(rows, title="sizes of groups, with privacy noise"))
        if pairs(moments):
            text = f"Differences of means, {_BAND}; 0 is no difference."
            pictures.append(Picture.of(lambda axes: plot_differences(moments, axes), text))
    return Contents(
        verdict=moments.verdict.findings,
        doubts=moments.verdict.added_to(moments.warnings),
        tables=tuple(tables),
        pictures=tuple(pictures),
        settings=moments.parameters,
        notes=("Bands hold the mean curves of everybody who might have been asked.",),
    )


def columns(moments: CurveMoments) -> dict[str, list[float]]:
    """Grid, and the means of the groups with simultaneous 95 % bands for the population."""
    found = {"t": [float(t) for t in moments.grid_points]}
    for place, name in enumerate(moments.groups or (None,)):
        band = interval(moments, group=name)
        title = "mean" if name is None else f"mean of {name}"
        rows = {"": moments.means[place], " low": band.low, " high": band.high}
        found |= {f"{title}{end}": [float(one) for one in row] for end, row in rows.items()}
    return found


def means(moments: CurveMoments) -> Table:
    """Mean curves at some points, with their bands."""
    headings, bands = ["t"], []
    for name in moments.groups or (None,):
        headings.append("mean" if name is None else f"mean of {name}")
        headings.append("95 % band of the population's")
        bands.append(interval(moments, group=name))
    places = np.linspace(0, len(moments.grid_points) - 1, _ROWS).round().astype(np.int64)
    rows = []
    for place in np.unique(places):
        cells = [f"{moments.grid_points[place]:.4g}"]
        for values, band in zip(moments.means, bands, strict=True):
            cells += [f"{values[place]:.4g}", f"{band.low[place]:.4g} … {band.high[place]:.4g}"]
        rows.append(tuple(cells))
    title = "means (ten points of the domain)"
    return Table(headings=tuple(headings), rows=tuple(rows), title=title)
