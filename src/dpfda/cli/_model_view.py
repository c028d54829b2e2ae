"""How regressions and classifiers are shown on a terminal."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dpfda.protocol.curve_regression import CurveRegression
from dpfda.protocol.model import ClassModel, RuleModel, StudyModel
from dpfda.regression.model import RegressionModel
from dpfda.regression.recipe import ANY_VALUE, value_range_of

_POINTS = 10  # of a slope function
_NOTHING = 1e-9  # of a range's width: what rounding leaves of an end at 0


def print_regression(model: RegressionModel) -> None:
    """Coefficients in the units of the features, the promise, and how to read them."""
    console = Console(markup=False)
    stages = f"{model.stages} stage{'s' * (model.stages != 1)}"
    same = model.link == model.mechanism  # as discriminants have no other way
    how = f"{model.link} analysis" if same else f"{model.link} by {model.mechanism}"
    console.print(f"{how}, {model.rows} rows, {stages}", markup=False)
    if model.has_band:
        console.print(_banded_slopes(model))
    else:
        console.print(_slopes(model, model.slope) if model.of_curves else _table(model))
    console.print(str(model.guarantee), markup=False)
    if model.classes is not None:
        console.print(f"classes: {', '.join(map(str, model.classes))}", markup=False)
    if model.target_range is not None:
        console.print("target: {:g} to {:g}".format(*model.target_range), markup=False)
    for note in model.notes if not model.of_curves else ():
        console.print(f"note: {note}", markup=False)
    for warning in filter(None, (*model.fit.warnings, model.pulled)):
        console.print(f"warning: {warning}", markup=False)


def print_study_model(model: StudyModel) -> None:
    """The model of a study of people or owners."""
    console = Console(markup=False)
    console.print(model.kind, markup=False)
    if isinstance(model, RuleModel) and model.encoder.basis.functional:
        console.print(_slopes(model, model.slope))
    console.print(str(model.guarantee), markup=False)
    if isinstance(model, RuleModel) and len(model.folds):
        said = f"how far the first {len(model.folds)} features are from their middles counts, too"
        console.print(said, markup=False)
    if isinstance(model, ClassModel):
        console.print(f"classes: {', '.join(map(str, model.classes))}", markup=False)
    if isinstance(model, CurveRegression):
        console.print("target: {:g} to {:g}".format(*model.target_range), markup=False)


def _slopes(model: Any, slope: Any) -> Table:
    """The slope function at a few points, with the public ranges that it rests on."""
    start, end = model.encoder.basis.domain_range
    points = np.linspace(start, end, _POINTS)
    low, high = _range(model.encoder)
    ends = (0.0 if abs(end) < _NOTHING * (high - low) else end for end in (low, high))
    caption = "values from {:g} to {:g}".format(*ends) if low < high else None
    table = Table(caption=caption)
    table.add_column("t", justify="right")
    rows = slope(points).reshape(-1, len(points))
    for name in _names(model, len(rows)):
        table.add_column(name, justify="right")
    for place, point in enumerate(points):
        table.add_row(f"{point:.4g}", *(f"{row[place]:.4g}" for row in rows))
    return table


def _names(model: Any, slopes: int) -> list[str]:
    """Of one slope function, of one for each of several classes, or of channels."""
    classes = getattr(model, "classes", None) or ()
    if slopes == 1:
        return ["slope β(t)"]
    if slopes == len(classes) > 2:  # two classes share one function of each channel
        return [f"slope of {one}" for one in classes]
    return [f"slope {place + 1}" for place in range(slopes)]


def _banded_slopes(model: RegressionModel) -> Table:
    """The slope function at a few points, each with its part of the band of the whole."""
    assert model.encoder is not None
    points = np.linspace(*model.encoder.basis.domain_range, _POINTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said below the table
        band = model.slope_band(points=points)
    rows = [part.reshape(-1, len(points)) for part in band]
    table = Table()
    table.add_column("t", justify="right")
    for name in _names(model, len(rows[0])):
        table.add_column(name, justify="right")
        table.add_column("95 % band of noise, sampling and pull", justify="right")
    for place, point in enumerate(points):
        cells = [f"{point:.4g}"]
        for middle, low, high in zip(*rows, strict=True):
            cells += [f"{middle[place]:.4g}", f"{low[place]:.4g} … {high[place]:.4g}"]
        table.add_row(*cells)
    return table


def _range(encoder: Any) -> tuple[float, float]:
    """The public range of values, where all coefficients rest on one; (0, 0) where none."""
    size = encoder.n_features
    scales, centers = encoder.rescaler.scales(size), encoder.rescaler.centers(size)
    if encoder.basis.name == "smooth":
        ends = value_range_of(encoder)
        return (0.0, 0.0) if ends == ANY_VALUE else ends
    if encoder.rescaler.name != "clip" or np.ptp(scales) or np.ptp(centers):
        return 0.0, 0.0
    return float(centers[0] - scales[0]), float(centers[0] + scales[0])


def _table(model: RegressionModel) -> Table:
    table = Table()
    intercept, found = model.coefficients()
    stated = any(row.privacy_standard_error is not None for row in found)
    table.add_column("feature")
    public = model.recipe.table
    if public is not None:
        table.add_column("range", justify="right")
        ends = [f"{low:g} … {high:g}" for low, high in zip(public.low, public.high, strict=True)]
    name = "coefficient (clipped rows)" if model.fit.clips else "coefficient"
    table.add_column(name, justify="right")
    if stated:
        table.add_column("± from privacy noise", justify="right")
    blank = [] if public is None else [""]
    for value in np.atleast_1d(intercept):
        table.add_row("(intercept)", *blank, f"{value:.5g}")
    for place, row in enumerate(found):
        error = row.privacy_standard_error
        span = [] if public is None else [ends[place % len(ends)]]  # class by class
        shown = [] if error is None else [f"{error:.2g}"]
        table.add_row(row.feature, *span, f"{row.value:.5g}", *shown)
    return table
