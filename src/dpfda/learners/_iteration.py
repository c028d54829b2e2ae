"""Run an iteration on many members at once, each until it has converged.

Members that are done stop moving at once, so a member's result does not depend on the company it
was fitted in, and leave the batch when they are its majority, so the slow ones do not keep
everybody busy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpfda.learners._arrays import Array, device, namespace

Arrays = tuple[Array, ...]
Step = Callable[[Arrays, Arrays, Array], tuple[Arrays, Array]]
"""``step(state, fixed, live) -> (state, done)``; it must not move members that are not `live`."""


def iterate(step: Step, state: Arrays, *, fixed: Arrays, max_iterations: int) -> Arrays:
    """Apply `step` until every member is done or `max_iterations` are spent.

    Args:
        step: one iteration. The first axis of every array is the member.
        state: what the iteration changes.
        fixed: what it reads.
        max_iterations: members that are not done by then keep their last state.

    Returns:
        The state of every member, in the order given.
    """
    xp = namespace(state[0])
    members = xp.arange(state[0].shape[0], device=device(state[0]))
    live = members >= 0
    parts: list[tuple[Array, Arrays]] = []
    for _ in range(max_iterations):
        state, done = step(state, fixed, live)
        live = live & ~done
        left = int(xp.sum(xp.astype(live, xp.int64)))
        if left == 0:
            break
        if 2 * left <= live.shape[0]:
            gone = xp.nonzero(~live)[0]
            stay = xp.nonzero(live)[0]
            parts.append((rows(xp, (members,), gone)[0], rows(xp, state, gone)))
            members, live = rows(xp, (members, live), stay)
            state, fixed = rows(xp, state, stay), rows(xp, fixed, stay)
    if not parts:
        return state
    parts.append((members, state))
    order = xp.argsort(xp.concat([part[0] for part in parts]))
    columns = zip(*(part[1] for part in parts), strict=True)
    return rows(xp, tuple(xp.concat(column) for column in columns), order)


def rows(xp: Any, arrays: Arrays, index: Array) -> Arrays:
    """The members at `index` of every array."""
    return tuple(xp.take(array, index, axis=0) for array in arrays)
