"""What a regression shows, on a terminal and in a report."""

from __future__ import annotations

import warnings

import numpy as np

from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.recipe import ANY_VALUE, value_range_of
from dpfda.protocol.shown import common_range, slope_names, slope_table
from dpfda.report import Contents, Picture, Table

_POINTS = 10  # of a slope function
_UNKNOWN = (
    "How well it predicts is not known: to judge it on the same data would cost more of their "
    "budget. Judge it on people whose data are public, or in a simulation (dpfda plan)."
)


def contents(model: RegressionModel) -> Contents:
    """Coefficients or the slope function, a picture, and in words whether they are noise."""
    what = "slope function β(t)" if model.of_curves else "coefficients"
    beside = ""
    if model.has_band:
        beside = f", with a 95 % band that holds {model.target}"
    elif model.has_interval:
        beside = f", with 95 % intervals that hold {model.target}"
    stated = {"classes": model.classes, "target range": model.target_range, **model.recipe.stated}
    known = {"link": model.link, "mechanism": model.mechanism, "rows": model.rows}
    known |= {"questions asked": model.stages}
    known |= {name: value for name, value in stated.items() if value is not None}
    return Contents(
        verdict=model.verdict.findings,
        doubts=model.warnings,
        tables=(table(model),),
        pictures=(Picture.of(model.plot, f"The {what}{beside}."),),
        settings=known,
        notes=(*(model.notes if not model.of_curves else ()), _UNKNOWN),
    )


def table(model: RegressionModel) -> Table:
    """Coefficients in the units of the features; of curves, the slope function at a few points."""
    if model.has_band:
        return _banded(model)
    if not model.of_curves:
        return _coefficients(model)
    encoder = model.encoder
    assert encoder is not None
    ends = common_range(encoder)
    if encoder.basis.name == "smooth":
        ends = value_range_of(encoder)
    return slope_table(model, model.slope, None if ends == ANY_VALUE else ends)


def _banded(model: RegressionModel) -> Table:
    """The slope function at a few points, each with its part of the band of the whole."""
    assert model.encoder is not None
    points = np.linspace(*model.encoder.basis.domain_range, _POINTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said below the table
        band = model.slope_band(points=points)
    rows = [part.reshape(-1, len(points)) for part in band]
    headings = ["t"]
    for name in slope_names(model, len(rows[0])):
        headings += [name, "95 % band"]
    cells = []
    for place, point in enumerate(points):
        row = [f"{point:.4g}"]
        for middle, low, high in zip(*rows, strict=True):
            row += [f"{middle[place]:.4g}", f"{low[place]:.4g} … {high[place]:.4g}"]
        cells.append(tuple(row))
    return Table(headings=tuple(headings), rows=tuple(cells))


def _coefficients(model: RegressionModel) -> Table:
    intercept, found = model.coefficients()
    stated = model.has_interval
    public = model.recipe.table
    headings = ["feature"]
    if public is not None:
        headings.append("range")
        ends = [f"{public.low[place]:g} … {public.high[place]:g}" for place in model.recipe.kept]
    headings.append("coefficient (clipped rows)" if model.fit.clips else "coefficient")
    if stated:
        headings.append("95 % interval")
    blank = [] if public is None else [""]
    last = [""] * stated
    rows = [["(intercept)", *blank, f"{one:.5g}", *last] for one in np.atleast_1d(intercept)]
    for place, row in enumerate(found):
        span = [] if public is None else [ends[place % len(ends)]]  # class by class
        shown = [f"{row.low:.4g} … {row.high:.4g}"] if stated else []
        rows.append([row.feature, *span, f"{row.value:.5g}", *shown])
    return Table(headings=tuple(headings), rows=tuple(map(tuple, rows)))
