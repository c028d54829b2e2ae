"""Conversations that end in a joint look: of groups of vectors, and of curves."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda.central.conversation import CurveConversation, Kept, far_apart
from dpfda.central.functions import FunctionBasis, as_grid, spline_basis
from dpfda.central.left_out import Layout, clipped_away
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.joint_queries import (
    AFTER,
    FOR_MOMENTS,
    FOR_TESTS,
    ClippingSchedule,
    JointFound,
    joint,
    sizes,
    whole_ball,
)
from dpfda.central.plan import Plan
from dpfda.protocol.conversation import Questions
from dpfda.protocol.plan import Label
from dpfda.protocol.query import Records

_SMOOTH = 16  # functions of which covariances are worth more than rougher means


@dataclass(frozen=True, kw_only=True, eq=False)
class JointRelease(CurveConversation[Kept]):
    """Questions that end in one joint look at n vectors with ‖x‖ ≤ bound, and at their groups.

    Privacy:
        The budgets of all looks (center, steps of a search for a radius, the joint one) add up; the
        last one moves by no more than a mean of the vectors alone would (`JointMoments`).

    Attributes:
        groups: names of the groups; with fewer than two nobody is asked for theirs.
    """

    groups: tuple[Label, ...] = ()

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in a vector."""

    def joint(self, course: ClippingSchedule, *, size: int, **asked: Any) -> Questions[JointFound]:
        """The looks of `joint_looks`, at all groups."""
        many = max(1, len(self.groups))
        return joint(self, course, course.axes(size), most=self.width, groups=many, **asked)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One vector at either end of the ball; with groups, in another one too."""
        (here,), (there,) = far_apart(n, np.ones(self.width), self.reach)
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
        emphasis: what is to be exact: ``means``, their ``differences`` or ``covariances``.
        course: how looks are made.
    """

    summary: ClassVar[str] = "moments"

    basis: FunctionBasis
    separate: bool = False
    emphasis: str = "means"
    course: ClippingSchedule = FOR_MOMENTS

    @property
    def finds_bound(self) -> bool:
        """By the search for a center and a radius."""
        return True

    @property
    def width(self) -> int:
        """Coefficients of a curve, and what says how much is left out."""
        return self.layout.width

    @property
    def layout(self) -> Layout:
        """What is asked about a curve; where means are wanted, how much they leave out as well."""
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
    def plan(self) -> Plan:
        """The one of least expected error for the mean of all."""
        known = math.isfinite(self.bound)
        return Plan.of((self.whole,), n=self.n, most=self.basis.size, single=known)

    @property
    def searches(self) -> bool:
        """Whether a center and a radius are looked for: where counts say where curves are."""
        return self.emphasis == "covariances" or bool(self.plan.first)

    def questions(self) -> Questions[CurveMoments]:
        """A center and a radius, where they are worth it, and the joint look."""
        layout, many = self.layout, max(1, len(self.groups))
        asked: dict[str, Any] = {
            "second": self.sizes[1],
            "separate": self.separate,
            "emphasis": self.emphasis,
            "groups": many,
        }
        if self.searches:
            plan, course = self.plan, self.course
            course = course._replace(
                first=max(course.first, plan.first), search=max(course.search, plan.search)
            )
            axes = layout.axes(course.tilt)
            found = yield from joint(self, course, axes, most=self.basis.size, **asked)
        else:
            found = yield from whole_ball(self, size=layout.width, **asked)
        radius = found.answer.look.radius
        return CurveMoments(
            look=found.answer.look,
            noisy=found.answer.noisy,
            basis=self.basis.first(layout.size),
            groups=self.groups,
            center=np.zeros(self.basis.weights.size),
            guarantee=self.guarantee,
            parameters={"clipped": clipped_away(radius, AFTER * found.outside, self.n)},
            warnings=found.warnings,
        )

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One group, three that are compared, two of which nothing is known."""
        basis = spline_basis(as_grid(np.linspace(0.0, 1.0, 9)), size=9)
        tests: dict[str, Any] = {"emphasis": "differences", "course": FOR_TESTS}
        courses: list[dict[str, Any]] = [
            {},
            {"groups": ("a", "b", "c"), "separate": True, **tests},
            {"bound": math.inf, "groups": ("a", "b")},
        ]
        known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "n": n, "basis": basis}
        return [cls(**known | {"bound": 1.0} | course) for course in courses]
