"""A step of Newton's method towards the logistic fit, from one more noisy sum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.central.regression.fixed_point import ONE, SQUARE
from dpfda.central.regression.look import RowSums
from dpfda.central.regression.problem import Bounds
from dpfda.central.regression.sensitivity import NEWTON_L2
from dpfda.errors import InvalidParameter
from dpfda.privacy.cost import Cost
from dpfda.protocol.answer import Answer
from dpfda.protocol.fields import number, part, vector
from dpfda.protocol.query import Records

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


@dataclass(frozen=True, kw_only=True, eq=False)
class NewtonLook(RowSums, name="regression_newton"):
    """Σ (r x, r, 2p(1-p)) with r = p - y at a public line, x in the unit ball.

    Privacy:
        Euclidean sensitivity √8, that of (r x, r): where residuals are long, p(1 - p) is short
        (`NEWTON_L2` has the proof). Reached by lines so steep that they are certain, and wrong.

    Attributes:
        bounds: the ball of the rows; those of targets play no role.
        theta, offset: the line, on unit-ball rows.
    """

    l2 = NEWTON_L2

    bounds: Bounds = part(lambda: Bounds)
    theta: FloatArray = vector("features")
    offset: float = number()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.theta) != self.dimension:
            raise InvalidParameter("theta", f"of length {self.dimension}", len(self.theta))

    @property
    def dimension(self) -> int:
        """D."""
        return self.bounds.dimension

    @cached_property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        ends = [1 / ONE, _CURVATURE_WEIGHT * SQUARE]
        return np.concatenate([np.full(self.dimension, SQUARE), ends])

    def block(self, records: Records) -> FloatArray:
        """Exact sums; residual and curvature are cut to their grids."""
        x = self.bounds.rows(records[0])
        likely = expit(np.einsum("ij,j->i", x, self.theta / ONE) + self.offset)  # row by row
        residual = np.trunc((likely - (records[1] > 0.5)) * ONE)
        curvature = np.trunc(likely * (1 - likely) * ONE**2)
        return np.concatenate([residual @ x, [residual.sum(), curvature.sum()]])

    @classmethod
    def examples(cls) -> list[Self]:
        """Steep lines, where the sensitivity is reached."""
        whole = Cost(epsilon=1.0, delta=0.05)
        far = Bounds(center=np.array([0.3, -0.2, 0.1]), radius=2.0)
        line = Bounds(center=np.zeros(1))
        return [
            cls(cost=whole.part(0.25), bounds=line, theta=np.array([4e3]), offset=-3980.0),
            cls(cost=whole, bounds=far, theta=np.array([300.0, -200.0, 100.0]), offset=-2.0),
        ]

    def read(self, answer: Answer) -> Slope:
        """Answer means."""
        mean = answer.values / answer.n
        return Slope(
            gradient=mean[:-2],
            balance=float(mean[-2]),
            curvature=float(np.clip(mean[-1] / _CURVATURE_WEIGHT, 0.02, 0.25)),
            sigma=answer.sigma / answer.n,
        )
