"""The functional mechanism and its relaxation as published: methods for comparison.

Importing this file registers `fm` and `relaxed_fm` as mechanisms of private regressions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda.central.regression.alternatives import COEFFICIENTS, ObjectiveMethod, about_all
from dpfda.central.regression.base import Regression
from dpfda.central.regression.problem import Bounds, Link
from dpfda.central.regression.queries import MomentQuery, MomentSums, moment_sums, row_noise
from dpfda.mechanisms.additive import Additive
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import choice

PUBLISHED_L2 = {"linear": 2 * math.sqrt(6), "logistic": math.sqrt(17 / 16)}
"""The triangle inequality of its authors, for |x|₂ ≤ 1; linear: constant term included."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectiveQuery(MomentQuery):
    """The coefficients of an objective: moments whose weights the link fixes.

    Attributes:
        link: which objective.
    """

    linear_weight: float = field(init=False)
    quadratic_weight: float = field(init=False)
    link: Link = choice("linear", "logistic")

    def __post_init__(self) -> None:
        weights = COEFFICIENTS[_validate.one_of("link", self.link, COEFFICIENTS)]
        for name, weight in zip(("linear_weight", "quadratic_weight"), weights, strict=True):
            object.__setattr__(self, name, weight)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionalQuery(ObjectiveQuery, name="regression_functional"):
    """Coefficients of the objective, with the bound of the functional mechanism's authors.

    Privacy:
        Twice the largest coefficient vector of one person (`published_l1`).
    """

    # Published and kept for comparison: it counts a constant that is not released, and adds up two
    # people as if their rows could be opposite and perpendicular at once. Searches: .61, .79.
    attained: ClassVar[float | None] = 0.6

    @property
    def l1(self) -> float:
        """As published."""
        return published_l1(self.link, self.moments.size)

    @cached_property
    def mechanism(self) -> Additive:
        """Laplace noise."""
        return row_noise(self.name, self.cost, self.size, l1=self.l1)

    @cached_property
    def moments(self) -> MomentSums:
        """An entry off the diagonal stands for two of the matrix."""
        return moment_sums(self, power=2)

    @classmethod
    def examples(cls) -> list[Self]:
        """Both links."""
        cost, bounds = Cost(epsilon=1.0), Bounds(center=np.zeros(2))
        return [cls(cost=cost, bounds=bounds, link=link) for link in ("linear", "logistic")]


@dataclass(frozen=True, kw_only=True)
class FunctionalMechanism(ObjectiveMethod, name="fm"):
    """Laplace noise on every coefficient of the objective (Zhang et al. 2012).

    Privacy:
        Pure ε. Sum of absolutes of one person's coefficients, doubled: 2(1 + √D)² for the linear
        objective (its constant term included), √D + D/4 for the logistic one, with |x|₂ ≤ 1. The
        published 2(1 + D)² and D²/4 + 3D are for |x_d| ≤ 1 and appear in the reproductions.

    Examples:
        >>> published_l1("linear", 4)
        18.0
    """

    pure: ClassVar[bool] = True

    def query(self, regression: Regression) -> MomentQuery:
        """With the published bound."""
        return FunctionalQuery(**about_all(regression), link=regression.problem.link)


@dataclass(frozen=True, kw_only=True, eq=False)
class EqualQuery(ObjectiveQuery, name="regression_equal"):
    """Coefficients of the objective; every entry of the upper triangle gets the same noise.

    Privacy:
        `PUBLISHED_L2`.
    """

    # Published and kept for comparison: two people are never as far apart. Searches find .82, .97.
    attained: ClassVar[float | None] = 0.8

    @cached_property
    def moments(self) -> MomentSums:
        """All entries of the triangle alike."""
        return moment_sums(self, power=0)

    @property
    def l2(self) -> float:
        """As published."""
        return PUBLISHED_L2[self.link]

    @classmethod
    def examples(cls) -> list[Self]:
        """Both links."""
        cost, bounds = Cost(epsilon=1.0, delta=0.05), Bounds(center=np.zeros(2))
        return [cls(cost=cost, bounds=bounds, link=link) for link in ("linear", "logistic")]


@dataclass(frozen=True, kw_only=True)
class RelaxedFM(ObjectiveMethod, name="relaxed_fm"):
    """Gaussian noise of one size on all coefficients (Ding et al. 2020).

    Privacy:
        (ε, δ), calibrated exactly, with the triangle-inequality bound of its authors for |x|₂ ≤ 1:
        2√6 (linear, constant term included) and √(17/16) (logistic).

    Examples:
        >>> RelaxedFM().floor
        2.0
    """

    def query(self, regression: Regression) -> EqualQuery:
        """With the published bound."""
        return EqualQuery(**about_all(regression), link=regression.problem.link)


def published_l1(link: str, dimension: int) -> float:
    """Sum-of-absolutes sensitivity for |x|₂ ≤ 1, times N."""
    if link == "linear":
        return 2 * (1 + math.sqrt(dimension)) ** 2
    return math.sqrt(dimension) + dimension / 4
