"""Several classes: every member tells one half of them from the other.

A classifier of two classes that is mostly wrong is right when reversed; one that names one of many
classes is not (001 leaves this open). So no member names a class. Each is made for a public half of
the classes, people report and judge whether their label is in it, and reversal stays what it was.
A class scores what the members say of the halves that it is in. Of three classes the halves are one
against the rest, of two the second class.

Privacy:
    Nothing changes: the same randomized label and verdict, about a public half instead of label 1.
    The price is in people: reports are shared among halves, and a half says less than a class.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import public_uniforms

_STREAM = 1 << 33
"""Number of the public random stream that draws halves, off those of phases and members."""


def public_halves(plan: StudyPlan, *, most: int) -> IntArray:
    """Label numbers in each half, shape (G, K // 2): all of them, or 2 K random ones.

    Args:
        plan: of the study.
        most: take no more than this.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> plan = StudyPlan(epsilon=1.0, n_people=9, encoder=CurveEncoder(n_basis=4),
        ...                  classes=("a", "b", "c", "d"), design={"name": "mrma"})
        >>> public_halves(plan, most=50).tolist()  # the others are what is left by these
        [[1, 2], [1, 3], [2, 3]]
    """
    k = plan.n_classes
    free = range(1 - k % 2, k)  # of an even number, the half without label 0 says it all
    if math.comb(len(free), k // 2) <= 2 * k:
        return np.array(list(combinations(free, k // 2)))[:most]
    drawn = public_uniforms(seed=plan.seed, phase=_STREAM, start=0, people=2 * k, width=k)
    return np.asarray(np.sort(drawn.argsort(axis=1)[:, : k // 2])[:most])


def signs(halves: IntArray, n_classes: int) -> FloatArray:
    """+1 for the classes in each half, -1 for the others, shape (G, K).

    Examples:
        >>> signs(np.array([[1, 2]]), 4).tolist()
        [[-1.0, 1.0, 1.0, -1.0]]
    """
    inside = (halves[:, :, None] == np.arange(n_classes)).any(axis=1)
    return np.where(inside, 1.0, -1.0)
