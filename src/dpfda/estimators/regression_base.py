"""The base of private regressors: rows, queries, the public model, predictions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import AnyArray, FloatArray
from dpfda.central.channels import ChannelQuery
from dpfda.central.conversation import BEYOND, too_small
from dpfda.central.moments.discriminant import Discriminant
from dpfda.central.queries import RadiusCount
from dpfda.central.regression.base import (
    RangedRegression,
    Regression,
    RegressionMechanism,
    in_features,
)
from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.model_report import range_warnings
from dpfda.central.regression.problem import Bounds, Link, Problem
from dpfda.central.regression.queries import OUTSIDE, OutsideCount
from dpfda.central.regression.recipe import ANY_VALUE, Recipe
from dpfda.central.regression.released import ModelLink
from dpfda.curate import Passes
from dpfda.curves.ranges import middle
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.blocks import Blocks
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.curve_reader import require_enough
from dpfda.estimators.reading import (
    check_classes,
    classifies,
    no_grid,
    public_classes,
    read_values,
    scored,
    set_classes,
    tags_of_predictor,
)
from dpfda.estimators.regression_rows import CurveRows, TableRows, require_one_way
from dpfda.estimators.weights import checked_weights, weights_of
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.holder import Exchange
from dpfda.protocol.person import label_numbers
from dpfda.protocol.query import Records


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegression(CentralEstimator):
    """Base of private regressors and classifiers of a curator: rows, public problem, fitted model.

    `_link` determines whether a number or a class is predicted.
    """

    _link: ClassVar[Link]

    mechanism: str | RegressionMechanism = "moments"
    fit_intercept: bool = True
    classes_: AnyArray = field(init=False)
    _classes_given: bool = field(init=False)

    @property
    @abstractmethod
    def _rows(self) -> TableRows | CurveRows:
        """The map from rows to features."""

    @abstractmethod
    def _target_range(self) -> tuple[float, float]:
        """Public range of the targets; 0 and 1 for classes."""

    def fit(  # type: ignore[override]  # y is optional in the base class
        self, X: Any, y: Any, *, grid_points: Any = None, groups: Any = None
    ) -> Self:
        """Fit privately, with one pass over the rows for each query of the mechanism.

        Args:
            X: private rows (n, D), a DataFrame, or curves: an array (n, T), or (n, T, C) for C
                channels; scikit-fda curves; a list of pairs (t, x).
            y: private targets.
            grid_points: the points of curves given as an array, or a list of grids, one for each
                curve.
            groups: the person of each row, if people have several rows. One row of each person is
                used, chosen by public randomness, so that ε is per person.
        """
        self._begin_anew()
        return super().fit(X, y, grid_points=grid_points, groups=groups)

    def _fit_blocks(self, blocks: Blocks, *, grid_points: Any) -> Self:
        self._begin_anew()
        return super()._fit_blocks(blocks, grid_points=grid_points)

    # -- in chunks that the caller hands over --------------------------------------------------

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, grid_points: Any = None) -> Self:
        """Add a chunk of rows to the current stage; call `next_stage` after the last chunk.

        Every stage needs all chunks again. `fit_stream` passes them automatically, and its division
        of the budget depends on the number of rows, as in `fit`. Nothing is released before
        `next_stage`. A person may have only one row in all chunks of a stage.
        """
        first = not hasattr(self, "_passes")
        read = self._features(X, y, grid_points=grid_points, reset=first, least=1)
        if self._classifies:
            set_classes(self, read.rows[1], classes) if first else check_classes(self, read.rows[1])
        if first:
            # A new stream of the seed: equal noise on different sums would cancel in differences.
            self._begun = self.__dict__.get("_begun", 0) + 1
            source, asked = self._source(self._begun - 1), self._conversation(read, None)
            self._passes = Passes(asked, source=source, ledger=self.ledger)
        self._passes.add(self._records(self._passes.conversation, read))
        return self

    def next_stage(self) -> bool:
        """Release the current stage; True if another pass over the chunks is needed."""
        if not hasattr(self, "_passes"):
            raise InvalidData("X", "given through partial_fit before next_stage")
        passes = self._passes
        passes.release()
        if passes.result is None:
            return True
        del self._passes
        asked, stream = passes.conversation, passes.stream
        promise = asked.guarantee.drawn_from(stream.source)
        nothing = HeldRecords(())
        self._conclude(asked, nothing, passes.result, stream.transcript, promise)
        return False

    def _begin_anew(self) -> None:
        """Reset the streams of the seed, and drop chunks of an unfinished fit."""
        self.__dict__.pop("_passes", None)
        self._begun = 1

    # -- what is read --------------------------------------------------------------------------

    def _read(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int = 1
    ) -> HeldRecords:
        read = self._features(X, y, grid_points=grid_points, reset=reset, least=least)
        if self._classifies:
            (set_classes if reset else check_classes)(self, read.rows[1])
        return read

    def _features(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int
    ) -> HeldRecords:
        """Features, targets or labels; for tables, marks of rows outside; weights, if any."""
        y, weights = weights_of(self, y)
        if reset:
            require_one_way(self)
        rows = self._rows
        X, points = rows.with_points(X, grid_points)
        X = rows.checked(self, X, reset=reset, own_points=False, least=least)
        if reset:
            self._recipe: Recipe = rows.recipe(X, points, getattr(self, "feature_names_in_", None))
        if self._recipe.table is not None:
            features, outside = self._recipe.features_and_outside(X)
            beside: list[AnyArray] = [outside]
        else:
            features, beside = self._recipe.features(X, points, strict=self._is_simulation), []
        if weights is not None:
            beside.append(checked_weights(self, weights, len(features)))
        return HeldRecords((features, read_values(self, y, len(features)), *beside))

    def _names_of_y(self) -> Sequence[Any] | None:
        return public_classes(self)

    # -- queries -------------------------------------------------------------------------------

    def _conversation(self, read: HeldRecords, n: int | None) -> Any:
        """The conversation that follows from the public parameters."""
        finds, bounds = self._rows.finds_range, self._bounds()
        if finds:
            require_enough(self, self._count(n))
        bound: float | None = getattr(self, "weight_bound", None)
        if self._discriminates:
            if bound is not None:
                rule = "left out for more than two classes, which have no weighted form"
                raise InvalidParameter("weight_bound", rule, bound)
            usual = type(self).mechanism
            if self.mechanism != usual or not self.fit_intercept:
                name = "fit_intercept" if self.mechanism == usual else "mechanism"
                rule = "left at its default for a discriminant analysis, which has one method"
                raise InvalidParameter(name, rule, getattr(self, name))
            return Discriminant(
                **self._budget,
                n=self._count(n),
                bound=math.inf if finds else bounds.radius,
                groups=tuple(np.asarray(self.classes_).tolist()),
                features=bounds.dimension,
                found_classes=not self._classes_given,
            )
        known: dict[str, Any] = {
            **self._budget,
            "problem": Problem(
                link=self._link, bounds=bounds, fit_intercept=bool(self.fit_intercept), rows=n
            ),
            "mechanism": self._method(),
            "found_classes": self._classifies and not self._classes_given,
        }
        if finds:
            return RangedRegression(**known, n=self._count(n))
        counts = self._recipe.table is not None
        return Regression(**known, either=True, counts_outside=counts, weight_bound=bound)

    def _records(self, asked: Any, read: HeldRecords) -> Records:
        """Rows with their targets or class numbers; of tables, flags of rows outside; weights."""
        rows, values, *beside = read.rows
        if self._rows.finds_range:
            rows = rows * ANY_VALUE[1]  # in units of the values, whose range is unknown
        if self._discriminates:
            numbers = label_numbers(values, self.classes_)
            return (np.column_stack([rows - self._bounds().center, numbers]),)
        given = self._targets(values)
        targets = np.clip(given, *self._target_ends())
        if self._recipe.table is not None:
            beside[0] = beside[0] | (given != targets)
        return (rows, targets, *beside)

    def _targets(self, values: AnyArray) -> FloatArray:
        """Numeric targets; for labels, 1 for the second class and 0 otherwise."""
        if self._classifies:
            return np.asarray(values == self.classes_[1], dtype=np.float64)
        return values

    @property
    def _classifies(self) -> bool:
        return self._link == "logistic"

    @property
    def _discriminates(self) -> bool:
        """Whether the method is discriminant analysis: for curves, or more than two classes."""
        several = self._classifies and len(self.classes_) > 2
        return several or self.mechanism == Discriminant.name

    def _count(self, n: int | None) -> int:
        """The number of rows; an error if it is unknown, because some conversations need it."""
        if n is None:
            rule = "given at once or through fit_stream: several classes, and curves without a "
            raise InvalidData("X", rule + "value_range, need the number of rows")
        return n

    def _method(self) -> RegressionMechanism:
        """The mechanism, which is given as an instance or by its name."""
        given = self.mechanism
        return RegressionMechanism.named(given)() if isinstance(given, str) else given

    def _bounds(self) -> Bounds:
        """Public balls of features and targets."""
        center, radius = self._rows.ball(self._recipe)
        target = middle("target_range", self._target_ends())
        return Bounds(
            center=center, radius=radius, target_center=target[0], target_radius=target[1]
        )

    def _target_ends(self) -> tuple[float, float]:
        """The public range of targets; for a line through 0 it is extended to be symmetric at 0."""
        low, high = self._target_range()
        if self.fit_intercept or self._classifies:
            return low, high
        most = max(abs(low), abs(high))
        return -most, most

    # -- results -------------------------------------------------------------------------------

    def _conclude(
        self,
        asked: Any,
        read: HeldRecords,
        result: Any,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        """Set the fitted attributes, including the public model."""
        fitted = in_features(result) if self._rows.finds_range else result
        link: ModelLink = self._link
        if self._discriminates:
            link, mechanism = "discriminant", asked.name
            fitted = replace(fitted, center=fitted.center + self._bounds().center)
        else:
            mechanism = asked.mechanism.name
        # The first answer about the location of rows and targets in their public ranges.
        counts = (ChannelQuery, OutsideCount, RadiusCount)
        first = next(one for one in transcript if not isinstance(one.query, counts))
        problem = None if self._discriminates else asked.problem
        of_ranges: tuple[str, ...] = ()
        if not (self._discriminates and self._rows.finds_range):
            of_ranges = range_warnings(first, fitted, problem=problem, shape=self._recipe.shape)
        # These warnings are more specific than those that some rows, or nearly all, are outside.
        less = (OUTSIDE, BEYOND, too_small("their public bound")) if of_ranges else ()
        others = tuple(text for text in fitted.warnings if text not in less)
        fitted = replace(fitted, warnings=(*others, *of_ranges))
        self.guarantee_ = guarantee
        self.n_seen_, self.stages_ = transcript[-1].answer.n, len(transcript)
        self.model_ = RegressionModel(
            guarantee=guarantee,
            link=link,
            mechanism=mechanism,
            rows=self.n_seen_,
            stages=self.stages_,
            classes=tuple(np.asarray(self.classes_).tolist()) if self._classifies else None,
            target_range=None if self._classifies else self._target_range(),
            recipe=self._recipe,
            fit=fitted,
            weight_bound=getattr(self, "weight_bound", None),
        )
        self.fit_, self.coef_ = fitted, self.model_.slopes
        self.intercept_ = self.model_.intercept
        verdict = self.model_.verdict
        warnings = verdict.added_to((*fitted.warnings, *self.model_.hidden_features))
        self._warn(warnings, verdict.sentences)
        return self

    # -- prediction ----------------------------------------------------------------------------

    def predict(self, X: Any, *, grid_points: Any = None) -> AnyArray:
        """Predicted targets inside their public range, or the most likely label of each row."""
        X, grid_points = self._unseen(X, grid_points)
        return self.model_.predict(X, grid_points=grid_points)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, grid_points: Any = None) -> float:
        """R² of the predictions, or the share of correct labels; not private."""
        return scored(self, self.predict(X, grid_points=grid_points), y, sample_weight)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Log-odds of the second of two classes; for more classes, one column each."""
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
        rows = self._rows
        X, points = rows.with_points(X, grid_points)
        own = points is not None
        return rows.checked(self, X, reset=False, own_points=own, least=1), points

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._rows.of_curves
        return tags_of_predictor(tags, classes=self._classifies, several=self._classifies)


def stated_range(given: Any) -> tuple[float, float]:
    """The public range of y; an error if it is not given."""
    if given is None:
        raise InvalidParameter("target_range", "given: the public (low, high) of y", None)
    return _validate.interval("target_range", given)
