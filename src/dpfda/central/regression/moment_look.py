"""The question at the heart of every least-squares method: Σ xy and Σ xxᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.regression.fixed_point import SQUARE, with_constant
from dpfda.central.regression.look import RowSums
from dpfda.central.regression.problem import Bounds
from dpfda.central.regression.sensitivity import joint_l1, joint_l2
from dpfda.curves.symmetric import svec_weights, unfold
from dpfda.privacy.cost import Cost
from dpfda.protocol.answer import Answer
from dpfda.protocol.fields import flag, number, part
from dpfda.protocol.query import Records


@dataclass(frozen=True)
class Moments:
    """Noisy means, in units of the clipping radii.

    Attributes:
        linear: mean of xy.
        quadratic: mean of xxᵀ.
        linear_sigma: standard deviation of the noise on `linear`.
        quadratic_sigma: of the noise on the diagonal of `quadratic`.
        quadratic_variance: of the noise on all its entries, (p, p).
    """

    linear: FloatArray
    quadratic: FloatArray
    linear_sigma: float
    quadratic_sigma: float
    quadratic_variance: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentLook(RowSums, name="regression_moments"):
    """Σ (w1 xy, w2 svec xxᵀ), x and y clipped to given balls and measured in their radii.

    Privacy:
        One vector of Euclidean sensitivity `joint_l2(w1, w2)` (C7).

    Attributes:
        bounds: the balls.
        linear_weight, quadratic_weight: w1, w2.
        constant: append a constant feature, so that the line has an intercept: the row becomes
            (x, 1)/√2, which stays in the unit ball.
        weighted: shorten a target as its row is shortened, so that a row far out counts less and
            slopes are those of unshortened rows; otherwise the row alone is shortened.
    """

    bounds: Bounds = part(lambda: Bounds)
    linear_weight: float = number(least=1e-6, most=1e6, default=1.0)
    quadratic_weight: float = number(least=1e-6, most=1e6, default=1.0)
    constant: bool = flag(default=False)
    weighted: bool = flag(default=False)

    @property
    def dimension(self) -> int:
        """D."""
        return self.bounds.dimension

    @property
    def coefficients(self) -> int:
        """Length of x, the constant included."""
        return self.dimension + self.constant

    @property
    def triangle(self) -> FloatArray:
        """Weights of the entries of the upper triangle: those of `svec`."""
        return svec_weights(self.coefficients)

    @cached_property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        return self.moment_weights

    @property
    def moment_weights(self) -> FloatArray:
        """Those of linear and quadratic sums."""
        linear = np.full(self.coefficients, self.linear_weight)
        return SQUARE * np.concatenate([linear, self.quadratic_weight * self.triangle])

    @property
    def l2(self) -> float:
        """`joint_l2`."""
        return joint_l2(self.linear_weight, self.quadratic_weight)

    def block(self, records: Records) -> FloatArray:
        """Exact sums, by one matrix product each."""
        x, targets = self.bounds.rows(records[0]), self.bounds.targets(records[1])
        if self.weighted:
            targets = np.trunc(targets * self.bounds.kept(records[0]))
        if self.constant:
            x = with_constant(x)
        triangle = (x.T @ x)[np.triu_indices(self.coefficients)]
        return np.concatenate([targets @ x, triangle])

    def read(self, answer: Answer) -> Moments:
        """Noisy means with their noise levels."""
        mean, noise = answer.values / answer.n, answer.sigma / answer.n
        size = self.coefficients
        weights = self.moment_weights[size:] / SQUARE
        return Moments(
            linear=mean[:size] / self.linear_weight,
            quadratic=unfold(mean[size:] / weights, size),
            linear_sigma=noise / self.linear_weight,
            quadratic_sigma=noise / self.quadratic_weight,
            quadratic_variance=unfold((noise / weights) ** 2, size),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """Both sides of the free ride of the linear part, with a constant and without."""
        whole = Cost(epsilon=1.0, delta=0.05)
        far = Bounds(center=np.array([0.3, -0.2, 0.1]), radius=2.0, target_center=0.5)
        plain = Bounds(center=np.zeros(2))
        return [
            cls(cost=whole.part(0.8), bounds=plain),
            cls(cost=whole, bounds=far, linear_weight=2.0, quadratic_weight=1.4),
            cls(cost=whole, bounds=plain, linear_weight=2.0, constant=True),
            cls(cost=whole, bounds=far, weighted=True),
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class AbsoluteMomentLook(MomentLook, name="regression_absolute_moments"):
    """Σ (w1 xy, w2 xxᵀ), measured by the sum of absolutes over all D² entries: for pure ε.

    Privacy:
        `joint_l1(w1, w2)`; an entry off the diagonal stands for two of the matrix.
    """

    # The two norms of `joint_l1` are not at their worst for the same rows: searches find .76 for
    # one feature, .97 for two.
    attained: ClassVar[float | None] = 0.7

    @property
    def triangle(self) -> FloatArray:
        """1 on the diagonal, 2 off it."""
        return svec_weights(self.coefficients) ** 2

    @property
    def l2(self) -> float:
        """None."""
        return super(MomentLook, self).l2

    @property
    def l1(self) -> float:
        """`joint_l1`."""
        return joint_l1(self.linear_weight, self.quadratic_weight, dimension=self.coefficients)

    @classmethod
    def examples(cls) -> list[Self]:
        """One dimension and two."""
        whole = Cost(epsilon=1.0)
        return [
            cls(cost=whole.part(0.75), bounds=Bounds(center=np.zeros(1))),
            cls(cost=whole, bounds=Bounds(center=np.zeros(2), radius=3.0), linear_weight=2.0),
        ]
