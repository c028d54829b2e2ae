"""Whether released moments show more than noise: the judge of groups and of synthetic curves.

What moments of groups show, on a terminal and in a report.
"""

from __future__ import annotations

import math

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import DOUBTED
from dpfda.central.judged import NARROW, public_span, remedy
from dpfda.central.moments.bands import errors, interval
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.differences import compared, differ, pairs, plot_differences, plot_means
from dpfda.report import Contents, Picture, Table, Verdict, worst_of

_DRAWS = 400  # of errors, for their mean squares


def judged(moments: CurveMoments) -> Verdict:
    """The verdict on moments of one group or of several."""
    parts = []
    if moments.look.emphasis == "means":
        parts.append(_means(moments))
    if moments.look.emphasis == "covariances":
        parts.append(_covariances(moments))
    if len(moments.groups) > 1:
        parts.append(_differences(moments))
    return worst_of(parts)


def _means(moments: CurveMoments) -> Verdict:
    """Beside the public center: are the means told from it, or at least known well?"""
    belief, length = moments.belief, float(np.ptp(moments.grid_points))
    error, span = belief.error, public_span(moments.parameters)
    doubt = error.sum() / (error.sum() + (belief.mean**2).sum())
    # A band of ±2 deviations that narrow is known well, wherever it is.
    if span is not None and 4 * math.sqrt(error.mean() / length) <= NARROW * span:
        return Verdict()
    if doubt <= DOUBTED:
        return Verdict()
    told = "mean: noise hides where the curves are: their public center may be as close."
    told = f"{told} {remedy(moments.warnings)}"
    return Verdict(kind="noise", sentences=(told,))


def _covariances(moments: CurveMoments) -> Verdict:
    """Of what curves are drawn from: does any direction stand out of the noise?"""
    few = moments.look.second
    for table, products in enumerate(moments.products):
        # The largest eigenvalue of a symmetric matrix of noise is about 2σ√J.
        if np.linalg.eigvalsh(products)[-1] > 2 * np.sqrt(few) * moments.product_noise(table):
            return Verdict()
    told = "covariance: noise hides how curves vary, and synthetic curves vary by noise."
    told = f"{told} {remedy(moments.warnings)}"
    return Verdict(kind="noise", sentences=(told,))


def _differences(moments: CurveMoments) -> Verdict:
    """Do groups differ? If not: is privacy noise larger than sampling error, and hides it?"""
    told = (compared(moments),)
    if differ(moments) or moments.look.emphasis == "means":  # where that was not the question
        return Verdict(sentences=told)
    noise, whole = (
        float((_apart(errors(moments, sampling=sampling, size=_DRAWS)) ** 2).mean())
        for sampling in (False, True)
    )
    return Verdict(kind="unclear" if noise > whole / 2 else "signal", sentences=told)


def _apart(drawn: FloatArray) -> FloatArray:
    """Errors of groups about their mean."""
    return np.asarray(drawn - drawn.mean(axis=1, keepdims=True))


_ROWS = 10  # points shown of a curve
_BAND = "with a 95 % band for the whole curve, of noise and sampling"


def contents(moments: CurveMoments) -> Contents:
    """Means, sizes, what groups differ by, and in words whether anything was found."""
    pictures = [Picture.of(lambda axes: plot_means(moments, axes), f"Released means, {_BAND}.")]
    tables = [means(moments)]
    if moments.groups:
        sizes = zip(moments.groups, moments.sizes, strict=True)
        rows = [{"group": str(name), "about how many": round(float(size))} for name, size in sizes]
        tables.append(Table.of(rows, title="sizes of groups, with privacy noise"))
        if pairs(moments):
            told = f"Differences of means, {_BAND}; 0 is no difference."
            pictures.append(Picture.of(lambda axes: plot_differences(moments, axes), told))
    return Contents(
        verdict=moments.verdict.findings,
        doubts=moments.verdict.added_to(moments.warnings),
        tables=tuple(tables),
        pictures=tuple(pictures),
        settings=moments.parameters,
        notes=("Bands hold the mean curves of everybody who might have been asked.",),
    )


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
