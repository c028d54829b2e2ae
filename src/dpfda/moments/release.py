"""The questions: a center, a radius about it, and then everything else in one."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.adaptive import Schedule
from dpfda.central.conversation import CurveConversation, Kept, far_apart, reaches, too_small
from dpfda.central.functions import FunctionBasis, spline_basis
from dpfda.central.quadrature import as_grid
from dpfda.central.radius import SEARCH_STEPS, find_radius, outermost
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.moments.curve_moments import CurveMoments
from dpfda.moments.joint import JointAnswer
from dpfda.moments.look import JointMoments
from dpfda.noise.law import padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.plan import Label
from dpfda.protocol.query import Records

_CERTAIN = 3.0  # deviations of noise that a count must be wrong by to mislead the search
_TILT = 0.5  # a_j = j^-tilt: the shape of the clipping region of curves


@dataclass(frozen=True, kw_only=True, eq=False)
class JointRelease(CurveConversation[Kept]):
    """Questions that end in one joint look at n vectors with ‖x‖ ≤ bound, and at their groups.

    Privacy:
        The budgets of center, radius and the joint look add up; the last one moves by no more than
        a mean of the vectors alone would (`JointMoments`).

    Attributes:
        groups: names of the groups; with fewer than two nobody is asked for theirs.
    """

    groups: tuple[Label, ...] = ()

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in a vector."""

    @property
    def schedule(self) -> Schedule:
        """Shares of the budget, and how many numbers it can carry."""
        return Schedule.of(self.whole, n=self.n, most=self.width)

    def joint(
        self, axes: FloatArray, *, widened: float, **asked: Any
    ) -> Questions[tuple[JointAnswer, tuple[str, ...]]]:
        """Three looks: the answer to the last one, and what they show to be wrong with the bound.

        Args:
            axes: shape of the clipping region.
            widened: what the radius that was found is multiplied with.
            asked: more fields of `JointMoments`.
        """
        schedule, size = self.schedule, len(axes)
        coarse = min(size, schedule.coarse)
        first, search = self.whole.part(schedule.first), self.whole.part(schedule.radius)
        look = yield self.whole_ball(first, coarse)
        center = padded(monotone_shrinkage(look.values, look.noise.variance) * look.values, size)
        place = self.place(center, axes)
        radius = yield from find_radius(
            search,
            place,
            bound=self.bound,
            outside=self._outside(search),
            steepness=schedule.steepness,
        )
        seen = radius >= outermost(self.bound)
        seen = seen or reaches(look.values, look.noise.variance, self.bound)
        last = JointMoments(
            cost=self.whole.rest(first, search),
            **place,
            radius=widened * radius,
            groups=max(1, len(self.groups)),
            **asked,
        )
        answer = yield last
        warnings = (too_small("their public bound"),) * seen
        return JointAnswer(look=last, noisy=answer.values), warnings

    def _outside(self, search: Cost) -> float:
        """Share of the vectors that the radius should leave outside.

        With a δ a search errs upwards once in 150 instead of once in 9: a radius that is ten times
        too large costs a band more than a few clipped curves do.
        """
        if search.pure:
            return self.schedule.outside
        step = math.sqrt(SEARCH_STEPS) / (search.mu * self.n)  # deviation of a noisy share
        return min(0.5, max(0.02, _CERTAIN * step))

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One vector at either end of the ball; with groups, in another one too."""
        (here,), (there,) = far_apart(n, np.ones(self.width), self.bound)
        if len(self.groups) < 2:
            return (here,), (there,)
        group = np.arange(n) % 2
        other = np.append(1, group[1:])
        return (np.column_stack([here, group]),), (np.column_stack([there, other]),)


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentsRelease(JointRelease[CurveMoments], name="moments"):
    """Means, sizes and covariances of groups of curves, by their coefficients.

    Attributes:
        basis: functions that the coefficients belong to.
        separate: covariances for each group instead of one for all.
        emphasis: what is to be exact: ``means`` or ``covariances``.
        widened: by how much the radius that was found is multiplied.
    """

    summary: ClassVar[str] = "moments"

    basis: FunctionBasis
    separate: bool = False
    emphasis: str = "means"
    widened: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("widened", self.widened)

    @property
    def width(self) -> int:
        """Coefficients of a curve."""
        return self.basis.size

    @property
    def sizes(self) -> tuple[int, int]:
        """How many coefficients have means, and how many of these covariances."""
        size = self.schedule.fine
        return size, min(size, math.ceil(1.2 * self.strength**0.25))

    def questions(self) -> Questions[CurveMoments]:
        """Three looks."""
        size, second = self.sizes
        found, warnings = yield from self.joint(
            np.arange(1, size + 1, dtype=np.float64) ** -_TILT,
            widened=self.widened,
            second=second,
            separate=self.separate,
            emphasis=self.emphasis,
        )
        return CurveMoments(
            look=found.look,
            noisy=found.noisy,
            basis=self.basis.first(size),
            groups=self.groups,
            center=np.zeros(self.basis.weights.size),
            guarantee=self.guarantee,
            warnings=warnings,
        )

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One group, and three with covariances pooled and apart."""
        basis = spline_basis(as_grid(np.linspace(0.0, 1.0, 9)), size=9)
        courses: list[dict[str, Any]] = [
            {},
            {"groups": ("a", "b", "c")},
            {"groups": ("a", "b", "c"), "separate": True, "widened": 1.25},
            {"emphasis": "covariances"},
        ]
        return [
            cls(epsilon=epsilon, delta=delta, n=n, bound=1.0, basis=basis, **course)
            for course in courses
        ]
