"""The linear support vector machine with hinge loss, a whole batch at once.

Minimises ``½ θᵀPθ + Σ_i c_i max(0, 1 − m_i)`` with margins ``m = θᵀrows`` for every member:
a primal-dual interior point method (Mehrotra's predictor and corrector; each iteration solves
systems of d + 1 equations) walks to the neighbourhood of the solution, and as soon as the walk
shows which rows lie on the margin, the equations those rows satisfy are solved outright and the
optimality conditions checked. What passes is exact up to rounding, not merely close.

Variables per row, all positive: α and β = c − α (multipliers), ξ (shortfall of the margin) and
s = m + ξ − 1 (excess). At the solution α s = β ξ = 0; the walk keeps both near a common μ > 0.
"""

from __future__ import annotations

from typing import Any

from dpfda.learners._arrays import Array, identity, namespace, scalar
from dpfda.learners._design import dot, gram, times_rows, times_weights
from dpfda.learners._iteration import Arrays, iterate
from dpfda.learners._iteration import rows as members_at
from dpfda.learners._linear_systems import solver

_RIDGE = 1e-12
"""Keeps the systems solvable; it bends the way to the solution, not the solution."""

_FIRST_GAP = 0.1
"""μ of the starting point. Larger starts walk longer, smaller ones start further off the path."""

_READY = 1e-3
"""μ at which guessing the rows on the margin begins to be worth a try (about half succeed)."""


def minimise_hinge(
    rows: Array, costs: Array, *, penalty: Array, tolerance: float, max_iterations: int
) -> tuple[Array, Array]:
    """Solve every member.

    Args:
        rows: (B, p, n), label times (1, features); 0 for absent rows.
        costs: c, (B, n), near 1 in size; 0 for absent rows.
        penalty: the diagonal of P, (B, p), at least 0.
        tolerance: how far the optimality conditions may be missed.
        max_iterations: what is left after that many is returned as it is.

    Returns:
        Parameters (B, p), and for every member whether some row lies exactly on the margin (B,);
        without one, an unpenalised intercept is not unique.
    """
    xp = namespace(rows)
    # An absent row (0, cost 0) has no room between its bounds; with cost 1 it is a constant.
    costs = xp.where(costs > 0, costs, xp.ones_like(costs))
    eye = identity(rows.shape[1], like=rows)
    ridged = (penalty + _RIDGE)[:, :, None] * eye

    def step(state: Arrays, fixed: Arrays, live: Array) -> tuple[Arrays, Array]:
        *walking, threshold, pinned = state
        walked, gap = _walk(tuple(walking), fixed, live)
        ready = (gap < threshold) & live
        done = gap < 1e-4 * tolerance
        if bool(xp.any(ready)):
            parameters, on_margin, exact = _finish(xp, walked, fixed, ready, tolerance)
            # Only the answer is replaced: the walk's own variables must stay positive.
            walked = (xp.where(exact[:, None], parameters, walked[0]), *walked[1:])
            pinned = xp.where(exact, on_margin, pinned)
            threshold = xp.where(ready, gap / 30.0, threshold)
            done = done | exact
        return (*walked, threshold, pinned), done

    fixed = (rows, costs, penalty, ridged)
    threshold = xp.full_like(costs[:, 0], _READY)
    start = (*_start(rows, costs, penalty, ridged), threshold, threshold > 0)
    final = iterate(step, start, fixed=fixed, max_iterations=max_iterations)
    return final[0], final[-1]


def _start(rows: Array, costs: Array, penalty: Array, ridged: Array) -> Arrays:
    """A point near the central path: least squares, then two Newton steps at a fixed μ."""
    xp = namespace(rows)
    present = xp.ones_like(costs)
    parameters = solver(gram(rows, present) + ridged)(times_weights(rows, present))
    centred = _centred(rows, costs, parameters)
    for _ in range(2):
        alpha, beta, excess, short = centred
        residual = times_weights(rows, alpha) - penalty * parameters
        stiffness = 1.0 / (excess / alpha + short / beta)
        direction = solver(gram(rows, stiffness) + ridged)(residual)
        largest = xp.max(xp.abs(times_rows(rows, direction)), axis=1)
        share = 2.0 / xp.maximum(largest, scalar(2.0, like=largest))
        parameters = parameters + share[:, None] * direction
        centred = _centred(rows, costs, parameters)
    return (parameters, *centred)


def _centred(rows: Array, costs: Array, parameters: Array) -> Arrays:
    """The (α, β, s, ξ) with α s = β ξ = μ, α + β = c and s − ξ = m − 1: a quadratic equation."""
    xp = namespace(rows)
    lack = costs * (1.0 - times_rows(rows, parameters))
    root = 2.0 * _FIRST_GAP + xp.sqrt(4.0 * _FIRST_GAP**2 + lack * lack)
    # Far from the margin one of the two cancels to rounding error; it must stay positive.
    least = scalar(1e-6, like=root)
    excess = 0.5 * xp.maximum(root - lack, least) / costs
    short = 0.5 * xp.maximum(root + lack, least) / costs
    alpha = costs * short / (excess + short)
    beta = costs * excess / (excess + short)
    return alpha, beta, excess, short


def _walk(state: Arrays, fixed: Arrays, live: Array) -> tuple[Arrays, Array]:
    """One predictor-corrector iteration. Returns the new state and the gap μ it started from."""
    parameters, alpha, beta, excess, short = state
    rows, _, penalty, ridged = fixed
    xp = namespace(rows)
    pairs = 2.0 * alpha.shape[1]
    gap = (dot(alpha, excess) + dot(beta, short)) / pairs
    residual = times_weights(rows, alpha) - penalty * parameters
    per_alpha, per_beta = 1.0 / alpha, 1.0 / beta
    excess_slope, short_slope = excess * per_alpha, short * per_beta
    stiffness = 1.0 / (excess_slope + short_slope)
    solve = solver(gram(rows, stiffness) + ridged)

    def newton(pull: Array) -> tuple[Array, Array]:
        direction = solve(residual + times_weights(rows, stiffness * pull))
        return direction, stiffness * (pull - times_rows(rows, direction))

    # Predictor: aim at μ = 0. Relative changes of α and β; those of s and ξ are −1 ∓ the same.
    _, d_alpha = newton(short - excess)
    up, down = d_alpha * per_alpha, d_alpha * per_beta
    reach = xp.maximum(xp.abs(up + 0.5), xp.abs(down - 0.5))
    share = 1.0 / xp.maximum(0.5 + xp.max(reach, axis=1), xp.ones_like(gap))
    d_excess, d_short = -excess * (1.0 + up), -short * (1.0 - down)
    second_alpha, second_beta = d_alpha * d_excess, d_alpha * d_short
    curve = (xp.sum(second_alpha, axis=1) - xp.sum(second_beta, axis=1)) / pairs
    left = (1.0 - share) + share * share * curve / xp.maximum(gap, scalar(1e-300, like=gap))
    target = (left * left * left * gap)[:, None]

    # Corrector: aim at the reduced μ, with the second-order terms the predictor has shown.
    to_excess = (target - second_alpha) * per_alpha - excess
    to_short = (target + second_beta) * per_beta - short
    direction, d_alpha = newton(to_excess - to_short)
    d_excess = to_excess - excess_slope * d_alpha
    d_short = to_short + short_slope * d_alpha
    reach = xp.maximum(
        xp.maximum(-d_alpha * per_alpha, d_alpha * per_beta),
        xp.maximum(-d_excess / excess, -d_short / short),
    )
    share = 0.99 / xp.maximum(xp.max(reach, axis=1), scalar(0.99, like=gap))
    share = (share * xp.astype(live, share.dtype))[:, None]
    d_alpha = share * d_alpha
    moved = (
        parameters + share * direction,
        alpha + d_alpha,
        beta - d_alpha,
        excess + share * d_excess,
        short + share * d_short,
    )
    return moved, gap


def _finish(
    xp: Any, state: Arrays, fixed: Arrays, ready: Array, tolerance: float
) -> tuple[Array, Array, Array]:
    """Try to solve the members that are `ready` outright.

    Returns:
        Parameters, whether a row lies on the margin, and which members were solved: for the
        others the first two mean nothing.
    """
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
    are imposed by a stiff spring whose pull becomes their α (method of multipliers): three
    rounds leave no error above rounding, and rows that repeat each other do no harm.
    """
    parameters, alpha, beta, excess, short = state
    rows, costs, penalty, ridged = fixed
    xp = namespace(rows)
    zero = xp.zeros_like(costs)
    beyond = excess * costs > alpha
    inside = (short * costs > beta) & ~beyond
    on_margin = ~(beyond | inside)
    spring = 1e5 * xp.astype(on_margin, costs.dtype)
    alpha = xp.where(beyond, zero, xp.where(inside, costs, alpha))
    solve = solver(gram(rows, spring) + ridged)
    lack = 1.0 - times_rows(rows, parameters)
    for _ in range(3):
        residual = times_weights(rows, alpha + spring * lack) - penalty * parameters
        direction = solve(residual)
        alpha = alpha + spring * (lack - times_rows(rows, direction))
        parameters = parameters + direction
        lack = 1.0 - times_rows(rows, parameters)
    missed = xp.where(beyond, lack, xp.where(inside, -lack, xp.abs(lack)))
    outside = xp.maximum(-alpha, alpha - costs) / costs
    residual = times_weights(rows, alpha) - penalty * parameters
    size = xp.max(xp.abs(penalty * parameters), axis=1) + costs.shape[1]
    worst = xp.maximum(
        xp.max(xp.maximum(missed, outside), axis=1), xp.max(xp.abs(residual), axis=1) / size
    )
    return parameters, xp.any(on_margin, axis=1), worst <= tolerance


def middle_intercept(rows: Array, costs: Array, parameters: Array, *, labels: Array) -> Array:
    """The middle of the intercepts (B,) that are optimal beside the given coefficients.

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
