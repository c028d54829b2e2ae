"""What every method is: a conversation of public questions that ends in a predictor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.regression.fixed_point import clip_to_ball
from dpfda.regression.problem import Problem
from dpfda.regression.stage import Noisy, Stage

Conversation = Generator[Stage, Noisy, "Fitted"]
"""Yields stages, is sent their noisy answers, returns the fit."""


@dataclass(frozen=True)
class Fitted:
    """A public predictor x ↦ intercept + slope·(x clipped to a ball).

    For a logistic task the prediction is the log-odds of class 1.

    Attributes:
        slope: coefficients of the clipped, centred row.
        offset: value at the centre.
        center, radius: the ball; `radius` may be infinite (no clipping).
        inflation: how many times larger `slope` is, about, than a slope for rows that nothing
            shortens; from released numbers. 1.0 where no row inside the public bounds is clipped.
        clips: whether rows inside the public bounds may be clipped.
        covariance: of `slope`, from the known privacy noise alone; None if it has no simple form.
            It knows nothing of the bias of clipping.
        warnings: what a reader of the numbers should know.
    """

    slope: FloatArray
    offset: float
    center: FloatArray
    radius: float = float("inf")
    inflation: float = 1.0
    clips: bool = False
    covariance: FloatArray | None = None
    warnings: tuple[str, ...] = ()
    details: dict[str, float] = field(default_factory=dict)

    @property
    def intercept(self) -> float:
        """Value at x = 0 of the line that holds inside the ball."""
        return float(self.offset - self.slope @ self.center)

    def predict(self, rows: FloatArray) -> FloatArray:
        """Predictions, one a row; rows beyond the ball are clipped as in training."""
        if np.isinf(self.radius):
            return np.asarray(rows @ self.slope + self.intercept)
        clipped = clip_to_ball(rows, center=self.center, radius=self.radius)
        return np.asarray(clipped @ self.slope + self.offset)


@dataclass(frozen=True, kw_only=True)
class Method(Registered, family="regression method"):
    """A way to fit. Frozen and public; subclasses state their privacy."""

    pure: ClassVar[bool] = False
    """Whether the fit costs no δ whatever δ was allowed."""

    @abstractmethod
    def converse(self, problem: Problem) -> Conversation:
        """Ask for noisy sums, one stage after the other, and return the fit."""

    def require_task(self, problem: Problem, *tasks: str) -> None:
        """Refuse a task this method is not made for."""
        if problem.task not in tasks:
            raise InvalidParameter("method", f"made for {problem.task} regression", self.name)
