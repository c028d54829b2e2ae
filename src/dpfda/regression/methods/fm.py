"""Functional mechanism (Zhang et al. 2012): Laplace noise on the objective's coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from dpfda.regression.methods.base import Conversation, Method
from dpfda.regression.methods.gaussian_fm import COEFFICIENTS, TAYLOR, minimise, moment_stage
from dpfda.regression.moment_stage import MomentStage
from dpfda.regression.problem import Problem


@dataclass(frozen=True, kw_only=True)
class FunctionalStage(MomentStage):
    """Moments with the sensitivity bound of the functional mechanism for rows in the unit ball."""

    bound: float

    @property
    def sensitivity(self) -> float:
        """As published: twice the largest coefficient vector of one person."""
        return self.bound


@dataclass(frozen=True, kw_only=True)
class FunctionalMechanism(Method, name="fm"):
    """Laplace noise on every coefficient of the objective.

    Privacy:
        Pure ε. Sum of absolutes of one person's coefficients, doubled: 2(1 + √D)² for the linear
        objective (its constant term included), √D + D/4 for the logistic one, with |x|₂ ≤ 1. The
        published 2(1 + D)² and D²/4 + 3D are for |x_d| ≤ 1 and appear in the reproductions.

    Example:
        >>> published_l1("linear", 4)
        18.0
    """

    pure: ClassVar[bool] = True
    floor: float = 2.0

    def converse(self, problem: Problem) -> Conversation:
        """One question, one answer."""
        size = problem.dimension + problem.fit_intercept
        linear, quadratic = COEFFICIENTS[problem.task]
        plain = moment_stage(
            problem,
            budget=problem.epsilon,
            noise="laplace",
            linear_weight=linear,
            quadratic_weight=quadratic,
        )
        stage = FunctionalStage(**vars(plain), bound=published_l1(problem.task, size))
        moments = stage.read((yield stage))
        floor = self.floor * moments.quadratic_sigma * math.sqrt(size)
        return replace(
            minimise(problem, moments, floor=floor, curvature=TAYLOR),
            covariance=None,  # the first-order formula is for Gaussian noise
        )


def published_l1(task: str, dimension: int) -> float:
    """Sum-of-absolutes sensitivity for |x|₂ ≤ 1, times N."""
    if task == "linear":
        return 2 * (1 + math.sqrt(dimension)) ** 2
    return math.sqrt(dimension) + dimension / 4
