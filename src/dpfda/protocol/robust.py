"""What a server does about people who lie: bound each report, and take a median of group means.

A randomized reply may be anything its mechanism can produce, so a lie cannot be told from bad luck.
What can be done is to bound what one reply moves.
"""

from __future__ import annotations

import math

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.mechanisms.joined import Joined
from dpfda.protocol.task import Task

_DEVIATIONS = 4.0


def report_bound(task: Task) -> float | None:
    """Where honest reports end: ±1 and 4 standard deviations of the noise at the edge.

    An honest Laplace report is beyond with a chance of 0.4 %, which costs next to nothing; a liar
    moves a mean by no more than a few honest people do. None for replies made of bits, which are
    bounded anyway. Public: it follows from the task alone.

    Examples:
        >>> from dpfda.protocol.tasks.moment import MomentTask
        >>> task = MomentTask(epsilon=4.0, people=1, dimension=2, positive=[1])
        >>> round(report_bound(task), 1)
        5.9
    """
    mechanism = task.mechanism.parts[0] if isinstance(task.mechanism, Joined) else task.mechanism
    dimension = getattr(mechanism, "dimension", None)
    if dimension is None or task.width == 1 or not task.boxed:
        return None
    edge = mechanism.variance(np.ones((1, dimension)))
    return 1 + _DEVIATIONS * math.sqrt(float(np.max(edge)))


def clipped(task: Task, replies: FloatArray) -> FloatArray:
    """Replies with everything beyond `report_bound` moved to it."""
    bound = report_bound(task)
    return replies if bound is None else np.clip(replies, -bound, bound)


def steadied(replies: FloatArray, *, groups: int) -> FloatArray:
    """Replies moved together so that their mean is a median of group means.

    People are dealt into `groups` groups in the order of their tickets, which liars do not choose.
    Fewer than half as many liars as groups leave at least half of the groups clean. The spread
    of the replies stays as it is, and with it every standard error that is computed from it.

    Examples:
        >>> honest = np.full((99, 1), 0.5)
        >>> told = np.concatenate([honest, [[1000.0]]])
        >>> float(steadied(told, groups=5).mean().round(9))
        0.5
    """
    _validate.whole("groups", groups, least=3)
    if len(replies) < 2 * groups:
        return replies
    number = np.arange(len(replies)) % groups
    sums = np.zeros((groups, replies.shape[1]))
    np.add.at(sums, number, replies)
    means = sums / np.bincount(number)[:, None]
    return np.asarray(replies + (np.median(means, axis=0) - replies.mean(axis=0)))
