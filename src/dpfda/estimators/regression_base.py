"""The base of private regressors: parameters, rows, queries, predictions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import AnyArray, FloatArray
from dpfda.central.regression.base import Fitted, Regression, RegressionMechanism
from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.model_report import range_warnings
from dpfda.central.regression.problem import Bounds, Problem
from dpfda.central.regression.queries import OUTSIDE, OutsideCount
from dpfda.central.regression.recipe import Recipe
from dpfda.central.regression.released import ModelLink
from dpfda.curves.observations import with_own_grids
from dpfda.curves.ranges import FeatureRanges, PublicColumns, middle
from dpfda.errors import InvalidParameter
from dpfda.estimators.curve_reader import LabelsOrNumbers, classifies, count_rows, no_grid
from dpfda.privacy.cost import DELTA
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.holder import Exchange
from dpfda.protocol.public_randomness import one_row_each
from dpfda.protocol.query import Records


def stated_range(given: Any) -> tuple[float, float]:
    """The public range of y, which somebody has to know."""
    if given is None:
        raise InvalidParameter("target_range", "given: the public (low, high) of y", None)
    return _validate.interval("target_range", given)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegression(LabelsOrNumbers):
    """Parameters and pieces of every private regressor, pooled or among sites."""

    _link: ClassVar[Any]  # what is predicted: a `Link`
    _ways: ClassVar[tuple[str, ...]] = ("feature_ranges", "feature_norm_bound")
    _only_with: ClassVar[dict[str, str]] = {"feature_center": "feature_norm_bound"}

    delta: float = DELTA
    mechanism: str | RegressionMechanism = "moments"
    fit_intercept: bool = True
    feature_ranges: FeatureRanges | None = None
    feature_norm_bound: float | None = None
    feature_center: Any = None

    @abstractmethod
    def _target_range(self) -> tuple[float, float]:
        """Public range of the targets; 0 and 1 for classes."""

    # -- prediction ----------------------------------------------------------------------------

    def predict(self, X: Any, *, grid_points: Any = None) -> AnyArray:
        """Targets inside their public range, or the likelier label of each row."""
        X, grid_points = self._unseen(X, grid_points)
        return self.model_.predict(X, grid_points=grid_points)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Log-odds of the second of two classes; of more, one column each."""
        X, grid_points = self._unseen(X, grid_points)
        return self.model_.decision_function(X, grid_points=grid_points)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities of the classes, one column each in the order of `classes_`."""
        X, grid_points = self._unseen(X, grid_points)
        return self.model_.predict_proba(X, grid_points=grid_points)

    def _unseen(self, X: Any, grid_points: Any) -> tuple[Any, Any]:
        check_is_fitted(self, "model_")
        if not self.model_.of_curves:
            no_grid(grid_points)
        X, points = self._with_grids(X, grid_points)
        return self._checked(X, reset=False, own_points=points is not None), points

    # -- reading -------------------------------------------------------------------------------

    def _with_grids(self, X: Any, grid_points: Any) -> tuple[Any, Any]:
        """Rows as they are, or curves with their points."""
        return with_own_grids(X, grid_points)

    def _checked(self, X: Any, *, reset: bool, own_points: bool = False, least: int = 1) -> Any:
        """X as scikit-learn checks it: curves, a table with names, or an array of numbers."""
        if reset:
            self._require_one_way()
        if self._of_curves:
            return self._read_curves(X, reset=reset, own_points=own_points)
        rules = {"ensure_min_samples": least}
        return self._checked_table(self.feature_ranges, X, reset=reset, **rules)

    def _read_all(self, X: Any, y: Any, *more: Any, grid_points: Any, groups: Any) -> Records:
        """What `_read` reads of checked rows, and `more` of them, one row a person."""
        kept: Any = slice(None)
        if groups is not None:
            kept = one_row_each(groups, seed=self._public_seed(), rows=count_rows(X))
        self._recipe = self._make_recipe(X, grid_points)
        return tuple(part[kept] for part in (*self._read(X, y, grid_points), *more))

    def _read(self, X: Any, y: Any, grid_points: Any) -> Records:
        """Features of checked rows, targets or labels; of a table, which rows were outside."""
        if self._recipe.table is not None:
            rows, outside = self._recipe.features_and_outside(X)
            return rows, self._values(y, len(rows)), outside
        rows = self._recipe.features(X, grid_points, strict=self._is_simulation)
        return rows, self._values(y, len(rows))

    def _targets(self, values: npt.NDArray[Any]) -> FloatArray:
        """Numbers as they are; 1 for the second label."""
        if self._classifies:
            return np.asarray(values == self.classes_[1], dtype=np.float64)
        return values

    def _target_ends(self) -> tuple[float, float]:
        """The public range of targets; wide enough to have 0 in its middle for a line through 0."""
        low, high = self._target_range()
        if self.fit_intercept or self._classifies:
            return low, high
        most = max(abs(low), abs(high))
        return -most, most

    # -- what is public ------------------------------------------------------------------------

    @property
    def _classifies(self) -> bool:
        return bool(self._link == "logistic")

    @property
    def _of_curves(self) -> bool:
        """Whether X are curves and not a table: said by what is public of them."""
        return False

    def _require_one_way(self) -> None:
        given = [name for name in self._ways if getattr(self, name) is not None]
        if len(given) != 1:
            rule = "given: public ranges of columns (or feature_norm_bound, for experts; of curves "
            rule += "value_range, where they are learned from), one of them"
            raise InvalidParameter("feature_ranges", rule, given or None)
        for name, other in self._only_with.items():
            if getattr(self, name) is not None and other not in given:
                raise InvalidParameter(name, f"given with {other} only", getattr(self, name))

    def _make_recipe(self, X: Any, grid_points: Any) -> Recipe:
        """The map from rows like X to features."""
        no_grid(grid_points, " (PrivateCurveRegression and PrivateCurveClassifier are for curves)")
        names = getattr(self, "feature_names_in_", None)
        if self.feature_norm_bound is not None:
            return Recipe.plain(range(1, X.shape[1] + 1) if names is None else names)
        assert self.feature_ranges is not None
        named = hasattr(X, "columns")
        table = PublicColumns.of(self.feature_ranges, width=None if named else X.shape[1])
        if names is not None and not named:
            columns = zip(table.columns, names, strict=True)
            own = tuple(replace(column, key=str(name)) for column, name in columns)
            table = replace(table, columns=own)
        # Beside an intercept all categories of a column say one thing twice.
        contrasts = bool(self.fit_intercept) and self._link == "linear"
        return Recipe.of_table(table, centered=bool(self.fit_intercept), contrasts=contrasts)

    def _regression(self, *, rows: int | None = None) -> Regression:
        """The conversation that public parameters ask for."""
        return Regression(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            problem=Problem(
                link=self._link,
                bounds=self._bounds(),
                fit_intercept=bool(self.fit_intercept),
                rows=rows,
            ),
            mechanism=self._method(),
            found_classes=self._classifies and not self._classes_given,
            either=True,
            counts_outside=self._recipe.table is not None,
        )

    def _method(self) -> RegressionMechanism:
        """The mechanism, given or by its name."""
        given = self.mechanism
        return RegressionMechanism.named(given)() if isinstance(given, str) else given

    def _bounds(self) -> Bounds:
        """Public balls of features and targets."""
        dimension = len(self._recipe.names)
        center, radius = np.zeros(dimension), self._box_radius(dimension)
        if not self._recipe.boxed:
            center = self._center(dimension)
            radius = _validate.positive("feature_norm_bound", self.feature_norm_bound)
        target = middle("target_range", self._target_ends())
        return Bounds(
            center=center, radius=radius, target_center=target[0], target_radius=target[1]
        )

    def _box_radius(self, dimension: int) -> float:
        """Radius of the ball about features that lie in [-1, 1] by construction."""
        return math.sqrt(dimension)

    def _center(self, dimension: int) -> FloatArray:
        given = 0.0 if self.feature_center is None else self.feature_center
        center = np.asarray(given, dtype=np.float64)
        if center.shape not in ((), (dimension,)) or not np.all(np.isfinite(center)):
            rule = f"a number or {dimension} finite numbers"
            raise InvalidParameter("feature_center", rule, self.feature_center)
        return np.full(dimension, center)

    # -- what a fit leaves ---------------------------------------------------------------------

    def _finish(
        self,
        fitted: Fitted,
        regression: Regression,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        shape = self._recipe.shape
        first = self._telling(transcript)
        seen = range_warnings(first, fitted, problem=regression.problem, shape=shape)
        # They say more than that some are outside.
        told = tuple(text for text in fitted.warnings if not (seen and text == OUTSIDE))
        fitted = replace(fitted, warnings=(*told, *seen))
        return self._keep(fitted, self._link, regression.mechanism.name, transcript, guarantee)

    def _telling(self, transcript: Sequence[Exchange]) -> Exchange:
        """The first answer that shows where rows and targets lie in their public ranges."""
        return next(one for one in transcript if not isinstance(one.query, OutsideCount))

    def _keep(
        self,
        fitted: Fitted,
        link: ModelLink,
        mechanism: str,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        """The fit, and the public model that it makes."""
        linear = not self._classifies
        self.guarantee_ = guarantee
        self.n_seen_, self.stages_ = transcript[-1].answer.n, len(transcript)
        self.model_ = RegressionModel(
            guarantee=guarantee,
            link=link,
            mechanism=mechanism,
            rows=self.n_seen_,
            stages=self.stages_,
            classes=None if linear else tuple(np.asarray(self.classes_).tolist()),
            target_range=self._target_range() if linear else None,
            recipe=self._recipe,
            fit=fitted,
        )
        self.fit_, self.coef_ = fitted, self.model_.slopes
        self.intercept_ = self.model_.intercept
        verdict = self.model_.verdict
        told = verdict.added_to((*fitted.warnings, *self.model_.hidden_features))
        self._warn(told, verdict.sentences)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._of_curves
        return tags
