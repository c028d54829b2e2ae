"""Newton's method for penalized margin losses, on a whole batch at once.

Minimizes ``Σ_i w_i ℓ(m_i) + ½ θᵀQθ`` with margins ``m = θᵀrows`` for every member. Convex, so the
result does not depend on the way there; it is unique because `RIDGE` is part of Q.
"""

from __future__ import annotations

from dpfda.learners._arrays import Array, identity, namespace, scalar
from dpfda.learners._design import Design, dot, gram, times_rows, times_weights
from dpfda.learners._iteration import Arrays, iterate
from dpfda.learners._linear_systems import solver
from dpfda.learners._losses import Loss

RIDGE = 1e-10
"""Curvature given to every direction of the standardized problem.

Where the data determine the answer it moves it by less than 1e-8. Where they do not (separable
classes, fewer rows than features, repeated features) it picks the finite answer of least norm.
"""


def minimize(
    loss: Loss, data: Design, *, penalty: Array, tolerance: float, max_iterations: int
) -> tuple[Array, Array]:
    """Intercept (B,) and coefficients (B, d) that minimize every member's penalized loss.

    Args:
        loss: the margin loss.
        data: the rows, standardized.
        penalty: Q, (B, p, p) or (1, p, p), positive semidefinite.
        tolerance: a member is done when a step changes none of its margins by more than this.
            Steps shrink quadratically, so the error left is far smaller.
        max_iterations: what is left after that many steps is returned as it is.
    """
    xp = namespace(data.rows)
    members, size, _ = data.rows.shape
    ridge = RIDGE * identity(size, like=data.rows)
    penalty = xp.broadcast_to(penalty + ridge, (members, size, size))

    def step(state: Arrays, fixed: Arrays, live: Array) -> tuple[Arrays, Array]:
        parameters, margins = state
        rows, weights, quadratic = fixed
        down, curvature = loss.slopes(margins)
        pull = times_rows(quadratic, parameters)
        descent = times_weights(rows, weights * down) - pull
        hessian = gram(rows, weights * curvature) + quadratic
        if loss.damping:
            # Vanishes at the solution, so the convergence stays superlinear (Li et al. 2004).
            force = loss.damping * xp.max(xp.abs(descent), axis=1)
            hessian = hessian + force[:, None, None] * identity(size, like=rows)
        direction = solver(hessian)(descent)
        change = times_rows(rows, direction)
        largest = xp.max(xp.abs(change), axis=1)
        share = xp.ones_like(largest)
        if bool(xp.any((largest > loss.radius) & live)):
            slope = -dot(descent, direction)
            bend = dot(direction, times_rows(quadratic, direction))
            along = (slope, dot(pull, direction), bend)
            share = _descending_share(loss, margins, change, weights, along)
        share = (share * xp.astype(live, share.dtype))[:, None]
        moved = (parameters + share * direction, margins + share * change)
        return moved, largest <= tolerance

    def begin(fixed: Arrays) -> Arrays:
        # Least squares is the Newton step from 0; the losses with flat pieces borrow a curvature.
        rows, weights, quadratic = fixed
        first, rough = loss.at_zero
        hessian = rough * gram(rows, weights) + quadratic
        parameters = solver(hessian)(first * times_weights(rows, weights))
        return parameters, times_rows(rows, parameters)

    fixed = (data.rows, data.weights, penalty)
    found = iterate(begin, step, fixed=fixed, max_iterations=max_iterations)
    return data.to_features(found[0])


def _descending_share(
    loss: Loss, margins: Array, change: Array, weights: Array, along: Arrays
) -> Array:
    """Shorten the step until the objective falls by a fair part of what its slope promises.

    Armijo's rule; the next trial is the minimum of the parabola through what is known, kept
    between a tenth and a half of the last one. `along` the step: the slope of the objective, and
    slope and curvature of the penalty.
    """
    slope, straight, bend = along
    xp = namespace(margins)
    share = xp.ones_like(slope)
    before = dot(weights, loss.value(margins))
    rounding = 1e-14 * (scalar(1.0, like=before) + before)
    for _ in range(60):
        after = dot(weights, loss.value(margins + share[:, None] * change))
        gain = after - before + share * straight + 0.5 * share * share * bend
        short = gain > 1e-4 * share * slope + rounding
        if not bool(xp.any(short)):
            break
        above = gain - share * slope
        parabola = -0.5 * slope * share / xp.where(above > 0, above, xp.ones_like(above))
        shrink = xp.clip(parabola, scalar(0.1, like=share), scalar(0.5, like=share))
        share = xp.where(short, shrink * share, share)
    return share
