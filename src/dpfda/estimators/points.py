"""The base of estimators that read points of one or two numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.cell_queries import Box
from dpfda.curves.observations import depth
from dpfda.curves.ranges import FeatureRanges, PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.curve_reader import no_grid


@dataclass(eq=False, repr=False, kw_only=True)
class PointEstimator(CentralEstimator):
    """Reads rows of one or two numbers inside a public box."""

    feature_ranges: FeatureRanges | None = None
    n_features_in_: int = field(init=False)

    def __sklearn_tags__(self) -> Any:
        """Cells of a grid are for one number a row, or two.

        A mapping picks these from a table of any width, which is what scikit-learn's checks try.
        """
        tags = super().__sklearn_tags__()
        picks = isinstance(self.feature_ranges, Mapping)
        tags.input_tags.one_d_array = not picks
        tags.input_tags.two_d_array = picks  # otherwise as scikit-learn's IsotonicRegression
        return tags

    @property
    def _box(self) -> Box:
        table = self._columns
        return tuple(zip(table.low.tolist(), table.high.tolist(), strict=True))

    @property
    def _columns(self) -> PublicColumns:
        """The public columns, one or two: two numbers are the range of all that X has."""
        given = self.feature_ranges
        table = PublicColumns.of(given)
        if not table.named and not any(isinstance(one, Collection) for one in given or ()):
            table = PublicColumns.of(given, width=self.n_features_in_)
        if len(table.names) > 2:
            rule = (
                "of one or two columns; a mapping picks them: {column: (low, high)} (on a grid in "
                "three variables noise exceeds what most cells hold)"
            )
            raise InvalidParameter("feature_ranges", rule, given)
        return table

    def _read(self, X: Any, y: Any, *, grid_points: Any, reset: bool) -> HeldRecords:
        no_grid(grid_points)
        return HeldRecords((self._points(X, reset=reset),))

    def _points(self, X: Any, *, reset: bool) -> FloatArray:
        """Private points as rows inside the box."""
        rows, table = self._rows(X, reset=reset), self._columns
        if not table.named and rows.shape[1] != len(self._box):
            rule = f"as wide as feature_ranges, one or two columns, here {len(self._box)}"
            raise InvalidData("X", rule, f"shape {rows.shape}")
        return table.read(rows)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        least = 2 if reset else 1
        rows = _as_rows(X, table=isinstance(self.feature_ranges, Mapping))
        return self._checked_table(self.feature_ranges, rows, reset=reset, ensure_min_samples=least)

    def _public(self, read: HeldRecords) -> dict[str, Any]:
        return {"feature_ranges": self._box}


def _as_rows(points: Any, *, table: bool) -> Any:
    """Single numbers as rows of one, unless columns are to be picked from a table."""
    if hasattr(points, "to_frame"):  # a column of a DataFrame
        return points.to_frame()
    return np.reshape(points, (-1, 1)) if depth(points) == 1 and not table else points
