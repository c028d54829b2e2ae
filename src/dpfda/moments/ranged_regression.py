"""Regressions of curves whose range nobody knows: it is found first, for a part of the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.channels import ChannelLook, about
from dpfda.central.conversation import CurveConversation, far_apart
from dpfda.central.scouting import SEARCH_FROM, Region, located
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.face.curves import count_channels
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC, Guarantee
from dpfda.protocol.conversation import Questions
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import Records
from dpfda.regression.estimators import CuratedRegression
from dpfda.regression.methods import Fitted, Regression, RegressionMechanism
from dpfda.regression.private_regression import WAYS
from dpfda.regression.problem import Bounds, Problem
from dpfda.regression.recipe import ANY_VALUE

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


@dataclass(eq=False, repr=False, kw_only=True)
class FindsRange(CuratedRegression):
    """A regression of curves that finds their range where none is given. Not for use by itself."""

    @property
    def _finds(self) -> bool:
        """Whether nothing says how large curves are."""
        return all(getattr(self, name) is None for name in WAYS)

    @property
    def _of_curves(self) -> bool:
        return self._finds or super()._of_curves

    def _require_one_way(self) -> None:
        if not self._finds:
            super()._require_one_way()
        elif self.mechanism != "moments":
            rule = "'moments' where value_range is to be found; or give value_range"
            raise InvalidParameter("mechanism", rule, self.mechanism)

    def _value_ranges(self, X: Any) -> list[Any]:
        if not self._finds:
            return super()._value_ranges(X)
        if count_channels(X) > 1:
            rule = "one pair for each channel: it is found for curves of one channel only"
            raise InvalidParameter("value_range", rule, None)
        return [ANY_VALUE]

    def _in_units(self, rows: FloatArray) -> FloatArray:
        """Features as rows in units of the curves' values, where nothing is known of these."""
        return rows * _LARGEST if self._finds else rows

    def _records(self, rows: Any, values: Any) -> Records:
        return super()._records(self._in_units(rows), values)

    def _count(self, rows: int | None) -> int:
        """How many rows there are, which some questions must know beforehand."""
        if rows is None:
            rule = "given at once or through fit_stream: several classes, and curves without a "
            raise InvalidData("X", rule + "value_range, need the number of rows")
        return rows

    def _enough(self, rows: int) -> None:
        """Refuse to look for a range among too few, before anything is spent."""
        least = SEARCH_FROM[not self.delta]
        if rows * self.epsilon < least:
            rule = f"given where n·epsilon is below {least}: too few curves to find it privately"
            raise InvalidParameter("value_range", rule, None)

    def _regression(self, *, rows: int | None = None) -> Any:
        if not self._finds:
            return super()._regression(rows=rows)
        n, known = self._count(rows), super()._regression(rows=rows)
        self._enough(n)
        return RangedRegression(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            n=n,
            problem=known.problem,
            mechanism=known.mechanism,
            found_classes=known.found_classes,
        )

    def _finish(
        self,
        fitted: Fitted,
        regression: Any,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        fitted = in_features(fitted) if self._finds else fitted
        return super()._finish(fitted, regression, transcript, guarantee)

    def _telling(self, transcript: Sequence[Exchange]) -> Exchange:
        return next(one for one in transcript if not isinstance(one.query, ChannelLook))


def in_features(fitted: Fitted) -> Fitted:
    """A fit to rows in their own units as one to features, which are so many times smaller."""

    def times(part: FloatArray | None, factor: float) -> FloatArray | None:
        return None if part is None else np.asarray(part * factor)

    return replace(
        fitted,
        slope=fitted.slope * _LARGEST,
        center=fitted.center / _LARGEST,
        radius=fitted.radius / _LARGEST,
        covariance=times(fitted.covariance, _LARGEST**2),
        sampling=times(fitted.sampling, _LARGEST**2),
        explains=times(fitted.explains, _LARGEST**-2),
    )
