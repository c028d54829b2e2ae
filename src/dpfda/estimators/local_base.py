"""The base of estimators of local studies: people's rows, the public encoder, and prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import AnyArray, FloatArray
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import own_grids, points_of, public_domain, with_own_grids
from dpfda.curves.ranges import FeatureRanges, PublicColumns
from dpfda.errors import InvalidParameter, warn
from dpfda.estimators.base import PrivateEstimator
from dpfda.estimators.reading import (
    ValueRange,
    count_channels,
    count_rows,
    every_channel,
    read_curves,
    read_labels,
    take,
    value_ranges,
)
from dpfda.estimators.scikit import ClassifierMixin
from dpfda.estimators.study_report import StudyResult
from dpfda.mechanisms.randomized_response import effective_answers
from dpfda.noise import Source
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC, Guarantee
from dpfda.protocol.estimate import (
    NON_PRIVATE,
    WITH_SQUARES,
    in_words,
    majority_error,
    non_private_classifier,
)
from dpfda.protocol.linear_scores import chances, decided
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import Label
from dpfda.protocol.public_randomness import one_row_each

if TYPE_CHECKING:
    from dpfda.estimators.local_curve_classifier import LocalCurveClassifier
    from dpfda.estimators.local_curve_regressor import LocalCurveRegressor
    from dpfda.estimators.moment_classifier import MomentClassifier

    CurveEstimator: TypeAlias = "CurveClassifier | LocalCurveRegressor"

LOCAL_STREAM = 1
"""Stream of a seed for local studies, because data may have been drawn with the same seed."""
_LEAST = 10
"""Smallest useful effective sample size. Below it, the sign of a correlation of 0.3 is wrong at
least one time in six."""


@dataclass(eq=False, repr=False, kw_only=True)
class LocalClassifier(ClassifierMixin, PrivateEstimator):
    """A classifier whose fit gives a public model, which scores new rows.

    Args:
        feature_ranges: public ranges of a table: (low, high) of all columns, one pair per column,
            or a mapping from columns to (low, high) or to categories.
        classes: the public set of labels; required unless `random_state` makes this a simulation.
    """

    _stream: ClassVar[int | None] = LOCAL_STREAM

    feature_ranges: FeatureRanges | None = None
    classes: Sequence[Any] | None = None
    classes_: AnyArray = field(init=False)
    _classes_given: bool = field(init=False)

    def _promise(self, promise: Guarantee, source: Source) -> Guarantee:
        """The guarantee of the plan, with the noise source and the assumptions of this fit."""
        drawn = promise.drawn_from(source)
        return drawn if self._classes_given else drawn.assuming(CLASSES_ARE_PUBLIC)

    def _require_fitted(self) -> None:
        check_is_fitted(self, "model_")

    def decision_function(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Scores of new rows: (n, K); for two classes (n,), where ≥ 0 means ``classes_[1]``."""
        scores = self._scores(X, grid_points)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any, *, grid_points: Any = None) -> AnyArray:
        """Labels of new rows."""
        numbers = decided(self._scores(X, grid_points))
        return np.asarray(self.classes_[numbers])

    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities (n, K) computed from the scores, in the order of ``classes_``.

        They are logistic for two classes and softmax for several. They are not calibrated: of cases
        with probability 0.8, the share that is correct may differ from 80 %.
        """
        return chances(self._scores(X, grid_points))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, grid_points: Any = None) -> float:
        """Share of correct labels; not private."""
        predicted = self.predict(X, grid_points=grid_points)
        labels = read_labels(y, len(predicted), strict=self._is_simulation)
        return float(np.average(predicted == labels, weights=sample_weight))

    @abstractmethod
    def _scores(self, X: Any, grid_points: Any) -> FloatArray:
        """The model's scores of new rows, (n, 1) for two classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = allows_gaps(self)
        tags.classifier_tags.poor_score = True  # the data sets of scikit-learn's checks are small
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class CurveClassifier(LocalClassifier):
    """A classifier of curves, or of a table's rows, whose fit gives a public `CurveModel`.

    Args:
        value_range: public (low, high) of x(t), or one pair per channel; values outside are
            clipped. It is required for curves; tables have `feature_ranges` instead.
        domain_range: public (start, end) of t. The default is the domain of the shared grid
            points or of an FDataGrid, otherwise [0, 1]. It is required for pairs (t, x).
    """

    value_range: ValueRange = None
    domain_range: tuple[float, float] | None = None
    model_: CurveModel = field(init=False)
    grid_points_: Any = field(init=False)

    def _read_people(
        self, X: Any, y: Any, groups: Any, *, seed: int, reset: bool = True
    ) -> tuple[Any, AnyArray]:
        """One row and label for each person."""
        rows = read_people(self, X, reset=reset)
        labels = read_labels(y, count_rows(rows), strict=self._is_simulation)
        return one_row(rows, labels, groups, seed=seed)

    def _public_encoder(self, X: Any, grid_points: Any) -> CurveEncoder:
        """The encoder of rows as vectors in [-1, 1]^d, from public parameters and shapes."""
        encoder: CurveEncoder | None = getattr(self, "encoder", None)
        if encoder is not None:
            if not isinstance(encoder, CurveEncoder):
                raise InvalidParameter("encoder", "None or a CurveEncoder", encoder)
            names = ("value_range", "domain_range", "feature_ranges")
            refuse_given(self, *names, where="encoder is given, which states it")
            return every_channel(encoder, X)
        if self.feature_ranges is None:
            domain = public_domain(X, grid_points, self.domain_range)
            ranges = value_ranges(self.value_range, count_channels(X))
            channels = [self._curve_encoder(one, domain) for one in ranges]
            return CurveEncoder.side_by_side(channels)
        refuse_given(self, "value_range", "domain_range", where=_TABLE)
        named = isinstance(self.feature_ranges, Mapping)
        width = {} if named else {"n_basis": X.shape[1]}
        return CurveEncoder("identity", feature_ranges=self.feature_ranges, **width)

    def _curve_encoder(self, value_range: Any, domain: tuple[float, float]) -> CurveEncoder:
        """The encoder of one channel: B-splines, whose coefficients are within the value range."""
        basis: dict[str, Any] = {"n_basis": 4, "domain_range": domain}
        if value_range is not None:
            basis["feature_ranges"] = _validate.interval("value_range", value_range)
        return CurveEncoder("bspline", **basis)

    def _fit_comparison(self, rows: Any, labels: Any, grid_points: Any) -> None:
        """Fit a non-private classifier to compare with, in simulations only."""
        self._non_private: Any = None
        if self._is_simulation:
            features = self.model_.encoder.coefficients(rows, grid_points, strict=False)
            squares = len(self.model_.folds) > 0
            self._non_private = non_private_classifier(features, labels, squares=squares)

    def _non_private_error(self, X: Any, labels: Any, grid_points: Any) -> float:
        """The error of the non-private classifier on new rows, without clipping of coefficients."""
        rows = new_rows(self, X, grid_points)
        features = self.model_.encoder.coefficients(*rows, strict=False)
        return float(np.mean(self._non_private.predict(features) != labels))

    def _scores(self, X: Any, grid_points: Any) -> FloatArray:
        features = new_features(self, X, grid_points)  # raises `NotFittedError` first
        return np.asarray(self.model_.scores(features))

    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities (n, K) as the model states them, in the order of ``classes_``.

        A study of yes/no questions estimates its own uncertainty and shrinks probabilities towards
        ½ accordingly. The guide on question reports shows how well they are calibrated.
        """
        features = new_features(self, X, grid_points)  # raises `NotFittedError` first
        return self.model_.chances(features)


def evaluate_classifier(
    estimator: LocalCurveClassifier | MomentClassifier, X: Any, y: Any, grid_points: Any
) -> StudyResult:
    """Errors on held-out people, with those of the majority class and of no privacy."""
    decided = estimator.model_.decide(new_features(estimator, X, grid_points))
    y = read_labels(y, len(decided), strict=estimator._is_simulation)
    error, guessing = float(np.mean(estimator.classes_[decided] != y)), majority_error(y)
    result = estimator.result_
    result.errors = {"private": error, "majority class": guessing}
    result.held_out = len(y)
    result.notes = [*estimator.server_.findings.said, in_words(error, guessing, len(y))]
    if estimator._non_private is not None:
        result.errors["non-private"] = estimator._non_private_error(X, y, grid_points)
        result.notes.append(WITH_SQUARES if len(estimator.model_.folds) else NON_PRIVATE)
    return result


# -- people's rows ---------------------------------------------------------------------------------

_TABLE = "feature_ranges say that X is a table"


def read_people(estimator: CurveEstimator, X: Any, *, reset: bool) -> Any:
    """Check the rows of a fit: curves, or a table."""
    estimator._require_raw_rows()
    require_ranges(estimator, "value_range", "feature_ranges", "encoder")
    return _checked(estimator, X, reset=reset)


def one_row(rows: Any, values: AnyArray, groups: Any, *, seed: int) -> tuple[Any, AnyArray]:
    """One row of each person, chosen by public randomness, with its label or number."""
    if groups is None:
        return rows, values
    kept = one_row_each(groups, seed=seed, rows=len(values))
    return take(rows, kept), values[kept]


def curves_and_points(estimator: CurveEstimator, X: Any, grid_points: Any) -> tuple[Any, Any]:
    """Curves with their points, which may be column names of a frame; tables have no points."""
    if estimator.value_range is not None:  # curves without a given encoder
        grid_points = points_of(X, grid_points)
    return with_own_grids(X, grid_points)


def new_features(estimator: CurveEstimator, X: Any, grid_points: Any) -> FloatArray:
    """New rows, encoded by the fitted model."""
    check_is_fitted(estimator, "model_")
    return np.asarray(estimator.model_.encoder.encode(*new_rows(estimator, X, grid_points)))


def new_rows(estimator: CurveEstimator, X: Any, grid_points: Any) -> tuple[Any, Any]:
    """New rows and their points; by default the points are those of the fit."""
    X, grid_points = curves_and_points(estimator, X, grid_points)
    rows = _checked(estimator, X, reset=False, own_points=grid_points is not None)
    if grid_points is None and not own_grids(rows):
        return rows, estimator.grid_points_
    return rows, grid_points


def _checked(estimator: CurveEstimator, X: Any, *, reset: bool, own_points: bool = False) -> Any:
    ranges = estimator.feature_ranges
    if not isinstance(ranges, Mapping) or isinstance(X, np.ndarray):
        return read_curves(estimator, X, reset=reset, own_points=own_points)
    if estimator._is_simulation:
        estimator._table(ranges, X, reset=reset)  # raises an error for invalid rows
    return estimator._checked_table(ranges, X, reset=reset)


# -- public facts ----------------------------------------------------------------------------------


def range_facts(estimator: CurveEstimator, X: Any, grid_points: Any) -> dict[str, Any]:
    """The public ranges as arguments of `plan_study`; only the shape and domain of X are used."""
    ranges = estimator.feature_ranges
    if ranges is None:
        if estimator.value_range is None:
            rule = "given: the public (low, high) of x(t); for a table, give feature_ranges"
            raise InvalidParameter("value_range", rule, None)
        return {
            "value_range": value_ranges(estimator.value_range, count_channels(X)),
            "domain_range": public_domain(X, grid_points, estimator.domain_range),
        }
    refuse_given(estimator, "value_range", "domain_range", where=_TABLE)
    if isinstance(ranges, Mapping):
        return {"feature_ranges": ranges}
    table = PublicColumns.of(ranges, width=X.shape[1])
    return {"feature_ranges": list(zip(table.low.tolist(), table.high.tolist(), strict=True))}


def refuse_given(estimator: PrivateEstimator, *names: str, where: str) -> None:
    """Raise an error if a public fact is given that another parameter already states."""
    for name in names:
        if getattr(estimator, name) is not None:
            raise InvalidParameter(name, f"left out where {where}", getattr(estimator, name))


def require_ranges(estimator: PrivateEstimator, *names: str) -> None:
    """Raise an error if a fit with real noise has no public range."""
    given = [name for name in names if getattr(estimator, name, None) is not None]
    if not estimator._is_simulation and not given:
        rule = "given where random_state is None: the public (low, high) of the data"
        others = f" (or {' or '.join(names[1:])})" if names[1:] else ""
        raise InvalidParameter(names[0], rule + others, None)


def allows_gaps(estimator: CurveEstimator | LocalClassifier) -> bool:
    """Whether X may have missing values: in curves, and in tables with real noise."""
    return estimator.feature_ranges is None or not estimator._is_simulation


def warn_if_few(people: float, epsilon: float) -> None:
    """Warn before the first query if the replies will be too noisy to learn from."""
    effective = min(people, effective_answers(people, epsilon))  # a person may answer several times
    if effective < _LEAST:
        text = (
            f"too few people: {people:.0f} replies with ε = {epsilon:g} have an effective "
            f"sample size of {effective:.1f}, and nothing can be learnt from less than {_LEAST} "
            "(`dpfda plan` computes how many participants a study needs)"
        )
        warn(text)


def account(estimator: PrivateEstimator) -> dict[str, Any]:
    """The ledger of a study and the label of its entry, as arguments of `simulate`."""
    return {"ledger": estimator.ledger, "label": type(estimator).__name__}


def plain_classes(classes: AnyArray) -> tuple[Label, ...]:
    """Labels as plain Python values, for a plan."""
    return tuple(np.asarray(classes).tolist())


def stamped(model: CurveModel, guarantee: Guarantee) -> CurveModel:
    """The model with the guarantee of this fit."""
    return replace(model, guarantee=guarantee)
