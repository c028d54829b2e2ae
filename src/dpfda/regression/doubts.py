"""What a regression's first answer shows of public bounds that are far too small."""

from __future__ import annotations

import math

import numpy as np

from dpfda._validate import FloatArray
from dpfda.protocol.answer import Answer
from dpfda.protocol.query import Query
from dpfda.regression.location_look import LocationLook
from dpfda.regression.moment_look import MomentLook
from dpfda.regression.problem import Task

_EDGE = 0.95  # length of a mean row in units of the ball: nearly all rows reach it in one direction
_END = 0.99  # of a range: fewer than one in two hundred are at its other end
_BLUR = 0.02  # noise above which nothing can be told


def doubts(query: Query, answer: Answer, *, task: Task, boxed: bool) -> tuple[str, ...]:
    """Warnings from released numbers alone; post-processing.

    Args:
        query: the first question.
        answer: to it.
        task: linear targets have a range, classes have none.
        boxed: rows are in a box inside the ball: every feature has a range.
    """
    means = _means(query, answer)
    if means is None:
        return ()
    row, target, noise = means
    found = []
    ends = [] if not boxed else np.flatnonzero(np.abs(row) * math.sqrt(row.size) >= _END).tolist()
    if boxed and noise * math.sqrt(row.size) <= _BLUR and ends:
        which = ", ".join(str(place + 1) for place in ends)
        found.append(
            f"nearly everybody is at an end of the range of feature {which}: the range is probably "
            "far too small; if it is right, the feature says nothing"
        )
    # A mean as long as the radius is made of rows that reach it in one direction.
    if not boxed and noise * math.sqrt(row.size) <= _BLUR and float(np.linalg.norm(row)) >= _EDGE:
        found.append(
            "nearly all rows reach the bound on their length: it is probably far too small, and "
            "then the result is wrong"
        )
    if task == "linear" and noise <= _BLUR and abs(target) >= _END:
        found.append(
            "nearly all targets are at one end of their range: it is probably far too small, and "
            "then the result is wrong"
        )
    return tuple(found)


def _means(query: Query, answer: Answer) -> tuple[FloatArray, float, float] | None:
    """Mean row and mean target in units of their bounds, and the noise on them."""
    if isinstance(query, LocationLook):
        return query.means(answer)
    if isinstance(query, MomentLook) and query.constant:  # rows are (x, 1)/√2
        moments = query.read(answer)
        row, target = 2 * moments.quadratic[:-1, -1], math.sqrt(2) * moments.linear[-1]
        return row, float(target), 2 * max(moments.quadratic_sigma, moments.linear_sigma)
    return None
