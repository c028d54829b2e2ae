"""Reports of a regression: warnings, verdict, tables and pictures."""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.queries import BallMean
from dpfda.central.regression.alternatives import EigenvalueQuery, GradientQuery
from dpfda.central.regression.base import Fitted
from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.problem import Problem
from dpfda.central.regression.queries import MomentQuery, WeightedMomentQuery
from dpfda.central.regression.recipe import ANY_VALUE, value_range_of
from dpfda.central.regression.released import Released
from dpfda.central.regression.two_stage_queries import LocationQuery
from dpfda.curves.matrices import floored
from dpfda.privacy.calibration import gaussian_mu
from dpfda.protocol.holder import Exchange
from dpfda.protocol.model import common_range, slope_names, slope_table
from dpfda.report import Contents, Picture, Table, Verdict

_POINTS = 10  # number of points of a slope function in the table
_UNKNOWN = (
    "How well it predicts is not known: to judge it on the same data would cost more of their "
    "budget. Judge it on people whose data are public, or in a simulation (dpfda plan)."
)


def contents(model: RegressionModel) -> Contents:
    """The contents of the report: the verdict, a table of coefficients or slopes, a picture."""
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
    """Coefficients in the units of the features; for curves, the slope function at a few points."""
    if model.has_band:
        return _banded(model)
    if not model.of_curves:
        return _coefficients(model)
    encoder = model.encoder
    assert encoder is not None
    ends = common_range(encoder)
    if encoder.basis.name == "smooth":
        ends = value_range_of(encoder)
    return slope_table(model, encoder, model.slope, None if ends == ANY_VALUE else ends)


def _banded(model: RegressionModel) -> Table:
    """The slope function at a few points, with its simultaneous band."""
    assert model.encoder is not None
    points = np.linspace(*model.encoder.basis.domain_range, _POINTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # printed below the table
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
    several = model.classes if np.ndim(intercept) else None
    whose = ["(intercept)"] if several is None else [f"(intercept) ({one})" for one in several]
    known = zip(whose, np.atleast_1d(intercept), strict=True)
    rows = [[name, *blank, f"{one:.5g}", *last] for name, one in known]
    for place, row in enumerate(found):
        span = [] if public is None else [ends[place % len(ends)]]  # class by class
        shown = [f"{row.low:.4g} … {row.high:.4g}"] if stated else []
        rows.append([row.feature, *span, f"{row.value:.5g}", *shown])
    return Table(headings=tuple(headings), rows=tuple(map(tuple, rows)))


_MOSTLY = 1 / 3  # share of the slopes' prior variance that remains and causes a warning
_CLEAR = 3.0
"""Significance of a fit, in deviations, that counts as clear. Noise alone reaches it a few times in
100, most often with one feature and Laplace noise, whose square has the longest tail."""
_FEW = 10.0  # nμ/√D below which a fit is mostly noise (`Regression.clarity`)
_CHANCE = 0.05  # probability that noise alone makes any coefficient significant
_WIDE = 64  # with more columns only the joint significance is computed, to save time
_NEARLY_ALL = 2.5  # score deviations from 0 beyond which 159 of 160 people get the same class
_HIDDEN = (
    "noise hides how these features vary apart from each other: {names}. The intervals of their "
    "coefficients are as wide as coefficients may be. Leave out features that move together or "
    "hardly vary, allow a larger epsilon or ask more people"
)
_PULLED = (
    "the slope is pulled towards 0: noise hides most of how curves vary, so its band rests on a "
    "guess of how large a slope may be more than on data, and may miss the slope. Ask more people, "
    "allow a larger epsilon or give a narrower value_range"
)
_CONSTANT = (
    "The fit explains no more of the target than noise alone would: its predictions may be no "
    "better than one number for everybody."
)
_GUESSING = (
    "The classes differ by no more than noise alone would make them: this classifier may be no "
    "better than naming the most frequent class for everybody."
)
_NOISE = "No coefficient stands out of its privacy noise: all of them may be noise alone."
_TOO_FEW = (
    "There are too few rows for this budget: predictions may be no better than one constant for "
    "everybody."
)
_TOGETHER = (
    "No coefficient stands out of its privacy noise by itself: noise hides which of them counts."
)
_ANYWHERE = (
    "The band of the slope function holds 0 everywhere: predictions rest on the curves, but on "
    "which part of them is not known."
)


def verdict_of(model: RegressionModel) -> Verdict:
    """The verdict on a regression or a classifier."""
    fit = model.fit
    if fit.explained is not None and fit.clarity is not None:
        if fit.explained <= 0 or fit.clarity < _CLEAR:
            text = _CONSTANT if model.classes is None else _GUESSING
            return Verdict(kind="guessing", sentences=(text,))
        if label := _same_for_all(model):
            text = f"This classifier names {label} for nearly everybody: it is no better than "
            text += "guessing the most frequent class."
            return Verdict(kind="guessing", sentences=(text,))
        return Verdict(sentences=(_ANYWHERE,) * _zero_everywhere(model))
    if fit.released is None or fit.clips:
        few = _strength(model) < _FEW
        return Verdict(kind="guessing" if few else "unclear", sentences=(_TOO_FEW,) * few)
    if len(fit.released.vector) > _WIDE:
        noise = _clarity(fit.released, sampling=False) < _CLEAR
        return Verdict(kind="noise" if noise else "signal", sentences=(_NOISE,) * noise)
    hidden, found = _zero_everywhere(model), _clarity(fit.released)
    if found < _CLEAR and hidden:
        text = _CONSTANT if model.of_curves else _NOISE
        return Verdict(kind="noise", sentences=(text,))
    text = _ANYWHERE if model.of_curves else _TOGETHER
    return Verdict(sentences=(text,) * hidden)


def _clarity(released: Released, *, sampling: bool = True) -> float:
    """The explained variance, in standard deviations above that of noise and sampling alone.

    The line with slopes A b̂ explains the variance b̂ᵀQb̂ with Q = 2A - AMA, where A is a regularized
    inverse of M. If b̂ consists only of errors with covariance S, this has mean tr(QS) and variance
    2 tr(QSQS).
    """
    matrix, b = released.matrix, released.vector
    errors = released.vector_sigma**2 * np.eye(len(b))
    noise = released.matrix_variance
    if released.constant:  # subtract the mean row and the mean target
        mean, target = matrix[:-1, -1] / matrix[-1, -1], b[-1] / matrix[-1, -1]
        matrix, b = matrix[:-1, :-1] - np.outer(mean, matrix[-1, :-1]), b[:-1] - mean * b[-1]
        errors = released.vector_sigma**2 * (np.eye(len(b)) + np.outer(mean, mean))
        errors = errors + target**2 * np.diag(noise[:-1, -1])
    shifted = released.center_sigma * released.target_center_sigma
    errors = errors + shifted**2 * np.eye(len(b))
    if sampling:
        errors = errors + released.target_variance / released.rows * floored(matrix)
    floor = 2 * math.sqrt(float(noise.max()) * len(matrix))
    inverse = floored(matrix, max(floor, 1e-12), inverted=True)
    form = 2 * inverse - inverse @ floored(matrix) @ inverse
    alone = form @ errors
    deviation = math.sqrt(2 * float(np.trace(alone @ alone)))
    return float(b @ form @ b - np.trace(alone)) / max(deviation, 1e-300)


def _strength(model: RegressionModel) -> float:
    """nμ/√D for a fit whose noise has no simple form (nε/√D if δ = 0)."""
    promise = model.guarantee
    mu = promise.epsilon
    if promise.delta:
        mu = gaussian_mu(epsilon=promise.epsilon, delta=promise.delta)
    return model.rows * mu / math.sqrt(len(model.features))


def _same_for_all(model: RegressionModel) -> str:
    """The class predicted for nearly everybody, or an empty string."""
    spread, score = model.fit.spread, model.fit.offset
    if model.classes is None or spread is None or abs(score) <= _NEARLY_ALL * spread:
        return ""
    return repr(model.classes[int(score > 0)])


def _zero_everywhere(model: RegressionModel) -> bool:
    """Whether no coefficient, or no part of the slope function, is known to differ from 0."""
    if not model.has_interval:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # reported by `pulled`
        low, high = model.interval(1 - _CHANCE, simultaneous=True)
    return bool(np.all((low <= 0) & (high >= 0)))


def pulled(model: RegressionModel) -> str | None:
    """A warning if noise hides how curves vary, so that the band may be wrong; or None."""
    released = model.fit.released
    if not model.has_band or released is None:
        return None
    known = released.beliefs(released.matrix[None], model.slope_sizes)[0, : len(model.fit.slope)]
    found = model.plausible_slopes(sampling=False) / np.diag(released.combinations)
    left = np.minimum(found.var(axis=0) / known**2, 1.0)
    weights = np.maximum(np.diag(released.matrix)[: len(known)], 0.0) * known**2
    return _PULLED if float(weights @ left) > _MOSTLY * float(weights.sum()) else None


def hidden_features(model: RegressionModel) -> tuple[str, ...]:
    """A warning that names features whose variation is hidden by noise, if there is no other."""
    released = model.fit.released
    if model.of_curves or released is None or model.fit.warnings:
        return ()
    names = released.hidden(model.features)
    return (_HIDDEN.format(names=", ".join(names)),) * bool(names)


_EDGE = 0.95  # a mean row longer than this share of the radius shows that nearly all rows reach it
_END = 0.99  # a mean beyond this share of the range: fewer than one in 200 are at the other end
_FLAT = 0.9  # if predictions are all beyond this share of the range, so were nearly all targets
_BLUR = 0.02  # no warning is given if the noise is larger

Shape = Literal["ball", "box", "curves"]
_WRONG = "probably far too small, and then the result is wrong"
_ROWS = {
    "ball": f"nearly all rows reach the bound on their length: it is {_WRONG}",
    "box": f"nearly everybody is at an end of the range of nearly every feature: they are {_WRONG}",
    "curves": f"nearly all curves are at an end of the range of their values: it is {_WRONG}",
}
_TARGETS = f"nearly all targets are at one end of their range: it is {_WRONG}"


class Means(NamedTuple):
    """Mean row (None if unknown) and mean target in units of their bounds, and their noise."""

    row: FloatArray | None
    target: float
    noise: float


def range_warnings(
    first: Exchange, fitted: Fitted, *, problem: Problem | None, shape: Shape
) -> tuple[str, ...]:
    """Warnings about public ranges, from released numbers only (post-processing).

    Args:
        first: the first query and its answer.
        fitted: the fit.
        problem: link and bounds; None for a discriminant analysis.
        shape: kind of the public bound: a ball, a box with a range for every feature, or the range
            of the values of curves.
    """
    means, found = _means(first), []
    if means is not None and means.row is not None:
        found += _about_rows(means.row, means.noise, shape)
    if problem is not None and problem.link == "linear":
        target = _lowest(fitted, problem) if means is None else means.target
        limit, noise = (_FLAT, 0.0) if means is None else (_END, means.noise)
        if noise <= _BLUR and target >= limit:
            found.append(_TARGETS)
    return tuple(found)


def _about_rows(row: FloatArray, noise: float, shape: Shape) -> list[str]:
    if shape == "box" and noise * math.sqrt(row.size) <= _BLUR:
        ends = np.flatnonzero(np.abs(row) * math.sqrt(row.size) >= _END)
        which = ", ".join(str(place + 1) for place in ends)
        return [
            f"nearly everybody is at an end of the range of feature {which}: the range is probably "
            "far too small; if it is right, the feature says nothing"
        ] * bool(which)
    # The mean is as long as the radius only if all rows reach it in one direction. The expected
    # contribution of noise is subtracted; the remaining uncertainty must be small.
    blur = noise + noise**2 * math.sqrt(row.size / 2)
    length = float(row @ row) - row.size * noise**2
    limit = _END if shape == "box" else _EDGE
    return [_ROWS[shape]] * (blur <= _BLUR and length >= limit**2)


def _lowest(fitted: Fitted, problem: Problem) -> float:
    """The smallest distance of predictions from the center of the targets' range."""
    bounds = problem.bounds
    middle = abs(float(fitted.offset) - bounds.target_center)
    reach = float(np.linalg.norm(fitted.slope)) * bounds.radius
    return (middle - reach) / bounds.target_radius


def _means(first: Exchange) -> Means | None:
    """Means of rows and targets from the first answer; None if it is a minimizer."""
    query, answer = first.query, first.answer
    if isinstance(query, BallMean):
        noise = math.sqrt(float(answer.noise.variance.mean())) / query.radius
        return Means(answer.values / query.radius, 0.0, noise)
    if isinstance(query, LocationQuery):
        row, target, noise = query.means(answer)
        return Means(row, abs(target), noise)
    if isinstance(query, WeightedMomentQuery):
        return None  # the bound on a mean of rows does not apply to weighted means
    if isinstance(query, MomentQuery | EigenvalueQuery) and query.constant:  # rows are (x, 1)/√2
        moments = (query if isinstance(query, EigenvalueQuery) else query.moments).read(answer)
        row, target = 2 * moments.quadratic[:-1, -1], math.sqrt(2) * moments.linear[-1]
        return Means(row, abs(target), 2 * max(moments.quadratic_sigma, moments.linear_sigma))
    if isinstance(query, GradientQuery) and query.problem.fit_intercept:  # at 0: -Σ y (x, 1)/√2
        target = math.sqrt(2) * abs(answer.values[-1]) / answer.n
        return Means(None, target, math.sqrt(2) * answer.sigma / answer.n)
    return None
