"""The default: find centre and spread first, then release the moments of the clipped rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda.regression.location_stage import Location, LocationStage
from dpfda.regression.methods.base import Conversation, Fitted, Method
from dpfda.regression.moment_stage import Moments, MomentStage
from dpfda.regression.problem import Problem
from dpfda.regression.symmetric import floored_inverse, noise_covariance

_FLOOR = 8.0  # eigenvalues below this many noise levels are raised to it; does not grow with D
_PURE_SHARE = 0.25
_WARN_BELOW = 10.0


@dataclass(frozen=True, kw_only=True)
class TwoStageMoments(Method, name="moments"):
    """Two-stage moment release (methods 8.9): the strongest one-shot design known here.

    Privacy:
        Stage 1 spends `share` of μ², stage 2 the rest; Gaussian parts compose exactly, Σμ_i² = μ²,
        and μ is exactly (ε, δ). With δ = 0 both stages add Laplace noise, ε/4 and 3ε/4 (pure ε).
        What follows the second answer is post-processing.

    Attributes:
        share: part of μ² spent on centre and spread.

    Example:
        >>> TwoStageMoments().share
        0.2
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        _validate.fraction("share", self.share)

    def converse(self, problem: Problem) -> Conversation:
        """Location, then moments."""
        if problem.pure:
            budgets = (_PURE_SHARE * problem.epsilon, (1 - _PURE_SHARE) * problem.epsilon)
            first = LocationStage(problem=problem, budget=budgets[0], noise="laplace")
        else:
            budgets = (
                problem.mu * math.sqrt(self.share),
                problem.mu * math.sqrt(1 - self.share),
            )
            first = LocationStage(problem=problem, budget=budgets[0])
        location = first.read((yield first))
        second = MomentStage(
            budget=budgets[1],
            noise=first.noise,
            center=location.center,
            radius=location.radius,
            target_center=location.target_center,
            target_radius=location.target_radius,
        )
        answer = yield second
        return solve(problem, location, second.read(answer), n=answer.n)


def solve(problem: Problem, location: Location, moments: Moments, *, n: int) -> Fitted:
    """w = V max(Λ, 8σ₂)⁻¹ Vᵀ b̂, and for a logistic task its log-odds scale (post-processing)."""
    inverse = floored_inverse(moments.quadratic, _FLOOR * moments.quadratic_sigma)
    w = inverse @ moments.linear
    covariance = noise_covariance(
        inverse, w, linear=moments.linear_sigma, quadratic=moments.quadratic_sigma
    )
    unit = location.target_radius / location.radius  # from clipping radii to original units
    offset = location.target_center
    scale = 1.0
    if problem.task == "logistic":
        scale = 1 / residual_variance(location, moments, w, float(np.trace(inverse)))
        offset = (offset - problem.target_center) * scale
    reliability = n * (1.0 if problem.pure else problem.mu) / math.sqrt(problem.dimension)
    return Fitted(
        slope=w * unit * scale,
        offset=offset,
        center=location.center,
        radius=location.radius,
        covariance=covariance * (unit * scale) ** 2,
        warnings=()
        if reliability >= _WARN_BELOW
        else ("too few rows for this budget: expect a fit no better than a constant",),
        details={"target_variance": location.target_variance, "floor": _FLOOR},
    )


def residual_variance(location: Location, moments: Moments, w: np.ndarray, trace: float) -> float:
    """Mean p(1 - p) of a 0/1 target around its linear fit: what turns a line into log-odds."""
    rate = location.target_center
    explained = float(moments.linear @ w) - moments.linear_sigma**2 * trace
    explained = max(explained, 0.0) * location.target_radius**2
    return float(np.clip(rate * (1 - rate) - explained, 0.04, 0.25))
