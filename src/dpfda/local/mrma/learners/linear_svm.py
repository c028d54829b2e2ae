"""The linear support vector machine with hinge or squared hinge loss, a whole batch at once.

With hinge loss it minimizes ``½ θᵀPθ + Σ_i c_i max(0, 1 − m_i)`` with margins ``m = θᵀrows`` for
every member, by a primal-dual interior point method (Mehrotra's predictor and corrector). Variables
per row, all positive: α and β = c − α (multipliers), ξ (shortfall of the margin) and s = m + ξ − 1
(excess). At the solution α s = β ξ = 0; the method keeps both products near a common μ > 0 and
reduces it. Each iteration solves two systems of d + 1 equations with the same matrix. As soon as
the iterates show which rows lie on the margin, the equations of those rows are solved directly and
the optimality conditions are checked. A result that passes is exact up to rounding.

A state is (θ, α, β, s, ξ). The fixed inputs are (rows, costs, penalty, penalty as a matrix with a
small addition on its diagonal).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Self

import numpy as np

from dpfda._validate import one_of, positive
from dpfda.local.mrma.learners._arrays import (
    Array,
    Batch,
    Design,
    design,
    diagonal,
    dot,
    gram,
    identity,
    namespace,
    scalar,
    times_rows,
    times_weights,
)
from dpfda.local.mrma.learners._newton import (
    Arrays,
    NewtonLearner,
    SquaredHingeLoss,
    iterate,
    solver,
)
from dpfda.local.mrma.learners._newton import rows as members_at

_FIRST_GAP = 0.1
"""μ of the starting point. Larger values need more steps; smaller ones are further off the path."""

_ROUGH_STEPS = 5
"""Iterations in single precision, which is enough far from the solution and twice as fast."""

_ROUGH_GAP = 1e-6
"""μ below which single precision is not sufficient."""


def start(fixed: Arrays) -> Arrays:
    """The state after a few steps in single precision.

    Only the parameters are in double precision; `refined` converts the rest for members that
    continue.
    """
    rows, costs, penalty, ridged = fixed
    xp = namespace(rows)
    largest = scalar(1e30, like=rows)
    small = 1e-6 * identity(rows.shape[1], like=rows)
    bounded = (xp.minimum(array, largest) for array in (penalty, ridged + small))
    rough = tuple(xp.astype(array, xp.float32) for array in (rows, costs, *bounded))
    # A badly conditioned member may overflow here; it is then restarted below.
    with np.errstate(all="ignore"):
        state = _near_the_path(rough)
        for _ in range(_ROUGH_STEPS):
            state = walk(state, rough, gap(state) > _ROUGH_GAP)
    sound = xp.isfinite(gap(state) + xp.sum(state[0], axis=1))
    if not bool(xp.all(sound)):
        plain = xp.zeros_like(rows[:, :, 0])
        pairs = zip(state, (plain, *_centered(rows, costs, plain)), strict=True)
        state = tuple(xp.where(sound[:, None], ours, safe) for ours, safe in pairs)
    return (xp.astype(state[0], xp.float64), *state[1:])


def refined(state: Arrays, fixed: Arrays) -> Arrays:
    """The same point in double precision, with α + β = c and s − ξ = m − 1 restored.

    Of each pair, the smaller number is kept and the larger one adjusted, so that no digit is lost.
    """
    rows, costs = fixed[:2]
    xp = namespace(rows)
    parameters, alpha, beta, excess, short = (xp.astype(array, xp.float64) for array in state)
    lack = 1.0 - times_rows(rows, parameters)
    low = xp.astype(alpha < beta, costs.dtype)
    near = xp.astype(excess < short, costs.dtype)
    return (
        parameters,
        low * alpha + (1.0 - low) * (costs - beta),
        low * (costs - alpha) + (1.0 - low) * beta,
        near * excess + (1.0 - near) * xp.maximum(short - lack, short),
        near * xp.maximum(excess + lack, excess) + (1.0 - near) * short,
    )


def _near_the_path(fixed: Arrays) -> Arrays:
    """Least squares, followed by two Newton steps towards the point of the path with a given μ."""
    rows, costs, penalty, ridged = fixed
    xp = namespace(rows)
    squares = rows @ xp.matrix_transpose(rows)
    parameters = solver(squares + ridged)(xp.sum(rows, axis=2))
    centered = _centered(rows, costs, parameters)
    for _ in range(2):
        alpha, beta, excess, short = centered
        residual = times_weights(rows, alpha) - penalty * parameters
        stiffness = 1.0 / (excess / alpha + short / beta)
        direction = solver(gram(rows, stiffness) + ridged)(residual)
        largest = xp.max(xp.abs(times_rows(rows, direction)), axis=1)
        share = 2.0 / xp.maximum(largest, scalar(2.0, like=largest))
        parameters = parameters + share[:, None] * direction
        centered = _centered(rows, costs, parameters)
    return (parameters, *centered)


def _centered(rows: Array, costs: Array, parameters: Array) -> Arrays:
    """The solution (α, β, s, ξ) of α s = β ξ = μ, α + β = c and s − ξ = m − 1."""
    xp = namespace(rows)
    far = scalar(1e6, like=costs)
    lack = xp.minimum(xp.maximum(1.0 - times_rows(rows, parameters), -far), far) * costs
    root = 2.0 * _FIRST_GAP + xp.sqrt(4.0 * _FIRST_GAP**2 + lack * lack)
    excess, short = root - lack, root + lack
    share = costs / (excess + short)
    alpha, beta = share * short, share * excess
    half = 0.5 / costs
    return alpha, beta, half * excess, half * short


def walk(state: Arrays, fixed: Arrays, live: Array) -> Arrays:
    """One predictor-corrector iteration for the members that are `live`."""
    parameters, alpha, beta, excess, short = state
    rows, _, penalty, ridged = fixed
    xp = namespace(rows)
    here = gap(state)
    residual = times_weights(rows, alpha) - penalty * parameters
    per_alpha, per_beta = 1.0 / alpha, 1.0 / beta
    excess_slope, short_slope = excess * per_alpha, short * per_beta
    stiffness = 1.0 / (excess_slope + short_slope)
    solve = solver(gram(rows, stiffness) + ridged)

    def newton(pull: Array) -> tuple[Array, Array]:
        direction = solve(residual + times_weights(rows, stiffness * pull))
        change = pull - times_rows(rows, direction)
        change *= stiffness
        return direction, change

    # Predictor: aim at μ = 0. With relative changes u of α and −v of β, those of s and ξ are
    # −1 − u and −1 + v; the farthest of the four steps follows from u + u² and v² − v alone.
    # Memory limits the speed of this function, so arrays that are not needed again are overwritten.
    _, d_alpha = newton(short - excess)
    second_excess, second_short = d_alpha * per_alpha, d_alpha * per_beta
    second_excess *= second_excess + 1.0
    second_short *= second_short - 1.0
    farthest = 0.5 + xp.sqrt(xp.max(xp.maximum(second_excess, second_short), axis=1) + 0.25)
    share = 1.0 / xp.maximum(farthest, xp.ones_like(here))
    second_excess *= excess
    second_short *= short
    curve = (dot(alpha, second_excess) + dot(beta, second_short)) / (2.0 * alpha.shape[1])
    left = (1.0 - share) - share * share * curve / xp.maximum(here, scalar(1e-30, like=here))
    target = (left * left * left * here)[:, None]

    # Corrector: aim at the reduced μ, with the second-order terms of the predictor.
    d_excess, d_short = target * per_alpha, target * per_beta
    d_excess += second_excess
    d_excess -= excess
    d_short += second_short
    d_short -= short
    direction, d_alpha = newton(d_excess - d_short)
    excess_slope *= d_alpha
    d_excess -= excess_slope
    short_slope *= d_alpha
    d_short += short_slope
    per_alpha *= -d_alpha
    per_beta *= d_alpha
    rise = xp.max(xp.maximum(per_alpha, per_beta), axis=1)
    fall = xp.min(xp.minimum(d_excess / excess, d_short / short), axis=1)
    share = 0.99 / xp.maximum(xp.maximum(rise, -fall), scalar(0.99, like=here))
    share = (share * xp.astype(live, share.dtype))[:, None]
    d_alpha *= share
    d_excess *= share
    d_short *= share
    return (
        parameters + share * direction,
        alpha + d_alpha,
        beta - d_alpha,
        excess + d_excess,
        short + d_short,
    )


def gap(state: Arrays) -> Array:
    """μ, the mean of all products α s and β ξ, shape (B,)."""
    _, alpha, beta, excess, short = state
    return (dot(alpha, excess) + dot(beta, short)) / (2.0 * alpha.shape[1])


_RIDGE = 1e-12
"""Keeps the systems solvable; it changes the iterates, but not the solution."""

_READY = 1e-3
"""μ below which the rows on the margin are guessed."""

_PATIENCE = 30.0
"""After a wrong guess, μ must have shrunk by this factor before the next one."""

_SPRING = 1e6
"""Stiffness relative to costs and features of size 1; each round divides the error by it."""


def minimize_hinge(
    rows: Array, costs: Array, *, penalty: Array, tolerance: float, max_iterations: int
) -> tuple[Array, Array]:
    """Minimize the hinge loss with penalty for every member.

    Args:
        rows: (B, p, n), label times (1, features); 0 for absent rows.
        costs: c, (B, n), near 1 in size; 0 for absent rows.
        penalty: the diagonal of P, (B, p), at least 0.
        tolerance: the largest violation of the optimality conditions.
        max_iterations: the largest number of steps; the last iterate is then returned.

    Returns:
        Parameters (B, p), and for every member whether some row lies exactly on the margin (B,);
        without one, an unpenalized intercept is not unique.
    """
    xp = namespace(rows)
    # An absent row (0, cost 0) has no interior between its bounds; with cost 1 it is a constant.
    costs = xp.where(costs > 0, costs, xp.ones_like(costs))
    ridged = diagonal(penalty + _RIDGE)

    def begin(fixed: Arrays) -> Arrays:
        parameters, *rest = start(fixed)
        threshold = xp.full_like(fixed[1][:, 0], _READY)
        return (parameters, threshold < 0, threshold, *rest)

    def step(state: Arrays, fixed: Arrays, live: Array) -> tuple[Arrays, Array]:
        parameters, pinned, threshold, *rest = state
        walking = (parameters, *rest)
        now = _relative_gap(walking, fixed)
        ready = (now < threshold) & live
        if not bool(xp.any(ready)):
            parameters, *rest = walk(refined(walking, fixed), fixed, live)
            return (parameters, pinned, threshold, *rest), now < 1e-4 * tolerance
        answer, on_margin, exact = _finish(xp, walking, fixed, ready, tolerance)
        # Only the result is replaced, because the other variables must stay positive.
        parameters = xp.where(exact[:, None], answer, parameters)
        pinned = xp.where(exact, on_margin, pinned)
        threshold = xp.where(ready, now / _PATIENCE, threshold)
        return (parameters, pinned, threshold, *rest), exact

    fixed = (rows, costs, penalty, ridged)
    parameters, pinned = iterate(begin, step, fixed=fixed, max_iterations=max_iterations, answers=2)
    return parameters, pinned


def _largest_pull(alpha: Array, costs: Array) -> Array:
    """max α/c (B, 1); far below 1 if the classes are separable and the penalty is weak."""
    xp = namespace(alpha)
    return xp.max(alpha / costs, axis=1, keepdims=True)


def _relative_gap(state: Arrays, fixed: Arrays) -> Array:
    """μ relative to the size of the multipliers, (B,)."""
    return gap(state) / _largest_pull(state[1], fixed[1])[:, 0]


def _finish(xp: ModuleType, state: Arrays, fixed: Arrays, ready: Array, tolerance: float) -> Arrays:
    """Try to solve the members that are `ready` directly.

    Returns:
        Parameters, whether a row lies on the margin, and which members were solved; the first two
        are undefined for other members.
    """
    if bool(xp.all(ready)):
        return _solve_face(state, fixed, tolerance)
    chosen = xp.nonzero(ready)[0]
    answers = _solve_face(members_at(xp, state, chosen), members_at(xp, fixed, chosen), tolerance)
    # Member b of the batch is number `place[b]` of the chosen ones.
    counted = xp.astype(ready, xp.int64)
    place = xp.cumulative_sum(counted) - counted
    place = xp.minimum(place, xp.full_like(place, chosen.shape[0] - 1))
    parameters, on_margin, solved = members_at(xp, answers, place)
    return parameters, on_margin, ready & solved


def _solve_face(state: Arrays, fixed: Arrays, tolerance: float) -> Arrays:
    """Guess the rows on the margin, solve the equations they satisfy, check optimality.

    Rows beyond the margin have α = 0, rows inside it α = c, and rows on it margin 1. The last
    condition is imposed by a stiff quadratic penalty, whose force becomes their α (method of
    multipliers). Two rounds reduce the error to rounding, also for repeated rows.
    """
    parameters, alpha, beta, excess, short = state
    rows, costs, penalty, ridged = fixed
    xp = namespace(rows)
    scale = _largest_pull(alpha, costs) * costs
    # Masks are numbers, because xp.where on random patterns is several times slower.
    beyond = xp.astype(excess * scale > alpha, costs.dtype)
    inside = xp.astype(short * costs > beta, costs.dtype) * (1.0 - beyond)
    on_margin = 1.0 - beyond - inside
    pinned = xp.max(on_margin, axis=1)
    spring = _SPRING * scale * on_margin
    alpha = inside * costs + on_margin * alpha
    # Without a row on the margin the intercept is fixed, so that rounding does not change it.
    held = (1.0 - pinned)[:, None, None] * _corner(ridged)
    solve = solver(gram(rows, spring) + ridged + held)
    lack = 1.0 - times_rows(rows, parameters)
    for _ in range(2):
        direction = solve(times_weights(rows, alpha + spring * lack) - penalty * parameters)
        parameters = parameters + direction
        lack -= times_rows(rows, direction)
        alpha += spring * lack
    outside = xp.maximum(-alpha, alpha - costs) / scale
    beyond -= inside
    beyond *= lack
    on_margin *= xp.abs(lack)
    missed = beyond + on_margin
    residual = times_weights(rows, alpha) - penalty * parameters
    size = xp.max(xp.abs(penalty * parameters), axis=1) + xp.sum(xp.abs(alpha), axis=1)
    worst = xp.maximum(
        xp.max(xp.maximum(missed, outside), axis=1), xp.max(xp.abs(residual), axis=1) / size
    )
    return parameters, pinned > 0, worst <= tolerance


def _corner(matrices: Array) -> Array:
    """Matrix (p, p) with a 1 for the intercept and 0 elsewhere."""
    first = identity(matrices.shape[1], like=matrices)[:1, :]
    return first * namespace(matrices).matrix_transpose(first)


def middle_intercept(rows: Array, costs: Array, parameters: Array, *, labels: Array) -> Array:
    """The middle of the intercepts (B,) that are optimal for the given coefficients.

    As a function of the intercept the loss is convex and piecewise linear: row i changes its slope
    by c_i at the intercept that puts it on the margin. The slope starts at minus the cost of the
    positive rows; where it is 0 between two such points, every intercept between them is optimal.
    """
    xp = namespace(rows)
    positive = xp.sum(xp.where(labels > 0, costs, xp.zeros_like(costs)), axis=1, keepdims=True)
    without = times_rows(rows[:, 1:, :], parameters[:, 1:])
    corners = labels * (1.0 - without)
    order = xp.argsort(corners, axis=1)
    corners = xp.take_along_axis(corners, order, axis=1)
    reached = xp.cumulative_sum(xp.take_along_axis(costs, order, axis=1), axis=1)
    slack = 1e-9 * (positive + reached[:, -1:])
    last = xp.max(corners, axis=1, keepdims=True)
    low = xp.min(xp.where(reached >= positive - slack, corners, last), axis=1)
    high = xp.min(xp.where(reached > positive + slack, corners, last), axis=1)
    return 0.5 * (low + high)


@dataclass(frozen=True, kw_only=True)
class LinearSVM(NewtonLearner, name="linear_svm"):
    """Linear SVM: minimize ½ ‖coefficients‖² + C Σ w·loss(y·score).

    The loss is the hinge max(0, 1 − m), as in scikit-learn's ``SVC(kernel="linear")``, or its
    square. The intercept is not penalized. If the hinge loss does not determine it (no row exactly
    on the margin), it is the middle of the interval of solutions, as in LIBSVM. With noisy features
    and unequal classes the solution is often constant, with coefficients exactly 0.

    Attributes:
        C: weight of the loss relative to the penalty, above 0.
        loss: ``"hinge"`` or ``"squared_hinge"``.
        tolerance: the largest violation of the optimality conditions (hinge), or the largest change
            of a score in the last Newton step (squared hinge).

    Examples:
        >>> models = LinearSVM(C=10.0).fit([[[-2.0], [-1.0], [1.0], [3.0]]], [[-1, -1, 1, 1]])
        >>> models.scores([[-1.0], [0.5], [1.0]]).round(6)
        array([[-1. ,  0.5,  1. ]])
    """

    margin_loss = SquaredHingeLoss()

    C: float = 1.0
    loss: str = "hinge"
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("C", self.C)
        one_of("loss", self.loss, ("hinge", "squared_hinge"))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Both losses."""
        return (cls(), cls(loss="squared_hinge"))

    def _fit_chunk(self, batch: Batch, gram: Array) -> tuple[Array, Array]:
        if self.loss == "squared_hinge":
            return super()._fit_chunk(batch, gram)
        data = design(batch)
        return data.to_features(self._fit_hinge(batch, data, self._diagonal(data)))

    def _penalty(self, data: Design, gram: Array) -> Array:
        return diagonal(self._diagonal(data))

    def _diagonal(self, data: Design) -> Array:
        """The diagonal of the penalty for members whose weights add up to 1."""
        return data.penalty() / (self.C * data.total[:, None])

    def _fit_hinge(self, batch: Batch, data: Design, penalty: Array) -> Array:
        xp = namespace(data.rows)
        count = xp.sum(xp.astype(data.weights > 0, data.weights.dtype), axis=1, keepdims=True)
        count = xp.maximum(count, xp.ones_like(count))
        # The solver needs costs near 1, so the whole problem is multiplied by the number of rows.
        costs = data.weights * count
        parameters, pinned = minimize_hinge(
            data.rows,
            costs,
            penalty=penalty * count,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        # If the signal is too weak, the slopes are 0; this removes rounding errors.
        flat = xp.max(xp.abs(parameters[:, 1:]), axis=1, keepdims=True) <= 10.0 * self.tolerance
        slopes = xp.where(flat, xp.zeros_like(parameters[:, 1:]), parameters[:, 1:])
        parameters = xp.concat([parameters[:, :1], slopes], axis=1)
        if bool(xp.all(pinned)):
            return parameters
        middle = middle_intercept(data.rows, costs, parameters, labels=batch.labels)
        intercept = xp.where(pinned, parameters[:, 0], middle)
        return xp.concat([intercept[:, None], parameters[:, 1:]], axis=1)
