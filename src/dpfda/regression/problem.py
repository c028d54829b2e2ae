"""The public facts of a regression: task, bounds and budget. Never holds data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.privacy.calibration import gaussian_mu

Task = Literal["linear", "logistic"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What everybody may know before any row is read.

    Attributes:
        task: ``linear`` (targets within `target_radius` of `target_center`) or ``logistic`` (0/1).
        epsilon, delta: the whole budget; δ = 0 asks for pure ε.
        center, radius: every row lies in this ball, or is clipped to it.
        fit_intercept: whether predictions may have a constant term.
        rows: how many rows there are, where it is known beforehand (public).

    Example:
        >>> problem = Problem(task="linear", epsilon=0.5, delta=1e-5, center=np.zeros(3))
        >>> problem.dimension, round(problem.mu, 4)
        (3, 0.1422)
    """

    task: Task
    epsilon: float
    delta: float
    center: FloatArray
    radius: float = 1.0
    target_center: float = 0.0
    target_radius: float = 1.0
    fit_intercept: bool = True
    rows: int | None = None

    def __post_init__(self) -> None:
        _validate.one_of("task", self.task, ("linear", "logistic"))
        _validate.positive("epsilon", self.epsilon)
        if self.delta:
            _validate.fraction("delta", self.delta)
        _validate.positive("feature_norm_bound", self.radius)
        _validate.positive("target_bound", self.target_radius)
        _validate.finite("target_center", self.target_center)

    @property
    def dimension(self) -> int:
        """Number of features D."""
        return len(self.center)

    @property
    def pure(self) -> bool:
        """Whether δ = 0."""
        return not self.delta

    @cached_property
    def mu(self) -> float:
        """μ of the whole budget: the Gaussian mechanism with σ = S/μ is exactly (ε, δ)."""
        if self.pure:
            raise InvalidParameter("delta", "above 0 for Gaussian noise", self.delta)
        return gaussian_mu(epsilon=self.epsilon, delta=self.delta)

    def clarity(self, rows: int) -> float:
        """nμ/√D: below 10, noise hides nearly everything; above 1000, very little."""
        budget = self.epsilon if self.pure else self.mu
        return rows * budget / math.sqrt(self.dimension)

    def require_delta(self, method: str) -> None:
        """Refuse δ = 0 for a method that has no exact pure-ε sampler."""
        if self.pure:
            raise InvalidParameter("delta", f"above 0 for method {method!r}", self.delta)


def center_vector(center: Any, dimension: int) -> FloatArray:
    """A public centre as a vector; one number stands for all features."""
    vector = np.asarray(center, dtype=np.float64)
    if vector.ndim == 0:
        vector = np.full(dimension, float(vector))
    if vector.shape != (dimension,) or not np.all(np.isfinite(vector)):
        raise InvalidParameter("feature_center", f"a number or {dimension} finite numbers", center)
    return vector
