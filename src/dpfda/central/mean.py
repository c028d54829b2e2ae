"""A mean function under differential privacy: the base of its mechanisms, and the conversation."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.central.conversation import (
    AT_THE_EDGE,
    EDGE,
    CurveConversation,
    reaches,
    too_small,
)
from dpfda.central.functions import Grid, as_grid
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import check_fields
from dpfda.protocol.query import Records

CHOSEN_BY_DATA = "parameters were chosen by looking at the data: not private"


@dataclass(frozen=True, kw_only=True)
class FunctionMechanism(
    Registered,
    family="function mechanism",
    homes=("dpfda.central", "dpfda.central.moments"),
):
    """Base of the mechanisms that release the mean of curves.

    A mechanism is public and holds no curve. `rows` maps each curve to a row of numbers, and
    `questions` are the queries about the means of these rows.
    """

    needs_delta: ClassVar[bool] = False
    takes_delta: ClassVar[bool] = False  # if False, it spends pure ε even if δ > 0
    finds_bound: ClassVar[bool] = False  # whether its queries find a bound if none is known
    bounds_largest: ClassVar[bool] = False  # whether its bound is on the largest |X(t)|

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def rows(self, records: FloatArray, mean: MeanRelease) -> FloatArray:
        """The numbers of each curve that the queries use: (n, points) to (n, J)."""

    @abstractmethod
    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """The queries about n such rows, for the budget of `mean`."""

    @abstractmethod
    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """Neighboring data sets of n rows that are easy to distinguish."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks and audits."""

    def at_the_bound(self, mean: MeanRelease, release: Release) -> tuple[str, ...]:
        """Warnings if nearly all curves were, or may have been, clipped to the bound.

        The warning is weaker (`AT_THE_EDGE`) if the mean is shorter than the bound by less than one
        deviation of its noise.
        """
        weights = release.basis.weights
        limit = mean.bound * math.sqrt(weights.sum() if self.bounds_largest else 1.0)
        functions = release.basis.functions * np.sqrt(weights)
        values, variance = release.noisy @ functions, release.variance_along(functions)
        if reaches(values, variance, limit):
            return (too_small("their public bound"),)
        length = math.sqrt(max(float(values @ values - variance.sum()), 0.0))
        along = functions @ values / max(float(np.linalg.norm(values)), 1e-300)
        blur = math.sqrt(float(release.variance_along(along[:, None])[0]))
        return (AT_THE_EDGE,) * (length > 0 and length + blur >= EDGE * limit and blur < limit / 2)

    def budget(self, mean: MeanRelease) -> Cost:
        """The budget to spend: (ε, δ), or pure ε if the mechanism uses no δ."""
        delta = mean.delta if self.takes_delta or self.needs_delta else 0.0
        return Cost(epsilon=mean.epsilon, delta=delta).part(mean.share)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the guarantee, in addition to a public n."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanRelease(CurveConversation[Release], name="mean"):
    """The conversation that releases the mean of n curves on a public grid.

    Attributes:
        bound: public bound on √∫X² (`functions.norm_bound`), or on the largest |X(t)| if the
            mechanism has `bounds_largest`.
        grid: grid of the curves.
        mechanism: the mechanism, which determines the queries.
        share: share of the budget; the rest is for other channels of the same curves.
    """

    summary: ClassVar[str] = "mean"

    grid: Grid
    mechanism: FunctionMechanism
    share: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mechanism.needs_delta and not self.delta:
            rule = f"above 0 for the {self.mechanism.name} mechanism"
            raise InvalidParameter("delta", rule, self.delta)

    @property
    def whole(self) -> Cost:
        """The budget of this share: pure ε or Gaussian, as the mechanism chooses."""
        return self.mechanism.budget(self)

    @property
    def strength(self) -> float:
        """nε for this share of the budget."""
        share = float(self.share)
        return super().strength * (share if self.whole.pure else math.sqrt(share))

    def divided(self, bounds: Sequence[float]) -> tuple[Self, ...]:
        """The same conversation for each of several channels, with equal shares of the budget."""
        share = self.share / len(bounds)
        return tuple(replace(self, bound=bound, share=share) for bound in bounds)

    @property
    def finds_bound(self) -> bool:
        """Whether the mechanism finds a bound."""
        return self.mechanism.finds_bound

    @property
    def assumptions(self) -> tuple[str, ...]:
        """A public n, and the assumptions of the mechanism."""
        return (*super().assumptions, *self.mechanism.assumptions)

    def doubts(self, release: Release) -> tuple[str, ...]:
        """Warnings if the mean is as long as the bound."""
        return self.mechanism.at_the_bound(self, release)

    def questions(self) -> Questions[Release]:
        """The queries of the mechanism."""
        return self.mechanism.questions(self)

    def records(self, curves: FloatArray) -> Records:
        """Map curves on the grid, one at a time, to the rows that the queries need."""
        return (self.mechanism.rows(curves, self),)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """The neighboring data sets of the mechanism."""
        return self.mechanism.neighbors(self)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every mechanism on nine points; if it finds bounds, also without a bound."""
        grid = as_grid(np.linspace(0.0, 1.0, 9))
        return [
            cls(epsilon=epsilon, delta=delta, n=n, bound=bound, grid=grid, mechanism=mechanism)
            for member in FunctionMechanism.members().values()
            for mechanism in member.examples()
            for bound in ((1.0, math.inf) if member.finds_bound else (1.0,))
            if delta or not member.needs_delta
        ]
