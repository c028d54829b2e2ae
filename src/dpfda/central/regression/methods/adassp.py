"""AdaSSP (Wang 2018): noisy sums and a ridge chosen from a noisy smallest eigenvalue."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.regression.methods.base import Fitted, Regression, RegressionMechanism
from dpfda.central.regression.methods.gaussian_fm import about_all, in_units, of_public_balls
from dpfda.central.regression.problem import SQUARE, Bounds, eigenvalue_l2
from dpfda.central.regression.queries import MomentQuery, Moments
from dpfda.curves.matrices import unfold
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import number
from dpfda.protocol.query import Answer, Records


@dataclass(frozen=True, kw_only=True, eq=False)
class EigenvalueQuery(MomentQuery, name="regression_eigenvalue"):
    """(λ_min(Σxxᵀ), w1 Σxy, w2 svec Σxxᵀ).

    Privacy:
        `eigenvalue_l2(w1, w2)`: λ_min moves by no more than the largest eigenvalue of xxᵀ - x'x'ᵀ,
        which is short where the moments move far.
    """

    linear: ClassVar[bool] = False

    @cached_property
    def weights(self) -> FloatArray:
        """One place in front, for the eigenvalue."""
        return np.concatenate([[SQUARE], self.moment_weights])

    @property
    def l2(self) -> float:
        """`eigenvalue_l2`."""
        return eigenvalue_l2(self.linear_weight, self.quadratic_weight)

    def block(self, records: Records) -> FloatArray:
        """The moments; the eigenvalue comes with `statistic`."""
        return np.concatenate([[0.0], super().block(records)])

    def statistic(self, totals: IntArray) -> FloatArray:
        """Weighted moments with their smallest eigenvalue in front."""
        size = self.coefficients
        values = super().statistic(totals)
        matrix = unfold(np.asarray(totals[1 + size :] * SQUARE), size)
        values[0] = np.linalg.eigvalsh(matrix)[0]
        return values

    def read(self, answer: Answer) -> Moments:
        """The moments behind the eigenvalue."""
        return super().read(replace(answer, values=answer.values[1:]))

    @classmethod
    def examples(cls) -> list[Self]:
        """AdaSSP's weights, and others."""
        cost, bounds = Cost(epsilon=1.0, delta=0.05), Bounds(center=np.zeros(2))
        return [
            cls(cost=cost, bounds=bounds, linear_weight=linear, quadratic_weight=quadratic)
            for linear, quadratic in ((0.5, math.sqrt(0.5)), (1.0, 0.3))
        ]


@dataclass(frozen=True, kw_only=True)
class AdaSSP(RegressionMechanism, name="adassp"):
    """Noisy XᵀX and Xᵀy with an adaptive ridge; a logistic link regresses the label ±1.

    Privacy:
        The three statistics are one Gaussian release of joint sensitivity √2.53 = 1.59 (three
        separate ones: √3); exact calibration.

    Attributes:
        failure: probability that the ridge is too small.

    Examples:
        >>> AdaSSP().failure
        0.05
    """

    failure: float = number(least=1e-6, most=0.999999, default=0.05)

    def questions(self, regression: Regression) -> Questions[Fitted]:
        """One question, one answer."""
        problem = regression.problem
        look = EigenvalueQuery(
            **about_all(regression), linear_weight=0.5, quadratic_weight=math.sqrt(0.5)
        )
        answer = yield look
        size = problem.size
        tail = math.sqrt(2 * math.log(6 / self.failure)) * answer.sigma
        smallest = max(0.0, float(answer.values[0]) - tail)
        moments = look.read(answer)
        spread = math.sqrt(size * math.log(2 * size**2 / self.failure))
        ridge = max(0.0, spread * moments.quadratic_sigma * answer.n - smallest) / answer.n
        inverse = np.linalg.pinv(moments.quadratic + ridge * np.eye(size), hermitian=True)
        # A logistic link: the line predicts ±1; around it, log-odds are about twice the line.
        fitted = in_units(problem, inverse @ moments.linear, logit=2.0)
        return replace(fitted, released=of_public_balls(problem, moments, rows=answer.n))
