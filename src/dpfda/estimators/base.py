"""What the study estimators share: fit runs a simulated study, the rest reads its result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise import SecureSource, SimulationSource, Source
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import Protects, StudyPlan
from dpfda.simulate import people_from, simulate


class StudyClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is learnt in a study: everybody behind the rows of `fit` reports once.

    Subclasses say in `_encoder` and `_design` what the study looks like, from public parameters and
    the public number of people alone.
    """

    epsilon: float
    protects: Protects
    classes: Sequence[Any] | None
    random_state: int | None

    def fit(self, curves: Any, labels: Any, *, grid_points: Any = None, groups: Any = None) -> Self:
        """Simulate the study: every person answers once, privately.

        Args:
            curves: an array (n, T), an FDataGrid, a list of pairs (t, x), or vectors.
            labels: the label of each curve.
            grid_points: the T points of an array.
            groups: the person behind each curve, where people have several; then each person
                reports one of their curves, chosen at random, so that ε is per person.
        """
        rows, y = _checked(curves, labels)
        if groups is not None:
            keep = one_row_each(groups, seed=self._public_seed(), rows=len(y))
            rows, y = take(rows, keep), y[keep]
        self.classes_ = np.unique(y) if self.classes is None else np.asarray(self.classes)
        if len(self.classes_) < 2:
            raise InvalidData("labels", "of at least 2 classes; pass classes= if one is absent")
        if not np.all(np.isin(y, self.classes_)):
            raise InvalidData("labels", "among the given classes")
        source = self._source()
        encoder = self._encoder(rows)
        self.plan_ = StudyPlan(
            epsilon=self.epsilon,
            n_people=len(y),
            encoder=encoder,
            classes=tuple(self.classes_.tolist()),
            design=self._design(len(y), encoder),
            protects=self.protects,
            seed=self._public_seed(),
        )
        people = people_from(self.plan_, rows, y, grid_points=grid_points)
        self.server_ = simulate(self.plan_, people, source=source)
        self.model_: CurveModel = self.server_.model
        self.guarantee_ = self.plan_.guarantee.drawn_from(source)
        width = np.shape(rows)[1] if np.ndim(rows) == 2 else encoder.n_features
        self.n_features_in_ = int(width)
        return self

    def predict(self, curves: Any, grid_points: Any = None) -> npt.NDArray[Any]:
        """The labels of new curves."""
        check_is_fitted(self)
        return self.classes_[self.model_.decide(self._encode(curves, grid_points))]

    def decision_function(self, curves: Any, grid_points: Any = None) -> npt.NDArray[np.float64]:
        """Scores: (n,) for two classes, (n, K) for more."""
        check_is_fitted(self)
        scores = self.model_.scores(self._encode(curves, grid_points))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @property
    def error_estimate_(self) -> Estimate | None:
        """The server's own estimate of the error, from people who answered after the model stood.

        None unless people were set aside for it (``evaluation_share``).
        """
        check_is_fitted(self)
        return getattr(self.server_.progress, "error_estimate", None)

    @abstractmethod
    def _encoder(self, curves: Any) -> CurveEncoder:
        """The public recipe; only the number of columns of `curves` may be looked at."""

    @abstractmethod
    def _design(self, n_people: int, encoder: CurveEncoder) -> dict[str, Any]:
        """The public design of the study."""

    def _encode(self, curves: Any, grid_points: Any) -> npt.NDArray[np.float64]:
        rows, _ = _checked(curves, None)
        if np.ndim(rows) == 2 and grid_points is None and rows.shape[1] != self.n_features_in_:
            raise InvalidData(
                "X",
                f"an array with {self.n_features_in_} features, as {type(self).__name__} was "
                f"fitted with",
                f"X has {rows.shape[1]} features",
            )
        return self.plan_.encoder.encode(rows, grid_points, strict=False)

    def _source(self) -> Source:
        if self.random_state is None:
            return SecureSource()
        return SimulationSource(_validate.whole("random_state", self.random_state, least=0))

    def _public_seed(self) -> int:
        return 0 if self.random_state is None else int(self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing point of a curve
        tags.classifier_tags.poor_score = True  # privacy costs accuracy on a few hundred people
        return tags


def _checked(curves: Any, labels: Any) -> tuple[Any, npt.NDArray[Any]]:
    """Curves as an array where they are one, and labels as a vector of the same length."""
    rows = curves
    if hasattr(curves, "toarray"):
        raise TypeError("sparse input is not supported: pass a dense array")
    if not hasattr(curves, "data_matrix") and not _is_ragged(curves):
        rows = np.asarray(curves)
        if rows.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if rows.dtype.kind == "O":
            rows = rows.astype(np.float64)
        if rows.ndim != 2:
            raise ValueError(
                f"curves must be an array (n, T), got shape {rows.shape}. Reshape your data"
            )
        if rows.shape[0] == 0 or rows.shape[1] == 0:
            unit = "sample(s)" if rows.shape[0] == 0 else "feature(s)"
            raise ValueError(f"0 {unit} (shape={rows.shape}) while a minimum of 1 is required.")
    if labels is None:
        return rows, np.empty(0)
    y = np.asarray(labels)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != len(rows):
        raise InvalidData("labels", "one label for each curve", f"shape {y.shape}")
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise InvalidData("labels", "finite (no NaN, no infinity)")
    if y.dtype.kind == "f" and not np.all(y == np.rint(y)):
        raise InvalidData("labels", "class labels; Unknown label type: continuous")
    return rows, y


def _is_ragged(curves: Any) -> bool:
    return isinstance(curves, list) and bool(curves) and isinstance(curves[0], tuple)


def take(curves: Any, index: npt.NDArray[np.int64]) -> Any:
    """Some of the curves, whatever holds them."""
    return [curves[i] for i in index] if isinstance(curves, list) else curves[index]


def one_row_each(groups: Any, *, seed: int, rows: int) -> npt.NDArray[np.int64]:
    """For each person one of their rows, chosen by public randomness."""
    owners = np.asarray(groups)
    if owners.shape != (rows,):
        raise InvalidParameter("groups", f"one entry for each of {rows} curves", owners.shape)
    order = np.random.default_rng(seed).permutation(rows)
    _, first = np.unique(owners[order], return_index=True)
    return np.sort(order[first])
