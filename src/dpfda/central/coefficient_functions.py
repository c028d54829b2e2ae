"""Coefficient functions β that solve T1 β = T2 with noisy moments: posterior means and bands."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from scipy.special import logsumexp

from dpfda._registry import plain
from dpfda._validate import FloatArray
from dpfda.curves.band import PATHS, between
from dpfda.curves.matrices import Triangle, floored
from dpfda.noise.law import (
    LEVEL_ODDS,
    LEVELS,
    NoiseLaw,
    belief,
    drawn_systems,
    hidden_columns,
    least_variances,
    plausible_solutions,
    possible_systems,
    variances,
)

_SCALES = 4.0 ** -np.arange(0.5, 7)  # prior scales of the intercept's first wave, over the bound
_EVEN = np.full(len(_SCALES), 1 / len(_SCALES))
_DECAYS = np.array([0.3, 1.0, 2.0])  # b: the prior scale of wave j is proportional to j^-b
_EFFECTS = np.array([0.0, 1 / 64, 1 / 16, 1 / 4])
"""Prior effects of a change of a covariate from the middle of its range to an end, over the bound.
"""
_ALONE = np.array([0.0, 1 / 64, 1 / 8, 1.0])  # the same for models without an intercept
_MIDDLE = 0.5  # prior deviation of a covariate's mean from the middle of its range
_MOST_NUMBERS = 1 << 22  # entries of an intermediate array: 32 MB for any number of covariates
_SQUARE = 1 / 3  # prior mean and prior deviation of the mean square of a covariate


class Effects(NamedTuple):
    """Coefficients (p, J) of the functions, and the accuracy of predictions.

    Attributes:
        mean: posterior mean of the coefficients.
        error: expected squared norm of the error of a prediction.
        size: mean squared norm of the difference between a prediction and the public center.
    """

    mean: FloatArray
    error: float
    size: float

    @property
    def doubt(self) -> float:
        """Expected squared error of predictions, divided by that of the public center."""
        return self.error / max(self.error + self.size, 1e-300)


class NoisySystem(NamedTuple):
    """Released T1 and T2 with the variances of their noise; covariates are in the unit ball."""

    matrix: FloatArray
    matrix_variance: FloatArray
    vectors: FloatArray
    vector_variance: FloatArray
    constant: bool


def posterior_effects(moments: NoisySystem, *, reach: float) -> Effects:
    """Posterior mean of β in T1 β = T2, under a prior for functions within the public bound.

    The intercept has the prior of a mean curve (`shrinkage.posterior`). A covariate has no effect,
    or one whose size is a fraction of the bound. Hypotheses are weighted by the likelihood of T2,
    so that the result is close to 0 if T2 is only noise. The noise of T1, multiplied by β, is
    treated as noise of T2.

    Args:
        moments: the released moments.
        reach: public bound on the norm of the curves.

    Examples:
        >>> moments = NoisySystem(
        ...     np.diag([0.3, 1.0]), np.zeros((2, 2)), np.array([[0.0], [0.5]]),
        ...     np.full((2, 1), 1e-6), True,
        ... )
        >>> posterior_effects(moments, reach=1.0).mean.round(2).ravel().tolist()
        [0.0, 0.5]
    """
    matrix, unsure = _shrunk_matrix(moments)
    size = moments.vectors.shape[1]
    most = math.sqrt(len(matrix) - moments.constant)
    effects = _EFFECTS if moments.constant else _ALONE
    found = []
    for effect, decay in product(reach * most * effects, _DECAYS):
        shape = np.append(1.0, np.arange(1, size) ** -decay)
        prior = np.tile((effect * shape[:, None]) ** 2, len(matrix))  # (J, p)
        parts = [(slice(0, 1), LEVELS, LEVEL_ODDS), (slice(1, None), _SCALES, _EVEN)]
        means, error, log = [], np.zeros(()), np.zeros(())
        for place, scales, odds in parts[: 1 + (size > 1)]:
            tried = np.tile(prior[place], (len(scales), 1, 1))
            if moments.constant:
                tried[..., -1] = (reach * scales[:, None] * shape[place]) ** 2
            noisy, noise = (part.T[place] for part in moments[2:4])
            one = _mixed(_solved(noisy, noise, matrix, unsure, tried), np.log(odds), matrix)
            means.append(one.mean)
            error, log = error + one.error, log + one.log
        found.append(_Hypotheses(np.vstack(means), error, log))
    rows = [np.stack([getattr(one, name) for one in found]) for name in _Hypotheses._fields]
    whole = _mixed(_Hypotheses(*rows), np.zeros(len(found)), matrix)
    predicted = float(np.einsum("jp,pq,jq->", whole.mean, matrix, whole.mean))
    return Effects(whole.mean.T, float(whole.error), predicted)


class _Hypotheses(NamedTuple):
    """Posterior of some coefficients j, under one or several hypotheses (first axis).

    Attributes:
        mean: posterior means, (J, p).
        error: expected squared error of predictions.
        log: log-likelihood of the released numbers.
    """

    mean: FloatArray
    error: FloatArray
    log: FloatArray


def _shrunk_matrix(moments: NoisySystem) -> tuple[FloatArray, FloatArray]:
    """Posterior mean of T1, and the posterior variances of its entries.

    The prior assumes that each of p covariates in the unit ball is at most 1/√p. An entry with much
    larger noise is not informative and keeps its prior mean. The square of a constant is known.
    """
    size = len(moments.matrix)
    most = 1 / math.sqrt(size - moments.constant)  # largest value of a covariate
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
) -> _Hypotheses:
    """Normal posteriors of the rows of (J, p), for prior variances (H, J, p), in blocks of rows."""
    size = max(1, _MOST_NUMBERS // (len(prior) * matrix.size))
    if len(noisy) > size:
        places = [slice(start, start + size) for start in range(0, len(noisy), size)]
        parts = [
            _solved(noisy[place], noise[place], matrix, unsure, prior[:, place]) for place in places
        ]
        means = np.concatenate([one.mean for one in parts], axis=1)
        error = np.asarray(sum(one.error for one in parts))
        return _Hypotheses(means, error, np.asarray(sum(one.log for one in parts)))
    weighted = prior[..., None] * matrix
    errors = noise + prior @ unsure.T
    inner = matrix @ weighted + errors[..., None] * np.eye(len(matrix))
    gain = np.swapaxes(np.linalg.solve(inner, np.swapaxes(weighted, -1, -2)), -1, -2)
    mean = (gain @ noisy[..., None])[..., 0]
    left = prior[..., None] * np.eye(len(matrix)) - gain @ np.swapaxes(weighted, -1, -2)
    logs = np.einsum("...p,...p->...", noisy, np.linalg.solve(inner, noisy[..., None])[..., 0])
    logs = -0.5 * (logs + np.linalg.slogdet(inner)[1])
    return _Hypotheses(mean, np.einsum("hjpq,pq->h", left, matrix), logs.sum(axis=1))


def _mixed(parts: _Hypotheses, odds: FloatArray, matrix: FloatArray) -> _Hypotheses:
    """The mixture of all hypotheses."""
    logs = parts.log + odds - logsumexp(odds)
    log = logsumexp(logs)
    weights = np.exp(logs - log)
    mean = np.tensordot(weights, parts.mean, 1)
    off = parts.mean - mean
    apart = np.einsum("hjp,pq,hjq->h", off, matrix, off)
    return _Hypotheses(mean, weights @ (parts.error + apart), log)


_MOST_DRAWN = 1 << 23  # numbers of all simulated functions together: 64 MB, in a few copies
_FEWEST = 200  # smallest number of draws for a band

Numbers = list[float | list[float]]


class NoiseBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The law of noise in a document."""

    law: Literal["laplace", "gaussian", "spherical"]
    scales: Numbers
    blocks: tuple[tuple[int, int], ...]
    mixing: list[list[float]] | None

    @classmethod
    def of(cls, law: NoiseLaw) -> dict[str, Any]:
        """The fields of a law, as written to a document."""
        return {part.name: plain(getattr(law, part.name)) for part in fields(law)}

    def read(self) -> NoiseLaw:
        """The law."""
        return NoiseLaw(
            law=self.law,
            scales=np.array(self.scales),
            blocks=self.blocks,
            mixing=None if self.mixing is None else np.array(self.mixing),
        )


class SolvedBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Solved` in a document."""

    matrix: list[list[float]]
    vectors: list[list[float]]
    combinations: list[list[float]]
    matrix_noise: NoiseBody
    vector_noise: NoiseBody
    bound: float
    limit: float | None
    steepest: list[float]
    constant: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """Coefficients C T1⁻¹ T2 of functions, from moments T1 and T2 with known noise.

    Attributes:
        matrix: the released T1, (p, p), symmetric.
        vectors: the released T2, (p, J).
        combinations: C, (rows, p), which maps solutions to the reported coefficients.
        matrix_noise: law of the noise on T1, whose triangle is a vector (`Triangle`).
        vector_noise: law of the noise on T2, row by row.
        bound: public bound on the norm of the curves, and thus on the size of the functions.
        limit: public bound on the absolute values of curves about their center; None if there is
            none.
        steepest: upper bound on the values of each reported function, as a multiple of the bound on
            curves. It holds if predictions stay within the public range of the curves for all
            covariates within their public range.
        constant: whether the last row of T1 belongs to a constant, whose square is known to be 1.
    """

    matrix: FloatArray
    vectors: FloatArray
    combinations: FloatArray
    matrix_noise: NoiseLaw
    vector_noise: NoiseLaw
    bound: float
    limit: float | None
    steepest: FloatArray
    constant: bool

    def interval(
        self, level: float, functions: FloatArray, *, simultaneous: bool, size: int
    ) -> tuple[FloatArray, FloatArray]:
        """Ends (rows, points) of a band for the reported functions at some points.

        The band consists of solutions that are plausible given the noise (`plausible_solutions`).
        If noise hides how the covariates vary, the band is limited by the assumption that
        predictions stay within the public range of the curves (`steepest`).

        Args:
            level: coverage probability of the band.
            functions: the basis functions at the points, (J, points).
            simultaneous: whether the band covers all points and rows at once or each separately.
            size: largest number of noise simulations; fewer are used for many functions at many
                points, because all are in memory at once.
        """
        held = len(self.combinations) * max(functions.shape)
        size = min(size, PATHS, max(_FEWEST, _MOST_DRAWN // held))
        generator = np.random.default_rng(0)
        errors = self._triangle.matrix(self.matrix_noise.draw(size, generator))
        if self.constant:
            errors[:, -1, -1] = 0.0
        most = 1.0 + self.constant  # covariates are in the unit ball
        systems = drawn_systems(self.matrix, errors, most=most)
        varies = variances(systems, most=most, constant=self.constant)
        least = least_variances(self._variance, most=most)
        noise = self.vector_noise.draw(size, generator).reshape(size, *self.vectors.shape)
        found = plausible_solutions(
            possible_systems(systems, most=most),
            self.vectors,
            vector_errors=noise,
            vector_covariance=np.diag(
                self.vector_noise.variance.reshape(self.vectors.shape).mean(axis=1)
            ),
            prior=belief(np.maximum(varies, least), self.bound**2),
            generator=generator,
        )
        paths = self.combinations @ found @ functions
        band = between(paths, level=level, simultaneous=simultaneous)
        # Largest value of a function in the span with this norm, and with this bound on values.
        highest = self.bound * np.sqrt((functions**2).sum(axis=0))
        if self.limit is not None:
            highest = np.minimum(highest, self.limit)
        most_of_all = np.outer(self.steepest, highest)
        return np.maximum(band.low, -most_of_all), np.minimum(band.high, most_of_all)

    def hidden(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the columns whose variation is hidden by noise."""
        return hidden_columns(self.matrix, self._variance, names)

    @property
    def _variance(self) -> FloatArray:
        found = self._triangle.variance(self.matrix_noise.variance)
        if self.constant:
            found[-1, -1] = 0.0
        return found

    @property
    def _triangle(self) -> Triangle:
        return Triangle(np.ones(len(self.matrix)))

    def document(self) -> dict[str, Any]:
        """The values as written in a document."""
        laws = {name: NoiseBody.of(getattr(self, name)) for name in _LAWS}
        named = (*_ARRAYS, "bound", "limit", "constant")
        return {name: plain(getattr(self, name)) for name in named} | laws

    @classmethod
    def read(cls, body: SolvedBody) -> Solved:
        """Read the values from a document."""
        arrays: dict[str, Any] = {name: np.array(getattr(body, name)) for name in _ARRAYS}
        laws = {name: getattr(body, name).read() for name in _LAWS}
        known = {name: getattr(body, name) for name in ("bound", "limit", "constant")}
        return cls(**arrays, **laws, **known)


_ARRAYS = ("matrix", "vectors", "combinations", "steepest")
_LAWS = ("matrix_noise", "vector_noise")
