"""Noisy gradient descent: every step is a pass over the data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.central.regression.base import Fitted, Regression, RegressionMechanism
from dpfda.central.regression.problem import ONE, SQUARE, Bounds, Problem
from dpfda.central.regression.queries import ProblemQuery, RowSums
from dpfda.central.regression.single_release import in_units
from dpfda.errors import InvalidParameter
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import vector, whole
from dpfda.protocol.query import Records


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientQuery(RowSums, ProblemQuery, name="regression_gradient"):
    """Σ r(x, y; θ) x, with |r| ≤ 1 and |x| ≤ 1.

    Privacy:
        Euclidean sensitivity 2: two gradients of length 1.

    Attributes:
        theta: where the gradient is taken.
    """

    l2 = 2.0

    theta: FloatArray = vector("coefficients")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.theta) != self.problem.size:
            raise InvalidParameter("theta", f"of length {self.problem.size}", len(self.theta))

    @cached_property
    def weights(self) -> FloatArray:
        """Grid steps to units."""
        return np.full(self.problem.size, SQUARE)

    def block(self, records: Records) -> FloatArray:
        """Exact sum of the gradients, the residual cut to the grid."""
        x, v = self.problem.unit_rows(*records)
        line = np.einsum("ij,j->i", x, self.theta / ONE)  # row by row: BLAS rounds as rows lie
        if self.problem.link == "linear":
            residual = np.clip(line - v / ONE, -1.0, 1.0)  # a long residual is clipped
        else:
            residual = expit(line) - (v > 0)
        return np.asarray(np.trunc(residual * ONE) @ x)

    @classmethod
    def examples(cls) -> list[Self]:
        """Both losses; the logistic one at a steep line, where the sensitivity is reached."""
        cost, bounds = Cost(epsilon=1.0, delta=0.05), Bounds(center=np.zeros(2))
        line = Problem(link="linear", bounds=bounds)
        classes = Problem(link="logistic", bounds=bounds, fit_intercept=False)
        return [
            cls(cost=cost.part(Fraction(1, 25)), problem=line, theta=np.zeros(3)),
            cls(cost=cost, problem=classes, theta=np.array([300.0, 100.0])),
        ]


@dataclass(frozen=True, kw_only=True)
class NoisyGradient(RegressionMechanism, name="noisy_gradient"):
    """Full-batch gradient descent with Gaussian noise in every step.

    Privacy:
        T Gaussian releases of sensitivity 2, each with μ/√T. Gaussian releases compose exactly
        (Σμ_i² = μ²), which is never worse than the Rényi accounting of 002 and equals the
        privacy-loss-distribution value.

    Attributes:
        steps: T.

    Examples:
        >>> NoisyGradient(steps=10).steps
        10
    """

    shows_rows = False

    steps: int = whole(default=25)

    def questions(self, regression: Regression) -> Questions[Fitted]:
        """T questions; the answer is the average of the second half of the path."""
        problem = regression.problem
        theta = np.zeros(problem.size)
        rate = 1.0 if problem.link == "linear" else 4.0  # 1/smoothness
        cost = regression.whole.part(Fraction(1, self.steps))
        path = []
        for _ in range(self.steps):
            answer = yield GradientQuery(
                cost=cost, unit=regression.unit, problem=problem, theta=theta
            )
            theta = theta - rate * answer.values / answer.n
            path.append(theta)
        average = np.mean(path[self.steps // 2 :], axis=0)
        return in_units(problem, average)
