"""What estimators share that read points of one or two numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.cell_looks import Box
from dpfda.central.estimator import CentralEstimator, Reading
from dpfda.curves.observations import depth
from dpfda.curves.ranges import FeatureRanges, Table
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.face.curves import no_grid


@dataclass(eq=False, repr=False, kw_only=True)
class PointEstimator(CentralEstimator):
    """Reads rows of one or two numbers inside a public box."""

    feature_ranges: FeatureRanges | None = None

    def __sklearn_tags__(self) -> Any:
        """Cells of a grid are for one number a row, or two: not for tables of any width."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False  # as scikit-learn's own IsotonicRegression
        return tags

    @property
    def _box(self) -> Box:
        table = Table.of(self.feature_ranges)
        if len(table.names) > 2:
            raise InvalidParameter("feature_ranges", "one or two ranges", self.feature_ranges)
        return tuple(zip(table.low.tolist(), table.high.tolist(), strict=True))

    def _read(self, X: Any, y: Any, *, grid_points: Any, reset: bool) -> Reading:
        no_grid(grid_points)
        return Reading((self._points(X, reset=reset),))

    def _points(self, X: Any, *, reset: bool) -> FloatArray:
        """Private points as rows inside the box."""
        table, rows = Table.of(self.feature_ranges), self._rows(X, reset=reset)
        if not table.named and rows.shape[1] != len(self._box):
            rule = f"as wide as feature_ranges, one or two columns, here {len(self._box)}"
            raise InvalidData("X", rule, f"shape {rows.shape}")
        return table.read(rows)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        least = 2 if reset else 1
        rows = _as_rows(X)
        return self._checked_table(self.feature_ranges, rows, reset=reset, ensure_min_samples=least)

    def _public(self, read: Reading) -> dict[str, Any]:
        return {"feature_ranges": self._box}


def _as_rows(points: Any) -> Any:
    """Single numbers as rows of one."""
    if hasattr(points, "to_frame"):  # a column of a DataFrame
        return points.to_frame()
    return np.reshape(points, (-1, 1)) if depth(points) == 1 else points
