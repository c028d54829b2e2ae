"""How many rows lie outside their public ranges, asked before a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.regression.fixed_point import MOST_FEATURES
from dpfda.central.regression.look import RowLook
from dpfda.errors import ProtocolError
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import whole
from dpfda.protocol.query import AdditiveLook, Records

OUTSIDE = (
    "more than a few people lie outside feature_ranges or target_range: these are probably too "
    "small, and what is outside was moved to the nearest end, which bends the result"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class OutsideCount(RowLook, AdditiveLook, name="regression_outside"):
    """How many records are marked, in their third column, as outside their ranges.

    Whoever reads a table moves rows and targets into their ranges, and marks records of which
    something was outside. No look sees numbers beyond their ranges.

    Privacy:
        A neighbor moves the count by 1.

    Attributes:
        features: width of the rows.
    """

    features: int = whole(least=1, most=MOST_FEATURES)

    l1, l2, size, largest = 1.0, 1.0, 1, 1

    @property
    def dimension(self) -> int:
        """Width of the rows."""
        return self.features

    @property
    def columns(self) -> tuple[int, ...]:
        """Rows, targets and marks."""
        return (self.features, 0, 0)

    def fitting(self, records: Records) -> Records:
        """The marks of records of the right shapes."""
        self.shaped(records)
        if len(records) != 3:
            raise ProtocolError(f"{self.name} asks for a mark of every row")
        return (records[2] > 0,)

    def block(self, records: Records) -> IntArray:
        """The count."""
        return np.array([np.count_nonzero(records[0])])

    def statistic(self, totals: IntArray) -> FloatArray:
        """As a float."""
        return totals.astype(np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure, and a part of a Gaussian budget."""
        costs = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [cls(cost=cost, features=2) for cost in costs]
