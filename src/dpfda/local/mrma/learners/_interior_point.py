"""The walk to the solution of a support vector machine: a primal-dual interior point method.

Variables per row, all positive: α and β = c − α (multipliers), ξ (shortfall of the margin) and
s = m + ξ − 1 (excess). At the solution α s = β ξ = 0; the walk keeps both products near a common
μ > 0 and lets it shrink (Mehrotra's predictor and corrector). Each iteration solves two systems of
d + 1 equations with the same matrix.

A state is (θ, α, β, s, ξ); what is fixed is (rows, costs, penalty, penalty as a matrix with a
little more on its diagonal).
"""

from __future__ import annotations

import numpy as np

from dpfda.local.mrma.learners._arrays import Array, identity, namespace, scalar
from dpfda.local.mrma.learners._design import dot, gram, times_rows, times_weights
from dpfda.local.mrma.learners._iteration import Arrays
from dpfda.local.mrma.learners._linear_systems import solver

_FIRST_GAP = 0.1
"""μ of the starting point. Larger starts walk longer, smaller ones start further off the path."""

_ROUGH_STEPS = 5
"""Iterations in single precision, which is enough far from the solution and twice as fast."""

_ROUGH_GAP = 1e-6
"""μ at which single precision has nothing more to say."""


def start(fixed: Arrays) -> Arrays:
    """A point on the way, most of the walk done: what a few steps in single precision reach.

    Only the parameters come in double precision; `refined` does the rest for those who walk on.
    """
    rows, costs, penalty, ridged = fixed
    xp = namespace(rows)
    largest = scalar(1e30, like=rows)
    small = 1e-6 * identity(rows.shape[1], like=rows)
    bounded = (xp.minimum(array, largest) for array in (penalty, ridged + small))
    rough = tuple(xp.astype(array, xp.float32) for array in (rows, costs, *bounded))
    # A badly conditioned member may overflow here; it then starts from scratch below.
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

    Of each two the smaller is kept and the larger gives way, which loses no digit of either.
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
    """Least squares, then two Newton steps towards the point of the path with a given μ."""
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
    """The (α, β, s, ξ) with α s = β ξ = μ, α + β = c and s − ξ = m − 1: a quadratic equation."""
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
    # (Memory is what limits this function: arrays that are not needed again are overwritten.)
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

    # Corrector: aim at the reduced μ, with the second-order terms the predictor has shown.
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
