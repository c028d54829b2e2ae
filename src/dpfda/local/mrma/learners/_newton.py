"""Newton's method for penalized margin losses, on a whole batch at once.

Minimizes ``Σ_i w_i ℓ(m_i) + ½ θᵀQθ`` with margins ``m = θᵀrows`` for every member. Convex, so the
result does not depend on the way there; it is unique because `RIDGE` is part of Q. Steps shrink
quadratically: the error left when they are small is far smaller than they are.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from dpfda._validate import positive, whole
from dpfda.local.mrma.learners._arrays import Array, Batch, identity, namespace, scalar
from dpfda.local.mrma.learners._design import Design, design, dot, times_rows, times_weights
from dpfda.local.mrma.learners._design import gram as products
from dpfda.local.mrma.learners._iteration import Arrays, iterate
from dpfda.local.mrma.learners._linear_systems import solver
from dpfda.local.mrma.learners._losses import Loss
from dpfda.local.mrma.learners.base import Learner

RIDGE = 1e-10
"""Curvature given to every direction of the standardized problem.

Where the data determine the answer it moves it by less than 1e-8. Where they do not (separable
classes, fewer rows than features, repeated features) it picks the finite answer of least norm.
"""


@dataclass(frozen=True, kw_only=True)
class NewtonLearner(Learner):
    """A learner that minimizes a margin loss and a penalty of its own.

    Attributes:
        tolerance: a member is done when a Newton step changes no score by more than this.
        max_iterations: steps after which a member is returned as it is.
    """

    margin_loss: ClassVar[Loss]

    tolerance: float = 1e-5
    max_iterations: int = 100

    def __post_init__(self) -> None:
        positive("tolerance", self.tolerance)
        whole("max_iterations", self.max_iterations)

    @abstractmethod
    def _penalty(self, data: Design, gram: Array) -> Array:
        """Q for standardized rows, (B, p, p) or (1, p, p), positive semidefinite."""

    def _fit_chunk(self, batch: Batch, gram: Array) -> tuple[Array, Array]:
        data, loss = design(batch), self.margin_loss
        xp = namespace(data.rows)
        members, size, _ = data.rows.shape
        ridge = RIDGE * identity(size, like=data.rows)
        penalty = xp.broadcast_to(self._penalty(data, gram) + ridge, (members, size, size))

        def step(state: Arrays, fixed: Arrays, live: Array) -> tuple[Arrays, Array]:
            parameters, margins = state
            rows, weights, quadratic = fixed
            down, curvature = loss.slopes(margins)
            pull = times_rows(quadratic, parameters)
            descent = times_weights(rows, weights * down) - pull
            hessian = products(rows, weights * curvature) + quadratic
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
            return moved, largest <= self.tolerance

        def begin(fixed: Arrays) -> Arrays:
            # Least squares is the Newton step from 0; losses with flat pieces borrow a curvature.
            rows, weights, quadratic = fixed
            first, rough = loss.at_zero
            hessian = rough * products(rows, weights) + quadratic
            parameters = solver(hessian)(first * times_weights(rows, weights))
            return parameters, times_rows(rows, parameters)

        fixed = (data.rows, data.weights, penalty)
        found = iterate(begin, step, fixed=fixed, max_iterations=self.max_iterations)
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
