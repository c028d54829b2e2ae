"""What moments of groups show, on a terminal and in a report."""

from __future__ import annotations

import numpy as np

from dpfda.central.moments.bands import interval
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.differences import pairs, plot_differences, plot_means
from dpfda.report import Contents, Picture, Table

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
