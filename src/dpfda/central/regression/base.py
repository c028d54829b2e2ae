"""Conversations of regressions: public queries that end in a predictor, by one of the methods."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.central.ball_search import Region, locate
from dpfda.central.channels import about_channel
from dpfda.central.conversation import (
    CurveConversation,
    far_apart,
    more_than_a_few,
    price_of_a_count,
)
from dpfda.central.regression.problem import Bounds, Problem, clip_to_ball
from dpfda.central.regression.queries import OUTSIDE, OutsideCount
from dpfda.central.regression.recipe import ANY_VALUE
from dpfda.central.regression.released import Released
from dpfda.errors import InvalidParameter
from dpfda.privacy.cost import Cost
from dpfda.privacy.events import ApproximateEvent, Event
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC, WEIGHTS_ARE_INDIVIDUAL
from dpfda.privacy.price import Price, exact
from dpfda.protocol.conversation import Conversation, Questions
from dpfda.protocol.fields import check_fields
from dpfda.protocol.query import Records


@dataclass(frozen=True)
class Fitted:
    """A public predictor x ↦ intercept + slope·(x clipped to a ball).

    For a logistic link the prediction is the log-odds of class 1. Of K classes there are K scores,
    and the largest says which.

    Attributes:
        slope: coefficients of the clipped, centered row; (K, D) for K scores.
        offset: value at the center; (K,) for K scores.
        center, radius: the ball; `radius` may be infinite (no clipping).
        clips: whether `slope` belongs to rows that are shortened though they lie inside the public
            bounds; then it is no statement about rows as they are.
        released: moments that `slope` was computed from, from which intervals follow; None where
            a mechanism releases none, or where rows were shortened.
        explained: expected share of the targets' variance that predictions for others explain, from
            released numbers; below 0 where a constant would be better. None if it is not known.
        clarity: by how many deviations the fit explains more than noise alone would.
        spread: standard deviation of the predictions.
        warnings: what a reader of the numbers should know.
    """

    slope: FloatArray
    offset: Any
    center: FloatArray
    radius: float = float("inf")
    clips: bool = False
    released: Released | None = None
    explained: float | None = None
    clarity: float | None = None
    spread: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def intercept(self) -> Any:
        """Value at x = 0 of the line that holds inside the ball; an array of K."""
        return self.offset - self.slope @ self.center

    def predict(self, rows: FloatArray) -> FloatArray:
        """Predictions, one a row, or K; rows beyond the ball are clipped as in training."""
        if np.isinf(self.radius):
            return np.asarray(rows @ self.slope.T + self.intercept)
        clipped = clip_to_ball(rows, center=self.center, radius=self.radius)
        return np.asarray(clipped @ self.slope.T + self.offset)


@dataclass(frozen=True, kw_only=True)
class RegressionMechanism(Registered, family="regression mechanism"):
    """A way to fit. Frozen and public; subclasses state their privacy."""

    pure: ClassVar[bool] = False
    """Whether the fit costs no δ whatever δ was allowed."""
    pure_too: ClassVar[bool] = False
    """Whether it can do without δ."""
    shows_rows: ClassVar[bool] = True
    """Whether its answers show where rows are, and thereby whether a bound on them is too small."""
    additive: ClassVar[bool] = True
    """Whether its questions are sums, so that rows may come in chunks."""
    takes_weights: ClassVar[bool] = False
    """Whether it fits rows with private weights below a public bound."""
    gaussian: ClassVar[bool] = True
    """Whether a budget with δ is all spent on Gaussian noise, whose μ² add up."""

    def __post_init__(self) -> None:
        check_fields(self)

    def budget(self, regression: Regression, costs: Sequence[Cost]) -> Cost:
        """Which of the costs it spends: the last, all that is given, unless it can do better."""
        return costs[-1]

    @abstractmethod
    def questions(self, regression: Regression) -> Questions[Fitted]:
        """Ask for noisy sums, one query after the other, and return the fit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression(Conversation[Fitted], name="regression"):
    """A private regression: one of the methods, asking about one problem.

    Attributes:
        problem: link and public bounds.
        mechanism: how the budget is spent.
        found_classes: whether labels that were not given were found in the data.
        share: of the budget; the rest is for what was asked before.
        counts_outside: whether records have a third column, which marks the rows that were moved
            into their public ranges; they are counted first, for a small part of the budget.
        weight_bound: public bound on the weights of rows, the last column of records; None where
            they have none.

    Examples:
        >>> from dpfda.curate import curate
        >>> from dpfda.noise import SimulationSource
        >>> problem = Problem(link="linear", bounds=Bounds(center=np.zeros(2)))
        >>> method = RegressionMechanism.named("moments")()
        >>> regression = Regression(epsilon=1.0, delta=1e-5, problem=problem, mechanism=method)
        >>> records = np.full((500, 2), 0.1), np.full(500, 0.5)
        >>> fitted, curator = curate(regression, records, source=SimulationSource(0))
        >>> fitted.slope.shape, len(curator.transcript)
        ((2,), 2)
    """

    problem: Problem
    mechanism: RegressionMechanism
    found_classes: bool = False
    share: Fraction = Fraction(1)
    counts_outside: bool = False
    weight_bound: float | None = None

    def __post_init__(self) -> None:
        if self.mechanism.pure:
            object.__setattr__(self, "delta", 0.0)
        super().__post_init__()
        if not (self.delta or self.mechanism.pure or self.mechanism.pure_too):
            rule = f"above 0 for mechanism {self.mechanism.name!r}"
            raise InvalidParameter("delta", rule, self.delta)
        if self.weight_bound is None:
            return
        if not self.mechanism.takes_weights:
            rule = "'gaussian_fm' with sample_weight: the others have no weighted form"
            raise InvalidParameter("mechanism", rule, self.mechanism.name)
        if not self.problem.fit_intercept:
            raise InvalidParameter("fit_intercept", "True with sample_weight", False)

    @property
    def whole(self) -> Cost:
        """The share of the budget."""
        return super().whole.part(self.share)

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The mechanism's choice."""
        return self.mechanism.budget(self, [pure, gaussian])

    def among_sites(self) -> Self:
        """Whether sites can answer: with Gaussian noise (δ above 0), and without the count."""
        return replace(super().among_sites(), counts_outside=False)

    def questions(self) -> Questions[Fitted]:
        """A count of rows outside their ranges, where it is asked for; those of the method."""
        known = self.problem.rows
        if not self.counts_outside or known is None or not self.mechanism.additive:
            return (yield from self.mechanism.questions(self))
        whole, dimension = self.whole, self.problem.dimension
        check = price_of_a_count(whole, known)
        outside = yield OutsideCount(cost=check, unit=self.unit, features=dimension)
        # What is left is spent as all would have been: the kind of noise stays.
        delta = 0.0 if whole.pure else self.delta
        left = replace(
            self, share=whole.rest(check).share, delta=delta, either=False, counts_outside=False
        )
        fitted = yield from self.mechanism.questions(left)
        few = not more_than_a_few(float(outside.values[0]), outside.n, outside.noise)
        return fitted if few else replace(fitted, warnings=(*fitted.warnings, OUTSIDE))

    def clarity(self, rows: int) -> float:
        """nμ/√D: below 10, noise hides nearly everything; above 1000, very little."""
        whole = self.whole
        budget = whole.epsilon_spent if whole.pure else whole.mu
        return rows * budget / math.sqrt(self.problem.dimension)

    @property
    def most(self) -> Price:
        """The limit; a method that is not Gaussian announces ε and δ as they are."""
        if self.mechanism.gaussian or not self.delta:
            return super().most
        return Price(epsilon=exact(self.epsilon), delta=exact(self.delta))

    @property
    def event(self) -> Event:
        """Likewise as one release."""
        if self.mechanism.gaussian or not self.delta:
            return super().event
        return ApproximateEvent(epsilon=self.epsilon, delta=self.delta)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The number of rows is public, and so are labels that are read off the data."""
        found = (CLASSES_ARE_PUBLIC,) if self.found_classes else ()
        weights = (WEIGHTS_ARE_INDIVIDUAL,) if self.weight_bound is not None else ()
        return (*super().assumptions, *found, *weights)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every method that can do with or without δ, both links, few rows and many."""
        bounds = Bounds(center=np.zeros(2))
        line = Problem(link="linear", bounds=bounds)
        classes = Problem(
            link="logistic", bounds=replace(bounds, target_center=0.5, target_radius=0.5)
        )
        methods = [
            member() for member in RegressionMechanism.members().values()
            if delta or member.pure_too or member.pure
        ]  # fmt: skip
        found = [(problem, method) for method in methods for problem in (line, classes)]
        moments = RegressionMechanism.named("moments")()
        counted = cls(
            epsilon=epsilon,
            delta=delta,
            problem=replace(line, rows=n),
            mechanism=moments,
            either=True,
            counts_outside=True,
        )
        found += [(replace(problem, rows=n), moments) for problem in (line, classes)]
        if delta:
            steep = RegressionMechanism.from_dict({"name": "moments", "newton_steps": 2})
            found.append((replace(classes, fit_intercept=False), steep))
            functional = RegressionMechanism.named("gaussian_fm")()
            more: dict[str, Any] = {
                "mechanism": functional,
                "counts_outside": True,
                "weight_bound": 20.0,
            }
            lines = [replace(counted, **more), replace(counted, **more, problem=classes)]
        return [counted, *(lines if delta else ())] + [
            cls(epsilon=epsilon, delta=delta, problem=problem, mechanism=method, either=True)
            for problem, method in found
        ]

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Equal rows, and one row at the opposite end of both balls."""
        bounds = self.problem.bounds
        rows = np.tile(bounds.center, (n, 1))
        rows[:, 0] += bounds.radius
        targets = np.full(n, bounds.target_center + bounds.target_radius)
        other, low = rows.copy(), targets.copy()
        other[0, 0] -= 2 * bounds.radius
        low[0] -= 2 * bounds.target_radius
        one: Records = (rows, targets)
        two: Records = (other, targets if self.problem.link == "linear" else low)
        if self.counts_outside:
            one, two = (*one, np.zeros(n, dtype=bool)), (*two, np.arange(n) == 0)
        if self.weight_bound is not None:
            weights = np.full(n, self.weight_bound)
            one, two = (*one, weights), (*two, weights)
        return one, two


_LARGEST = ANY_VALUE[1]  # a power of two, so that nothing is rounded


@dataclass(frozen=True, kw_only=True, eq=False)
class RangedRegression(CurveConversation[Fitted], name="ranged_regression"):
    """A search for the ball of the rows by noisy bisection, then a regression in that ball.

    Privacy:
        The budgets of all queries add up; those of the search see rows only.

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
        """True: this release searches for a bound."""
        return True

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The number of rows is public, and so are labels that are read off the data."""
        return (*super().assumptions, *(CLASSES_ARE_PUBLIC,) * self.found_classes)

    def questions(self) -> Questions[Fitted]:
        """A search for where rows are, then those of the method about what was found."""
        everywhere = Region(np.zeros(self.problem.dimension), math.inf, self.whole, ())
        search = locate(self, everywhere)
        found = yield from about_channel(search, next(search), channel=0, channels=1, numbers=1)
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
