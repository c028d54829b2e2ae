"""scikit-learn estimators: private linear and logistic regression for a trusted curator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.curate import curate
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.noise import Source, source_for
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.holder import Holder, Stream
from dpfda.regression import fixed_point
from dpfda.regression.methods import Fitted, Method, Regression
from dpfda.regression.passes import Passes
from dpfda.regression.problem import Bounds, Problem, Task, center_vector
from dpfda.regression.targets import one_column

Chunks = Callable[[], Iterable[tuple[Any, Any]]]


class _PrivateRegression(BaseEstimator):  # type: ignore[misc]
    """What both tasks share: bounds, questions, streams, guarantee."""

    _task: ClassVar[Task]

    # -- fitting ---------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, grid_points: Any = None) -> Self:
        """Fit privately: one pass over the rows for each question of the method.

        Args:
            X: private rows (n, D), or curves where `encoder` is given.
            y: private targets.
            grid_points: the points of curves given as an array.
        """
        self.grid_points_ = grid_points
        rows, targets = self._read(X, y)
        regression, source = self._regression(rows.shape[1], rows=len(rows))
        fitted, curator = curate(regression, (rows, targets), source=source, ledger=self.ledger)
        self._finish(fitted, curator, regression)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add a chunk of people to the stage in progress; call `next_stage` after the last one.

        Every stage needs all chunks again: see `fit_stream`. Nothing is released before
        `next_stage`, and each person may appear in one chunk of a stage only.
        """
        if not hasattr(self, "grid_points_"):
            self.grid_points_ = None
        if self._task == "logistic" and self.classes is None:
            raise InvalidParameter("classes", "given: a chunk need not hold both labels", None)
        rows, targets = self._read(X, y)
        if not hasattr(self, "_passes"):
            self._begin(*self._regression(rows.shape[1]))
        self._passes.add(rows, targets)
        return self

    def next_stage(self) -> bool:
        """Release the stage in progress; True while another pass over the chunks is needed."""
        if not hasattr(self, "_passes"):
            raise InvalidData("X", "given through partial_fit before next_stage")
        passes = self._passes
        passes.release()
        if passes.fitted is None:
            return True
        del self._passes
        self._finish(passes.fitted, passes.stream, passes.regression)
        return False

    def fit_stream(self, chunks: Chunks) -> Self:
        """Fit from a function that starts a new pass over chunks (X, y); memory O(D²)."""
        if hasattr(self, "_passes"):
            del self._passes
        more = True
        while more:
            for X, y in chunks():
                self.partial_fit(X, y)
            more = self.next_stage()
        return self

    # -- pieces ------------------------------------------------------------------------------

    def _regression(self, dimension: int, *, rows: int | None = None) -> tuple[Regression, Source]:
        """The conversation that public parameters ask for, and where its noise comes from."""
        method = self.method if isinstance(self.method, Method) else Method.named(self.method)()
        source = source_for(self.random_state)
        self.n_features_in_ = dimension
        regression = Regression(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            problem=self._problem(dimension, rows=rows),
            method=method,
            found_classes=self._task == "logistic" and self.classes is None,
        )
        return regression, source

    def _begin(self, regression: Regression, source: Source) -> None:
        if self.ledger is not None and self.ledger.would_exceed(regression.most):
            raise BudgetExceeded("the ledger cannot pay for the whole fit; nothing was spent")
        stream = Stream(
            most=regression.most,
            source=source,
            unit=regression.unit,
            accepts=regression.assumptions,
            ledger=self.ledger,
            label=type(regression).__name__,
        )
        self._passes = Passes(regression, stream)

    def _finish(self, fitted: Fitted, holder: Holder, regression: Regression) -> None:
        self.fit_ = fitted
        self.coef_ = fitted.slope
        self.intercept_ = fitted.intercept
        # Clipping biases slopes by more than noise does: no error bar is better than a tiny one.
        covariance = None if fitted.clips else fitted.covariance
        self.coef_standard_error_ = None if covariance is None else np.sqrt(np.diag(covariance))
        self.clipping_inflation_ = fitted.inflation
        self.n_seen_ = holder.transcript[-1].answer.n
        self.stages_ = len(holder.transcript)
        self.guarantee_ = regression.guarantee.drawn_from(holder.source)
        for text in fitted.warnings:
            warnings.warn(text, UserWarning, stacklevel=3)

    def _bounds(self, dimension: int) -> tuple[FloatArray, float]:
        center = center_vector(self.feature_center, dimension)
        if self.feature_norm_bound is None:
            # An encoder's features lie in [-1, 1]^d by construction.
            if self.encoder is None:
                raise InvalidParameter("feature_norm_bound", "given without an encoder", None)
            return center, math.sqrt(dimension)
        return center, _validate.positive("feature_norm_bound", self.feature_norm_bound)

    def _rows(self, X: Any) -> FloatArray:
        if self.encoder is not None:
            return np.asarray(self.encoder.encode(X, grid_points=self.grid_points_))
        if hasattr(X, "toarray"):
            raise InvalidData("X", "a dense array (sparse input is not supported)")
        return X  # type: ignore[no-any-return]

    def _read(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        # Public parameters first: what is wrong with them is no secret.
        self._problem(max(1, np.size(self.feature_center)))
        columns = self.n_features_in_ if hasattr(self, "_passes") else None
        rows, targets = fixed_point.check_rows(self._rows(X), self._targets(y), columns=columns)
        center, radius = self._bounds(rows.shape[1])
        if not self.clip:
            fixed_point.require_ball(rows, center=center, radius=radius)
        return rows, targets

    def _linear(self, X: Any) -> FloatArray:
        check_is_fitted(self, "fit_")
        rows = _validate.batch("X", self._rows(X), columns=self.n_features_in_)
        return self.fit_.predict(rows)

    def _targets(self, y: Any) -> FloatArray:
        raise NotImplementedError

    def _problem(self, dimension: int, *, rows: int | None = None) -> Problem:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_")


class PrivateLinearRegression(RegressorMixin, _PrivateRegression):  # type: ignore[misc]
    """Least squares of a bounded target on bounded features, with differential privacy.

    Privacy:
        (ε, δ)-DP (pure ε for δ = 0, where the method allows it) for replacing one row; the unit is
        `unit` if everybody has one row. All bounds are public arguments; none is taken from the
        data. Each method states its own proof (`dpfda.regression.methods`).

    Args:
        epsilon, delta: the budget of the whole fit.
        method: ``moments`` (default), ``gaussian_fm``, ``adassp``, ``fm``, ``relaxed_fm``,
            ``objective_perturbation``, ``noisy_gradient``, ``output_perturbation``, or a `Method`.
        fit_intercept: allow a constant term.
        feature_norm_bound: public bound on |x - feature_center|₂. None with an encoder: √d.
        feature_center: public centre, one number or one for each feature.
        target_bound: public bound on |y - target_center|.
        target_center: public centre of the target.
        clip: shorten rows and targets to the bounds instead of refusing them.
        encoder: a `CurveEncoder`, for curves or for features with public ranges. Encoders move
            features into their ranges by design, whatever `clip` says.
        unit: whom one row stands for.
        ledger: the data set's budget over all fits; spent before noise is drawn, and refused
            before anything is spent where it cannot pay for the whole fit.
        random_state: None for exact noise; a seed for simulations.

    Attributes:
        coef_, intercept_: of the line inside the clipping ball; `predict` clips as in training.
            ``moments`` shortens rows, so its `coef_` is too large as a statement about unclipped
            rows: use it to predict, and ``gaussian_fm`` (clips at the public bounds only) where
            coefficients are the question.
        clipping_inflation_: how many times too large, about; 1.0 where nothing is clipped. A
            warning, not a correction: single coefficients differ.
        coef_standard_error_: from the known privacy noise alone, to first order; None where it has
            no simple form, and None where clipping may bias `coef_`. The intercept has none.
        guarantee_: what the fit promises.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-0.5, 0.5, (20_000, 3))
        >>> y = X @ [0.8, -0.4, 0.0] + 0.1
        >>> model = PrivateLinearRegression(epsilon=1.0, random_state=0).fit(X, y)
        >>> np.abs(model.predict(X) - y).mean() < 0.05
        np.True_
        >>> print(model.guarantee_)  # doctest: +ELLIPSIS
        ε = 1, δ = 1e-05, central, unit = person, sampler = simulation (seeded), assuming ...
    """

    _task: ClassVar[Task] = "linear"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        method: str | Method = "moments",
        fit_intercept: bool = True,
        feature_norm_bound: float | None = 1.0,
        feature_center: Any = 0.0,
        target_bound: float = 1.0,
        target_center: float = 0.0,
        clip: bool = False,
        encoder: Any = None,
        unit: str = "person",
        ledger: BaseLedger | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.fit_intercept = fit_intercept
        self.feature_norm_bound = feature_norm_bound
        self.feature_center = feature_center
        self.target_bound = target_bound
        self.target_center = target_center
        self.clip = clip
        self.encoder = encoder
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a hundred people are too few for a private fit
        return tags

    def predict(self, X: Any) -> FloatArray:
        """Predicted targets, inside the public bounds."""
        low, high = self.target_center - self.target_bound, self.target_center + self.target_bound
        return np.clip(self._linear(X), low, high)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions; not private."""
        targets = _validate.vector("y", one_column(y))
        return float(r2_score(targets, self.predict(X), sample_weight=sample_weight))

    def _targets(self, y: Any) -> FloatArray:
        targets = _validate.vector("y", one_column(y))
        if not self.clip:
            radius = _validate.positive("target_bound", self.target_bound)
            fixed_point.require_segment(targets, center=self.target_center, radius=radius)
        return targets

    def _problem(self, dimension: int, *, rows: int | None = None) -> Problem:
        center, radius = self._bounds(dimension)
        bounds = Bounds(
            center=center,
            radius=radius,
            target_center=self.target_center,
            target_radius=_validate.positive("target_bound", self.target_bound),
        )
        return Problem(
            task="linear", bounds=bounds, fit_intercept=bool(self.fit_intercept), rows=rows
        )


class PrivateLogisticRegression(ClassifierMixin, _PrivateRegression):  # type: ignore[misc]
    """Two-class classification by a private line, with differential privacy.

    Privacy:
        As `PrivateLinearRegression`; the label counts as private.

    Args:
        epsilon, delta, method, fit_intercept, feature_norm_bound, feature_center, clip, encoder,
            unit, ledger, random_state: as in `PrivateLinearRegression`.
        classes: the two public labels; the second is the one whose log-odds are modelled. Which
            labels there are is private: only a seeded simulation may find them in the data, and
            its guarantee says so.

    Attributes:
        coef_, intercept_: of the log-odds inside the clipping ball.
        clipping_inflation_: as in `PrivateLinearRegression`.
        classes_: the two labels.
        guarantee_: what the fit promises.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-0.5, 0.5, (20_000, 3))
        >>> y = (X @ [1.0, -1.0, 0.0] > 0.1).astype(int)
        >>> model = PrivateLogisticRegression(epsilon=1.0, random_state=0).fit(X, y)
        >>> bool(model.score(X, y) > 0.95)
        True
    """

    _task: ClassVar[Task] = "logistic"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        method: str | Method = "moments",
        fit_intercept: bool = True,
        feature_norm_bound: float | None = 1.0,
        feature_center: Any = 0.0,
        classes: tuple[Any, Any] | None = None,
        clip: bool = False,
        encoder: Any = None,
        unit: str = "person",
        ledger: BaseLedger | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.fit_intercept = fit_intercept
        self.feature_norm_bound = feature_norm_bound
        self.feature_center = feature_center
        self.classes = classes
        self.clip = clip
        self.encoder = encoder
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # a hundred people are too few for a private fit
        tags.classifier_tags.multi_class = False
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Part of the labels that are predicted; not private."""
        right = self.predict(X) == self._labels(y)
        return float(np.average(right, weights=sample_weight))

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the second class."""
        return self._linear(X)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The likelier label of each row."""
        return np.asarray(self.classes_[(self._linear(X) >= 0).astype(int)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two classes, shape (n, 2)."""
        likely = np.asarray(1 / (1 + np.exp(-np.clip(self._linear(X), -500, 500))), np.float64)
        return np.asarray(np.stack([1 - likely, likely], axis=1), np.float64)

    def _targets(self, y: Any) -> FloatArray:
        labels = self._labels(y)
        self.classes_ = self._two_classes(labels)
        first, second = self.classes_
        positive = labels == second
        if not np.all(positive | (labels == first)):
            rule = f"made of the two public labels only: classes=({first!s}, {second!s})"
            raise InvalidData("y", rule + "; pass classes=(..., ...) for others")
        return np.asarray(positive, dtype=np.float64)

    def _labels(self, y: Any) -> np.ndarray[Any, Any]:
        labels = np.asarray(one_column(y))
        if labels.ndim != 1:
            raise InvalidData("y", "a one-dimensional array (n,)", f"shape {labels.shape}")
        return labels

    def _two_classes(self, labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.classes is not None:
            classes = np.asarray(self.classes)
            if classes.shape != (2,) or classes[0] == classes[1]:
                raise InvalidParameter("classes", "two different labels", self.classes)
            return classes
        if source_for(self.random_state).sampler == "exact":
            raise InvalidParameter("classes", "given: which labels there are is private", None)
        try:
            found = np.unique(labels)
        except TypeError:
            raise InvalidData("y", "made of labels of one type") from None
        if len(found) != 2:
            raise InvalidData("y", "made of two classes", f"{len(found)} class(es)")
        return found

    def _problem(self, dimension: int, *, rows: int | None = None) -> Problem:
        center, radius = self._bounds(dimension)
        bounds = Bounds(center=center, radius=radius, target_center=0.5, target_radius=0.5)
        return Problem(
            task="logistic", bounds=bounds, fit_intercept=bool(self.fit_intercept), rows=rows
        )
