"""Run an iteration on many members at once, each until it has converged.

Members that are done stop moving at once, so a member's result does not depend on the company it
was fitted in, and leave when they are the majority. The first, long part of the way is walked in
blocks that a core's cache holds; the few slow members of all blocks finish it together, so that
nobody pays the cost of a numpy call for a handful of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpfda.local.mrma.learners._arrays import Array, device, members_in_cache, namespace, on_cpu

Arrays = tuple[Array, ...]
Begin = Callable[[Arrays], Arrays]
"""``begin(fixed) -> state``."""
Step = Callable[[Arrays, Arrays, Array], tuple[Arrays, Array]]
"""``step(state, fixed, live) -> (state, done)``; it must not move members that are not `live`."""


def iterate(
    begin: Begin, step: Step, *, fixed: Arrays, max_iterations: int, answers: int = 1
) -> Arrays:
    """Apply `step` until every member is done or has made `max_iterations`.

    Args:
        begin: the state of members before the first step.
        step: one iteration.
        fixed: what the iteration reads; the first axis of every array is the member, and the
            first array is (B, p, n).
        max_iterations: members that are not done by then keep their last state.
        answers: how many arrays of the state, the first ones, are wanted in the end.

    Returns:
        The last `answers` of every member, in the order given.
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
    """Some members on their way: who they are, where they stand, which of them still move."""

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
    """Walk until all are done, or, to `leave`, until a quarter is left, which is returned."""
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


def rows(xp: Any, arrays: Arrays, index: Array) -> Arrays:
    """The members at `index` of every array."""
    return tuple(xp.take(array, index, axis=0) for array in arrays)
