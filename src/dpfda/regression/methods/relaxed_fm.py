"""Relaxed functional mechanism (Ding et al. 2020): the same Gaussian noise on every coefficient."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray
from dpfda.regression.fixed_point import BITS
from dpfda.regression.methods.base import Conversation, Method
from dpfda.regression.methods.fm import FunctionalStage
from dpfda.regression.methods.gaussian_fm import COEFFICIENTS, TAYLOR, minimise, moment_stage
from dpfda.regression.problem import Problem


@dataclass(frozen=True, kw_only=True)
class EqualStage(FunctionalStage):
    """Every entry of the upper triangle gets the same noise."""

    @property
    def weights(self) -> FloatArray:
        """Grid steps to the objective's coefficients."""
        entries = self.dimension * (self.dimension + 1) // 2
        return 2.0 ** (-2 * BITS) * np.concatenate(
            [np.full(self.dimension, self.linear_weight), np.full(entries, self.quadratic_weight)]
        )


@dataclass(frozen=True, kw_only=True)
class RelaxedFM(Method, name="relaxed_fm"):
    """Gaussian noise of one size on all coefficients.

    Privacy:
        (ε, δ), calibrated exactly, with the triangle-inequality bound of its authors for |x|₂ ≤ 1:
        2√6 (linear, constant term included) and √(17/16) (logistic).

    Example:
        >>> RelaxedFM().floor
        2.0
    """

    floor: float = 2.0

    def converse(self, problem: Problem) -> Conversation:
        """One question, one answer."""
        problem.require_delta(self.name)
        linear, quadratic = COEFFICIENTS[problem.task]
        plain = moment_stage(
            problem, budget=problem.mu, linear_weight=linear, quadratic_weight=quadratic
        )
        bound = 2 * math.sqrt(6) if problem.task == "linear" else math.sqrt(17 / 16)
        stage = EqualStage(**vars(plain), bound=bound)
        moments = stage.read((yield stage))
        floor = self.floor * moments.quadratic_sigma * math.sqrt(stage.dimension)
        return minimise(problem, moments, floor=floor, curvature=TAYLOR)
