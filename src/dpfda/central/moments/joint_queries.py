"""The questions: a center, a radius about it, and then everything else in one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.conversation import CurveConversation
from dpfda.central.moments.joint import JointAnswer
from dpfda.central.moments.moment_query import JointMoments
from dpfda.central.scouting import Scouting
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions

_CERTAIN = 3.0
"""Deviations of noise that a count must be wrong by to mislead the search: it errs upwards once in
150 instead of once in 9. A radius that is ten times too large costs a band more than a few clipped
curves do."""
_DOUBT = (
    2.0  # what noise is multiplied with in a center: noise that is left there widens the radius
)

AFTER = 0.25  # of the curves outside a radius: that many are outside the widened one

BANDS_FROM = 500
"""n·ε from which bands hold what they say; below, the covariance is mostly noise."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How a budget is shared among the steps: public, from n, ε and the number of functions alone.

    Attributes:
        first: share of the first look.
        radius: share of the search for a radius; the second look gets the rest.
        coarse: coefficients of the first look.
        fine: coefficients of the second look.

    Examples:
        >>> Schedule.of(Cost(epsilon=1.0), n=1000, most=60).fine
        32
    """

    first: float
    radius: float
    coarse: int
    fine: int

    @classmethod
    def of(cls, budget: Cost, *, n: int, most: int) -> Schedule:
        """Rules for pure ε and for (ε, δ)."""
        share = float(budget.share)
        strength = n * budget.epsilon * (share if budget.pure else math.sqrt(share))
        fine = min(most, math.ceil(math.sqrt(strength)))
        if not budget.pure:
            return cls(first=0.2, radius=0.05, coarse=fine, fine=fine)
        radius = min(0.15, max(0.05, 90 / strength))
        return cls(
            first=0.2,
            radius=radius,
            coarse=min(fine, max(2, math.ceil(0.2 * strength / 16))),
            fine=fine,
        )


class ClippingSchedule(NamedTuple):
    """How looks are made; public.

    Attributes:
        first, search: shares of the looks for a center and a radius. With pure ε they are those of
            the adaptive mean.
        widened: what the radius that was found is multiplied with.
        tilt: a_j = j^-tilt, the shape of the clipping region.
    """

    widened: float
    tilt: float
    first: float = 0.2
    search: float = 0.05

    def axes(self, size: int) -> FloatArray:
        """Of the clipping region."""
        return np.arange(1, size + 1, dtype=np.float64) ** -self.tilt


FOR_BANDS = ClippingSchedule(widened=1.5, tilt=0.75, first=0.15, search=0.1)
"""Of bands. A mean that clipping moved is not where its band says: the search for a radius is paid
well, and what it finds is widened. Steep axes keep noise off rough functions, which make bands of
whole curves wide. Chosen on simulated curves, normal and exponential, whose coefficients fall like
j^-0.8, j^-1.2 and j^-2."""

FOR_MOMENTS = ClippingSchedule(widened=1.25, tilt=0.5)
"""Of means, covariances and synthetic curves together."""

FOR_CLASSES = ClippingSchedule(widened=0.7, tilt=0.5)
"""Of covariances that tell groups apart, and of synthetic curves. Chosen on
speech of five classes, among 0.5, 0.7 and 0.85."""

FOR_TESTS = ClippingSchedule(widened=1.0, tilt=0.35, first=0.1, search=0.05)
"""Of tests whether groups differ: clipping moves the means of groups that are alike alike, so that
less noise is worth more. Skewed groups of which one scatters more are moved apart, which
`bands.moved` allows for. Chosen on the curves of `dpfda bench groups`."""


class JointFound(NamedTuple):
    """What the looks gave.

    Attributes:
        coarse: the first, a mean of all that the bound allows, and the law of its noise, if any.
        answer: the joint one.
        outside: share of the vectors that the radius, before it was widened, leaves outside.
        warnings: what they show to be wrong with the bound.
    """

    coarse: tuple[FloatArray, NoiseLaw] | None
    answer: JointAnswer
    outside: float
    warnings: tuple[str, ...]


def joint(
    about: CurveConversation[Any],
    course: ClippingSchedule,
    axes: FloatArray,
    *,
    most: int,
    groups: int = 1,
    **asked: Any,
) -> Questions[JointFound]:
    """Looks at vectors: a center, a radius about it, and then everything else in one.

    Args:
        about: whose vectors, for which budget.
        course: how looks are made.
        axes: shape of the clipping region, one for each number of a vector that is looked at.
        most: numbers in a vector.
        groups: how many.
        asked: more fields of `JointMoments`.
    """
    schedule = Schedule.of(about.whole, n=about.n, most=most)
    pure = about.whole.pure
    scouting = Scouting(
        axes=axes,
        first=schedule.first if pure else course.first,
        search=schedule.radius if pure else course.search,
        coarse=min(len(axes), schedule.coarse),
        doubt=_DOUBT,
        certain=_CERTAIN,
    )
    found = yield from scouting.questions(about)
    radius = course.widened * found.radius
    last = JointMoments(cost=found.left, **found.place, radius=radius, groups=groups, **asked)
    answer = yield last
    joint_answer = JointAnswer(look=last, noisy=answer.values)
    return JointFound(found.coarse, joint_answer, found.outside, found.warnings)


def whole_ball(
    about: CurveConversation[Any], *, size: int, groups: int = 1, **asked: Any
) -> Questions[JointFound]:
    """One look at all that the bound allows; arguments as in `joint`."""
    place = about.place(np.zeros(size), np.ones(size))
    look = JointMoments(cost=about.whole, **place, radius=about.bound, groups=groups, **asked)
    answer = yield look
    return JointFound(None, JointAnswer(look=look, noisy=answer.values), 0.0, ())


def sizes(about: CurveConversation[Any], *, most: int) -> tuple[int, int]:
    """How many coefficients of curves have means, and how many of these covariances."""
    size = Schedule.of(about.whole, n=about.n, most=most).fine
    return size, min(size, math.ceil(1.2 * about.strength**0.25))


def too_few(about: CurveConversation[Any]) -> tuple[str, ...]:
    """The warning of those who draw bands from too few people, or for too small an ε."""
    told = (
        f"n·epsilon is {about.strength:g}, below {BANDS_FROM}: bands and tests may hold less than "
        "they say"
    )
    return (told,) * (about.strength < BANDS_FROM)
