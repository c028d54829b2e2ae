"""Reading the curves of a curator within public bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda.central.ball_search import SEARCH_FROM
from dpfda.central.conversation import checked_bound
from dpfda.central.functions import Grid, norm_bound
from dpfda.central.moments.sparse_mean import declared_density
from dpfda.central.records import as_function, of_surfaces, read_points, read_records
from dpfda.central.sparse_queries import sparse_rows
from dpfda.curves.observations import points_of, read_channels
from dpfda.curves.ranges import middle
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.reading import count_channels, value_ranges

_ROOM = 1.5
"""If a radius about the mean is found or curves outside are counted, values are clipped only beyond
the range by this many widths. The radius then clips the curves outside, and the count shows if they
are many."""
_PEAK = 3.0  # bound on single points of sparse curves, as a multiple of the bound on the norm
_ONE_CHANNEL = "of one channel (release each by itself, all inside one `dpfda.budget`)"


@dataclass(frozen=True, kw_only=True)
class CurveReader:
    """Public facts of curves, and the reading of private curves within them.

    Attributes:
        value_range, domain_range, bound, center: parameters of the estimator.
        finds_range: whether the conversation can find a range, so that none is required.
        counts_outside: whether the conversation counts the curves outside and clips them.
        channels: whether curves may have several channels.
        surfaces: whether curves may be functions of two variables.
        times: declared density of the times of sparse curves; None for dense curves.
    """

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    bound: float | None = None
    center: Any = None
    finds_range: bool = False
    counts_outside: bool = False
    channels: bool = False
    surfaces: bool = False
    times: Any = None

    @classmethod
    def of(cls, estimator: Any, **more: Any) -> Self:
        """The reader of an estimator that has the parameters of these names."""
        names = ("value_range", "domain_range", "bound", "center")
        return cls(**{name: getattr(estimator, name) for name in names}, **more)

    def read(
        self, estimator: CentralEstimator, X: Any, grid_points: Any, *, reset: bool, least: int
    ) -> HeldRecords:
        """The curves of a fit about a public center, and their public bound.

        Args:
            estimator: the estimator that is fitted; arrays are checked as scikit-learn does.
            X: curves.
            grid_points: their points, if X does not contain them.
            reset: whether these curves define the form of all curves.
            least: smallest number of curves.
        """
        curves, points = array_of(estimator, X, reset=reset, least=least), points_of(X, grid_points)
        if grid_points is None and points is not None and self.times is not None:
            # A pivoted table has one column for each time at which any person was observed.
            rule = "given where names of columns are times: one of them may be there for one person"
            raise InvalidParameter("grid_points", rule, None)
        read = self.read_curves(curves, points, least=least)
        estimator.n_features_in_ = read.center.shape[-1]
        return read

    def read_curves(self, curves: Any, grid_points: Any, *, least: int) -> HeldRecords:
        """The same for checked curves, channel by channel."""
        surface = of_surfaces(grid_points)
        if surface and not self.surfaces:
            raise InvalidParameter("grid_points", "of one variable", "two of them")
        channels = 1 if surface else count_channels(curves)
        if channels > 1 and not self.channels:
            raise InvalidData("curves", _ONE_CHANNEL, f"{channels} channels")
        ranges = value_ranges(self.value_range, channels)
        split = [(curves, grid_points)]
        if not surface:
            split = read_channels(curves, grid_points, count=channels, strict=True)
        read_one = self._read_dense if self.times is None else self._read_sparse
        known = zip(split, ranges, strict=True)
        parts = [read_one(*one, value_range, least) for one, value_range in known]
        public = self._public(channels)
        if len(parts) == 1:
            return parts[0]._replace(public=public)
        return HeldRecords(
            tuple(rows for part in parts for rows in part.rows),
            parts[0].grid,
            tuple(bound for part in parts for bound in part.bounds),
            np.stack([part.center for part in parts]),
            public=public,
        )

    def _read_dense(self, curves: Any, points: Any, value_range: Any, least: int) -> HeldRecords:
        """One channel of dense curves; missing points are interpolated."""
        center, bound = self._ball(value_range)
        records, grid = read_records(curves, points, domain_range=self.domain_range, least=least)
        if value_range is not None:
            low, high = _validate.interval("value_range", value_range)
            room = _ROOM * (high - low) * (self.finds_range or self.counts_outside)
            records = np.clip(records, low - room, high + room)
        middle_curve = as_function(center, records.shape[1])
        return HeldRecords((records - middle_curve,), grid, (bound,), middle_curve)

    def _read_sparse(self, curves: Any, points: Any, value_range: Any, least: int) -> HeldRecords:
        """One channel of sparse curves, with a few points of each."""
        center, half = self._ball(value_range)
        points, values, grid = read_points(curves, points, domain_range=self.domain_range)
        if len(values) < least:
            raise InvalidData("curves", f"at least {least} curves", f"n_samples = {len(values)}")
        middle_curve = as_function(center, grid[0].size)
        most = half if self.bound is None else _PEAK * half
        rest = values - np.interp(np.nan_to_num(points, nan=grid[0][0]), grid[0], middle_curve)
        rows = sparse_rows(points, np.clip(rest, -most, most), grid[0])
        density = declared_density(self.times, grid[0], shared=points.ndim == 1)
        return HeldRecords((rows,), grid, (half,), middle_curve, density)

    def _ball(self, value_range: Any) -> tuple[Any, float]:
        """Public center and bound, from the range or from `bound` and `center`."""
        if value_range is None and self.bound is None:
            if not self.finds_range:
                rule = "given: the public (low, high) of curves; or else bound (and center)"
                raise InvalidParameter("value_range", rule, None)
            return 0.0 if self.center is None else self.center, math.inf
        if value_range is not None and self.bound is not None:
            rule = "left out where value_range is given: both bound the curves"
            raise InvalidParameter("bound", rule, self.bound)
        if value_range is None:
            center = 0.0 if self.center is None else self.center
            return center, _validate.positive("bound", self.bound)
        if self.center is not None:
            raise InvalidParameter(
                "center", "left out with value_range, whose midpoint is the center", self.center
            )
        center, half = middle("value_range", value_range)
        return center, checked_bound(half, given=value_range)

    def _public(self, channels: int) -> dict[str, Any]:
        """The range or bound for the parameters of the release."""
        if self.value_range is None:
            return {"bound": "found privately" if self.bound is None else self.bound}
        ranges = value_ranges(self.value_range, channels)
        plain = tuple(tuple(map(float, pair)) for pair in ranges)
        return {"value_range": plain[0] if len(set(plain)) == 1 else plain}


def array_of(estimator: CentralEstimator, X: Any, *, reset: bool, least: int) -> Any:
    """Check arrays as scikit-learn does; return curves with their own grids unchanged."""
    if hasattr(X, "dim_codomain") or not hasattr(X, "__array__") or np.ndim(X) == 3:
        return X
    return estimator._numbers(
        X,
        reset=reset,
        ensure_all_finite="allow-nan",
        ensure_min_samples=least,
        ensure_min_features=2 if reset else 1,  # scikit-learn checks later rows against the first
    )


def require_enough(estimator: CentralEstimator, n: int, *, channels: int = 1) -> None:
    """Raise an error if there are too few curves to find a range, before the budget is spent."""
    least = SEARCH_FROM[not estimator.delta]
    strength = n * estimator.epsilon / (channels**0.5 if estimator.delta else channels)
    if strength < least:
        where = f"n·epsilon is below {least}"
        if channels > 1:
            where = f"each channel's share of n·epsilon, here {strength:g}, is below {least}"
        rule = f"given where {where}: too few curves to find it privately"
        raise InvalidParameter("value_range", rule, None)


def bound_in_norm(
    estimator: CentralEstimator, bound: float, grid: Grid, *, n: int, channels: int = 1
) -> float:
    """The bound in the norm of the queries; if it is infinite, check that it can be found."""
    if math.isfinite(bound):
        return norm_bound(bound, grid)
    require_enough(estimator, n, channels=channels)
    return bound
