"""Regressions: the base of their methods, and conversations that end in a public predictor."""

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

    For a logistic link the prediction is the log-odds of class 1. For K classes there are K scores;
    the class of the largest score is predicted.

    Attributes:
        slope: coefficients of the clipped, centered row; (K, D) for K scores.
        offset: value at the center; (K,) for K scores.
        center, radius: the ball; `radius` may be infinite (no clipping).
        clips: whether rows inside the public bounds were clipped to a smaller ball; `slope` then
            does not estimate the coefficients of unclipped rows.
        released: moments from which `slope` and its intervals are computed; None if the mechanism
            releases no moments, or if rows were clipped to a smaller ball.
        explained: expected share of the targets' variance that predictions for other people
            explain, from released numbers; negative if a constant would be better, None if unknown.
        clarity: significance of the fit: the explained variance beyond that of noise alone, in
            standard deviations.
        spread: standard deviation of the predictions.
        warnings: warnings for the reader.
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
        """Value of the line at x = 0, without clipping to the ball; an array for K scores."""
        return self.offset - self.slope @ self.center

    def predict(self, rows: FloatArray) -> FloatArray:
        """One prediction, or K scores, for each row; rows are clipped to the ball as in the fit."""
        if np.isinf(self.radius):
            return np.asarray(rows @ self.slope.T + self.intercept)
        clipped = clip_to_ball(rows, center=self.center, radius=self.radius)
        return np.asarray(clipped @ self.slope.T + self.offset)


@dataclass(frozen=True, kw_only=True)
class RegressionMechanism(Registered, family="regression mechanism"):
    """Base of the regression methods; they are frozen and public, and state their privacy."""

    pure: ClassVar[bool] = False
    """Whether the fit never uses δ."""
    pure_too: ClassVar[bool] = False
    """Whether the fit is possible without δ."""
    shows_rows: ClassVar[bool] = True
    """Whether answers estimate the location of rows, which shows if their bound is too small."""
    additive: ClassVar[bool] = True
    """Whether the queries are sums, so that rows may come in chunks."""
    takes_weights: ClassVar[bool] = False
    """Whether the method fits rows with private weights below a public bound."""
    gaussian: ClassVar[bool] = True
    """Whether a budget with δ is spent on Gaussian noise only, whose μ² add up."""

    def __post_init__(self) -> None:
        check_fields(self)

    def budget(self, regression: Regression, costs: Sequence[Cost]) -> Cost:
        """The budget to spend, one of `costs`: by default the last, the whole of (ε, δ)."""
        return costs[-1]

    @abstractmethod
    def questions(self, regression: Regression) -> Questions[Fitted]:
        """Query noisy sums, one after the other, and return the fit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression(Conversation[Fitted], name="regression"):
    """A private regression: the conversation of one method about one problem.

    Attributes:
        problem: link and public bounds.
        mechanism: the method, which determines the queries.
        found_classes: whether the labels were not given but read from the data.
        share: share of the budget; earlier queries have spent the rest.
        counts_outside: whether records have a third column that marks the rows outside their public
            ranges; these rows are counted first, with a small share of the budget.
        weight_bound: public bound on the weights of rows, which are the last column of records;
            None if there are no weights.

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
        """The choice of the mechanism."""
        return self.mechanism.budget(self, [pure, gaussian])

    def among_sites(self) -> Self:
        """The same conversation for sites: Gaussian noise (δ > 0), and no count of rows outside."""
        return replace(super().among_sites(), counts_outside=False)

    def questions(self) -> Questions[Fitted]:
        """Query the number of rows outside their ranges, if wanted; then the method's queries."""
        known = self.problem.rows
        if not self.counts_outside or known is None or not self.mechanism.additive:
            return (yield from self.mechanism.questions(self))
        whole, dimension = self.whole, self.problem.dimension
        check = price_of_a_count(whole, known)
        outside = yield OutsideCount(cost=check, unit=self.unit, features=dimension)
        # The rest of the budget uses the same kind of noise as the whole would have.
        delta = 0.0 if whole.pure else self.delta
        left = replace(
            self, share=whole.rest(check).share, delta=delta, either=False, counts_outside=False
        )
        fitted = yield from self.mechanism.questions(left)
        few = not more_than_a_few(float(outside.values[0]), outside.n, outside.noise)
        return fitted if few else replace(fitted, warnings=(*fitted.warnings, OUTSIDE))

    def clarity(self, rows: int) -> float:
        """nμ/√D: below 10, the fit is mostly noise; above 1000, noise has little effect."""
        whole = self.whole
        budget = whole.epsilon_spent if whole.pure else whole.mu
        return rows * budget / math.sqrt(self.problem.dimension)

    @property
    def most(self) -> Price:
        """The limit of the price; a method that is not Gaussian states ε and δ directly."""
        if self.mechanism.gaussian or not self.delta:
            return super().most
        return Price(epsilon=exact(self.epsilon), delta=exact(self.delta))

    @property
    def event(self) -> Event:
        """The event of the whole conversation; a method that is not Gaussian states ε and δ."""
        if self.mechanism.gaussian or not self.delta:
            return super().event
        return ApproximateEvent(epsilon=self.epsilon, delta=self.delta)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The number of rows is public, and so are labels that were read from the data."""
        found = (CLASSES_ARE_PUBLIC,) if self.found_classes else ()
        weights = (WEIGHTS_ARE_INDIVIDUAL,) if self.weight_bound is not None else ()
        return (*super().assumptions, *found, *weights)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every method that fits the budget, with both links, with known and unknown n."""
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
        """Two data sets; in the second, one of the equal rows is at the opposite ends."""
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


_LARGEST = ANY_VALUE[1]  # a power of two, so that scaling does not round


@dataclass(frozen=True, kw_only=True, eq=False)
class RangedRegression(CurveConversation[Fitted], name="ranged_regression"):
    """A search for the ball of the rows by noisy bisection, then a regression in that ball.

    Privacy:
        The budgets of all queries add up. The queries of the search use rows only, not targets.

    Attributes:
        problem: link and bounds of the targets; the ball of the rows is replaced by the found one.
        mechanism: the method for the rest of the budget: ``moments``.
        found_classes: whether the labels were not given but read from the data.
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
        """The number of rows is public, and so are labels that were read from the data."""
        return (*super().assumptions, *(CLASSES_ARE_PUBLIC,) * self.found_classes)

    def questions(self) -> Questions[Fitted]:
        """Search the region of the rows, then ask the queries of the method in this region."""
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
        """Data sets that differ in one row, at opposite ends of rows and targets."""
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
    """Convert a fit in the units of the rows to one for features, which are 2^31 times smaller."""
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
