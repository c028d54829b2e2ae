"""Objective perturbation: a random tilt of the objective, then a minimiser that may be inexact."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.noise import Source, discrete_gaussian
from dpfda.privacy.calibration import gaussian_sigma
from dpfda.regression.empirical_risk import CURVATURE, LIPSCHITZ, TOLERANCE, minimise_risk
from dpfda.regression.fixed_point import ONE
from dpfda.regression.methods.base import Conversation, Method
from dpfda.regression.methods.gaussian_fm import in_units
from dpfda.regression.problem import Problem
from dpfda.regression.rows import unit_rows
from dpfda.regression.stage import GAUSSIAN_STEPS, WholeStage

_LATTICE_DELTA = 2.0**-50
"""Total-variation distance of the discrete from the rounded Gaussian at σ = 2^24 steps, at most,
for one coordinate: the rounded density differs by the factor 1 + (k²/σ² - 1)/(24σ²) + O(σ⁻⁴)."""


@dataclass(frozen=True, kw_only=True)
class TiltedStage(WholeStage):
    """Λθ̂ for the minimiser of Σ loss + Λ/2 |θ|² + bᵀθ, b Gaussian."""

    problem: Problem
    ridge: float
    tilt_sigma: float

    @property
    def weights(self) -> FloatArray:
        """All coordinates alike."""
        return np.ones(self.problem.dimension + self.problem.fit_intercept)

    @property
    def sensitivity(self) -> float:
        """What the inexact solver and the lattice of b can move Λθ̂, on both sides together."""
        step = self.tilt_sigma / GAUSSIAN_STEPS
        return 2 * TOLERANCE + math.sqrt(self.size) * step

    def evaluate(self, rows: FloatArray, targets: FloatArray, source: Source) -> FloatArray:
        """Draw the tilt and minimise."""
        x, v = unit_rows(self.problem, rows, targets)
        steps = discrete_gaussian(self.size, sigma=GAUSSIAN_STEPS, source=source)
        tilt = np.asarray(steps * (self.tilt_sigma / GAUSSIAN_STEPS))
        theta = minimise_risk(x / ONE, v / ONE, task=self.problem.task, ridge=self.ridge, tilt=tilt)
        return self.ridge * theta


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(Method, name="objective_perturbation"):
    """Minimise a randomly tilted objective (Chaudhuri et al. 2011; Iyengar et al. 2019).

    Privacy:
        (ε, δ). For the exact minimiser θ of D the tilt is b = -Σ∇loss(θ) - Λθ, one to one.
        Replacing a row changes (1) the Jacobian's determinant by a factor of at most 1 + β/Λ, both
        losses having rank-one second derivatives of size ≤ β; (2) b by h = g x - g' x' with
        |g|, |g'| ≤ L, and the log density by (2 bᵀh + |h|²)/(2σ²) ≤ (L(|bᵀx| + |bᵀx'|) + 2L²)/σ².
        The directions x, x' do not depend on b, so |bᵀx| + |bᵀx'| ≤ 2qσ but for probability
        4Q(q) = δ₁. Hence ε₁ = ln(1 + β/Λ) + (2Lqσ + 2L²)/σ². The last part of the budget pays for
        output noise that hides the solver's tolerance and the lattice of b; the lattice's distance
        from a Gaussian is taken off δ. Pure ε is not offered: no exact sampler is known for it.

    Attributes:
        ridge_share: part of ε spent on the determinant; it sets Λ.

    Example:
        >>> ObjectivePerturbation().ridge_share
        0.25
    """

    ridge_share: float = 0.25

    def __post_init__(self) -> None:
        _validate.fraction("ridge_share", self.ridge_share)

    def converse(self, problem: Problem) -> Conversation:
        """One question, asked of all rows at once."""
        problem.require_delta(self.name)
        size = problem.dimension + problem.fit_intercept
        last = 0.02  # share of (ε, δ) for the output noise
        epsilon = (1 - last) * problem.epsilon
        # The lattice costs δ in proportion to 1 + e^ε, so a large ε would leave none of it.
        ratio = (1 - last) * problem.delta / (size * _LATTICE_DELTA)
        if ratio <= 2.0:
            least = 2 * size * _LATTICE_DELTA / (1 - last)
            raise InvalidParameter("delta", f"above {least:.2g} for {self.name}", problem.delta)
        most = math.log(ratio - 1)
        if problem.epsilon >= most:
            rule = f"below {most:.3g} for {self.name} with delta={problem.delta:g}"
            raise InvalidParameter("epsilon", rule, problem.epsilon)
        delta = (1 - last) * problem.delta - size * _LATTICE_DELTA * (1 + math.exp(problem.epsilon))
        ridge = CURVATURE[problem.task] / math.expm1(self.ridge_share * epsilon)
        stage = TiltedStage(
            problem=problem,
            ridge=ridge,
            tilt_sigma=tilt_sigma((1 - self.ridge_share) * epsilon, delta),
            budget=1 / gaussian_sigma(epsilon=last * problem.epsilon, delta=last * problem.delta),
        )
        answer = yield stage
        unit = problem.target_radius if problem.task == "linear" else 1.0
        return in_units(problem, answer.values / ridge, unit=unit)


def tilt_sigma(epsilon: float, delta: float) -> float:
    """The smallest σ with (2Lqσ + 2L²)/σ² ≤ ε, 4Q(q) = δ.

    Example:
        >>> round(tilt_sigma(0.5, 1e-5), 2)
        18.48
    """
    quantile = -float(ndtri(delta / 4))
    reach = LIPSCHITZ * quantile
    return (reach + math.sqrt(reach**2 + 2 * LIPSCHITZ**2 * epsilon)) / epsilon
