"""What private regressors share: reading rows, asking the questions, keeping the promise."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.curate import Passes, curate
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise import Source, source_for
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.holder import Holder
from dpfda.regression import fixed_point
from dpfda.regression.doubts import doubts
from dpfda.regression.methods import Fitted, Method, Regression
from dpfda.regression.model import RegressionModel
from dpfda.regression.problem import Bounds, Problem, Task

Chunks = Callable[[], Iterable[tuple[Any, Any]]]


@dataclass(eq=False, repr=False)
class RegressionParameters(BaseEstimator):  # type: ignore[misc]
    """The parameters of every private regressor, pooled or among sites."""

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 1e-5
    method: str | Method = "moments"
    fit_intercept: bool = True
    feature_norm_bound: float | None = 1.0
    feature_center: Any = 0.0
    clip: bool = False
    encoder: Any = None
    unit: str = "person"
    random_state: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegression(RegressionParameters):
    """What both tasks share: bounds, questions, streams, guarantee. Not for use by itself."""

    _task: ClassVar[Task]

    ledger: BaseLedger | None = None

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
        self._finish(fitted, curator, regression.guarantee)
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
            regression, source = self._regression(rows.shape[1])
            self._passes = Passes(regression, source=source, ledger=self.ledger)
        self._passes.add((rows, targets))
        return self

    def next_stage(self) -> bool:
        """Release the stage in progress; True while another pass over the chunks is needed."""
        if not hasattr(self, "_passes"):
            raise InvalidData("X", "given through partial_fit before next_stage")
        passes = self._passes
        passes.release()
        if passes.result is None:
            return True
        del self._passes
        self._finish(passes.result, passes.stream, passes.conversation.guarantee)
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

    def _finish(self, fitted: Fitted, holder: Holder, guarantee: Guarantee) -> None:
        first = holder.transcript[0]
        boxed = self.encoder is not None and self.feature_norm_bound is None
        seen = doubts(first.query, first.answer, task=self._task, boxed=boxed)
        fitted = replace(fitted, warnings=(*fitted.warnings, *seen))
        self.fit_ = fitted
        self.coef_ = fitted.slope
        self.intercept_ = fitted.intercept
        # Clipping biases slopes by more than noise does: no error bar is better than a tiny one.
        covariance = None if fitted.clips else fitted.covariance
        self.coef_standard_error_ = None if covariance is None else np.sqrt(np.diag(covariance))
        self.clipping_inflation_ = fitted.inflation
        self.n_seen_ = holder.transcript[-1].answer.n
        self.stages_ = len(holder.transcript)
        self.guarantee_ = guarantee.drawn_from(holder.source)
        for text in fitted.warnings:
            warnings.warn(text, UserWarning, stacklevel=3)

    @property
    def model_(self) -> RegressionModel:
        """The regression as a public model that can be saved."""
        check_is_fitted(self, "fit_")
        center, radius = self._segment()
        linear = self._task == "linear"
        names = getattr(self, "feature_names_in_", range(1, len(self.fit_.slope) + 1))
        points = self.grid_points_
        return RegressionModel(
            guarantee=self.guarantee_,
            task=self._task,
            mechanism=self.method if isinstance(self.method, str) else self.method.name,
            rows=self.n_seen_,
            stages=self.stages_,
            features=tuple(map(str, names)),
            classes=None if linear else tuple(np.asarray(self.classes_).tolist()),
            target_range=(center - radius, center + radius) if linear else None,
            encoder=self.encoder,
            grid_points=None if points is None else np.asarray(points, dtype=np.float64),
            fit=self.fit_,
        )

    def _ball(self, dimension: int) -> tuple[FloatArray, float]:
        """Public center and radius of the rows; one number stands for all features."""
        center = np.asarray(self.feature_center, dtype=np.float64)
        if center.ndim == 0:
            center = np.full(dimension, float(center))
        if center.shape != (dimension,) or not np.all(np.isfinite(center)):
            rule = f"a number or {dimension} finite numbers"
            raise InvalidParameter("feature_center", rule, self.feature_center)
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
        center, radius = self._ball(rows.shape[1])
        if not self.clip:
            fixed_point.require_ball(rows, center=center, radius=radius)
        return rows, targets

    def _linear(self, X: Any) -> FloatArray:
        check_is_fitted(self, "fit_")
        rows = _validate.batch("X", self._rows(X), columns=self.n_features_in_)
        return self.fit_.predict(rows)

    @abstractmethod
    def _targets(self, y: Any) -> FloatArray:
        """Private targets as numbers, checked without being shown."""

    @abstractmethod
    def _segment(self) -> tuple[float, float]:
        """Public center and radius of the targets."""

    def _problem(self, dimension: int, *, rows: int | None = None) -> Problem:
        (center, radius), (target_center, target_radius) = self._ball(dimension), self._segment()
        bounds = Bounds(
            center=center, radius=radius, target_center=target_center, target_radius=target_radius
        )
        intercept = bool(self.fit_intercept)
        return Problem(task=self._task, bounds=bounds, fit_intercept=intercept, rows=rows)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_")
