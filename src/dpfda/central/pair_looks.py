"""What a curator of pairs (x, Y) is asked: products of covariates, and of covariates and curves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.looks import Body, MeanLook
from dpfda.central.radius import RadiusCount
from dpfda.central.records import clip_rows
from dpfda.curves.symmetric import Triangle
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import flag, number, whole
from dpfda.protocol.query import Records


@dataclass(frozen=True, kw_only=True, eq=False)
class PairLook(MeanLook):
    """Vectors x and coefficients of a curve, each clipped to a public ball.

    Attributes:
        covariates: numbers in a vector x.
        coefficients: of a curve.
        covariate_bound: B; x/B is used, clipped to the unit ball.
        bound: τ of the coefficients.
        intercept: whether a constant 1 is appended to x/B.
    """

    block_rows: ClassVar[int] = 1 << 12  # products of a record are held at once

    covariates: int = whole(most=1 << 12)
    coefficients: int = whole(most=1 << 12)
    covariate_bound: float = number(least=1e-40, most=1e40)
    bound: float = number(least=1e-40, most=1e40)
    intercept: bool = flag(default=True)

    @property
    def columns(self) -> tuple[int, ...]:
        """Vectors and coefficients."""
        return self.covariates, self.coefficients

    @property
    def width(self) -> int:
        """Numbers in x, the constant counted."""
        return self.covariates + self.intercept

    @property
    def radius(self) -> float:
        """Bound on the norm of x/B, the constant counted."""
        return math.sqrt(2) if self.intercept else 1.0

    def scaled(self, x: FloatArray) -> FloatArray:
        """x/B inside the unit ball, and the constant."""
        reach = self.covariate_bound
        inside = clip_rows(x[:, : self.covariates], reach) / reach
        return np.hstack([inside, np.ones((len(x), int(self.intercept)))])

    @classmethod
    def examples(cls) -> list[Self]:
        """With a constant and without, pure and Gaussian."""
        return [
            cls(
                cost=cost,
                n=5,
                covariates=2,
                coefficients=2,
                covariate_bound=1.5,
                bound=2.0,
                intercept=intercept,
            )
            for cost in (Cost(epsilon=1.0).part(0.3), Cost(epsilon=1.0, delta=0.05).part(0.7))
            for intercept in (True, False)
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariateProducts(PairLook, name="covariate_products"):
    """T1: mean of x xᵀ, the triangle j ≤ k as a vector.

    Privacy:
        ‖xxᵀ - x'x'ᵀ‖_F ≤ √2 r² for ‖x‖ ≤ r; with a constant, r² = 2, attained by x' = -x.
    """

    @cached_property
    def triangle(self) -> Triangle:
        """The order of the entries."""
        return Triangle(np.ones(self.width))

    @property
    def body(self) -> Body:
        """√2 r² wide."""
        width = math.sqrt(2) * self.radius**2
        return Body(width, width, self.triangle.axes)

    def vectors(self, records: Records) -> FloatArray:
        """Products."""
        return self.triangle.squares(self.scaled(records[0]))


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossProducts(PairLook, name="cross_products"):
    """T2: mean of x Yᵀ, row by row.

    Privacy:
        ‖x Yᵀ‖_F ≤ rτ: two differ by at most 2rτ, attained by Y' = -Y.
    """

    @property
    def body(self) -> Body:
        """A ball of radius rτ."""
        reach = self.radius * self.bound
        return Body(reach, 2 * reach, np.ones(self.width * self.coefficients))

    def vectors(self, records: Records) -> FloatArray:
        """Products."""
        x = self.scaled(records[0])
        y = clip_rows(records[1][:, : self.coefficients], self.bound)
        return np.asarray((x[:, :, None] * y[:, None, :]).reshape(len(x), -1))


@dataclass(frozen=True, kw_only=True, eq=False)
class PairRadiusCount(RadiusCount, name="pair_radius_count"):
    """How many curves lie within a public radius, whatever their covariates.

    Privacy:
        That of `RadiusCount`.

    Attributes:
        covariates: numbers in a vector x, which are not looked at.
    """

    covariates: int = whole(most=1 << 12)

    @property
    def columns(self) -> tuple[int, ...]:
        """Vectors and coefficients."""
        return self.covariates, len(self.center)

    def block(self, records: Records) -> IntArray:
        """The count."""
        return super().block(records[1:])

    @classmethod
    def examples(cls) -> list[Self]:
        """Two covariates, pure."""
        cost, center = Cost(epsilon=1.0), np.zeros(2)
        return [cls(cost=cost, n=5, center=center, axes=np.ones(2), radius=1.0, covariates=2)]
