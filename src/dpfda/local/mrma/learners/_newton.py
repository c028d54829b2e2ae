"""Newton's method for penalized margin losses, on a whole batch at once.

Minimizes ``Σ_i w_i ℓ(m_i) + ½ θᵀQθ`` with margins ``m = θᵀrows`` for every member. The problem is
convex, and its solution is unique because `RIDGE` is part of Q, so the result does not depend on
the starting point. Convergence is quadratic: after a small step, the error is far smaller than it.

`iterate` runs many members at once, each until it has converged. A converged member stops moving,
so its result does not depend on the other members, and converged members are removed when they are
the majority. The first iterations run in blocks that fit into a core's cache; the few slow members
of all blocks finish together, because a numpy call is expensive for few numbers.

`solver` solves thousands of small positive definite systems at once. A Newton step is a system of
d + 1 ≈ 5 equations for each of B members. LAPACK solves them one by one with a large overhead.
Writing the Cholesky factor entry by entry makes each arithmetic operation one vectorized operation
over all members, about three times as fast at this size, and a pivot that rounding has made zero or
negative can be replaced by a small positive number instead of raising an exception.

Each loss ℓ(m), m = y·score, has a slope and a curvature, written without branches: a vectorized
choice between two results costs ten times as much as an addition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar

from dpfda._validate import positive, whole
from dpfda.local.mrma.learners._arrays import (
    Array,
    Batch,
    Design,
    design,
    device,
    dot,
    identity,
    members_in_cache,
    namespace,
    on_cpu,
    scalar,
    times_rows,
    times_weights,
)
from dpfda.local.mrma.learners._arrays import gram as products
from dpfda.local.mrma.learners.base import Learner

Arrays = tuple[Array, ...]
Begin = Callable[[Arrays], Arrays]
"""``begin(fixed) -> state``."""
Step = Callable[[Arrays, Arrays, Array], tuple[Arrays, Array]]
"""``step(state, fixed, live) -> (state, done)``; it must not change members that are not `live`."""


def iterate(
    begin: Begin, step: Step, *, fixed: Arrays, max_iterations: int, answers: int = 1
) -> Arrays:
    """Apply `step` until every member is done or has made `max_iterations`.

    Args:
        begin: the state of members before the first step.
        step: one iteration.
        fixed: constant arrays; the first axis of every array is the member, and the first array
            is (B, p, n).
        max_iterations: members that are not done after so many steps keep their last state.
        answers: the number of leading arrays of the state that are returned.

    Returns:
        The first `answers` arrays of the last state, with members in the original order.
    """
    xp = namespace(fixed[0])
    count = fixed[0].shape[0]
    numbers = fixed[0].shape[1] * fixed[0].shape[2]
    size = members_in_cache(numbers, on_cpu=on_cpu(fixed[0]))
    members = xp.arange(count, device=device(fixed[0]))
    done: list[_Crowd] = []
    rest: list[_Crowd] = []
    for first in range(0, count, size):
        part = slice(first, min(first + size, count))
        here = tuple(array[part, ...] for array in fixed)
        crowd = _Crowd(members[part], begin(here), here, members[part] >= 0)
        left = _walk(step, crowd, max_iterations, done=done, leave=size < count)
        rest += [left] if left else []
    if rest:
        _walk(step, _joined(rest), max_iterations, done=done, leave=False)
    everyone = _joined([crowd.answers(answers) for crowd in done])
    if len(done) == 1:
        return everyone.state
    return rows(xp, everyone.state, xp.argsort(everyone.members))


@dataclass(frozen=True, eq=False)
class _Crowd:
    """The iteration of some members: their numbers, states, and whether they are still active."""

    members: Array
    state: Arrays
    fixed: Arrays
    live: Array
    steps: int = 0

    def moved(self, step: Step) -> _Crowd:
        state, done = step(self.state, self.fixed, self.live)
        return _Crowd(self.members, state, self.fixed, self.live & ~done, self.steps + 1)

    def at(self, index: Array) -> _Crowd:
        xp = namespace(self.members)
        members, live = rows(xp, (self.members, self.live), index)
        state, fixed = rows(xp, self.state, index), rows(xp, self.fixed, index)
        return _Crowd(members, state, fixed, live, self.steps)

    def answers(self, count: int) -> _Crowd:
        return _Crowd(self.members, self.state[:count], (), self.live, self.steps)


def _walk(
    step: Step, crowd: _Crowd, max_iterations: int, *, done: list[_Crowd], leave: bool
) -> _Crowd | None:
    """Iterate until all members are done; with `leave`, return the last quarter unfinished."""
    xp = namespace(crowd.members)
    begun = crowd.live.shape[0]
    while crowd.steps < max_iterations:
        crowd = crowd.moved(step)
        left = int(xp.sum(xp.astype(crowd.live, xp.int64)))
        if left == 0:
            break
        late = leave and 4 * left <= begun
        if late or 2 * left <= crowd.live.shape[0]:
            gone = xp.nonzero(~crowd.live)[0]
            done.append(replace(crowd, fixed=()).at(gone))
            crowd = crowd.at(xp.nonzero(crowd.live)[0])
        if late:
            return crowd
    done.append(crowd)
    return None


def _joined(crowds: list[_Crowd]) -> _Crowd:
    if len(crowds) == 1:
        return crowds[0]
    xp = namespace(crowds[0].members)

    def join(parts: list[Arrays]) -> Arrays:
        return tuple(xp.concat(part) for part in zip(*parts, strict=True))

    members, live = join([(crowd.members, crowd.live) for crowd in crowds])
    return _Crowd(
        members,
        join([crowd.state for crowd in crowds]),
        join([crowd.fixed for crowd in crowds]),
        live,
        min(crowd.steps for crowd in crowds),
    )


def rows(xp: ModuleType, arrays: Arrays, index: Array) -> Arrays:
    """The members at `index` of every array."""
    return tuple(xp.take(array, index, axis=0) for array in arrays)


_UNROLLED = 12
"""Largest system written out entry by entry; the number of operations grows as its cube."""


def solver(matrices: Array) -> Callable[[Array], Array]:
    """Factor positive definite `matrices` (B, p, p); the result maps (B, p) to the solutions.

    Examples:
        >>> import numpy as np
        >>> solve = solver(np.array([[[4.0, 2.0], [2.0, 3.0]]]))
        >>> solve(np.array([[8.0, 8.0]]))
        array([[1., 2.]])
    """
    xp = namespace(matrices)
    if matrices.shape[-1] > _UNROLLED:
        return lambda right: xp.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    lower, inverse = _cholesky(matrices)

    def solve(right: Array) -> Array:
        solution: list[Array] = []
        for i, row in enumerate(lower):
            value = right[:, i]
            for factor, known in zip(row, solution, strict=True):
                value = value - factor * known
            solution.append(value * inverse[i])
        for i in reversed(range(len(lower))):
            value = solution[i]
            for k in range(i + 1, len(lower)):
                value = value - lower[k][i] * solution[k]
            solution[i] = value * inverse[i]
        return xp.stack(solution, axis=1)

    return solve


def _cholesky(matrices: Array) -> tuple[list[list[Array]], list[Array]]:
    """Rows of the factor below its diagonal, and the inverse of its diagonal, as vectors (B,)."""
    xp = namespace(matrices)
    # A pivot is at least the rounding error of its diagonal entry.
    precision = xp.finfo(matrices.dtype)
    tiny = scalar(float(precision.smallest_normal), like=matrices)
    lower: list[list[Array]] = []
    inverse: list[Array] = []
    for i in range(matrices.shape[-1]):
        row: list[Array] = []
        for j in range(i):
            value = matrices[:, i, j]
            for left, above in zip(row, lower[j], strict=True):
                value = value - left * above
            row.append(value * inverse[j])
        pivot = matrices[:, i, i]
        floor = xp.maximum(4.0 * float(precision.eps) * pivot, tiny)
        for left in row:
            pivot = pivot - left * left
        inverse.append(1.0 / xp.sqrt(xp.maximum(pivot, floor)))
        lower.append(row)
    return lower, inverse


class Loss(ABC):
    """A convex, decreasing function of the margin."""

    damping: float = 0.0
    """For losses with flat pieces: factor of the gradient's size that is added to the Hessian."""

    radius: float = 0.0
    """A Newton step that changes all margins by at most this decreases the objective."""

    at_zero: tuple[float, float]
    """−ℓ'(0), and a curvature that describes ℓ from 0 to about 1."""

    @abstractmethod
    def slopes(self, margins: Array) -> tuple[Array, Array]:
        """The pair (−ℓ', ℓ'') at every margin."""

    @abstractmethod
    def value(self, margins: Array) -> Array:
        """The loss ℓ at every margin."""


class LogisticLoss(Loss):
    """The logistic loss ℓ(m) = log(1 + e^{−m})."""

    # |ℓ'''| ≤ ℓ'', so over a step of size r the curvature changes by at most e^r (Bach 2010,
    # Prop. 1) and a full step descends while (e^r − r − 1)/r² < 1, that is r < 1.79.
    radius = 1.5
    at_zero = (0.5, 0.25)

    def slopes(self, margins: Array) -> tuple[Array, Array]:
        xp = namespace(margins)
        # Beyond 500 the slope is 0 in double precision, and e^m must not overflow.
        probability = 1.0 / (1.0 + xp.exp(xp.minimum(margins, scalar(500.0, like=margins))))
        return probability, probability * (1.0 - probability)

    def value(self, margins: Array) -> Array:
        xp = namespace(margins)
        size = xp.abs(margins)
        return xp.log1p(xp.exp(-size)) + 0.5 * (size - margins)


class SquaredHingeLoss(Loss):
    """The squared hinge loss ℓ(m) = max(0, 1 − m)²."""

    damping = 0.01
    at_zero = (2.0, 2.0)

    def slopes(self, margins: Array) -> tuple[Array, Array]:
        xp = namespace(margins)
        missing = xp.maximum(1.0 - margins, scalar(0.0, like=margins))
        return 2.0 * missing, 2.0 * xp.astype(margins < 1.0, margins.dtype)

    def value(self, margins: Array) -> Array:
        xp = namespace(margins)
        missing = xp.maximum(1.0 - margins, scalar(0.0, like=margins))
        return missing * missing


class DistanceWeightedLoss(Loss):
    """ℓ(m) = 1 − m up to m = ½, then 1/(4m): Marron, Todd & Ahn (2007) as a margin loss."""

    damping = 0.3
    at_zero = (1.0, 0.5)

    def slopes(self, margins: Array) -> tuple[Array, Array]:
        xp = namespace(margins)
        inverse = 1.0 / xp.maximum(margins, scalar(0.5, like=margins))
        square = inverse * inverse
        curved = xp.astype(margins > 0.5, margins.dtype)
        return 0.25 * square, 0.5 * square * inverse * curved

    def value(self, margins: Array) -> Array:
        xp = namespace(margins)
        reached = xp.maximum(margins, scalar(0.5, like=margins))
        return 0.25 / reached + (reached - margins)


RIDGE = 1e-10
"""Curvature that is added to every direction of the standardized problem.

If the data determine the solution, it changes by less than 1e-8. If they do not (separable classes,
fewer rows than features, repeated features), the result is the finite solution with least norm.
"""


@dataclass(frozen=True, kw_only=True)
class NewtonLearner(Learner):
    """A learner that minimizes a margin loss and a penalty.

    Attributes:
        tolerance: a member is done when a Newton step changes all scores by at most this.
        max_iterations: the largest number of steps; the last iterate is then returned.
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
                # It vanishes at the solution, so convergence remains superlinear (Li et al. 2004).
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
            # Least squares is the Newton step from 0; losses with flat pieces use `at_zero`.
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
    """Shorten the step until the objective decreases sufficiently (Armijo's rule).

    The next trial is the minimum of an interpolating parabola, restricted to between a tenth and a
    half of the last step. `along` contains, in the direction of the step, the slope of the
    objective, and slope and curvature of the penalty.
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
