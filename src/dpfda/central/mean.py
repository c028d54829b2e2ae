"""A mean function under differential privacy: mechanisms, and their questions."""

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
    """Releases the mean of curves; a new one is one file that fills in what is asked of it.

    It is public and sees no curve: `rows` says what becomes of one curve at a time, `questions`
    what is asked about all of them.
    """

    needs_delta: ClassVar[bool] = False
    takes_delta: ClassVar[bool] = False  # otherwise it spends pure ε, whatever δ is allowed
    finds_bound: ClassVar[bool] = False  # its questions find one where none is known
    bounds_largest: ClassVar[bool] = False  # its bound is on the largest |X(t)|, not on the norm

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def rows(self, records: FloatArray, mean: MeanRelease) -> FloatArray:
        """Each curve (n, points) as the numbers that are asked about (n, J)."""

    @abstractmethod
    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """The questions about n such rows, for the budget of `mean`."""

    @abstractmethod
    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """Neighboring rows of n curves that are easy to tell apart."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks and audits."""

    def at_the_bound(self, mean: MeanRelease, release: Release) -> tuple[str, ...]:
        """Warnings where nearly all curves were, or may have been, pulled to the bound.

        A mean shorter than the bound by less than one deviation of its noise is not conclusive.
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
        """The part of (ε, δ) to spend: all of it, or only ε where the mechanism takes no δ."""
        delta = mean.delta if self.takes_delta or self.needs_delta else 0.0
        return Cost(epsilon=mean.epsilon, delta=delta).part(mean.share)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the guarantee, in addition to a public n."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanRelease(CurveConversation[Release], name="mean"):
    """The questions behind the mean of n curves on a public grid.

    Attributes:
        bound: public: on √∫X² (`quadrature.norm_bound`), or on the largest |X(t)| for a mechanism
            that says so.
        grid: where curves are known.
        mechanism: which questions are asked.
        share: of the budget; the rest is for other channels of the same curves.
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
        """The share of the budget: Gaussian, or pure ε where the mechanism is better with it."""
        return self.mechanism.budget(self)

    @property
    def strength(self) -> float:
        """nε, of the share."""
        share = float(self.share)
        return super().strength * (share if self.whole.pure else math.sqrt(share))

    def divided(self, bounds: Sequence[float]) -> tuple[Self, ...]:
        """The same questions about each of several channels, for equal shares."""
        share = self.share / len(bounds)
        return tuple(replace(self, bound=bound, share=share) for bound in bounds)

    @property
    def finds_bound(self) -> bool:
        """Whether the mechanism finds a bound."""
        return self.mechanism.finds_bound

    @property
    def assumptions(self) -> tuple[str, ...]:
        """A public n, and what the mechanism adds."""
        return (*super().assumptions, *self.mechanism.assumptions)

    def doubts(self, release: Release) -> tuple[str, ...]:
        """A mean as long as the bound."""
        return self.mechanism.at_the_bound(self, release)

    def questions(self) -> Questions[Release]:
        """The mechanism's."""
        return self.mechanism.questions(self)

    def records(self, curves: FloatArray) -> Records:
        """Curves on the grid, one at a time, as the questions need them."""
        return (self.mechanism.rows(curves, self),)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """The mechanism's."""
        return self.mechanism.neighbors(self)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every mechanism, on nine points; without a bound, those that can."""
        grid = as_grid(np.linspace(0.0, 1.0, 9))
        return [
            cls(epsilon=epsilon, delta=delta, n=n, bound=bound, grid=grid, mechanism=mechanism)
            for member in FunctionMechanism.members().values()
            for mechanism in member.examples()
            for bound in ((1.0, math.inf) if member.finds_bound else (1.0,))
            if delta or not member.needs_delta
        ]
