"""Conversations that end in a joint query: moments of groups of curves, a mean with inference.

A center is found first, a radius about it, and then one joint query asks for everything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import Adaptive, MeanPlan, combined, concluded
from dpfda.central.ball_search import BallSearch
from dpfda.central.conversation import CurveConversation, far_apart
from dpfda.central.functions import FunctionBasis, as_grid, spline_basis
from dpfda.central.mean import MeanRelease
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.joint_answer import JointAnswer
from dpfda.central.moments.moment_query import JointMoments
from dpfda.central.release import Release
from dpfda.central.shrinkage import Layout, clipped_away
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.plan import Label
from dpfda.protocol.query import Records

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
    """The division of a budget among steps, from n, ε and the number of functions alone (public).

    Attributes:
        first: share of the first query.
        radius: share of the search for a radius; the second query gets the rest.
        coarse: coefficients of the first query.
        fine: coefficients of the second query.

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
    """The schedule of clipping regions; public.

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
        """Axes of the clipping region."""
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
`inference.moved` allows for. Chosen on the curves of `dpfda bench groups`."""


class JointFound(NamedTuple):
    """The results of the queries.

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
    clipping: ClippingSchedule,
    axes: FloatArray,
    *,
    most: int,
    groups: int = 1,
    plan: MeanPlan | None = None,
    **asked: Any,
) -> Questions[JointFound]:
    """Queries at vectors: a center, a radius about it, and then everything else in one.

    Args:
        about: whose vectors, for which budget.
        clipping: how queries are made.
        axes: shape of the clipping region, one for each number of a vector that is looked at.
        most: numbers in a vector.
        groups: how many.
        plan: of a mean, whose shares of the budget are the least for center and radius.
        asked: more fields of `JointMoments`.
    """
    schedule = Schedule.of(about.whole, n=about.n, most=most)
    pure = about.whole.pure
    first, search = schedule.first, schedule.radius
    if not pure:
        first, search = clipping.first, clipping.search
    scouting = BallSearch(
        axes=axes,
        first=max(first, plan.first if plan else 0.0),
        search=max(search, plan.search if plan else 0.0),
        coarse=min(len(axes), schedule.coarse),
        doubt=_DOUBT,
        certain=_CERTAIN,
    )
    found = yield from scouting.questions(about)
    radius = clipping.widened * found.radius
    last = JointMoments(cost=found.left, **found.place, radius=radius, groups=groups, **asked)
    answer = yield last
    joint_answer = JointAnswer(query=last, noisy=answer.values)
    return JointFound(found.coarse, joint_answer, found.outside, found.warnings)


def whole_ball(
    about: CurveConversation[Any], *, size: int, groups: int = 1, **asked: Any
) -> Questions[JointFound]:
    """One query at all that the bound allows; arguments as in `joint`."""
    place = about.place(np.zeros(size), np.ones(size))
    query = JointMoments(cost=about.whole, **place, radius=about.bound, groups=groups, **asked)
    answer = yield query
    return JointFound(None, JointAnswer(query=query, noisy=answer.values), 0.0, ())


def sizes(about: CurveConversation[Any], *, most: int) -> tuple[int, int]:
    """How many coefficients of curves have means, and how many of these covariances."""
    size = Schedule.of(about.whole, n=about.n, most=most).fine
    return size, min(size, math.ceil(1.2 * about.strength**0.25))


def too_few(about: CurveConversation[Any]) -> tuple[str, ...]:
    """The warning if there are too few people, or too small an ε, for bands."""
    text = (
        f"n·epsilon is {about.strength:g}, below {BANDS_FROM}: bands and tests may hold less than "
        "they say"
    )
    return (text,) * (about.strength < BANDS_FROM)


_SMOOTH = 16  # functions of which covariances are worth more than rougher means


def far_apart_in_groups(
    n: int, *, width: int, reach: float, groups: int
) -> tuple[Records, Records]:
    """One vector at either end of the ball; with several groups, in another one too."""
    (here,), (there,) = far_apart(n, np.ones(width), reach)
    if groups < 2:
        return (here,), (there,)
    group = np.arange(n) % 2
    other = np.append(1, group[1:])
    return (np.column_stack([here, group]),), (np.column_stack([there, other]),)


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentsRelease(CurveConversation[CurveMoments], name="moments"):
    """Means, sizes and covariances of groups of curves, by their coefficients.

    Privacy:
        The budgets of all queries (center, steps of a search for a radius, the joint one) add up.
        The last one moves by no more than a mean of the vectors alone would (`JointMoments`).

    Attributes:
        groups: names of the groups; with fewer than two nobody is asked for theirs.
        basis: functions that the coefficients belong to.
        separate: covariances for each group instead of one for all.
        emphasis: what is to be exact: ``means``, their ``differences`` or ``covariances``.
        clipping: how queries are made.
    """

    summary: ClassVar[str] = "moments"

    groups: tuple[Label, ...] = ()
    basis: FunctionBasis
    separate: bool = False
    emphasis: str = "means"
    clipping: ClippingSchedule = FOR_MOMENTS

    @property
    def finds_bound(self) -> bool:
        """True: a search finds a center and a radius."""
        return True

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The one with which the means of groups that are alike in size have the smaller error."""
        if self.emphasis == "covariances" or self.bound == math.inf:
            return gaussian
        return min(pure, gaussian, key=self._error)

    def _error(self, cost: Cost) -> float:
        """Expected error of a group's mean: that of as many curves as are in it.

        Pure noise also grows with the number of means.
        """
        many = max(1, len(self.groups))
        n = round(self.n / (many**1.5 if cost.pure else many))
        return MeanPlan.of((cost,), n=max(n, 2), most=self.basis.size).error

    @property
    def layout(self) -> Layout:
        """What is queried about a curve; for means also the norm of the omitted coefficients."""
        size = self.sizes[0]
        if self.emphasis != "means":
            return Layout(basis=self.basis, size=size, rest=False)
        plan = replace(self.plan, size=size)
        return Layout(basis=self.basis, size=size, folds=plan.folds, rest=plan.rest(self.n))

    @property
    def sizes(self) -> tuple[int, int]:
        """How many coefficients have means, and how many of these covariances."""
        if self.emphasis == "covariances":
            few = min(self.basis.size, _SMOOTH)
            return few, few
        size, second = sizes(self, most=self.basis.size)
        size = size if self.searches else min(size, self.plan.size)
        return size, min(size, second)

    @property
    def plan(self) -> MeanPlan:
        """The one of least expected error for the mean of all."""
        known = math.isfinite(self.bound)
        return MeanPlan.of((self.whole,), n=self.n, most=self.basis.size, single=known)

    @property
    def searches(self) -> bool:
        """Whether a center and a radius are looked for: where counts say where curves are."""
        return self.emphasis == "covariances" or bool(self.plan.first)

    def questions(self) -> Questions[CurveMoments]:
        """Queries of a center and a radius, if they reduce the error, and the joint query."""
        layout, many = self.layout, max(1, len(self.groups))
        asked: dict[str, Any] = {
            "second": self.sizes[1],
            "separate": self.separate,
            "emphasis": self.emphasis,
            "groups": many,
        }
        if self.searches:
            axes = layout.axes(self.clipping.tilt)
            found = yield from joint(
                self, self.clipping, axes, most=self.basis.size, plan=self.plan, **asked
            )
        else:
            found = yield from whole_ball(self, size=layout.width, **asked)
        radius = found.answer.query.radius
        return CurveMoments(
            query=found.answer.query,
            noisy=found.answer.noisy,
            basis=self.basis.first(layout.size),
            groups=self.groups,
            center=np.zeros(self.basis.weights.size),
            guarantee=self.guarantee,
            parameters={"clipped": clipped_away(radius, AFTER * found.outside, self.n)},
            warnings=found.warnings,
        )

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One curve at either end of the ball, in another group."""
        width, groups = self.layout.width, len(self.groups)
        return far_apart_in_groups(n, width=width, reach=self.reach, groups=groups)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One group, three that are compared, two of which nothing is known."""
        basis = spline_basis(as_grid(np.linspace(0.0, 1.0, 9)), size=9)
        tests: dict[str, Any] = {"emphasis": "differences", "clipping": FOR_TESTS}
        variants: list[dict[str, Any]] = [
            {},
            {"groups": ("a", "b", "c"), "separate": True, **tests},
            {"bound": math.inf, "groups": ("a", "b")},
        ]
        known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "n": n, "basis": basis}
        return [cls(**known | {"bound": 1.0} | clipping) for clipping in variants]


UNSURE = 1.08
"""By how much a variance may be larger than the one released: of rough functions only the sum is
known, and clipping takes some of a tail. Without it bands that are nearly all sampling error held
the mean of the population too rarely; chosen on lognormal and exponential curves of `dpfda bench
bands`."""


@dataclass(frozen=True, kw_only=True)
class MeanWithInference(Adaptive, name="moments"):
    """Queries of the adaptive mean, the last of which holds second moments too.

    Second moments ride on the mean for nothing (`JointMoments`): they say how far the mean of other
    people might lie, so that a band holds the mean of the population.

    Privacy:
        That of `Adaptive`: the budgets of all queries add up.

    Examples:
        >>> MeanWithInference().name
        'moments'
    """

    def layout(self, mean: MeanRelease) -> Layout:
        """Coefficients, and the norm of all others."""
        basis, plan = self.basis(mean.grid), self.plan(mean)
        size = sizes(mean, most=basis.size)[0] if plan.first else plan.size
        plan = replace(plan, size=size)
        return Layout(basis=basis, size=size, folds=plan.folds, rest=plan.rest(mean.n))

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """A joint query, with a center and a radius before it where that is worth it."""
        layout = self.layout(mean)
        asked: dict[str, Any] = {
            "second": min(layout.size, sizes(mean, most=layout.basis.size)[1]),
            "separate": False,
            "emphasis": "means",
        }
        plan = self.plan(mean)
        if plan.first:
            axes = layout.axes(FOR_BANDS.tilt)
            found = yield from joint(
                mean, FOR_BANDS, axes, most=layout.basis.size, plan=plan, **asked
            )
        else:
            found = yield from whole_ball(mean, size=layout.width, **asked)
        answer, query = found.answer, found.answer.query
        noisy = query.center + answer.shift[0] * answer.unit
        laws: tuple[NoiseLaw, ...] = (answer.law.first(layout.width).times(answer.unit),)
        if found.coarse is not None:
            noisy, laws = combined((noisy, *laws), found.coarse)
        sampling = UNSURE * answer.covariance_in()[: layout.size, : layout.size]
        return concluded(
            mean,
            layout,
            noisy,
            laws,
            stages=1 if found.coarse is None else 2,
            radius=query.radius,
            clipped=clipped_away(query.radius, AFTER * found.outside, mean.n),
            sampling=(NoiseLaw.normal(sampling / mean.n),),
            warnings=found.warnings,
            mechanism="moments",
        )
