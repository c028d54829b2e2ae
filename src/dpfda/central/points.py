"""What estimators share that read points of one or two numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.cell_looks import Box
from dpfda.central.estimator import CentralEstimator, Reading
from dpfda.curves.ranges import Table
from dpfda.errors import InvalidData, InvalidParameter


@dataclass(eq=False, repr=False, kw_only=True)
class PointEstimator(CentralEstimator):
    """Reads rows of one or two numbers inside a public box."""

    feature_ranges: Any = None

    def __sklearn_tags__(self) -> Any:
        """More than two columns are not for cells of a grid."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    @property
    def _box(self) -> Box:
        table = Table.of(self.feature_ranges)
        if len(table.names) > 2:
            raise InvalidParameter("feature_ranges", "one or two ranges", self.feature_ranges)
        return tuple(zip(table.low.tolist(), table.high.tolist(), strict=True))

    def _read(self, X: Any, y: Any, *, grid_points: Any, reset: bool) -> Reading:
        points = self._points(X)
        self.n_features_in_ = points.shape[1]
        if len(points) < 2:
            raise InvalidData("X", "at least 2 points", f"{len(points)}")
        return Reading((points,))

    def _points(self, X: Any) -> FloatArray:
        """Private points as rows inside the box."""
        table = Table.of(self.feature_ranges)
        if not table.named:
            rows = _validate.batch("X", _as_rows(X))
            if rows.shape[1] != len(self._box):
                rule = f"as wide as feature_ranges, one or two columns, here {len(self._box)}"
                raise InvalidData("X", rule, f"shape {rows.shape}")
            X = rows
        return table.read(X)

    def _public(self, read: Reading) -> dict[str, Any]:
        return {"feature_ranges": self._box}


def _as_rows(points: Any) -> Any:
    """Single numbers as rows of one."""
    if hasattr(points, "columns"):
        return points.to_numpy()
    try:
        single = np.ndim(points) == 1
    except ValueError:  # rows of unequal length, which `batch` refuses in its own words
        return points
    return [[point] for point in points] if single else points
