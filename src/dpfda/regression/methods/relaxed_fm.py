"""Relaxed functional mechanism (Ding et al. 2020): the same Gaussian noise on every coefficient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.privacy.cost import Cost
from dpfda.regression.methods.base import Regression
from dpfda.regression.methods.gaussian_fm import ObjectiveLook, ObjectiveMethod, about_all
from dpfda.regression.problem import Bounds

PUBLISHED_L2 = {"linear": 2 * math.sqrt(6), "logistic": math.sqrt(17 / 16)}
"""The triangle inequality of its authors, for |x|₂ ≤ 1; linear: constant term included."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EqualLook(ObjectiveLook, name="regression_equal"):
    """Coefficients of the objective; every entry of the upper triangle gets the same noise.

    Privacy:
        `PUBLISHED_L2`.
    """

    # Published and kept for comparison: two people are never as far apart. Searches find .82, .97.
    attained: ClassVar[float | None] = 0.8

    @property
    def triangle(self) -> FloatArray:
        """All alike."""
        return np.ones(self.coefficients * (self.coefficients + 1) // 2)

    @property
    def l2(self) -> float:
        """As published."""
        return PUBLISHED_L2[self.task]

    @classmethod
    def examples(cls) -> list[Self]:
        """Both tasks."""
        cost, bounds = Cost(epsilon=1.0, delta=0.05), Bounds(center=np.zeros(2))
        return [cls(cost=cost, bounds=bounds, task=task) for task in ("linear", "logistic")]


@dataclass(frozen=True, kw_only=True)
class RelaxedFM(ObjectiveMethod, name="relaxed_fm"):
    """Gaussian noise of one size on all coefficients.

    Privacy:
        (ε, δ), calibrated exactly, with the triangle-inequality bound of its authors for |x|₂ ≤ 1:
        2√6 (linear, constant term included) and √(17/16) (logistic).

    Example:
        >>> RelaxedFM().floor
        2.0
    """

    def look(self, regression: Regression) -> EqualLook:
        """With the published bound."""
        return EqualLook(**about_all(regression), task=regression.problem.task)
