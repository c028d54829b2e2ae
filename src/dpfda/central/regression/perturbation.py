"""Objective perturbation and output perturbation, and the minimizer that both need.

The losses are log(1 + e^{-v xᵀθ}) for labels ±1 and log cosh(xᵀθ - v) for a target in [-1, 1]. They
are nearly quadratic for small residuals, but Lipschitz and smooth.

The minimizer meets its tolerance for any rows, for the following reason. Both losses have
|f‴| ≤ c f″ (c = 1, 2), so with a ridge Λ and |x| ≤ 1 the objective F has
|F‴[u,u,u]| ≤ c|u| F″[u,u] ≤ (c/√Λ) F″[u,u]^{3/2}. The function s F with s = c²/4Λ is therefore
self-concordant. Let κ = √(s gᵀH⁻¹g) be its Newton decrement.

* κ > ¼: the step 1/(1 + κ) decreases s F by κ - log(1 + κ) ≥ 0.026 (Nesterov 2004, 4.1.5). A longer
  step is used only if it achieves ¼ of the decrease that its slope predicts, which is at least
  κ²/4(1 + κ) ≥ 0.0125.
* κ ≤ ¼: a whole step gives (κ/(1 - κ))² ≤ 16κ²/9. Nine such steps bring κ below (4/9)^{2^9}, where
  |g| ≤ √(|H|/s) κ is below any tolerance.

F starts at n log 2 or less and is at least -|tilt|²/2Λ, so there are at most
80 s (n log 2 + |tilt|²/2Λ) + 9 steps. In practice there are about ten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, ndtri

from dpfda._validate import FloatArray
from dpfda.central.regression.alternatives import in_units
from dpfda.central.regression.base import Fitted, Regression, RegressionMechanism
from dpfda.central.regression.problem import ONE, Bounds, Link, Problem
from dpfda.central.regression.queries import row_noise, rows_and_targets
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive, Gaussian
from dpfda.noise import Source, discrete_gaussian
from dpfda.privacy.calibration import gaussian_mu
from dpfda.privacy.cost import Cost
from dpfda.privacy.events import ApproximateEvent, Event
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import number, part
from dpfda.protocol.query import Answer, Records, WholeQuery, finite

LIPSCHITZ = 1.0
"""Largest length of one person's gradient, for rows in the unit ball and both losses."""

CURVATURE = {"linear": 1.0, "logistic": 0.25}
"""Largest second derivative of the losses."""

TOLERANCE = 1e-6
"""Largest length of the gradient of the *sum* at the returned point."""

_THIRD = {"linear": 2.0, "logistic": 1.0}  # c of |f‴| ≤ c f″


@dataclass(frozen=True, kw_only=True, eq=False)
class Risk:
    """The objective Σ loss(xᵀθ, v) + ridge/2 |θ|² + tiltᵀθ for rows in the unit ball."""

    x: FloatArray
    v: FloatArray
    link: Link
    ridge: float
    tilt: FloatArray

    def value(self, theta: FloatArray) -> float:
        """The objective."""
        line = self.x @ theta
        if self.link == "logistic":
            loss = np.logaddexp(0.0, -self.v * line)
        else:
            loss = np.logaddexp(line - self.v, self.v - line) - np.log(2)
        return float(loss.sum() + self.ridge / 2 * (theta @ theta) + self.tilt @ theta)

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and second derivatives."""
        line = self.x @ theta
        if self.link == "logistic":
            likely = expit(line)
            slope, bend = likely - (self.v > 0), likely * (1 - likely)
        else:
            slope = np.tanh(line - self.v)
            bend = 1 - slope**2
        gradient = slope @ self.x + self.ridge * theta + self.tilt
        hessian = (self.x * bend[:, None]).T @ self.x + self.ridge * np.eye(len(theta))
        return gradient, hessian


def minimize_risk(
    x: FloatArray, v: FloatArray, *, link: Link, ridge: float, tilt: FloatArray | None = None
) -> FloatArray:
    """argmin Σ loss(xᵀθ, v) + ridge/2 |θ|² + tiltᵀθ, to a gradient of length `TOLERANCE`.

    The docstring of the module proves that the loop reaches this tolerance for all rows.
    """
    tilt = np.zeros(x.shape[1]) if tilt is None else tilt
    risk = Risk(x=x, v=v, link=link, ridge=ridge, tilt=tilt)
    theta, scale = np.zeros(x.shape[1]), _THIRD[link] ** 2 / (4 * ridge)
    for _ in range(most_steps(len(x), link=link, ridge=ridge, tilt=tilt)):
        gradient, hessian = risk.derivatives(theta)
        if np.linalg.norm(gradient) <= TOLERANCE:
            break
        direction = np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)
        gain = max(float(gradient @ direction), 0.0)
        kappa = math.sqrt(scale * gain)
        theta = theta - _size(risk, theta, direction, gain=gain, kappa=kappa) * direction
    return theta


def most_steps(n: int, *, link: Link, ridge: float, tilt: FloatArray) -> int:
    """A sufficient number of steps, which does not depend on the values of rows."""
    scale = _THIRD[link] ** 2 / (4 * ridge)
    return math.ceil(80 * scale * (n * math.log(2) + float(tilt @ tilt) / (2 * ridge))) + 9


def _size(
    risk: Risk, theta: FloatArray, direction: FloatArray, *, gain: float, kappa: float
) -> float:
    """The step size: 1, 1/2, ... if the decrease is proved or observed, otherwise 1/(1 + κ)."""
    if kappa <= 0.25:
        return 1.0
    size, sure, value = 1.0, 1 / (1 + kappa), risk.value(theta)
    while size > sure:
        if risk.value(theta - size * direction) <= value - 0.25 * size * gain:
            return size
        size /= 2
    return sure


_LAST = 0.02  # share of (ε, δ) for the output noise
_LATTICE_DELTA = 2.0**-50
"""Bound on the total-variation distance between the discrete and the rounded Gaussian at σ = 2^24
steps, for one coordinate. The densities differ by the factor 1 + (k²/σ² - 1)/(24σ²) + O(σ⁻⁴)."""


@dataclass(frozen=True, kw_only=True)
class Tilted(Gaussian):
    """A Gaussian tilt of an objective, and Gaussian noise on its scaled minimizer Λθ̂.

    Privacy:
        (ε, δ)-DP, as `ObjectivePerturbation` proves; the noise on Λθ̂ has the smaller share.

    Attributes:
        cost: ε and δ of both parts together.
        ridge: Λ.
        tilt_sigma: standard deviation of the tilt.
    """

    cost: Cost
    ridge: float
    tilt_sigma: float

    @property
    def event(self) -> Event:
        """The event of both parts, whose ε and δ add up."""
        return ApproximateEvent(epsilon=self.cost.epsilon, delta=self.cost.delta)

    def tilt(self, source: Source) -> FloatArray:
        """Draw b on a lattice with 2^24 steps per standard deviation."""
        steps = discrete_gaussian(len(self.axes), sigma=self.steps, source=source)
        return np.asarray(steps * (self.tilt_sigma / self.steps))


def tilted(cost: Cost, *, size: int, curvature: float, ridge_share: float) -> Tilted:
    """The tilt and the noise for a budget; an error states the limits of ε and δ."""
    name = "objective_perturbation"
    if cost.pure or cost.share != 1:
        raise InvalidParameter("cost", f"a whole budget with δ above 0 for {name}", cost.delta)
    # The lattice uses a part of δ proportional to 1 + e^ε, so nothing remains for a large ε.
    ratio = (1 - _LAST) * cost.delta / (size * _LATTICE_DELTA)
    if ratio <= 2.0:
        least = 2 * size * _LATTICE_DELTA / (1 - _LAST)
        raise InvalidParameter("delta", f"above {least:.2g} for {name}", cost.delta)
    most = math.log(ratio - 1)
    if cost.epsilon >= most:
        rule = f"below {most:.3g} for {name} with delta={cost.delta:g}"
        raise InvalidParameter("epsilon", rule, cost.epsilon)
    epsilon = (1 - _LAST) * cost.epsilon
    delta = (1 - _LAST) * cost.delta - size * _LATTICE_DELTA * (1 + math.exp(cost.epsilon))
    sigma = tilt_sigma((1 - ridge_share) * epsilon, delta)
    return Tilted(
        cost=cost,
        ridge=curvature / math.expm1(ridge_share * epsilon),
        tilt_sigma=sigma,
        # Largest change of Λθ̂ by the inexact solver and the lattice of b, on both data sets.
        sensitivity=2 * TOLERANCE + math.sqrt(size) * sigma / Tilted.steps,
        mu=gaussian_mu(epsilon=_LAST * cost.epsilon, delta=_LAST * cost.delta),
        delta=_LAST * cost.delta,
        axes=(1.0,) * size,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TiltedQuery(WholeQuery, name="regression_tilted"):
    """Λθ̂ for the minimizer of Σ loss + Λ/2 |θ|² + bᵀθ, where b is Gaussian.

    Privacy:
        As for `ObjectivePerturbation`. The tilt is drawn before the minimization, so audits cannot
        compare the answer with an exact one; they use `log_likelihood`.

    Attributes:
        problem: link and public bounds.
        ridge_share: share of ε for the determinant, which determines Λ.
    """

    inside: ClassVar[bool] = True

    cost: Cost = part(lambda: Cost)
    problem: Problem = part(lambda: Problem)
    ridge_share: float = number(least=1e-3, most=0.999, default=0.25)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # rejects invalid budgets

    @property
    def columns(self) -> tuple[int, ...]:
        """Rows and targets."""
        return (self.problem.dimension, 0)

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.problem.size

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes, and of finite numbers."""
        return tuple(map(finite, rows_and_targets(self.name, self.problem.dimension, records)))

    @cached_property
    def mechanism(self) -> Tilted:
        """The tilt, and noise on the minimizer."""
        curvature = CURVATURE[self.problem.link]
        return tilted(self.cost, size=self.size, curvature=curvature, ridge_share=self.ridge_share)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """Draw the tilt and minimize."""
        x, v = self.problem.unit_rows(*records)
        ridge, tilt = self.mechanism.ridge, self.mechanism.tilt(source)
        link = self.problem.link
        return ridge * minimize_risk(x / ONE, v / ONE, link=link, ridge=ridge, tilt=tilt)

    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """Log density of the exact minimizer: that of b = -Σ∇loss(θ) - Λθ, plus log determinant."""
        gradient, hessian = self.untilted(answer, records)
        log_density = -float(gradient @ gradient) / (2 * self.mechanism.tilt_sigma**2)
        return log_density + float(np.linalg.slogdet(hessian)[1])

    def depth(self, answer: Answer, records: Records) -> tuple[float, float]:
        """|b|²/(2σ²) for the tilt b of an answer, and the shape of its Gamma distribution."""
        gradient, _ = self.untilted(answer, records)
        return float(gradient @ gradient) / (
            2 * self.mechanism.tilt_sigma**2
        ), self.problem.size / 2

    def untilted(self, answer: Answer, records: Records) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives of the objective without tilt; the first one is -b."""
        x, v = self.problem.unit_rows(*self.fitting(records))
        ridge = self.mechanism.ridge
        risk = Risk(
            x=x / ONE,
            v=v / ONE,
            link=self.problem.link,
            ridge=ridge,
            tilt=np.zeros(self.size),
        )
        return risk.derivatives(answer.values / ridge)

    @classmethod
    def examples(cls) -> list[Self]:
        """Both losses."""
        cost, bounds = Cost(epsilon=1.0, delta=0.05), Bounds(center=np.zeros(2))
        line = Problem(link="linear", bounds=bounds)
        classes = Problem(link="logistic", bounds=bounds, fit_intercept=False)
        return [cls(cost=cost, problem=problem) for problem in (line, classes)]


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(RegressionMechanism, name="objective_perturbation"):
    """Minimize a randomly tilted objective (Chaudhuri et al. 2011; Iyengar et al. 2019).

    Privacy:
        (ε, δ)-DP. The map from the exact minimizer θ to the tilt b = -Σ∇loss(θ) - Λθ is one to one.
        Replacing a row changes (1) the determinant of its Jacobian by a factor of at most 1 + β/Λ,
        because the second derivatives of both losses have rank one and size ≤ β; (2) b by
        h = g x - g' x' with |g|, |g'| ≤ L, and the log density by
        (2 bᵀh + |h|²)/(2σ²) ≤ (L(|bᵀx| + |bᵀx'|) + 2L²)/σ². The directions x, x' do not depend on
        b, so |bᵀx| + |bᵀx'| ≤ 2qσ except with probability 4Q(q) = δ₁. Hence
        ε₁ = ln(1 + β/Λ) + (2Lqσ + 2L²)/σ². The rest of the budget is for output noise that hides
        the tolerance of the solver and the lattice of b; the distance between the lattice and a
        Gaussian is subtracted from δ. Pure ε is not available, because no exact sampler is known.

    Attributes:
        ridge_share: share of ε for the determinant, which determines Λ.

    Examples:
        >>> ObjectivePerturbation().ridge_share
        0.25
    """

    shows_rows = False

    additive: ClassVar[bool] = False
    gaussian: ClassVar[bool] = False

    ridge_share: float = number(least=1e-3, most=0.999, default=0.25)

    def questions(self, regression: Regression) -> Questions[Fitted]:
        """Ask one query of all rows at once, and compute the fit."""
        problem = regression.problem
        query = TiltedQuery(
            cost=regression.whole,
            unit=regression.unit,
            problem=problem,
            ridge_share=self.ridge_share,
        )
        answer = yield query
        return in_units(problem, answer.values / query.mechanism.ridge)


def tilt_sigma(epsilon: float, delta: float) -> float:
    """The smallest σ with (2Lqσ + 2L²)/σ² ≤ ε, 4Q(q) = δ.

    Examples:
        >>> round(tilt_sigma(0.5, 1e-5), 2)
        18.48
    """
    quantile = -float(ndtri(delta / 4))
    return LIPSCHITZ * (quantile + math.sqrt(quantile**2 + 2 * epsilon)) / epsilon


_LEAST_RIDGE = 1e-8  # smallest ridge over n, so that second derivatives are invertible


@dataclass(frozen=True, kw_only=True, eq=False)
class MinimizerQuery(WholeQuery, name="regression_minimizer"):
    """nλθ*, the ridge minimizer, scaled so that one person changes it by at most 2.

    Privacy:
        |θ*(D) - θ*(D')| ≤ 2L/(nλ) for a λ-strongly convex mean objective (Chaudhuri et al. 2011).
        The inexact solver adds at most `TOLERANCE` for each data set.

    Attributes:
        problem: link and public bounds.
    """

    # The bound is approached as nλ → 0, where lines are steep and the losses of other rows are
    # flat. The ridge that balances the noise is much larger: with few rows, searches reach .52 and
    # .32 of the bound.
    attained: ClassVar[float | None] = 0.3

    l2 = 2 * LIPSCHITZ + 2 * TOLERANCE

    cost: Cost = part(lambda: Cost)
    problem: Problem = part(lambda: Problem)

    @property
    def columns(self) -> tuple[int, ...]:
        """Rows and targets."""
        return (self.problem.dimension, 0)

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.problem.size

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes, and of finite numbers."""
        return tuple(map(finite, rows_and_targets(self.name, self.problem.dimension, records)))

    @property
    def l1(self) -> float:
        """The L1 bound: √D times the Euclidean length."""
        return self.l2 * math.sqrt(self.size)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise of equal scale on every number."""
        return row_noise(self.name, self.cost, self.size, l1=self.l1, l2=self.l2)

    def ridge(self, n: int) -> float:
        """nλ, which balances the bias of the ridge and the noise; it uses public numbers only."""
        noise = float(self.mechanism.scales[0]) ** 2 * self.size
        return max(float((noise * n) ** (1 / 3)), _LEAST_RIDGE * n)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """Minimize on the rows."""
        x, v = self.problem.unit_rows(*records)
        ridge = self.ridge(len(x))
        return ridge * minimize_risk(x / ONE, v / ONE, link=self.problem.link, ridge=ridge)

    @classmethod
    def examples(cls) -> list[Self]:
        """Both losses, Gaussian and Laplace."""
        bounds = Bounds(center=np.zeros(2))
        line = Problem(link="linear", bounds=bounds)
        classes = Problem(link="logistic", bounds=bounds, fit_intercept=False)
        return [
            cls(cost=Cost(epsilon=20.0, delta=0.05), problem=line),
            cls(cost=Cost(epsilon=20.0), problem=classes),
        ]


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(RegressionMechanism, name="output_perturbation"):
    """Minimize with a ridge, then add noise to the coefficients.

    Privacy:
        (ε, δ)-DP with Gaussian noise; pure ε-DP with Laplace noise if δ = 0 or if that noise is
        smaller. The ridge is public.

    Examples:
        >>> OutputPerturbation().name
        'output_perturbation'
    """

    shows_rows = False

    pure_too: ClassVar[bool] = True
    additive: ClassVar[bool] = False

    def budget(self, regression: Regression, costs: Sequence[Cost]) -> Cost:
        """The budget with less noise."""

        def noise(cost: Cost) -> float:
            return float(self._query(regression, cost).mechanism.law.variance.sum())

        return min(costs, key=noise)

    def _query(self, regression: Regression, cost: Cost) -> MinimizerQuery:
        return MinimizerQuery(cost=cost, unit=regression.unit, problem=regression.problem)

    def questions(self, regression: Regression) -> Questions[Fitted]:
        """Ask one query of all rows at once, and compute the fit."""
        problem, query = regression.problem, self._query(regression, regression.whole)
        answer = yield query
        return in_units(problem, answer.values / query.ridge(answer.n))
