"""The base of estimators of central releases: parameters, and the release itself."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.ball_search import SEARCH_FROM
from dpfda.central.conversation import CentralConversation, Result
from dpfda.central.functions import Grid, norm_bound
from dpfda.central.records import as_function, of_surfaces, read_records
from dpfda.central.release import Release
from dpfda.curate import curate
from dpfda.curves.observations import points_of, read_channels
from dpfda.curves.ranges import middle
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.blocks import is_dask
from dpfda.estimators.curve_reader import count_channels, value_ranges
from dpfda.estimators.sum_estimator import SumEstimator
from dpfda.privacy.cost import DELTA
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.holder import Exchange
from dpfda.protocol.public_randomness import one_row_each
from dpfda.protocol.query import Records

_ROOM = 1.5
"""How far beyond a range, in its widths, values count where a radius about their mean is found: it
cuts off the few that are far out, and shows if they are many."""

_ONE_CHANNEL = "of one channel (release each by itself, all inside one `dpfda.budget`)"


class HeldRecords(NamedTuple):
    """Records as rows about a public center, with their public facts.

    A person's record is one row of each of `rows`. Curves of several channels have rows, a bound
    and a center for each. Sparse curves have a public density of their times.
    """

    rows: Records
    grid: Grid = ()
    bounds: tuple[float, ...] = (1.0,)
    center: FloatArray = np.zeros(1)
    density: FloatArray = np.zeros(0)


@dataclass(eq=False, repr=False, kw_only=True)
class CentralEstimator(SumEstimator):
    """Holds public parameters; `fit` reads data and asks one conversation about them."""

    delta: float = DELTA

    def fit(self, X: Any, y: Any = None, *, grid_points: Any = None, groups: Any = None) -> Self:
        """Release it from all records.

        Args:
            X: a row a record, in any form that this estimator reads.
            y: what belongs to each row, where the estimator needs it.
            grid_points: the points of curves given as an array; equidistant by default.
            groups: the person behind each row, where people have several: ε is per person.
        """
        self._require_raw_rows()
        if is_dask(X):
            return self._fit_dask(X, y, grid_points=grid_points, groups=groups)
        read = self._read(X, y, grid_points=grid_points, reset=True)
        if groups is not None:
            read = read._replace(rows=self._one_each(read.rows, groups))
        asked = self._conversation(read, len(read.rows[0]))
        records, source = self._records(asked, read), self._source()
        released, curator = curate(asked, records, source=source, ledger=self.ledger)
        promise = asked.guarantee.drawn_from(source)
        transcript = curator.transcript
        return self._concluded(asked, read, released, transcript=transcript, guarantee=promise)

    def _form(self, X: Any, y: Any, *, grid_points: Any) -> HeldRecords:
        read = self._read(X, y, grid_points=grid_points, reset=True)
        return read._replace(rows=tuple(part[:0] for part in read.rows))

    def _asks(self, form: HeldRecords, *, rows: int) -> Any:
        return self._conversation(form, rows)

    def _chunk(self, X: Any, y: Any, *, grid_points: Any) -> HeldRecords:
        return self._read(X, y, grid_points=grid_points, reset=False)

    def _held(self, asked: Any, chunk: HeldRecords) -> Records:
        return self._records(asked, chunk)

    def _concluded(
        self,
        asked: Any,
        form: Any,
        result: Any,
        *,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        return self._keep(asked, form, replace(result, guarantee=guarantee))

    @property
    def _budget(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit}

    def _keep(self, asked: CentralConversation[Any], read: HeldRecords, found: Release) -> Self:
        """Set the fitted attributes."""
        self.release_: Release = self._stamped(asked, read, found)
        return self

    def _stamped(self, asked: CentralConversation[Any], read: HeldRecords, found: Result) -> Result:
        """A release with public parameters first on its record, and its verdict among warnings."""
        one: Any = found
        parameters = {"n": asked.n, **self._public(read), **one.parameters}
        self.guarantee_: Guarantee = one.guarantee
        known: Any = replace(one, parameters=parameters)
        told = known.verdict.added_to(known.warnings)
        self._warn(told, known.verdict.sentences)
        kept: Result = replace(known, warnings=told)
        return kept

    def _one_each(self, rows: Records, groups: Any) -> Records:
        """For each person one of their rows, chosen by public randomness."""
        kept = one_row_each(groups, seed=self._public_seed(), rows=len(rows[0]))
        return tuple(part[kept] for part in rows)

    @abstractmethod
    def _read(self, X: Any, y: Any, *, grid_points: Any, reset: bool) -> HeldRecords:
        """Private records as numbers, refused by their form alone."""

    @abstractmethod
    def _conversation(self, read: HeldRecords, n: int) -> Any:
        """The queries about n such records, from public parameters."""

    def _records(self, asked: Any, read: HeldRecords) -> Records:
        """One row at a time, as the questions need them."""
        return read.rows

    def _public(self, read: HeldRecords) -> dict[str, Any]:
        """Public parameters for the release's record."""
        return {}


@dataclass(eq=False, repr=False, kw_only=True)
class CuratedCurveEstimator(CentralEstimator):
    """An estimator that reads curves."""

    reads: ClassVar[tuple[str, ...]] = ()  # besides curves of one channel
    _sparse = False  # whether few points of each curve are known
    _finds_range = False  # whether it can do without a range, as its conversation can
    _counts_outside = False  # whether its conversation counts curves outside and pulls them in

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    bound: float | None = None
    center: Any = None

    def __sklearn_tags__(self) -> Any:
        """Missing points are welcome: they are filled along the curve."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _read(self, X: Any, y: Any, *, grid_points: Any, reset: bool) -> HeldRecords:
        least = 2 if reset else 1  # a chunk may be short
        curves, points = self._array(X, reset=reset, least=least), points_of(X, grid_points)
        if grid_points is None and points is not None and self._sparse:
            # A pivoted table has a column for each time at which anybody was observed.
            rule = "given where names of columns are times: one of them may be there for one person"
            raise InvalidParameter("grid_points", rule, None)
        read = self._read_curves(curves, points, least=least)
        self.n_features_in_ = read.center.shape[-1]
        return read

    def _array(self, X: Any, *, reset: bool, least: int) -> Any:
        """Arrays are checked as scikit-learn does; curves with their own grids pass."""
        if hasattr(X, "dim_codomain") or not hasattr(X, "__array__"):
            return X
        if np.ndim(X) == 3:
            return X
        return self._numbers(
            X,
            reset=reset,
            ensure_all_finite="allow-nan",
            ensure_min_samples=least,
            ensure_min_features=2 if reset else 1,  # later, as many as before
        )

    def _read_curves(self, curves: Any, grid_points: Any, *, least: int = 2) -> HeldRecords:
        """Curves about a public center, and their public bound; channel by channel."""
        surface = of_surfaces(grid_points)
        if surface and "surfaces" not in self.reads:
            raise InvalidParameter("grid_points", "of one variable", "two of them")
        channels = 1 if surface else count_channels(curves)
        if channels > 1 and "channels" not in self.reads:
            raise InvalidData("curves", _ONE_CHANNEL, f"{channels} channels")
        ranges = value_ranges(self.value_range, channels)
        split = [(curves, grid_points)]
        if not surface:
            split = read_channels(curves, grid_points, count=channels, strict=True)
        known = zip(split, ranges, strict=True)
        parts = [self._read_one(*one, value_range, least) for one, value_range in known]
        if len(parts) == 1:
            return parts[0]
        return HeldRecords(
            tuple(rows for part in parts for rows in part.rows),
            parts[0].grid,
            tuple(bound for part in parts for bound in part.bounds),
            np.stack([part.center for part in parts]),
        )

    def _read_one(self, curves: Any, grid_points: Any, value_range: Any, least: int) -> HeldRecords:
        """One channel."""
        center, bound = self._ball(value_range)
        records, grid = read_records(
            curves, grid_points, domain_range=self.domain_range, least=least
        )
        if value_range is not None:
            low, high = _validate.interval("value_range", value_range)
            room = _ROOM * (high - low) * (self._finds_range or self._counts_outside)
            records = np.clip(records, low - room, high + room)
        middle_curve = as_function(center, records.shape[1])
        return HeldRecords((records - middle_curve,), grid, (bound,), middle_curve)

    def _ball(self, value_range: Any) -> tuple[Any, float]:
        """Public center and bound: of the range, or given by an expert."""
        if value_range is None and self.bound is None:
            if not self._finds_range:
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
        return middle("value_range", value_range)

    def _norm_bound(self, bound: float, grid: Grid, *, n: int, channels: int = 1) -> float:
        """A bound in the norm of the questions; where it must be found, of curves enough."""
        if math.isfinite(bound):
            return norm_bound(bound, grid)
        strength = n * self.epsilon / (channels**0.5 if self.delta else channels)
        least = SEARCH_FROM[not self.delta]
        if strength < least:
            rule = f"given where n·epsilon is below {least}: too few curves to find it privately"
            if channels > 1:
                each = f"each channel's share of n·epsilon, here {strength:g}, is below {least}"
                rule = f"given where {each}: too few curves to find it privately"
            raise InvalidParameter("value_range", rule, None)
        return bound

    def _public(self, read: HeldRecords) -> dict[str, Any]:
        if self.value_range is None:
            return {"bound": "found privately" if self.bound is None else self.bound}
        ranges = value_ranges(self.value_range, len(read.bounds))
        plain = tuple(tuple(map(float, pair)) for pair in ranges)
        return {"value_range": plain[0] if len(set(plain)) == 1 else plain}
