"""Noisy gradient descent: every step is a pass over the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.regression.fixed_point import BITS, ONE
from dpfda.regression.methods.base import Conversation, Method
from dpfda.regression.methods.gaussian_fm import in_units
from dpfda.regression.problem import Problem
from dpfda.regression.rows import unit_rows
from dpfda.regression.stage import Stage


@dataclass(frozen=True, kw_only=True)
class GradientStage(Stage):
    """Σ r(x, y; θ) x, with |r| ≤ 1 and |x| ≤ 1.

    Privacy:
        Euclidean sensitivity 2: two gradients of length 1.
    """

    problem: Problem
    theta: FloatArray

    @property
    def weights(self) -> FloatArray:
        """Grid steps to units."""
        return np.full(len(self.theta), 2.0 ** (-2 * BITS))

    @property
    def sensitivity(self) -> float:
        """Two unit vectors apart."""
        return 2.0

    def block(self, rows: FloatArray, targets: FloatArray) -> FloatArray:
        """Exact sum of the gradients, the residual cut to the grid."""
        x, v = unit_rows(self.problem, rows, targets)
        line = x @ (self.theta / ONE)
        if self.problem.task == "linear":
            residual = np.clip(line - v / ONE, -1.0, 1.0)  # a long residual is clipped
        else:
            residual = 1 / (1 + np.exp(-np.clip(line, -50, 50))) - (v > 0)
        return np.asarray(np.trunc(residual * ONE) @ x)


@dataclass(frozen=True, kw_only=True)
class NoisyGradient(Method, name="noisy_gradient"):
    """Full-batch gradient descent with Gaussian noise in every step.

    Privacy:
        T Gaussian releases of sensitivity 2, each with μ/√T. Gaussian releases compose exactly
        (Σμ_i² = μ²), which is never worse than the Rényi accounting of 002 and equals the
        privacy-loss-distribution value.

    Attributes:
        steps: T.

    Example:
        >>> NoisyGradient(steps=10).steps
        10
    """

    steps: int = 25

    def __post_init__(self) -> None:
        _validate.whole("steps", self.steps)

    def converse(self, problem: Problem) -> Conversation:
        """T questions; the answer is the average of the second half of the path."""
        problem.require_delta(self.name)
        theta = np.zeros(problem.dimension + problem.fit_intercept)
        rate = 1.0 if problem.task == "linear" else 4.0  # 1/smoothness
        path = []
        for _ in range(self.steps):
            stage = GradientStage(
                problem=problem, theta=theta, budget=problem.mu / math.sqrt(self.steps)
            )
            answer = yield stage
            theta = theta - rate * answer.values / answer.n
            path.append(theta)
        average = np.mean(path[self.steps // 2 :], axis=0)
        unit = problem.target_radius if problem.task == "linear" else 1.0
        return in_units(problem, average, unit=unit)
