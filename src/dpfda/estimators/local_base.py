"""What all studies with a scikit-learn face share: an account, public ranges, new rows.

What the scikit-learn faces of studies share: a public recipe, randomness, prediction.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import AnyArray, FloatArray
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import own_grids, public_domain, with_own_grids
from dpfda.curves.ranges import FeatureRanges, PublicColumns
from dpfda.errors import InvalidParameter
from dpfda.estimators.curve_reader import CurveReader, count_channels, count_rows, take
from dpfda.estimators.scikit import ClassifierMixin
from dpfda.mechanisms.question_response import effective_answers
from dpfda.noise import Source
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC, Guarantee
from dpfda.protocol.comparison import non_private_classifier
from dpfda.protocol.linear_scores import chances, decided
from dpfda.protocol.model import CurveModel
from dpfda.protocol.public_randomness import one_row_each

_FEW = 10  # the sign of a correlation of 0.3 is then wrong one time in six


@dataclass(eq=False, repr=False, kw_only=True)
class LocalEstimator(CurveReader):
    """An estimator that learns from replies of people, and holds a public model in the end.

    Args:
        feature_ranges: public ranges of a table: (low, high) of all columns, one pair a column,
            or a mapping from column to (low, high) or to its categories.
    """

    _stream: ClassVar[int | None] = 1  # of a seed: data may have been drawn from the plain one

    feature_ranges: FeatureRanges | None = None

    @property
    def _account(self) -> dict[str, Any]:
        """Everybody in the data spends what they are promised, before anybody is asked."""
        return {"ledger": self.ledger, "label": type(self).__name__}

    def _promise(self, promise: Guarantee, source: Source) -> Guarantee:
        """What people were promised, stamped with what only this simulation knows."""
        return promise.drawn_from(source)

    def _warn_if_few(self, people: float, epsilon: float | None = None) -> None:
        """Say before anybody is asked that replies will tell next to nothing."""
        each = self.epsilon if epsilon is None else epsilon
        worth = min(people, effective_answers(people, each))  # several answers are of one person
        if worth < _FEW:
            told = (
                f"too few people: replies of {people:.0f} with ε = {each:g} are together worth "
                f"{worth:.1f} who answer without noise, and nothing can be learnt from fewer than "
                f"{_FEW} (dpfda plan tells how many it takes)"
            )
            warnings.warn(told, UserWarning, stacklevel=3)

    def _require_ranges(self, *names: str) -> None:
        """Real noise is not spent on a range that nobody has stated."""
        if not self._is_simulation and all(getattr(self, name, None) is None for name in names):
            rule = "given where random_state is None: the public (low, high) of the data"
            others = f" (or {' or '.join(names[1:])})" if names[1:] else ""
            raise InvalidParameter(names[0], rule + others, None)

    def _require_fitted(self) -> None:
        check_is_fitted(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A missing point of a curve; a table has none where people are simulated.
        tags.input_tags.allow_nan = self.feature_ranges is None or not self._is_simulation
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class CurveEstimator(LocalEstimator):
    """One that learns from curves, or from a table's rows.

    Args:
        value_range: public (low, high) of x(t), or one pair a channel; values outside are clipped.
            Curves need it; a table has `feature_ranges` instead.
        domain_range: public (start, end) of t; by default that of the shared grid points, [0, 1]
            without any, and an FDataGrid's own; must be given for pairs (t, x).
    """

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    model_: Any = field(init=False)

    def _read_curves(self, X: Any, *, reset: bool, own_points: bool = False) -> Any:
        if not isinstance(self.feature_ranges, Mapping) or isinstance(X, np.ndarray):
            return super()._read_curves(X, reset=reset, own_points=own_points)
        if self._is_simulation:
            self._table(self.feature_ranges, X, reset=reset)  # says what is wrong with rows
        return self._checked_table(self.feature_ranges, X, reset=reset)

    def _read(self, X: Any, y: Any, groups: Any, *, seed: int, reset: bool = True) -> Any:
        """One row, and label or number, of each person: by public randomness if there are more."""
        self._require_raw_rows()
        self._require_ranges("value_range", "feature_ranges", "encoder")
        rows = self._read_curves(X, reset=reset)
        labels = self._read_own(y, count_rows(rows))
        if groups is None:
            return rows, labels
        kept = one_row_each(groups, seed=seed, rows=len(labels))
        return take(rows, kept), labels[kept]

    @abstractmethod
    def _read_own(self, y: Any, count: int) -> AnyArray:
        """What is to be predicted, one for each row."""

    def _left_out(self, where: str, *names: str) -> None:
        """Refuse a public fact that is said twice."""
        for name in names:
            if getattr(self, name) is not None:
                raise InvalidParameter(name, f"left out where {where}", getattr(self, name))

    def _range_facts(self, X: Any, grid_points: Any) -> dict[str, Any]:
        """The public ranges as `plan_study` takes them; of X only its shape and domain count."""
        if self.feature_ranges is None:
            if self.value_range is None:
                rule = "given: the public (low, high) of x(t); for a table, give feature_ranges"
                raise InvalidParameter("value_range", rule, None)
            return {
                "value_range": self._value_ranges(X),
                "domain_range": public_domain(X, grid_points, self.domain_range),
            }
        self._left_out("feature_ranges say that X is a table", "value_range", "domain_range")
        if isinstance(self.feature_ranges, Mapping):
            return {"feature_ranges": self.feature_ranges}
        table = PublicColumns.of(self.feature_ranges, width=X.shape[1])
        pairs = zip(table.low.tolist(), table.high.tolist(), strict=True)
        return {"feature_ranges": list(pairs)}

    def _features(self, X: Any, grid_points: Any) -> FloatArray:
        self._require_fitted()
        return np.asarray(self.model_.encoder.encode(*self._new_curves(X, grid_points)))

    def _new_curves(self, X: Any, grid_points: Any) -> tuple[Any, Any]:
        """New curves, and their points: those of the fit unless there are others."""
        X, grid_points = with_own_grids(X, grid_points)
        read = self._read_curves(X, reset=False, own_points=grid_points is not None)
        points = self.grid_points_ if grid_points is None and not own_grids(read) else grid_points
        return read, points


@dataclass(eq=False, repr=False, kw_only=True)
class LocalClassifier(ClassifierMixin, LocalEstimator):
    """A classifier that holds a public model once it is fitted, and scores new rows with it.

    Args:
        classes: the public set of labels; must be given unless a seed makes this a simulation.
    """

    classes: Sequence[Any] | None = None

    def _promise(self, promise: Guarantee, source: Source) -> Guarantee:
        """What people were promised, stamped with what only this simulation knows."""
        stamped = super()._promise(promise, source)
        return stamped if self._classes_given else stamped.assuming(CLASSES_ARE_PUBLIC)

    # -- prediction -------------------------------------------------------------------------------

    def decision_function(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Scores of new rows: (n, K), or (n,) for two classes, ``classes_[1]`` from 0 on."""
        scores = self._scores(X, grid_points)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any, *, grid_points: Any = None) -> AnyArray:
        """Labels of new rows."""
        numbers = decided(self._scores(X, grid_points))
        return np.asarray(self.classes_[numbers])

    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities (n, K) that follow from the scores, in the order of ``classes_``.

        Logistic for two classes, softmax for several; not calibrated: 0.8 need not be right in 80 %
        of cases.
        """
        return chances(self._scores(X, grid_points))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, grid_points: Any = None) -> float:
        """Part of the labels that are predicted; not private."""
        predicted = self.predict(X, grid_points=grid_points)
        labels = self._read_labels(y, len(predicted))
        return float(np.average(predicted == labels, weights=sample_weight))

    @abstractmethod
    def _scores(self, X: Any, grid_points: Any) -> FloatArray:
        """The model's scores of new rows, (n, 1) for two classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # privacy costs accuracy on their small data sets
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class CurveClassifierBase(LocalClassifier, CurveEstimator):
    """A classifier of curves, or of a table's rows, that holds a public `CurveModel`."""

    model_: CurveModel = field(init=False)

    def _read_own(self, y: Any, count: int) -> AnyArray:
        return self._read_labels(y, count)

    # -- beside it, without privacy ---------------------------------------------------------------

    def _fit_comparison(self, rows: Any, labels: Any, grid_points: Any) -> None:
        """The classifier that saw every curve: only a simulation may have it."""
        self._non_private: Any = None
        if self._is_simulation:
            features = self.model_.encoder.coefficients(rows, grid_points, strict=False)
            squares = len(self.model_.folds) > 0
            self._non_private = non_private_classifier(features, labels, squares=squares)

    def _non_private_error(self, X: Any, labels: Any, grid_points: Any) -> float:
        """Its error on new rows: coefficients as they are, no range squeezes them."""
        rows = self._new_curves(X, grid_points)
        features = self.model_.encoder.coefficients(*rows, strict=False)
        return float(np.mean(self._non_private.predict(features) != labels))

    # -- the public recipe ------------------------------------------------------------------------

    def _encoder(self, X: Any, grid_points: Any) -> CurveEncoder:
        """How a row becomes a vector: from public parameters, and the shape of X."""
        if self.feature_ranges is None:
            domain = public_domain(X, grid_points, self.domain_range)
            channels = [self._curve_encoder(one, domain) for one in self._value_ranges(X)]
            return CurveEncoder.side_by_side(channels)
        self._left_out("feature_ranges say that X is a table", "value_range", "domain_range")
        named = isinstance(self.feature_ranges, Mapping)
        width = {} if named else {"n_basis": X.shape[1]}
        return CurveEncoder("identity", feature_ranges=self.feature_ranges, **width)

    def _curve_encoder(self, value_range: Any, domain: tuple[float, float]) -> CurveEncoder:
        """The recipe for curves: coefficients of B-splines lie about where the curve lies."""
        basis: dict[str, Any] = {"n_basis": 4, "domain_range": domain}
        if value_range is not None:
            basis["feature_ranges"] = _validate.interval("value_range", value_range)
        return CurveEncoder("bspline", **basis)

    # -- prediction -------------------------------------------------------------------------------

    def _scores(self, X: Any, grid_points: Any) -> FloatArray:
        features = self._features(X, grid_points)  # first: it refuses the unfitted
        return np.asarray(self.model_.scores(features))

    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities (n, K) as the model states them, in the order of ``classes_``.

        Question studies know how unsure they are and draw probabilities towards ½ by that; how well
        they are calibrated is in the guide on question reports.
        """
        features = self._features(X, grid_points)  # first: it refuses the unfitted
        return self.model_.chances(features)


@dataclass(eq=False, repr=False, kw_only=True)
class EncodedClassifier(CurveClassifierBase):
    """A classifier of whatever an encoder makes of rows.

    Args:
        encoder: how a row becomes a vector in [-1, 1]^d; by default made of the public ranges.
    """

    encoder: CurveEncoder | None = None

    def _encoder(self, X: Any, grid_points: Any) -> CurveEncoder:
        if self.encoder is None:
            return super()._encoder(X, grid_points)
        if not isinstance(self.encoder, CurveEncoder):
            raise InvalidParameter("encoder", "None or a CurveEncoder", self.encoder)
        self._left_out("an encoder says it", "value_range", "domain_range", "feature_ranges")
        return every_channel(self.encoder, X)


def every_channel(encoder: CurveEncoder, X: Any) -> CurveEncoder:
    """The encoder, for each channel of X if it is for one."""
    channels = count_channels(X) if encoder.channels == 1 else 1
    return CurveEncoder.side_by_side([encoder] * channels)


def plain_classes(classes: Any) -> tuple[Any, ...]:
    """Labels as plain Python values, for a plan."""
    return tuple(np.asarray(classes).tolist())


def stamped(model: CurveModel, guarantee: Guarantee) -> CurveModel:
    """The model with what its people were really promised."""
    return replace(model, guarantee=guarantee)
