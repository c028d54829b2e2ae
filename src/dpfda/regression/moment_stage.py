"""The question at the heart of every least-squares method: Σ xy and Σ xxᵀ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray
from dpfda.regression.fixed_point import BITS, ball, segment
from dpfda.regression.rows import with_constant
from dpfda.regression.sensitivity import joint_l1, joint_l2
from dpfda.regression.stage import Noisy, Stage
from dpfda.regression.symmetric import svec_weights, unfold, upper


@dataclass(frozen=True)
class Moments:
    """Noisy means, in units of the clipping radii.

    Attributes:
        linear: mean of xy.
        quadratic: mean of xxᵀ.
        linear_sigma: standard deviation of the noise on `linear`.
        quadratic_sigma: of the noise on the diagonal of `quadratic`; off it, 1/√2 of that.
    """

    linear: FloatArray
    quadratic: FloatArray
    linear_sigma: float
    quadratic_sigma: float


@dataclass(frozen=True, kw_only=True)
class MomentStage(Stage):
    """Σ (w1 xy, w2 svec xxᵀ), x and y clipped to given balls and measured in their radii.

    Privacy:
        One vector of Euclidean sensitivity `joint_l2(w1, w2)` (C7); with Laplace noise, of ℓ1
        sensitivity `joint_l1(w1, w2)` over all D² entries.

    Attributes:
        center, radius, target_center, target_radius: the balls.
        linear_weight, quadratic_weight: w1, w2.
        constant: append a constant feature, so that the line has an intercept: the row becomes
            (x, 1)/√2, which stays in the unit ball.
    """

    center: FloatArray
    radius: float
    target_center: float
    target_radius: float
    linear_weight: float = 1.0
    quadratic_weight: float = 1.0
    constant: bool = False

    @property
    def dimension(self) -> int:
        """Length of x, the constant included."""
        return len(self.center) + self.constant

    @property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        square = 2.0 ** (-2 * BITS)
        # Laplace: each off-diagonal entry stands for two of the matrix.
        triangle = svec_weights(self.dimension)
        triangle = triangle if self.noise == "gaussian" else triangle**2
        return square * np.concatenate(
            [np.full(self.dimension, self.linear_weight), self.quadratic_weight * triangle]
        )

    @property
    def sensitivity(self) -> float:
        """`joint_l2` or `joint_l1`."""
        if self.noise == "gaussian":
            return joint_l2(self.linear_weight, self.quadratic_weight)
        return joint_l1(self.linear_weight, self.quadratic_weight, dimension=self.dimension)

    def block(self, rows: FloatArray, targets: FloatArray) -> FloatArray:
        """Exact sums, by one matrix product each."""
        x = ball(rows, center=self.center, radius=self.radius)
        if self.constant:
            x = with_constant(x)
        y = segment(targets, center=self.target_center, radius=self.target_radius)
        return np.concatenate([y @ x, upper(x.T @ x)])

    def read(self, answer: Noisy) -> Moments:
        """Noisy means with their noise levels."""
        mean, noise = answer.values / answer.n, answer.sigma / answer.n
        size = self.dimension
        square = 2.0 ** (-2 * BITS)
        return Moments(
            linear=mean[:size] / self.linear_weight,
            quadratic=unfold(mean[size:] * square / self.weights[size:], size),
            linear_sigma=noise / self.linear_weight,
            quadratic_sigma=noise / self.quadratic_weight,
        )
