"""The base of regressions and classifiers of curves: the encoding of curves as features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.ball_search import SEARCH_FROM
from dpfda.central.channels import ChannelQuery
from dpfda.central.moments.discriminant import Discriminant
from dpfda.central.regression.base import Fitted, RangedRegression, in_features
from dpfda.central.regression.recipe import ANY_VALUE, Recipe, public_encoder
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import points_of, public_domain
from dpfda.errors import InvalidParameter
from dpfda.estimators.curve_reader import count_channels
from dpfda.estimators.local_base import every_channel
from dpfda.estimators.private_regressions import CuratedRegression
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import Records

_FUNCTIONS = {"linear": 8, "logistic": 16}  # that curves are written in


@dataclass(eq=False, repr=False, kw_only=True)
class CurveRows(CuratedRegression):
    """A regression whose rows are curves; finds their range where none is given.

    Not for use by itself. With `feature_ranges` or `feature_norm_bound` rows are a table's.

    Args:
        value_range: public range (low, high) of x(t), or one pair a channel; None to find it.
        domain_range: public range of t, where the data do not bring it.
        encoder: instead of `value_range`, for experts: a `CurveEncoder`.
    """

    _ways = (*CuratedRegression._ways, "value_range", "encoder")

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    encoder: CurveEncoder | None = None

    @property
    def _finds(self) -> bool:
        """Whether nothing says how large curves are."""
        return all(getattr(self, name) is None for name in self._ways)

    @property
    def _of_curves(self) -> bool:
        return all(getattr(self, name) is None for name in CuratedRegression._ways)

    def _require_one_way(self) -> None:
        if self.domain_range is not None and (self.encoder is not None or not self._of_curves):
            rule = "left out: it is for curves, and an encoder says it"
            raise InvalidParameter("domain_range", rule, self.domain_range)
        if not self._finds:
            super()._require_one_way()
        elif self.mechanism != "moments":
            rule = "'moments' where value_range is to be found; or give value_range"
            raise InvalidParameter("mechanism", rule, self.mechanism)

    def _with_grids(self, X: Any, grid_points: Any) -> tuple[Any, Any]:
        """Curves with their points, which may be the names of a frame's columns."""
        named = self._of_curves and self.encoder is None
        return super()._with_grids(X, points_of(X, grid_points) if named else grid_points)

    def _make_recipe(self, X: Any, grid_points: Any) -> Recipe:
        if not self._of_curves:
            return super()._make_recipe(X, grid_points)
        encoder = self.encoder
        if encoder is None:
            encoder = public_encoder(
                value_ranges=self._value_ranges(X),
                domain=public_domain(X, grid_points, self.domain_range),
                most=_FUNCTIONS[self._link],
            )
        elif isinstance(encoder, CurveEncoder) and encoder.basis.functional:
            encoder = every_channel(encoder, X)
        else:
            rule = "a CurveEncoder of curves (feature_ranges are for tables)"
            raise InvalidParameter("encoder", rule, encoder)
        points = None if grid_points is None else np.asarray(grid_points, dtype=np.float64)
        return Recipe.plain(range(1, encoder.n_features + 1), encoder=encoder, grid_points=points)

    def _box_radius(self, dimension: int) -> float:
        if self._recipe.encoder is None or self.encoder is not None:
            return super()._box_radius(dimension)
        return math.sqrt(self._recipe.encoder.channels)  # `public_encoder`: a unit ball each

    def _value_ranges(self, X: Any) -> list[Any]:
        if not self._finds:
            return super()._value_ranges(X)
        if count_channels(X) > 1:
            rule = "one pair for each channel: it is found for curves of one channel only"
            raise InvalidParameter("value_range", rule, None)
        return [ANY_VALUE]

    def _in_units(self, rows: FloatArray) -> FloatArray:
        """Features as rows in units of the curves' values, where nothing is known of these."""
        return rows * ANY_VALUE[1] if self._finds else rows

    def _records(self, rows: Any, values: Any, outside: Any = None) -> Records:
        return super()._records(self._in_units(rows), values, outside)

    def _enough(self, rows: int) -> None:
        """Refuse to look for a range among too few, before anything is spent."""
        least = SEARCH_FROM[not self.delta]
        if rows * self.epsilon < least:
            rule = f"given where n·epsilon is below {least}: too few curves to find it privately"
            raise InvalidParameter("value_range", rule, None)

    def _regression(self, *, rows: int | None = None) -> Any:
        if not self._finds:
            return super()._regression(rows=rows)
        n = self._count(rows)
        known: Any = super()._regression(rows=rows)
        self._enough(n)
        if isinstance(known, Discriminant):  # looks for a radius by itself
            return replace(known, bound=math.inf)
        return RangedRegression(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            n=n,
            problem=known.problem,
            mechanism=known.mechanism,
            found_classes=known.found_classes,
        )

    def _finish(
        self,
        fitted: Fitted,
        regression: Any,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        fitted = in_features(fitted) if self._finds else fitted
        return super()._finish(fitted, regression, transcript, guarantee)

    def _telling(self, transcript: Sequence[Exchange]) -> Exchange:
        return next(one for one in transcript if not isinstance(one.query, ChannelQuery))
