"""Say whether a candidate classifier is right on you (000 and 001, step 4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import Source
from dpfda.protocol.task import Task, check_answerer


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationTask(Task, name="evaluation"):
    """Answer whether a candidate's label is mine, through randomized response.

    The candidate is a `CurveModel` in rows: m scores, the largest wins; one score tells label 1
    from label 0 by its sign.

    Privacy:
        ε-LDP for curve and label together: the reply is one randomized bit.

    Attributes:
        intercept: shape (n, m).
        coefficients: shape (n, m, d), for the first d features.
        centres: shape (n, m, d).
        scales: shape (n, m, d).
        clipped: whether centred and scaled features are clipped to ±1.

    Example:
        >>> task = EvaluationTask(
        ...     epsilon=1.0, people=1, intercept=[[0.1]], coefficients=[[[1.0, -1.0]]],
        ...     centres=[[[0.0, 0.0]]], scales=[[[1.0, 1.0]]],
        ... )
        >>> task.width
        1
    """

    intercept: FloatArray
    coefficients: FloatArray
    centres: FloatArray
    scales: FloatArray
    clipped: bool = False

    @classmethod
    def _arrays(cls) -> dict[str, str]:
        return dict.fromkeys(("intercept", "coefficients", "centres", "scales"), "real")

    @cached_property
    def mechanism(self) -> RandomizedResponse:
        """Randomized response on one bit."""
        return RandomizedResponse(epsilon=self.epsilon)

    @property
    def width(self) -> int:
        """One bit."""
        return 1

    def answer(self, features: FloatArray, labels: IntArray, rng: Source) -> FloatArray:
        """+1: the candidate is right on me; -1: it is wrong; randomized."""
        z, y = check_answerer(self, features, labels)
        scaled = (z[:, None, : self.coefficients.shape[2]] - self.centres) / self.scales
        if self.clipped:
            scaled = np.clip(scaled, -1, 1)
        scores = self.intercept + np.einsum("nmd,nmd->nm", self.coefficients, scaled)
        decided = scores[:, 0] >= 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.mechanism.randomize(np.where(decided == y, 1.0, -1.0), rng)[:, None]

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """One bit."""
        return np.asarray(np.abs(reply[:, 0]) == 1)
