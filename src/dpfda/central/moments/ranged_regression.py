"""Regressions of curves whose range nobody knows: it is found first, for a part of the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda.central.channels import about
from dpfda.central.conversation import CurveConversation, far_apart
from dpfda.central.regression.methods import Fitted, Regression, RegressionMechanism
from dpfda.central.regression.problem import Bounds, Problem
from dpfda.central.regression.recipe import ANY_VALUE
from dpfda.central.scouting import Region, located
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records

_LARGEST = ANY_VALUE[1]  # a power of two, so that nothing is rounded


@dataclass(frozen=True, kw_only=True, eq=False)
class RangedRegression(CurveConversation[Fitted], name="ranged_regression"):
    """Where n rows lie, by noisy halvings; then a regression in the ball that was found.

    Privacy:
        The budgets of all looks add up; those of the search see rows only.

    Attributes:
        problem: link and targets; its ball of rows is the one that is found.
        mechanism: how the rest of the budget is spent: ``moments``.
        found_classes: whether labels that were not given were found in the data.
    """

    summary: ClassVar[str] = "regression"

    problem: Problem
    mechanism: RegressionMechanism
    found_classes: bool = False
    bound: float = math.inf

    @property
    def finds_bound(self) -> bool:
        """That is what it is for."""
        return True

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The number of rows is public; found labels are taken to be."""
        return (*super().assumptions, *(CLASSES_ARE_PUBLIC,) * self.found_classes)

    def questions(self) -> Questions[Fitted]:
        """A search for where rows are, then those of the method about what was found."""
        everywhere = Region(np.zeros(self.problem.dimension), math.inf, self.whole, ())
        search = located(self, everywhere)
        found = yield from about(search, next(search), channel=0, channels=1, numbers=1)
        ball = replace(self.problem.bounds, center=found.center, radius=found.bound)
        regression = Regression(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            problem=replace(self.problem, bounds=ball, rows=self.n),
            mechanism=self.mechanism,
            share=found.budget.share,
        )
        fitted = yield from regression.questions()
        return replace(fitted, warnings=(*found.warnings, *fitted.warnings))

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One row at either end of the rows, and of the targets."""
        (here,), (there,) = far_apart(n, np.ones(self.problem.dimension), self.reach)
        bounds = self.problem.bounds
        targets = np.full(n, bounds.target_center)
        low, high = targets.copy(), targets.copy()
        low[0] -= bounds.target_radius
        high[0] += bounds.target_radius
        return (here, high), (there, low)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """A line and two classes."""
        method = RegressionMechanism.named("moments")()
        line = Problem(link="linear", bounds=Bounds(center=np.zeros(2)))
        target = {"target_center": 0.5, "target_radius": 0.5}
        classes = Problem(link="logistic", bounds=Bounds(center=np.zeros(2), **target))
        known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "n": n, "mechanism": method}
        return [cls(**known, problem=problem) for problem in (line, classes)]


def in_features(fitted: Fitted) -> Fitted:
    """A fit to rows in their own units as one to features, which are so many times smaller."""
    released = fitted.released
    if released is not None:
        released = replace(released, combinations=released.combinations * _LARGEST)
    return replace(
        fitted,
        slope=fitted.slope * _LARGEST,
        center=fitted.center / _LARGEST,
        radius=fitted.radius / _LARGEST,
        released=released,
    )
