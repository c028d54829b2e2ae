"""Conversations that end in a joint query: moments of groups of curves, a mean with inference.

The first queries find a center and a radius about it. One joint query releases everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
"""Number of curves to leave outside the radius, in deviations of the counts' noise. The search then
overestimates the radius once in 150 releases, instead of once in 9 with the default. A radius that
is ten times too large widens bands more than a few clipped curves do."""
_DOUBT = 2.0  # factor on the noise variance of a center, because noise left in it widens the radius

AFTER = 0.25  # share of the curves outside the found radius that are outside the widened radius

BANDS_FROM = 500
"""Smallest n·ε at which bands have their stated coverage; below, the covariance is mostly noise."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The division of a budget among steps; it depends on public numbers only.

    Attributes:
        first: share of the first query.
        radius: share of the search for a radius; the second query gets the rest.
        coarse: number of coefficients of the first query.
        fine: number of coefficients of the second query.

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
        """The schedule for n people and at most `most` coefficients."""
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
    """Public settings of the search for a clipping region.

    Attributes:
        widened: factor on the radius that was found.
        tilt: exponent of the axes a_j = j^-tilt of the clipping region.
        first, search: budget shares of the center and of the radius. With pure ε, those of
            `Schedule` are used instead.
    """

    widened: float
    tilt: float
    first: float = 0.2
    search: float = 0.05

    def axes(self, size: int) -> FloatArray:
        """Axes of the clipping region."""
        return np.arange(1, size + 1, dtype=np.float64) ** -self.tilt


FOR_BANDS = ClippingSchedule(widened=1.5, tilt=0.75, first=0.15, search=0.1)
"""Settings for bands. Clipping bias shifts the mean out of its band, so the search for the radius
has a large share and the radius is widened. Steep axes reduce the noise of rough functions, which
would widen the bands of whole curves. The values were chosen on simulated normal and exponential
curves with coefficients that decrease like j^-0.8, j^-1.2 and j^-2."""

FOR_MOMENTS = ClippingSchedule(widened=1.25, tilt=0.5)
"""Settings for means, covariances and synthetic curves together."""

FOR_CLASSES = ClippingSchedule(widened=0.7, tilt=0.5)
"""Settings for covariances that separate groups, and for synthetic curves. The factor was chosen
among 0.5, 0.7 and 0.85 on speech data with five classes."""

FOR_TESTS = ClippingSchedule(widened=1.0, tilt=0.35, first=0.1, search=0.05)
"""Settings for tests whether groups differ. Clipping shifts the means of equal groups equally, so
less noise matters more than less bias. It can separate skewed groups of different spread, which
`inference.moved` accounts for. The values were chosen on the curves of `dpfda bench groups`."""


class JointFound(NamedTuple):
    """The results of the queries.

    Attributes:
        coarse: the first mean, over the whole bound, and the law of its noise; None if there was no
            such query.
        answer: the answer to the joint query.
        outside: share of the vectors that the radius leaves outside, before it is widened.
        warnings: warnings about the bound.
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
    adjusted: Callable[[JointMoments], JointMoments] | None = None,
    **further: Any,
) -> Questions[JointFound]:
    """Query a center of the vectors, a radius about it, and then the joint moments.

    Args:
        about: the conversation, with its records and budget.
        clipping: settings of the search.
        axes: axes of the clipping region, one for each queried number of a vector.
        most: number of available numbers of a vector.
        groups: number of groups.
        plan: plan of a mean; its shares are lower limits for those of center and radius.
        adjusted: replaces the joint query by another one, from public numbers only.
        further: further fields of `JointMoments`.
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
    last = JointMoments(cost=found.left, **found.place, radius=radius, groups=groups, **further)
    last = last if adjusted is None else adjusted(last)
    answer = yield last
    joint_answer = JointAnswer(query=last, noisy=answer.values)
    return JointFound(found.coarse, joint_answer, found.outside, found.warnings)


def whole_ball(
    about: CurveConversation[Any], *, size: int, groups: int = 1, **further: Any
) -> Questions[JointFound]:
    """One joint query over the whole bound; arguments as in `joint`."""
    place = about.place(np.zeros(size), np.ones(size))
    query = JointMoments(cost=about.whole, **place, radius=about.bound, groups=groups, **further)
    answer = yield query
    return JointFound(None, JointAnswer(query=query, noisy=answer.values), 0.0, ())


def sizes(about: CurveConversation[Any], *, most: int) -> tuple[int, int]:
    """The number of coefficients with means, and the number of these with covariances."""
    size = Schedule.of(about.whole, n=about.n, most=most).fine
    return size, min(size, math.ceil(1.2 * about.strength**0.25))


def too_few(about: CurveConversation[Any]) -> tuple[str, ...]:
    """The warning if there are too few people, or too small an ε, for bands."""
    text = (
        f"n·epsilon is {about.strength:g}, below {BANDS_FROM}: bands and tests may hold less than "
        "they say"
    )
    return (text,) * (about.strength < BANDS_FROM)


_SMOOTH = 16  # largest number of coefficients if the emphasis is on covariances


def far_apart_in_groups(
    n: int, *, width: int, reach: float, groups: int
) -> tuple[Records, Records]:
    """Data sets that differ in one vector, at opposite ends of the ball and in another group."""
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
        The joint query has the sensitivity of a mean of the vectors alone (`JointMoments`).

    Attributes:
        groups: names of the groups; with fewer than two, records have no group.
        basis: the functions of the coefficients.
        separate: whether each group has its own covariance.
        emphasis: the most accurate part: ``means``, their ``differences`` or ``covariances``.
        clipping: settings of the search for a clipping region.
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
        """The budget of smaller error for the means of groups of equal size."""
        if self.emphasis == "covariances" or self.bound == math.inf:
            return gaussian
        return min(pure, gaussian, key=self._error)

    def _error(self, cost: Cost) -> float:
        """Expected error of a group mean, that is of a mean of n divided by the number of groups.

        Pure noise also increases with the number of means, so n is reduced further.
        """
        many = max(1, len(self.groups))
        n = round(self.n / (many**1.5 if cost.pure else many))
        return MeanPlan.of((cost,), n=max(n, 2), most=self.basis.size).error

    @property
    def layout(self) -> Layout:
        """The queried numbers of a curve; for means also the norm of the omitted coefficients."""
        size = self.sizes[0]
        if self.emphasis != "means":
            return Layout(basis=self.basis, size=size, rest=False)
        plan = replace(self.plan, size=size)
        return Layout(basis=self.basis, size=size, folds=plan.folds, rest=plan.rest(self.n))

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of coefficients with means, and the number of these with covariances."""
        if self.emphasis == "covariances":
            few = min(self.basis.size, _SMOOTH)
            return few, few
        size, second = sizes(self, most=self.basis.size)
        size = size if self.searches else min(size, self.plan.size)
        return size, min(size, second)

    @property
    def plan(self) -> MeanPlan:
        """The plan of least expected error for the mean of all people."""
        known = math.isfinite(self.bound)
        return MeanPlan.of((self.whole,), n=self.n, most=self.basis.size, single=known)

    @property
    def searches(self) -> bool:
        """Whether a center and a radius are searched first."""
        return self.emphasis == "covariances" or bool(self.plan.first)

    def questions(self) -> Questions[CurveMoments]:
        """Queries of a center and a radius, if they reduce the error, and the joint query."""
        layout, many = self.layout, max(1, len(self.groups))
        further: dict[str, Any] = {
            "second": self.sizes[1],
            "separate": self.separate,
            "emphasis": self.emphasis,
            "groups": many,
        }
        if self.searches:
            axes = layout.axes(self.clipping.tilt)
            found = yield from joint(
                self, self.clipping, axes, most=self.basis.size, plan=self.plan, **further
            )
        else:
            found = yield from whole_ball(self, size=layout.width, **further)
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
        """Data sets that differ in one curve, at opposite ends of the ball and in another group."""
        width, groups = self.layout.width, len(self.groups)
        return far_apart_in_groups(n, width=width, reach=self.reach, groups=groups)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One group; three groups that are compared; two groups without a bound."""
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
"""Factor on released variances. They are too small because clipping removes part of the tails and,
for rough functions, only the sum is known. Without the factor, the coverage of bands that consist
mainly of sampling error was too low. It was chosen on the lognormal and exponential curves of
`dpfda bench bands`."""


@dataclass(frozen=True, kw_only=True)
class MeanWithInference(Adaptive, name="moments"):
    """The queries of the adaptive mean, with second moments in the last query.

    The second moments do not increase the sensitivity (`JointMoments`). They estimate the sampling
    error, so that a band can cover the mean of the population.

    Privacy:
        As for `Adaptive`: the budgets of all queries add up.

    Examples:
        >>> MeanWithInference().name
        'moments'
    """

    def layout(self, mean: MeanRelease) -> Layout:
        """The queried coefficients, and the norm of the others."""
        basis, plan = self.basis(mean.grid), self.plan(mean)
        size = sizes(mean, most=basis.size)[0] if plan.first else plan.size
        plan = replace(plan, size=size)
        return Layout(basis=basis, size=size, folds=plan.folds, rest=plan.rest(mean.n))

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """The joint query; before it, if the plan says so, queries of a center and a radius."""
        layout = self.layout(mean)
        further: dict[str, Any] = {
            "second": min(layout.size, sizes(mean, most=layout.basis.size)[1]),
            "separate": False,
            "emphasis": "means",
        }
        plan = self.plan(mean)
        if plan.first:
            axes = layout.axes(FOR_BANDS.tilt)
            found = yield from joint(
                mean, FOR_BANDS, axes, most=layout.basis.size, plan=plan, **further
            )
        else:
            found = yield from whole_ball(mean, size=layout.width, **further)
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
