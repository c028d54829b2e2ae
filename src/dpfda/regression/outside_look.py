"""How many rows lie outside their public ranges, asked before a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import number, vector
from dpfda.protocol.query import AdditiveLook, Records
from dpfda.regression.look import RowLook

MARGIN = 1e-9
"""Of the width of a range: values outside are moved to its end, and that much further, so that they
can be told from values at the end."""
OUTSIDE = (
    "more than a few people lie outside feature_ranges or target_range: these are probably too "
    "small, and what is outside was moved to the nearest end, which bends the result"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class OutsideCount(RowLook, AdditiveLook, name="regression_outside"):
    """How many rows have a feature, or a target, outside its range.

    Privacy:
        A neighbor moves the count by 1.

    Attributes:
        low, high: of the features.
        target_low, target_high: of the targets.
    """

    low: FloatArray = vector("features")
    high: FloatArray = vector("features")
    target_low: float = number()
    target_high: float = number()

    l1, l2, size, largest = 1.0, 1.0, 1, 1

    @property
    def dimension(self) -> int:
        """Width of the rows."""
        return len(self.low)

    def block(self, records: Records) -> IntArray:
        """The count."""
        rows, targets = records
        room = MARGIN / 2 * (self.high - self.low)
        outside = ((rows < self.low - room) | (rows > self.high + room)).any(axis=1)
        outside |= (targets < self.target_low) | (targets > self.target_high)
        return np.array([np.count_nonzero(outside)])

    def statistic(self, totals: IntArray) -> FloatArray:
        """As a float."""
        return totals.astype(np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two features; pure, and a part of a Gaussian budget."""
        low, high = np.array([-1.0, 0.2]), np.ones(2)
        costs = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [
            cls(cost=cost, low=low, high=high, target_low=0.0, target_high=0.5) for cost in costs
        ]
