"""The questions: a center, a radius about it, and then everything else in one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda.central.adaptive import Schedule
from dpfda.central.conversation import CurveConversation, far_apart, reaches, too_small
from dpfda.central.functions import FunctionBasis, spline_basis
from dpfda.central.quadrature import as_grid
from dpfda.central.radius import SEARCH_STEPS, find_radius, outermost
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.moments.curve_moments import CurveMoments
from dpfda.moments.look import JointMoments
from dpfda.noise.law import padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.plan import Label
from dpfda.protocol.query import Records

_CERTAIN = 3.0  # deviations of noise that a count must be wrong by to mislead the search
_TILT = 0.5  # a_j = j^-tilt: the shape of the clipping region


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentsRelease(CurveConversation[CurveMoments], name="moments"):
    """What is asked of the coefficients of n curves with √∫X² ≤ bound, and of their groups.

    Privacy:
        The budgets of center, radius and the joint look add up; the last one moves by no more than
        a mean of curves alone would (`JointMoments`).

    Attributes:
        basis: functions that the coefficients belong to.
        groups: names of the groups; with fewer than two nobody is asked for theirs.
        separate: covariances for each group instead of one for all.
        emphasis: what is to be exact: ``means`` or ``covariances``.
        widened: by how much the radius that was found is multiplied.
        fixed_size: how many coefficients, all with covariances; otherwise the more people there
            are, the more.
    """

    summary: ClassVar[str] = "moments"

    basis: FunctionBasis
    groups: tuple[Label, ...] = ()
    separate: bool = False
    emphasis: str = "means"
    widened: float = 1.0
    fixed_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("widened", self.widened)

    @property
    def schedule(self) -> Schedule:
        """Shares of the budget, and how many coefficients it can carry."""
        return Schedule.of(self.whole, n=self.n, most=self.basis.size)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many coefficients have means, and how many of these covariances."""
        if self.fixed_size is not None:
            return (min(self.fixed_size, self.basis.size),) * 2
        size = self.schedule.fine
        return size, min(size, math.ceil(1.2 * self.strength**0.25))

    def questions(self) -> Questions[CurveMoments]:
        """Three looks."""
        schedule, (size, second) = self.schedule, self.sizes
        coarse = min(size, schedule.coarse)
        first, search = self.whole.part(schedule.first), self.whole.part(schedule.radius)
        look = yield self.whole_ball(first, coarse)
        center = padded(monotone_shrinkage(look.values, look.noise.variance) * look.values, size)
        place = self.place(center, np.arange(1, size + 1, dtype=np.float64) ** -_TILT)
        radius = yield from find_radius(
            search,
            place,
            bound=self.bound,
            outside=self._outside(search),
            steepness=schedule.steepness,
        )
        seen = radius >= outermost(self.bound)
        seen = seen or reaches(look.values, look.noise.variance, self.bound)
        joint = JointMoments(
            cost=self.whole.rest(first, search),
            **place,
            radius=self.widened * radius,
            groups=max(1, len(self.groups)),
            second=second,
            separate=self.separate,
            emphasis=self.emphasis,
        )
        answer = yield joint
        return CurveMoments(
            look=joint,
            noisy=answer.values,
            basis=self.basis.first(size),
            groups=self.groups,
            center=np.zeros(self.basis.weights.size),
            guarantee=self.guarantee,
            warnings=(too_small("their public bound"),) * seen,
        )

    def _outside(self, search: Cost) -> float:
        """Share of the curves that the radius should leave outside.

        With a δ a search errs upwards once in 150 instead of once in 9: a radius that is ten times
        too large costs a band more than a few clipped curves do.
        """
        if search.pure:
            return self.schedule.outside
        step = math.sqrt(SEARCH_STEPS) / (search.mu * self.n)  # deviation of a noisy share
        return min(0.5, max(0.02, _CERTAIN * step))

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One curve at either end of the ball; with groups, in another one too."""
        (here,), (there,) = far_apart(n, np.ones(self.basis.size), self.bound)
        if len(self.groups) < 2:
            return (here,), (there,)
        group = np.arange(n) % 2
        other = np.append(1, group[1:])
        return (np.column_stack([here, group]),), (np.column_stack([there, other]),)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One group, and three with covariances pooled and apart."""
        basis = spline_basis(as_grid(np.linspace(0.0, 1.0, 9)), size=9)
        three = ("a", "b", "c")
        courses: list[dict[str, Any]] = [
            {},
            {"groups": three, "separate": True},
            {"groups": three, "emphasis": "covariances", "fixed_size": 4},
        ]
        return [
            cls(epsilon=epsilon, delta=delta, n=n, bound=1.0, basis=basis, **course)
            for course in courses
        ]
