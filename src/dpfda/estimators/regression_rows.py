"""The public maps from rows of a table, or from curves, to features of a regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.regression.recipe import ANY_VALUE, Recipe, public_encoder
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import points_of, public_domain, with_own_grids
from dpfda.curves.ranges import FeatureRanges, PublicColumns
from dpfda.errors import InvalidParameter
from dpfda.estimators.base import PrivateEstimator
from dpfda.estimators.reading import (
    count_channels,
    every_channel,
    no_grid,
    read_curves,
    value_ranges,
)

_FUNCTIONS = {"linear": 8, "logistic": 16}  # number of basis functions of curves
_TABLE, _CURVES = ("feature_ranges", "feature_norm_bound"), ("value_range", "encoder")


@dataclass(frozen=True, kw_only=True)
class TableRows:
    """The map from rows of a table to features, within public ranges or a public ball.

    Attributes:
        feature_ranges, feature_norm_bound, feature_center: parameters of the estimator.
        intercept: whether the model has an intercept.
        contrasts: whether the first category of each column is the reference.
    """

    of_curves: ClassVar[bool] = False
    finds_range: ClassVar[bool] = False

    feature_ranges: FeatureRanges | None
    feature_norm_bound: float | None
    feature_center: Any
    intercept: bool
    contrasts: bool

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """The map of an estimator with parameters of these names."""
        intercept = bool(estimator.fit_intercept)
        return cls(
            feature_ranges=estimator.feature_ranges,
            feature_norm_bound=estimator.feature_norm_bound,
            feature_center=estimator.feature_center,
            intercept=intercept,
            # With an intercept, the indicators of all categories of a column are collinear.
            contrasts=intercept and estimator._link == "linear",
        )

    def with_points(self, X: Any, grid_points: Any) -> tuple[Any, Any]:
        """The rows unchanged, with their points if they contain any."""
        return with_own_grids(X, grid_points)

    def checked(
        self, estimator: PrivateEstimator, X: Any, *, reset: bool, own_points: bool, least: int
    ) -> Any:
        """X, checked as scikit-learn does: a table with names, or an array of numbers."""
        ranges = self.feature_ranges
        return estimator._checked_table(ranges, X, reset=reset, ensure_min_samples=least)

    def recipe(self, X: Any, grid_points: Any, names: Any) -> Recipe:
        """The map from rows like X, with optional column names, to features."""
        no_grid(grid_points, " (PrivateCurveRegression and PrivateCurveClassifier are for curves)")
        if self.feature_norm_bound is not None:
            return Recipe.plain(range(1, X.shape[1] + 1) if names is None else names)
        assert self.feature_ranges is not None
        named = hasattr(X, "columns")
        table = PublicColumns.of(self.feature_ranges, width=None if named else X.shape[1])
        if names is not None and not named:
            columns = zip(table.columns, names, strict=True)
            own = tuple(replace(column, key=str(name)) for column, name in columns)
            table = replace(table, columns=own)
        return Recipe.of_table(table, centered=self.intercept, contrasts=self.contrasts)

    def ball(self, recipe: Recipe) -> tuple[FloatArray, float]:
        """Public center and radius of the features."""
        dimension = len(recipe.names)
        if recipe.boxed:  # in [-1, 1] by construction
            return np.zeros(dimension), math.sqrt(dimension)
        given = 0.0 if self.feature_center is None else self.feature_center
        center = np.asarray(given, dtype=np.float64)
        if center.shape not in ((), (dimension,)) or not np.all(np.isfinite(center)):
            rule = f"a number or {dimension} finite numbers"
            raise InvalidParameter("feature_center", rule, self.feature_center)
        radius = _validate.positive("feature_norm_bound", self.feature_norm_bound)
        return np.full(dimension, center), radius


@dataclass(frozen=True, kw_only=True)
class CurveRows:
    """The map from curves to coefficients of basis functions; the range may be found privately.

    Attributes:
        value_range, domain_range, encoder: parameters of the estimator.
        functions: largest number of basis functions.
    """

    of_curves: ClassVar[bool] = True

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None
    domain_range: tuple[float, float] | None
    encoder: CurveEncoder | None
    functions: int

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """The map of an estimator with parameters of these names."""
        return cls(
            value_range=estimator.value_range,
            domain_range=estimator.domain_range,
            encoder=estimator.encoder,
            functions=_FUNCTIONS[estimator._link],
        )

    @property
    def finds_range(self) -> bool:
        """Whether the range of values must be found, because neither range nor encoder is given."""
        return self.value_range is None and self.encoder is None

    def with_points(self, X: Any, grid_points: Any) -> tuple[Any, Any]:
        """Curves with their points, which may be the column names of a frame."""
        return with_own_grids(X, points_of(X, grid_points) if self.encoder is None else grid_points)

    def checked(
        self, estimator: PrivateEstimator, X: Any, *, reset: bool, own_points: bool, least: int
    ) -> Any:
        """Curves, checked as scikit-learn does."""
        return read_curves(estimator, X, reset=reset, own_points=own_points)

    def recipe(self, X: Any, grid_points: Any, names: Any) -> Recipe:
        """The map from curves like X to features."""
        encoder = self.encoder
        if encoder is None:
            encoder = public_encoder(
                value_ranges=self._ranges(count_channels(X)),
                domain=public_domain(X, grid_points, self.domain_range),
                most=self.functions,
            )
        elif isinstance(encoder, CurveEncoder) and encoder.basis.functional:
            encoder = every_channel(encoder, X)
        else:
            rule = "a CurveEncoder of curves (feature_ranges are for tables)"
            raise InvalidParameter("encoder", rule, encoder)
        points = None if grid_points is None else np.asarray(grid_points, dtype=np.float64)
        return Recipe.plain(range(1, encoder.n_features + 1), encoder=encoder, grid_points=points)

    def _ranges(self, channels: int) -> list[Any]:
        if not self.finds_range:
            return value_ranges(self.value_range, channels)
        if channels > 1:
            rule = "one pair for each channel: it is found for curves of one channel only"
            raise InvalidParameter("value_range", rule, None)
        return [ANY_VALUE]

    def ball(self, recipe: Recipe) -> tuple[FloatArray, float]:
        """Public center and radius of the features."""
        dimension = len(recipe.names)
        if self.encoder is not None:
            return np.zeros(dimension), math.sqrt(dimension)
        assert recipe.encoder is not None
        # `public_encoder` scales each channel to a unit ball.
        return np.zeros(dimension), math.sqrt(recipe.encoder.channels)


def require_one_way(estimator: Any) -> None:
    """Raise an error if public facts about rows contradict each other or are missing."""
    facts = {
        name: getattr(estimator, name, None)
        for name in (*_TABLE, *_CURVES, "feature_center", "domain_range")
    }
    given = [name for name in (*_TABLE, *_CURVES) if facts[name] is not None]
    if facts["domain_range"] is not None and given not in ([], ["value_range"]):
        rule = "left out: it is for curves, and an encoder says it"
        raise InvalidParameter("domain_range", rule, facts["domain_range"])
    if not given and hasattr(estimator, "value_range"):
        usual = type(estimator).mechanism
        if estimator.mechanism not in ("moments", usual):
            rule = f"{usual!r} where value_range is to be found; or give value_range"
            raise InvalidParameter("mechanism", rule, estimator.mechanism)
    elif len(given) != 1:
        rule = "given: public ranges of columns (or feature_norm_bound, for experts; of curves "
        rule += "value_range, where they are learned from), one of them"
        raise InvalidParameter("feature_ranges", rule, given or None)
    if facts["feature_center"] is not None and given != ["feature_norm_bound"]:
        rule = "given with feature_norm_bound only"
        raise InvalidParameter("feature_center", rule, facts["feature_center"])
