"""The questions: a center, a radius about it, and then everything else in one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import Schedule
from dpfda.central.conversation import CurveConversation, reaches, too_small
from dpfda.central.radius import SEARCH_STEPS, find_radius, outermost
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.moments.joint import JointAnswer
from dpfda.moments.look import JointMoments
from dpfda.noise.law import padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.answer import Answer
from dpfda.protocol.conversation import Questions

_CERTAIN = 3.0  # deviations of noise that a count must be wrong by to mislead the search
_TILT = 0.5  # a_j = j^-tilt: the shape of the clipping region of curves

BANDS_FROM = 500
"""n·ε from which bands hold what they say; below, the covariance is mostly noise."""


class JointFound(NamedTuple):
    """What the three looks gave.

    Attributes:
        first: the answer to the first, a mean of all that the bound allows.
        answer: the joint one.
        warnings: what they show to be wrong with the bound.
    """

    first: Answer
    answer: JointAnswer
    warnings: tuple[str, ...]


def joint(
    about: CurveConversation[Any],
    axes: FloatArray,
    *,
    most: int,
    widened: float,
    groups: int = 1,
    **asked: Any,
) -> Questions[JointFound]:
    """Three looks at vectors: a center, a radius about it, and then everything else in one.

    Args:
        about: whose vectors, for which budget.
        axes: shape of the clipping region.
        most: numbers in a vector.
        widened: what the radius that was found is multiplied with.
        groups: how many.
        asked: more fields of `JointMoments`.
    """
    schedule, size = Schedule.of(about.whole, n=about.n, most=most), len(axes)
    coarse = min(size, schedule.coarse)
    first, search = about.whole.part(schedule.first), about.whole.part(schedule.radius)
    look = yield about.whole_ball(first, coarse)
    center = padded(monotone_shrinkage(look.values, look.noise.variance) * look.values, size)
    place = about.place(center, axes)
    radius = yield from find_radius(
        search,
        place,
        bound=about.bound,
        outside=schedule.outside if search.pure else _outside(search, about.n),
        steepness=schedule.steepness,
    )
    seen = radius >= outermost(about.bound)
    seen = seen or reaches(look.values, look.noise.variance, about.bound)
    last = JointMoments(
        cost=about.whole.rest(first, search),
        **place,
        radius=widened * radius,
        groups=groups,
        **asked,
    )
    answer = yield last
    warnings = (too_small("their public bound"),) * seen
    return JointFound(look, JointAnswer(look=last, noisy=answer.values), warnings)


def _outside(search: Cost, n: int) -> float:
    """Share of the vectors that a radius should leave outside, with a δ.

    A search errs upwards once in 150 instead of once in 9: a radius that is ten times too large
    costs a band more than a few clipped curves do.
    """
    step = math.sqrt(SEARCH_STEPS) / (search.mu * n)  # deviation of a noisy share
    return min(0.5, max(0.02, _CERTAIN * step))


def sizes(about: CurveConversation[Any], *, most: int) -> tuple[int, int]:
    """How many coefficients of curves have means, and how many of these covariances."""
    size = Schedule.of(about.whole, n=about.n, most=most).fine
    return size, min(size, math.ceil(1.2 * about.strength**0.25))


def tilted(size: int) -> FloatArray:
    """Axes of the clipping region of curves."""
    return np.arange(1, size + 1, dtype=np.float64) ** -_TILT


def too_few(about: CurveConversation[Any]) -> tuple[str, ...]:
    """The warning of those who draw bands from too few people, or for too small an ε."""
    told = (
        f"n·epsilon is {about.strength:g}, below {BANDS_FROM}: bands and tests may hold less than "
        "they say"
    )
    return (told,) * (about.strength < BANDS_FROM)
