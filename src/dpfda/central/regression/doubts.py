"""What a regression's answers show of public bounds that are far too small."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.regression.location_query import LocationQuery
from dpfda.central.regression.methods import Fitted
from dpfda.central.regression.methods.noisy_gradient import GradientQuery
from dpfda.central.regression.problem import Problem
from dpfda.central.regression.queries import MomentQuery
from dpfda.protocol.holder import Exchange

_EDGE = 0.95  # length of a mean row in units of the ball: nearly all rows reach it in one direction
_END = 0.99  # of a range: fewer than one in two hundred are at its other end
_FLAT = 0.9  # of a range: a line that is nowhere below it has seen targets at one end only
_BLUR = 0.02  # noise above which nothing can be told

Shape = Literal["ball", "box", "curves"]
_WRONG = "probably far too small, and then the result is wrong"
_ROWS = {
    "ball": f"nearly all rows reach the bound on their length: it is {_WRONG}",
    "box": f"nearly everybody is at an end of the range of nearly every feature: they are {_WRONG}",
    "curves": f"nearly all curves are at an end of the range of their values: it is {_WRONG}",
}
_TARGETS = f"nearly all targets are at one end of their range: it is {_WRONG}"


class Means(NamedTuple):
    """Mean row (None: not known) and mean target in units of their bounds, and the noise."""

    row: FloatArray | None
    target: float
    noise: float


def doubts(first: Exchange, fitted: Fitted, *, problem: Problem, shape: Shape) -> tuple[str, ...]:
    """Warnings from released numbers alone; post-processing.

    Args:
        first: question and its answer.
        fitted: what the fit ended with.
        problem: link and bounds.
        shape: of the public bound: a ball, a box with a range for every feature, or the range of
            the values of curves.
    """
    means, found = _means(first), []
    if means is not None and means.row is not None:
        found += _about_rows(means.row, means.noise, shape)
    if problem.link == "linear":
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
    # A mean as long as the radius is made of rows that reach it in one direction. Noise makes it
    # longer, which is taken off; what is left of it must be small.
    blur = noise + noise**2 * math.sqrt(row.size / 2)
    length = float(row @ row) - row.size * noise**2
    limit = _END if shape == "box" else _EDGE
    return [_ROWS[shape]] * (blur <= _BLUR and length >= limit**2)


def _lowest(fitted: Fitted, problem: Problem) -> float:
    """How far from the middle of the targets' range predictions are everywhere at least."""
    bounds = problem.bounds
    middle = abs(float(fitted.offset) - bounds.target_center)
    reach = float(np.linalg.norm(fitted.slope)) * bounds.radius
    return (middle - reach) / bounds.target_radius


def _means(first: Exchange) -> Means | None:
    """What the first answer shows of rows and targets; None for minimizers."""
    query, answer = first.query, first.answer
    if isinstance(query, LocationQuery):
        row, target, noise = query.means(answer)
        return Means(row, abs(target), noise)
    if isinstance(query, MomentQuery) and query.constant:  # rows are (x, 1)/√2
        moments = query.read(answer)
        row, target = 2 * moments.quadratic[:-1, -1], math.sqrt(2) * moments.linear[-1]
        return Means(row, abs(target), 2 * max(moments.quadratic_sigma, moments.linear_sigma))
    if isinstance(query, GradientQuery) and query.problem.fit_intercept:  # at 0: -Σ y (x, 1)/√2
        target = math.sqrt(2) * abs(answer.values[-1]) / answer.n
        return Means(None, target, math.sqrt(2) * answer.sigma / answer.n)
    return None
