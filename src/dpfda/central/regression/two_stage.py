"""The default method: find center and spread first, then release the moments of clipped rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.regression.alternatives import GaussianFM
from dpfda.central.regression.base import Fitted, Regression, RegressionMechanism
from dpfda.central.regression.problem import Bounds
from dpfda.central.regression.queries import MomentQuery, NoisyMoments
from dpfda.central.regression.released import Released
from dpfda.central.regression.two_stage_queries import (
    NEARLY,
    TARGET_WEIGHT,
    BudgetPlan,
    Location,
    LocationQuery,
    NewtonQuery,
    Slope,
)
from dpfda.curves.matrices import floored
from dpfda.privacy.cost import Cost
from dpfda.privacy.price import exact
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import flag, number, whole

_FLOOR = 8.0  # eigenvalue floor in noise levels, independent of D
_SHARE = {False: Fraction(1, 5), True: Fraction(1, 4)}
"""Default budget share of the first query; the key is whether ε is pure."""
_FEW = 10.0  # nμ/√D below which a fit is mostly noise
_WARNING = "too few rows for this budget: expect a fit hardly better than a constant"
_NEWTON_FROM = 1200.0  # smallest nμ/√D at which a Newton step reduces the error
_LEAST_LEFT = 0.05  # smallest residual variance, as a share of the variance of the targets
_WIDER = 1.5  # factor on the radius in which weighted slopes, which hold outside it too, predict
_EXPLAINED = np.array([0.0, 0.5, 1.0, 2.0])
"""Prior shares of the targets' variance that slopes of equal size in all directions would explain.
The share can be 2 if rows hardly vary along the directions that determine the targets."""
_CLEAR = 500.0  # nμ/√D above which noise is smaller than the bias of clipped targets
_STEP = 0.6  # fraction of a Newton step; a whole step overshoots with this Hessian


@dataclass(frozen=True, kw_only=True)
class TwoStageMoments(RegressionMechanism, name="moments"):
    """Two-stage moment release: location and scale first, then the moments of clipped rows.

    Privacy:
        Stage 1 spends a share of μ² and stage 2 the rest. Gaussian releases compose exactly,
        Σμ_i² = μ², and μ is equivalent to (ε, δ). If δ = 0, or if it reduces the expected error for
        a known number of rows, both stages use Laplace noise with shares of ε (pure ε). For a
        logistic link with many rows, a share `newton_share` of μ² is for one step of Newton's
        method, which is one more query. With very few rows, if their number is known and the noise
        is Gaussian, the logistic link uses one release of `gaussian_fm` with the whole budget. All
        of this depends on public numbers only. Everything after the last answer is post-processing.

    If the number of rows is known beforehand, the linear link uses the division of the budget with
    the least expected error (`BudgetPlan`). Few rows determine little more than the mean target.
    Slopes are shrunk towards 0 according to their uncertainty.

    The method is designed for prediction. With few rows, the second stage clips rows at 0.7
    root-mean-square distances. This reduces the noise, but makes slopes steeper than those of
    unclipped rows, each by a different factor. To estimate coefficients, use `gaussian_fm`, which
    clips at the public bounds only, or `weighted` for slopes of curves.

    Attributes:
        weighted: scale the target of a row by the same factor as the clipped row. Distant rows then
            have less weight (weighted least squares), and slopes are those of unclipped rows if the
            target is linear in them. Predictions have more noise.
        share: share of μ² (of ε for pure noise) for center and spread; planned if None.
        newton_steps: number of Newton steps; if None, one for large nμ/√D and otherwise none.
        newton_share: share of μ² for all Newton steps.

    Examples:
        >>> TwoStageMoments().newton_share
        0.25
    """

    pure_too: ClassVar[bool] = True

    weighted: bool = flag(default=False)
    share: float | None = number(least=1e-6, most=0.999999, optional=True, default=None)
    newton_steps: int | None = whole(least=0, optional=True, default=None)
    newton_share: float = number(least=1e-6, most=0.999999, default=0.25)

    def __post_init__(self) -> None:
        super().__post_init__()
        first = float(_SHARE[False]) if self.share is None else self.share
        _validate.fraction("share + newton_share", first + self.newton_share)

    def plan(self, regression: Regression, costs: Sequence[Cost]) -> BudgetPlan | None:
        """The planned division of the budget; None if the number of rows is not known."""
        rows, features = regression.problem.rows, regression.problem.dimension
        if rows is None or self.share is not None:
            return None
        plans = [BudgetPlan.of(one, usual=_SHARE[one.pure], rows=rows, features=features)
                 for one in costs]  # fmt: skip
        best = min(plans, key=lambda plan: plan.error)
        return plans[-1] if plans[-1].error <= NEARLY * best.error else best

    def budget(self, regression: Regression, costs: Sequence[Cost]) -> Cost:
        """The budget of least expected error, computed for a linear link."""
        plan = None if self.newton_steps else self.plan(regression, costs)
        return costs[-1] if plan is None else plan.cost

    def questions(self, regression: Regression) -> Questions[Fitted]:
        """Query the location, then the moments, then perhaps a few Newton steps."""
        problem, budget = regression.problem, regression.whole
        known = problem.rows
        few = known is not None and regression.clarity(known) < _FEW
        if few and problem.link == "logistic" and not budget.pure:
            # Two queries would be too noisy: ask one query, about the public ball.
            fitted = yield from GaussianFM().questions(regression)
            return replace(fitted, warnings=(_WARNING,))
        unit = regression.unit
        plan = self.plan(regression, [budget]) if problem.link == "linear" else None
        usual = exact(self.share) if self.share is not None else _SHARE[budget.pure]
        share = budget.part(usual if plan is None else plan.share)
        weight = TARGET_WEIGHT if plan is None else plan.target_weight
        first = LocationQuery(cost=share, problem=problem, unit=unit, target_weight=weight)
        found = yield first
        location = first.read(found)
        if self.weighted:
            location = unclipped_targets(location, problem.bounds, regression.clarity(found.n))
        steps = self._steps(regression, found.n)
        kept = [budget.part(self.newton_share).part(Fraction(1, max(steps, 1)))] * steps
        second = MomentQuery(
            cost=budget.rest(share, *kept),
            bounds=location.bounds,
            unit=unit,
            weighted=self.weighted,
        )
        answer = yield second
        moments = second.moments.read(answer)
        fitted = solve(regression, location, moments, n=answer.n, weighted=self.weighted)
        floor = _FLOOR * moments.quadratic_sigma
        for cost in kept:
            query = NewtonQuery(
                cost=cost,
                bounds=location.bounds,
                theta=fitted.slope * fitted.radius,
                offset=fitted.offset,
                unit=unit,
            )
            fitted = newton_step(fitted, query.read((yield query)), moments.quadratic, floor=floor)
        return fitted

    def _steps(self, regression: Regression, n: int) -> int:
        if regression.problem.link != "logistic" or regression.whole.pure:
            return 0
        if self.newton_steps is not None:
            return self.newton_steps
        return 1 if regression.clarity(n) >= _NEWTON_FROM else 0


def unclipped_targets(location: Location, public: Bounds, clarity: float) -> Location:
    """Widen the target radius with clarity, so that the bias of slopes stays below their noise.

    Clipping at k standard deviations reduces the slopes of normal targets by the share
    P(|N(0, 1)| > k), which is 1 % for the radius that is best for predictions. The relative noise
    is about 1/clarity.
    """
    ball = location.bounds
    furthest = public.target_radius + abs(ball.target_center - public.target_center)
    wider = ball.target_radius * max(1.0, (clarity / _CLEAR) ** (1 / 3))
    radius = max(ball.target_radius, min(wider, furthest))
    return replace(location, bounds=replace(ball, target_radius=radius))


def newton_step(fitted: Fitted, slope: Slope, quadratic: FloatArray, *, floor: float) -> Fitted:
    """A damped Newton step; the Hessian is the released second moments times the mean curvature."""
    values, vectors = np.linalg.eigh(quadratic)
    hessian = np.maximum(np.maximum(values, floor) * slope.curvature, 2.0 * slope.sigma)
    theta = fitted.slope * fitted.radius
    theta = theta - _STEP * (vectors @ ((vectors.T @ slope.gradient) / hessian))
    return replace(
        fitted,
        slope=theta / fitted.radius,
        offset=fitted.offset - _STEP * slope.balance / slope.curvature,
    )


def solve(
    regression: Regression, location: Location, moments: NoisyMoments, *, n: int, weighted: bool
) -> Fitted:
    """Slopes, and the variance that they explain (post-processing).

    For a logistic link w = V max(Λ, 8σ₂)⁻¹ Vᵀ b̂, multiplied by a factor that gives log-odds.
    """
    problem, ball, public = regression.problem, location.bounds, regression.problem.bounds
    inverse = floored(moments.quadratic, _FLOOR * moments.quadratic_sigma, inverted=True)
    if problem.link == "linear":
        w = believed_slopes(location, moments, n=n)
    else:
        w = inverse @ moments.linear
    unit = ball.target_radius / ball.radius  # from clipping radii to original units
    offset, scale = ball.target_center, 1.0
    if problem.link == "logistic":
        scale = 1 / residual_variance(ball, moments, w, float(np.trace(inverse)))
        offset = (offset - public.target_center) * scale
    # Whether any part of the public ball is outside the released ball.
    shift = float(np.linalg.norm(ball.center - public.center))
    clips = ball.radius < public.radius + shift and not weighted
    # No intervals for log-odds, whose scale has noise of no simple form, nor for few rows, for
    # which noise determines the balls.
    few = regression.clarity(n) < _FEW
    stated = problem.link == "linear" and not clips and (weighted or not few)
    explained, clarity = gain(location, moments, inverse, n=n)
    spread = math.sqrt(max(float(w @ moments.quadratic @ w), 0.0)) * ball.target_radius
    return Fitted(
        slope=w * unit * scale,
        offset=offset,
        center=ball.center,
        radius=ball.radius * (_WIDER if weighted else 1.0),
        clips=clips,
        released=released(location, moments, inverse, n=n) if stated else None,
        explained=explained,
        clarity=clarity,
        spread=spread * scale,
        warnings=(_WARNING,) * few,
    )


def believed_slopes(location: Location, moments: NoisyMoments, *, n: int) -> FloatArray:
    """Posterior mean of w in b = M w, given M̂ and b̂ (post-processing).

    Slopes with prior w ~ N(0, τ²I) explain τ² tr M of the targets' variance. Hypotheses about this
    amount are weighted by the likelihood of b̂, so that w is close to 0 if there is only noise:

        w = τ² M (τ² M² + S)⁻¹ b̂,   S = Cov b̂.
    """
    errors, matrix = _errors(location, moments, n=n), floored(moments.quadratic)
    # Noise alone gives a trace of this size.
    least = math.sqrt(float(moments.quadratic_variance.sum()))
    trace = max(float(np.trace(moments.quadratic)), least)
    whole = location.target_variance / location.bounds.target_radius**2
    scales = (_EXPLAINED * whole / trace)[:, None, None]
    covariance = scales * (matrix @ matrix) + errors
    solved = np.linalg.solve(covariance, moments.linear[:, None])[..., 0]
    logs = -0.5 * (solved @ moments.linear + np.linalg.slogdet(covariance)[1])
    weights = np.exp(logs - logsumexp(logs))
    return np.asarray((weights * scales[:, 0, 0]) @ solved @ matrix)


def _errors(location: Location, moments: NoisyMoments, *, n: int) -> FloatArray:
    """Covariance of the errors of b̂: noise, sampling, and errors of both centers."""
    ball = location.bounds
    whole = location.target_variance / ball.target_radius**2
    shifted = location.center_noise / ball.radius * location.target_noise / ball.target_radius
    noise = (moments.linear_sigma**2 + shifted**2) * np.eye(len(moments.linear))
    return np.asarray(noise + whole / n * floored(moments.quadratic))


def gain(
    location: Location, moments: NoisyMoments, inverse: FloatArray, *, n: int
) -> tuple[float, float]:
    """Expected share of the targets' variance that predictions explain, and its significance.

    For w = A b̂ the explained variance is 2wᵀb - wᵀMw. Errors of b̂ are also in w, so 2 tr(AS) is
    subtracted, where S is the covariance of these errors. If b is 0, the quadratic form b̂ᵀQb̂ with
    Q = 2A - AMA has mean tr(QS) and variance 2 tr(QSQS). All of this is post-processing.
    """
    quadratic, b, ball = floored(moments.quadratic), moments.linear, location.bounds
    whole = location.target_variance / ball.target_radius**2
    errors = _errors(location, moments, n=n)
    form = 2 * inverse - inverse @ quadratic @ inverse
    seen, noise = float(b @ form @ b), form @ errors
    deviation = math.sqrt(2 * float(np.trace(noise @ noise)))
    clarity = (seen - float(np.trace(noise))) / max(deviation, 1e-300)
    return (seen - 2 * float(np.trace(inverse @ errors))) / whole, clarity


def released(location: Location, moments: NoisyMoments, inverse: FloatArray, *, n: int) -> Released:
    """The released moments with the residual variance of the targets (post-processing)."""
    ball = location.bounds
    trace = float(np.trace(inverse))
    explained = float(moments.linear @ inverse @ moments.linear) - moments.linear_sigma**2 * trace
    whole = location.target_variance / ball.target_radius**2
    unit = ball.target_radius / ball.radius
    most = location.most_target_variance
    return Released(
        matrix=moments.quadratic,
        vector=moments.linear,
        matrix_variance=moments.quadratic_variance,
        vector_sigma=moments.linear_sigma,
        constant=False,
        combinations=unit * np.eye(len(moments.linear)),
        target_variance=most / ball.target_radius**2,
        residual_variance=min(max(whole - explained, _LEAST_LEFT * whole), whole),
        center_sigma=location.center_noise / ball.radius,
        target_center_sigma=location.target_noise / ball.target_radius,
        rows=n,
    )


def residual_variance(ball: Bounds, moments: NoisyMoments, w: FloatArray, trace: float) -> float:
    """Mean p(1 - p) of a 0/1 target around its linear fit; its inverse converts to log-odds."""
    rate = ball.target_center
    explained = float(moments.linear @ w) - moments.linear_sigma**2 * trace
    explained = max(explained, 0.0) * ball.target_radius**2
    return float(np.clip(rate * (1 - rate) - explained, 0.04, 0.25))
