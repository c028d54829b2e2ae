"""AdaSSP (Wang 2018): noisy sums and a ridge chosen from a noisy smallest eigenvalue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.regression.fixed_point import BITS
from dpfda.regression.methods.base import Conversation, Method
from dpfda.regression.methods.gaussian_fm import in_units, moment_stage
from dpfda.regression.moment_stage import MomentStage
from dpfda.regression.problem import Problem
from dpfda.regression.sensitivity import joint_l2
from dpfda.regression.stage import Noisy
from dpfda.regression.symmetric import noise_covariance, unfold


@dataclass(frozen=True, kw_only=True)
class EigenvalueStage(MomentStage):
    """(λ_min(Σxxᵀ), Σxy/2, svec Σxxᵀ/√2): every part moves by at most 1.

    Privacy:
        λ_min is 1-Lipschitz in the spectral norm, |xxᵀ - x'x'ᵀ|₂ ≤ 1; the moments add `joint_l2`.
    """

    additive: ClassVar[bool] = True
    linear_in_rows: ClassVar[bool] = False

    @property
    def weights(self) -> FloatArray:
        """One place in front, for the eigenvalue."""
        return np.concatenate([[2.0 ** (-2 * BITS)], super().weights])

    @property
    def sensitivity(self) -> float:
        """√(1² + joint²)."""
        return math.hypot(1.0, joint_l2(self.linear_weight, self.quadratic_weight))

    def block(self, rows: FloatArray, targets: FloatArray) -> FloatArray:
        """The moments; the eigenvalue comes with `statistic`."""
        return np.concatenate([[0.0], super().block(rows, targets)])

    def statistic(self, totals: IntArray) -> FloatArray:
        """Weighted moments with their smallest eigenvalue in front."""
        size = self.dimension
        matrix = unfold(np.asarray(totals[1 + size :] * 2.0 ** (-2 * BITS)), size)
        values = np.asarray(totals * self.weights)
        values[0] = np.linalg.eigvalsh(matrix)[0]
        return values


@dataclass(frozen=True, kw_only=True)
class AdaSSP(Method, name="adassp"):
    """Noisy XᵀX and Xᵀy with an adaptive ridge; a logistic task regresses the label ±1.

    Privacy:
        The three statistics are one Gaussian release of joint sensitivity 1.6 (three separate ones:
        √3); exact calibration.

    Attributes:
        failure: probability that the ridge is too small.

    Example:
        >>> AdaSSP().failure
        0.05
    """

    failure: float = 0.05

    def __post_init__(self) -> None:
        _validate.fraction("failure", self.failure)

    def converse(self, problem: Problem) -> Conversation:
        """One question, one answer."""
        problem.require_delta(self.name)
        plain = moment_stage(
            problem, budget=problem.mu, linear_weight=0.5, quadratic_weight=math.sqrt(0.5)
        )
        stage = EigenvalueStage(**vars(plain))
        answer = yield stage
        size = stage.dimension
        tail = math.sqrt(2 * math.log(6 / self.failure)) * answer.sigma
        smallest = max(0.0, float(answer.values[0]) - tail)
        moments = MomentStage.read(plain, Noisy(answer.values[1:], answer.sigma, answer.n))
        spread = math.sqrt(size * math.log(2 * size**2 / self.failure))
        ridge = max(0.0, spread * moments.quadratic_sigma * answer.n - smallest) / answer.n
        inverse = np.asarray(
            np.linalg.pinv(moments.quadratic + ridge * np.eye(size), hermitian=True)
        )
        w = inverse @ moments.linear
        covariance = noise_covariance(
            inverse, w, linear=moments.linear_sigma, quadratic=moments.quadratic_sigma
        )
        # A logistic task: the line predicts ±1; around it, log-odds are about twice the line.
        unit = problem.target_radius if problem.task == "linear" else 2.0
        return in_units(problem, w, unit=unit, covariance=covariance)
