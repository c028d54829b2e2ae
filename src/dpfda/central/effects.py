"""Coefficient functions under one belief: what noisy moments say of T1 β = T2, and no more.

What a curator of pairs (x, Y) is asked: products of covariates, and of covariates and curves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from dpfda._validate import FloatArray, IntArray
from dpfda.central.queries import Body, MeanQuery
from dpfda.central.radius import RadiusCount
from dpfda.central.records import clip_rows
from dpfda.curves.matrices import Triangle, floored
from dpfda.noise.law import LEVEL_ODDS, LEVELS
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import flag, number, whole
from dpfda.protocol.query import Records

_SCALES = 4.0 ** -np.arange(0.5, 7)  # of the bound: of the first wave of the intercept
_EVEN = np.full(len(_SCALES), 1 / len(_SCALES))
_DECAYS = np.array([0.3, 1.0, 2.0])  # b: wave j is as large as j^-b
_EFFECTS = np.array([0.0, 1 / 64, 1 / 16, 1 / 4])
"""Of the bound: the effect of a covariate that goes from the middle of its range to an end."""
_ALONE = np.array([0.0, 1 / 64, 1 / 8, 1.0])  # the same where there is no intercept
_MIDDLE = 0.5  # of its range: how far the mean of a covariate is from the middle
_MOST_NUMBERS = 1 << 22  # of an array that is worked on: 32 MB, however many covariates there are
_SQUARE = 1 / 3  # mean square of a covariate that fills its range, and how uncertain that is


class Effects(NamedTuple):
    """Coefficients (p, J) of functions, and what predictions are worth.

    Attributes:
        mean: of the coefficients, given what was released.
        error: expected squared norm of the error of a prediction.
        size: mean squared norm of a prediction, about the public center.
    """

    mean: FloatArray
    error: float
    size: float

    @property
    def doubt(self) -> float:
        """Expected squared error of predictions, over that of the public center."""
        return self.error / max(self.error + self.size, 1e-300)


class Moments(NamedTuple):
    """Released T1 and T2 with the variances of their noise; covariates are in the unit ball."""

    matrix: FloatArray
    matrix_variance: FloatArray
    vectors: FloatArray
    vector_variance: FloatArray
    constant: bool


def believed(moments: Moments, *, reach: float) -> Effects:
    """Mean of β in T1 β = T2 under a belief about functions in their public bound.

    The intercept is believed to be like a mean curve (`shrinkage.posterior`); covariates have no
    effect, or one that is a part of the bound. Hypotheses are weighed by how probable they make T2,
    so that where there is nothing but noise 0 is left. Noise of T1 times β is noise of T2.

    Args:
        moments: what was released.
        reach: public bound on the norm of the curves.

    Examples:
        >>> moments = Moments(
        ...     np.diag([0.3, 1.0]), np.zeros((2, 2)), np.array([[0.0], [0.5]]),
        ...     np.full((2, 1), 1e-6), True,
        ... )
        >>> believed(moments, reach=1.0).mean.round(2).ravel().tolist()
        [0.0, 0.5]
    """
    matrix, unsure = _likely(moments)
    size = moments.vectors.shape[1]
    most = math.sqrt(len(matrix) - moments.constant)
    effects = _EFFECTS if moments.constant else _ALONE
    found = []
    for effect, decay in product(reach * most * effects, _DECAYS):
        shape = np.append(1.0, np.arange(1, size) ** -decay)
        prior = np.tile((effect * shape[:, None]) ** 2, len(matrix))  # (J, p)
        parts = [(slice(0, 1), LEVELS, LEVEL_ODDS), (slice(1, None), _SCALES, _EVEN)]
        means, error, log = [], 0.0, 0.0
        for place, scales, odds in parts[: 1 + (size > 1)]:
            tried = np.tile(prior[place], (len(scales), 1, 1))
            if moments.constant:
                tried[..., -1] = (reach * scales[:, None] * shape[place]) ** 2
            noisy, noise = (part.T[place] for part in moments[2:4])
            one = _mixed(_solved(noisy, noise, matrix, unsure, tried), np.log(odds), matrix)
            means.append(one.mean)
            error, log = error + one.error, log + one.log
        found.append(_Part(np.vstack(means), error, log))
    rows = [np.stack([getattr(one, name) for one in found]) for name in _Part._fields]
    whole = _mixed(_Part(*rows), np.zeros(len(found)), matrix)
    predicted = float(np.einsum("jp,pq,jq->", whole.mean, matrix, whole.mean))
    return Effects(whole.mean.T, float(whole.error), predicted)


class _Part(NamedTuple):
    """Of some coefficients j, under one hypothesis or several (first axis).

    Attributes:
        mean: (J, p).
        error: expected square of the error of predictions.
        log: logarithm of how probable the released numbers are.
    """

    mean: FloatArray
    error: Any
    log: Any


def _likely(moments: Moments) -> tuple[FloatArray, FloatArray]:
    """T1 as it is believed to be, and the variances that are left of its entries.

    Of p covariates in the unit ball each is within 1/√p; where noise is larger than that, it says
    nothing. The square of a constant is known.
    """
    size = len(moments.matrix)
    most = 1 / math.sqrt(size - moments.constant)  # of a covariate
    square, spread = np.full(size, _SQUARE * most**2), np.full((size, size), _SQUARE * most**2)
    if moments.constant:
        spread[-1] = spread[:, -1] = _MIDDLE * most
        square[-1], spread[-1, -1] = 1.0, 0.0
    kept = spread**2 / np.maximum(spread**2 + moments.matrix_variance, 1e-300)
    middle = np.diag(square)
    matrix = floored(middle + kept * (moments.matrix - middle))
    return matrix, kept * moments.matrix_variance


def _solved(
    noisy: FloatArray, noise: FloatArray, matrix: FloatArray, unsure: FloatArray, prior: FloatArray
) -> _Part:
    """Normal posteriors of the rows of (J, p), for priors (H, J, p); a few rows at a time."""
    size = max(1, _MOST_NUMBERS // (len(prior) * matrix.size))
    if len(noisy) > size:
        places = [slice(start, start + size) for start in range(0, len(noisy), size)]
        parts = [
            _solved(noisy[place], noise[place], matrix, unsure, prior[:, place]) for place in places
        ]
        means = np.concatenate([one.mean for one in parts], axis=1)
        return _Part(means, sum(one.error for one in parts), sum(one.log for one in parts))
    weighted = prior[..., None] * matrix
    errors = noise + prior @ unsure.T
    inner = matrix @ weighted + errors[..., None] * np.eye(len(matrix))
    gain = np.swapaxes(np.linalg.solve(inner, np.swapaxes(weighted, -1, -2)), -1, -2)
    mean = (gain @ noisy[..., None])[..., 0]
    left = prior[..., None] * np.eye(len(matrix)) - gain @ np.swapaxes(weighted, -1, -2)
    logs = np.einsum("...p,...p->...", noisy, np.linalg.solve(inner, noisy[..., None])[..., 0])
    logs = -0.5 * (logs + np.linalg.slogdet(inner)[1])
    return _Part(mean, np.einsum("hjpq,pq->h", left, matrix), logs.sum(axis=1))


def _mixed(parts: _Part, odds: FloatArray, matrix: FloatArray) -> _Part:
    """Of all hypotheses together."""
    logs = parts.log + odds - logsumexp(odds)
    log = logsumexp(logs)
    weights = np.exp(logs - log)
    mean = np.tensordot(weights, parts.mean, 1)
    off = parts.mean - mean
    apart = np.einsum("hjp,pq,hjq->h", off, matrix, off)
    return _Part(mean, weights @ (parts.error + apart), log)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairQuery(MeanQuery):
    """Vectors x and coefficients of a curve, each clipped to a public ball.

    Attributes:
        covariates: numbers in a vector x.
        coefficients: of a curve.
        covariate_bound: B; x/B is used, clipped to the unit ball.
        bound: τ of the coefficients.
        intercept: whether a constant 1 is appended to x/B.
    """

    block_rows: ClassVar[int] = 1 << 12  # products of a record are held at once

    covariates: int = whole(most=1 << 12)
    coefficients: int = whole(most=1 << 12)
    covariate_bound: float = number(least=1e-40, most=1e40)
    bound: float = number(least=1e-40, most=1e40)
    intercept: bool = flag(default=True)

    @property
    def columns(self) -> tuple[int, ...]:
        """Vectors and coefficients."""
        return self.covariates, self.coefficients

    @property
    def width(self) -> int:
        """Numbers in x, the constant counted."""
        return self.covariates + self.intercept

    @property
    def radius(self) -> float:
        """Bound on the norm of x/B, the constant counted."""
        return math.sqrt(2) if self.intercept else 1.0

    def scaled(self, x: FloatArray) -> FloatArray:
        """x/B inside the unit ball, and the constant."""
        reach = self.covariate_bound
        inside = clip_rows(x[:, : self.covariates], reach) / reach
        return np.hstack([inside, np.ones((len(x), int(self.intercept)))])

    @classmethod
    def examples(cls) -> list[Self]:
        """With a constant and without, pure and Gaussian."""
        return [
            cls(
                cost=cost,
                n=5,
                covariates=2,
                coefficients=2,
                covariate_bound=1.5,
                bound=2.0,
                intercept=intercept,
            )
            for cost in (Cost(epsilon=1.0).part(0.3), Cost(epsilon=1.0, delta=0.05).part(0.7))
            for intercept in (True, False)
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariateProducts(PairQuery, name="covariate_products"):
    """T1: mean of x xᵀ, the triangle j ≤ k as a vector.

    Privacy:
        ‖xxᵀ - x'x'ᵀ‖_F ≤ √2 r² for ‖x‖ ≤ r; with a constant, r² = 2, attained by x' = -x.
    """

    @cached_property
    def triangle(self) -> Triangle:
        """The order of the entries."""
        return Triangle(np.ones(self.width))

    @property
    def body(self) -> Body:
        """√2 r² wide."""
        width = math.sqrt(2) * self.radius**2
        return Body(width, width, self.triangle.axes)

    def vectors(self, records: Records) -> FloatArray:
        """Products."""
        return self.triangle.squares(self.scaled(records[0]))


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossProducts(PairQuery, name="cross_products"):
    """T2: mean of x Yᵀ, row by row.

    Privacy:
        ‖x Yᵀ‖_F ≤ rτ: two differ by at most 2rτ, attained by Y' = -Y.
    """

    @property
    def body(self) -> Body:
        """A ball of radius rτ."""
        reach = self.radius * self.bound
        return Body(reach, 2 * reach, np.ones(self.width * self.coefficients))

    def vectors(self, records: Records) -> FloatArray:
        """Products."""
        x = self.scaled(records[0])
        y = clip_rows(records[1][:, : self.coefficients], self.bound)
        return np.asarray((x[:, :, None] * y[:, None, :]).reshape(len(x), -1))


@dataclass(frozen=True, kw_only=True, eq=False)
class PairRadiusCount(RadiusCount, name="pair_radius_count"):
    """How many curves lie within a public radius, whatever their covariates.

    Privacy:
        That of `RadiusCount`.

    Attributes:
        covariates: numbers in a vector x, which are not looked at.
    """

    covariates: int = whole(most=1 << 12)

    @property
    def columns(self) -> tuple[int, ...]:
        """Vectors and coefficients."""
        return self.covariates, len(self.center)

    def block(self, records: Records) -> IntArray:
        """The count."""
        return super().block(records[1:])

    @classmethod
    def examples(cls) -> list[Self]:
        """Two covariates, pure."""
        cost, center = Cost(epsilon=1.0), np.zeros(2)
        return [cls(cost=cost, n=5, center=center, axes=np.ones(2), radius=1.0, covariates=2)]
