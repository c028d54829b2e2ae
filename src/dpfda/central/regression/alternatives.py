"""Alternatives to the default method: the functional mechanism, AdaSSP, noisy gradient descent.

The functional mechanism of 002 is implemented with its corrections. AdaSSP (Wang 2018) chooses its
ridge from a noisy smallest eigenvalue. Both release the moments about the public balls once.
Gradient descent passes over the data in every step.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit

from dpfda._validate import FloatArray, IntArray
from dpfda.central.regression.base import Fitted, Regression, RegressionMechanism
from dpfda.central.regression.problem import (
    ONE,
    SQUARE,
    Bounds,
    Problem,
    best_weight,
    eigenvalue_l2,
)
from dpfda.central.regression.queries import (
    MomentQuery,
    MomentSums,
    NoisyMoments,
    WeightedMomentQuery,
    moment_sums,
    row_noise,
    rows_and_targets,
    weighted_sums,
)
from dpfda.central.regression.released import Released
from dpfda.curves.matrices import floored, unfold
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import choice, flag, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Answer, Records, Sums

COEFFICIENTS = {"linear": (2.0, 1.0), "logistic": (0.5, 0.125)}
"""(κ1, κ2) of Λ1 = κ1 mean(signed x), Λ2 = κ2 mean(xxᵀ)."""


@dataclass(frozen=True, kw_only=True)
class ObjectiveMethod(RegressionMechanism):
    """Release the coefficients of a quadratic objective once, and minimize it.

    Attributes:
        floor: eigenvalues of Λ̂2 below floor·τ₂·√D are raised to this value.
    """

    floor: float = number(above=0.0, default=2.0)

    @property
    def curvature(self) -> float:
        """The coefficient of z² in the quadratic approximation of log(1 + e^z)."""
        return 0.125  # Taylor expansion at 0

    @abstractmethod
    def query(self, regression: Regression) -> MomentQuery | WeightedMomentQuery:
        """The only query."""

    def questions(self, regression: Regression) -> Questions[Fitted]:
        """Ask one query, and compute the fit from its answer."""
        query, problem = self.query(regression), regression.problem
        answer = yield query
        moments = query.moments.read(answer)
        hidden: tuple[str, ...] = ()
        if regression.weight_bound is not None:
            if moments.quadratic[-1, -1] < _HIDDEN * moments.quadratic_sigma:
                hidden = (_WEIGHTS,)
            moments = moments.per_weight()
        floor = self.floor * moments.quadratic_sigma * math.sqrt(problem.size)
        w = floored(moments.quadratic, floor, inverted=True) @ moments.linear
        # v = ±1: -½ Λ2⁻¹ Λ1 = M⁻¹ mean(vx) / (4 curvature).
        logit = 1 / (4 * self.curvature)
        released = of_public_balls(problem, moments, rows=answer.n)
        return replace(in_units(problem, w, logit=logit), released=released, warnings=hidden)


_HIDDEN = 4.0  # a mean weight below this many deviations of its noise causes a warning
_WEIGHTS = (
    "noise hides the mean of the weights: nearly all of them are far below weight_bound. Give a "
    "smaller public bound, allow a larger epsilon or ask more people"
)


@dataclass(frozen=True, kw_only=True)
class GaussianFM(ObjectiveMethod, name="gaussian_fm"):
    """Perturb the coefficients of the objective, then minimize it (002 with C7 and C9).

    Privacy:
        (Λ1, Λ2) is released once, as one vector, with noise calibrated exactly (Balle & Wang 2018)
        to its joint sensitivity. Λ0 is not released, because the minimizer does not depend on it.
        The weight of Λ2 relative to Λ1 minimizes the noise of w. Minimizing is post-processing.
        With weights of rows, the query is `WeightedMomentQuery`, which has the same sensitivity.

    Attributes:
        expansion: quadratic approximation of log(1 + e^z): ``taylor`` at 0, as in 002, or
            ``chebyshev`` on [-logit_range, logit_range]. It changes the scale of the log-odds, but
            not the decision boundary.
        logit_range: range of the approximation, for ``chebyshev``.

    Examples:
        >>> round(GaussianFM(expansion="chebyshev", logit_range=4.0).curvature, 4)
        0.0891
    """

    takes_weights: ClassVar[bool] = True

    expansion: str = choice("taylor", "chebyshev", default="taylor")
    logit_range: float = number(above=0.0, default=4.0)

    @property
    def curvature(self) -> float:
        """The coefficient of z² in the quadratic approximation of log(1 + e^z)."""
        if self.expansion == "taylor":
            return super().curvature
        series = chebyshev.Chebyshev.interpolate(
            lambda z: np.logaddexp(0.0, z), 2, domain=[-self.logit_range, self.logit_range]
        )
        return float(series.convert(kind=np.polynomial.Polynomial).coef[2])

    def query(self, regression: Regression) -> MomentQuery | WeightedMomentQuery:
        """The query, weighted for the least noise of w."""
        linear, quadratic = COEFFICIENTS[regression.problem.link]
        weight = best_weight(linear, quadratic, dimension=regression.problem.size)
        known: dict[str, Any] = {"linear_weight": linear, "quadratic_weight": quadratic * weight}
        about = about_all(regression)
        if regression.weight_bound is None:
            return MomentQuery(**about, **known)
        del about["constant"]  # weighted rows always have a constant
        return WeightedMomentQuery(**about, **known, weight_bound=regression.weight_bound)


def about_all(regression: Regression) -> dict[str, Any]:
    """The fields of a query over the public balls with the whole budget."""
    problem = regression.problem
    return {
        "cost": regression.whole,
        "unit": regression.unit,
        "bounds": problem.bounds,
        "constant": problem.fit_intercept,
    }


def in_units(problem: Problem, w: FloatArray, *, logit: float = 1.0) -> Fitted:
    """Convert a predictor w of unit-ball rows (with any constant feature) to the original units.

    For a linear link, predictions are multiplied by the target radius; for a logistic link, by
    `logit`, which gives log-odds.
    """
    dimension, bounds = problem.dimension, problem.bounds
    shrunk = _shrunk(problem)
    unit = bounds.target_radius if problem.link == "linear" else logit
    slope = w[:dimension] * unit / (bounds.radius * shrunk)
    offset = w[dimension] * unit / shrunk if problem.fit_intercept else 0.0
    if problem.link == "linear":
        offset += bounds.target_center
    return Fitted(slope=slope, offset=float(offset), center=bounds.center, radius=bounds.radius)


def of_public_balls(problem: Problem, moments: NoisyMoments, *, rows: int) -> Released | None:
    """Released moments about the public balls; None for a logistic link, which has no intervals."""
    if problem.link == "logistic":
        return None
    bounds, shrunk = problem.bounds, _shrunk(problem)
    unit = bounds.target_radius / (bounds.radius * shrunk)
    return Released(
        matrix=moments.quadratic,
        vector=moments.linear,
        matrix_variance=moments.quadratic_variance,
        vector_sigma=moments.linear_sigma,
        constant=problem.fit_intercept,
        combinations=unit * np.eye(problem.dimension, problem.size),
        rows=rows,
    )


def _shrunk(problem: Problem) -> float:
    """Rows with a constant feature are (x, 1)/√2."""
    return math.sqrt(2.0) if problem.fit_intercept else 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class EigenvalueQuery(AdditiveQuery, name="regression_eigenvalue"):
    """(λ_min(Σxxᵀ), w1 Σxy, w2 svec Σxxᵀ).

    Privacy:
        The sensitivity is `eigenvalue_l2(w1, w2)`. λ_min changes by at most the largest eigenvalue
        of xxᵀ - x'x'ᵀ, which is small if the moments change much.

    Attributes:
        bounds: the balls.
        linear_weight: w1.
        quadratic_weight: w2.
        constant: append a constant feature, so that the line has an intercept.
        weighted: scale each target by the same factor as its row.
    """

    linear: ClassVar[bool] = False

    cost: Cost = part(lambda: Cost)
    bounds: Bounds = part(lambda: Bounds)
    linear_weight: float = number(least=1e-6, most=1e6, default=1.0)
    quadratic_weight: float = number(least=1e-6, most=1e6, default=1.0)
    constant: bool = flag(default=False)
    weighted: bool = flag(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # rejects invalid budgets

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes."""
        return rows_and_targets(self.name, self.bounds.dimension, records)

    @property
    def l2(self) -> float:
        """`eigenvalue_l2`."""
        return eigenvalue_l2(self.linear_weight, self.quadratic_weight)

    @cached_property
    def mechanism(self) -> Additive:
        """Gaussian noise."""
        return row_noise(self.name, self.cost, self.size, l2=self.l2)

    @cached_property
    def moments(self) -> MomentSums:
        """The sums of moments."""
        return moment_sums(self)

    @property
    def summed(self) -> Sums:
        """The sums of moments, after an entry for the eigenvalue, which `_statistic` computes."""
        weights = np.concatenate([[SQUARE], self.moments.weights])
        sums = weighted_sums(self._block, weights, dimension=self.bounds.dimension)
        return sums._replace(statistic=self._statistic)

    def _block(self, records: Records) -> FloatArray:
        return np.concatenate([[0.0], self.moments.block(records)])

    def _statistic(self, totals: IntArray) -> FloatArray:
        size = self.moments.size
        matrix = unfold(np.asarray(totals[1 + size :] * SQUARE), size)
        smallest = np.linalg.eigvalsh(matrix)[:1]
        return np.concatenate([smallest, totals[1:] * self.moments.weights])

    def read(self, answer: Answer) -> NoisyMoments:
        """The moments, without the eigenvalue."""
        return self.moments.read(replace(answer, values=answer.values[1:]))

    @classmethod
    def examples(cls) -> list[Self]:
        """The weights of AdaSSP, and other weights."""
        cost, bounds = Cost(epsilon=1.0, delta=0.05), Bounds(center=np.zeros(2))
        return [
            cls(cost=cost, bounds=bounds, linear_weight=linear, quadratic_weight=quadratic)
            for linear, quadratic in ((0.5, math.sqrt(0.5)), (1.0, 0.3))
        ]


@dataclass(frozen=True, kw_only=True)
class AdaSSP(RegressionMechanism, name="adassp"):
    """Ridge regression from noisy XᵀX and Xᵀy with an adaptive ridge; labels are coded as ±1.

    Privacy:
        The three statistics are one Gaussian release with joint sensitivity √2.53 = 1.59 (three
        separate releases would have √3) and exact calibration.

    Attributes:
        failure: probability that the ridge is too small.

    Examples:
        >>> AdaSSP().failure
        0.05
    """

    failure: float = number(least=1e-6, most=0.999999, default=0.05)

    def questions(self, regression: Regression) -> Questions[Fitted]:
        """Ask one query, and compute the fit from its answer."""
        problem = regression.problem
        query = EigenvalueQuery(
            **about_all(regression), linear_weight=0.5, quadratic_weight=math.sqrt(0.5)
        )
        answer = yield query
        size = problem.size
        tail = math.sqrt(2 * math.log(6 / self.failure)) * answer.sigma
        smallest = max(0.0, float(answer.values[0]) - tail)
        moments = query.read(answer)
        spread = math.sqrt(size * math.log(2 * size**2 / self.failure))
        ridge = max(0.0, spread * moments.quadratic_sigma * answer.n - smallest) / answer.n
        inverse = np.linalg.pinv(moments.quadratic + ridge * np.eye(size), hermitian=True)
        # For a logistic link the line predicts ±1; log-odds are about twice the line.
        fitted = in_units(problem, inverse @ moments.linear, logit=2.0)
        return replace(fitted, released=of_public_balls(problem, moments, rows=answer.n))


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientQuery(AdditiveQuery, name="regression_gradient"):
    """Σ r(x, y; θ) x, with |r| ≤ 1 and |x| ≤ 1.

    Privacy:
        The Euclidean sensitivity is 2, because gradients have length at most 1.

    Attributes:
        problem: link and public bounds.
        theta: the point at which the gradient is computed.
    """

    l2 = 2.0

    cost: Cost = part(lambda: Cost)
    problem: Problem = part(lambda: Problem)
    theta: FloatArray = vector("coefficients")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # rejects a budget without δ
        if len(self.theta) != self.problem.size:
            raise InvalidParameter("theta", f"of length {self.problem.size}", len(self.theta))

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes."""
        return rows_and_targets(self.name, self.problem.dimension, records)

    @cached_property
    def mechanism(self) -> Additive:
        """Gaussian noise."""
        return row_noise(self.name, self.cost, self.problem.size, l2=self.l2)

    @property
    def summed(self) -> Sums:
        """Sums of gradients, with residuals rounded to the grid."""
        weights = np.full(self.problem.size, SQUARE)
        return weighted_sums(self._block, weights, dimension=self.problem.dimension)

    def _block(self, records: Records) -> FloatArray:
        x, v = self.problem.unit_rows(*records)
        line = np.einsum(
            "ij,j->i", x, self.theta / ONE
        )  # row by row: rounding in BLAS depends on the other rows
        if self.problem.link == "linear":
            residual = np.clip(line - v / ONE, -1.0, 1.0)  # a long residual is clipped
        else:
            residual = expit(line) - (v > 0)
        return np.asarray(np.trunc(residual * ONE) @ x)

    @classmethod
    def examples(cls) -> list[Self]:
        """Both losses; the logistic one at a steep line, where the sensitivity is attained."""
        cost, bounds = Cost(epsilon=1.0, delta=0.05), Bounds(center=np.zeros(2))
        line = Problem(link="linear", bounds=bounds)
        classes = Problem(link="logistic", bounds=bounds, fit_intercept=False)
        return [
            cls(cost=cost.part(Fraction(1, 25)), problem=line, theta=np.zeros(3)),
            cls(cost=cost, problem=classes, theta=np.array([300.0, 100.0])),
        ]


@dataclass(frozen=True, kw_only=True)
class NoisyGradient(RegressionMechanism, name="noisy_gradient"):
    """Full-batch gradient descent with Gaussian noise in every step.

    Privacy:
        T Gaussian releases of sensitivity 2, each with μ/√T. Gaussian releases compose exactly
        (Σμ_i² = μ²). The result equals that of accounting with privacy loss distributions, and is
        never worse than the Rényi accounting of 002.

    Attributes:
        steps: T.

    Examples:
        >>> NoisyGradient(steps=10).steps
        10
    """

    shows_rows = False

    steps: int = whole(default=25)

    def questions(self, regression: Regression) -> Questions[Fitted]:
        """Ask T queries; the fit is the average of the second half of the path."""
        problem = regression.problem
        theta = np.zeros(problem.size)
        rate = 1.0 if problem.link == "linear" else 4.0  # 1/smoothness
        cost = regression.whole.part(Fraction(1, self.steps))
        path = []
        for _ in range(self.steps):
            answer = yield GradientQuery(
                cost=cost, unit=regression.unit, problem=problem, theta=theta
            )
            theta = theta - rate * answer.values / answer.n
            path.append(theta)
        average = np.mean(path[self.steps // 2 :], axis=0)
        return in_units(problem, average)
