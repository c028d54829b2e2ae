"""A step of Newton's method towards the logistic fit, from one more noisy sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.regression.fixed_point import BITS, ONE, ball
from dpfda.regression.stage import Noisy, Stage

_CURVATURE_WEIGHT = 2.0


@dataclass(frozen=True)
class Slope:
    """Noisy means of the logistic loss at a public line.

    Attributes:
        gradient: mean of (p - y) x.
        balance: mean of p - y.
        curvature: mean of p(1 - p).
        sigma: standard deviation of the noise on gradient and balance.
    """

    gradient: FloatArray
    balance: float
    curvature: float
    sigma: float


@dataclass(frozen=True, kw_only=True)
class NewtonStage(Stage):
    """Σ (r x, r, 2p(1-p)) with r = p - y at a public line, x in the unit ball.

    Privacy:
        (r x, r) is at most √2 long, so two of them are at most √8 apart; p(1 - p) lies in [0, ¼],
        which adds ½². Euclidean sensitivity √8.25.

    Attributes:
        center, radius: the ball of the rows.
        theta, offset: the line, on unit-ball rows.
    """

    center: FloatArray
    radius: float
    theta: FloatArray
    offset: float

    @property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        square = 2.0 ** (-2 * BITS)
        ends = [2.0**-BITS, _CURVATURE_WEIGHT * square]
        return np.concatenate([np.full(len(self.theta), square), ends])

    @property
    def sensitivity(self) -> float:
        """√8.25."""
        return math.sqrt(8.25)

    def block(self, rows: FloatArray, targets: FloatArray) -> FloatArray:
        """Exact sums; residual and curvature are cut to their grids."""
        x = ball(rows, center=self.center, radius=self.radius)
        likely = expit(x @ (self.theta / ONE) + self.offset)
        residual = np.trunc((likely - (targets > 0.5)) * ONE)
        curvature = np.trunc(likely * (1 - likely) * ONE**2)
        return np.concatenate([residual @ x, [residual.sum(), curvature.sum()]])

    def read(self, answer: Noisy) -> Slope:
        """Noisy means."""
        mean = answer.values / answer.n
        return Slope(
            gradient=mean[:-2],
            balance=float(mean[-2]),
            curvature=float(np.clip(mean[-1] / _CURVATURE_WEIGHT, 0.02, 0.25)),
            sigma=answer.sigma / answer.n,
        )
