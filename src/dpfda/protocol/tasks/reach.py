"""Answer k yes/no questions about how far the largest of some features lies from 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.noise import Source
from dpfda.protocol.fields import array
from dpfda.protocol.query import Records
from dpfda.protocol.tasks.stump import QuestionsTask


@dataclass(frozen=True, kw_only=True, eq=False)
class ReachTask(QuestionsTask, name="reach"):
    """Answer sgn(max_j |z_j| - t), the largest over some coordinates: "does any exceed t?".

    Without a curve's level, its other coefficients say how large its ups and downs are. One number
    that needs no middle finds the scale of all of them.

    Privacy:
        ε-LDP for curve and label together: all k answers go through one k-question response.

    Attributes:
        coordinates: over which z_j the largest is taken, shape (n, k, w).
        thresholds: the t, shape (n, k).

    Examples:
        >>> task = ReachTask(epsilon=1.0, people=1, coordinates=[[[1, 2]]], thresholds=[[0.1]])
        >>> z = np.array([[0.9, 0.0, -0.2]])
        >>> float(task.exact((z, np.zeros(1)), None)[0, 0])
        1.0
    """

    coordinates: IntArray = array("whole", "people", "k", "w", least=0, most=1 << 20)
    thresholds: FloatArray = array("real", "people", "k")

    @property
    def columns(self) -> int:
        """Up to the last coordinate that is asked about."""
        return int(self.coordinates.max(initial=-1)) + 1

    def exact(self, records: Records, source: Source) -> FloatArray:
        """True answers, ±1."""
        z = records[0]
        n, k, w = self.coordinates.shape
        asked = np.take_along_axis(z, self.coordinates.reshape(n, k * w), axis=1)
        largest = np.abs(asked).reshape(n, k, w).max(axis=2, initial=0.0)
        return np.where(largest > self.thresholds, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """One question about two features, and two."""
        return [
            cls(epsilon=1.0, people=1, coordinates=[[[0, 1]]], thresholds=[[0.1]]),  # type: ignore[arg-type]
            cls(epsilon=2.0, people=1, coordinates=[[[1], [1]]], thresholds=[[0.1, 0.4]]),  # type: ignore[arg-type]
        ]
