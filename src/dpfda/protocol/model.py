"""The finished model of a study: public, portable, with its guarantee.

A `CurveModel` classifies, a `CurveRegression` predicts a number. `contents` lists what a terminal
or a report prints about a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._registry import revive
from dpfda._validate import AnyArray, ArrayLike, FloatArray, IntArray
from dpfda.curves import CurveEncoder, read_encoder
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import InvalidParameter
from dpfda.privacy.deployment import Deployment
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.linear_scores import NUMBERS, class_chances, decided, linear_scores
from dpfda.protocol.plan import Label
from dpfda.protocol.task import folded
from dpfda.report import Contents, Picture, Table, Verdict
from dpfda.report.documents import Body, Documented
from dpfda.report.panels import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_UNKNOWN = (
    "How often this model is wrong is not known from the model alone: the study that made it "
    "says so, if people were asked to judge it."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyModel(Documented, ABC):
    """The result of any study: predictions for new data, and the guarantee.

    Attributes:
        guarantee: the guarantee of the people whose replies the model was fitted to.
    """

    guarantee: Guarantee

    def __post_init__(self) -> None:
        revive(self, "guarantee", Guarantee.from_dict)

    def _deployment(self) -> Deployment:
        known = {name: getattr(self, name, None) for name in ("classes", "target_range")}
        return Deployment(
            product=f"a {self.kind} of a study",
            mechanism="the study's reports",
            guarantee=self.guarantee,
            domain={name: value for name, value in known.items() if value is not None},
            computed="Predictions for others are computed from the model and cost nothing more.",
        )

    def _judged(self) -> Verdict:
        """No verdict: a model alone contains no estimate of its error."""
        return Verdict(kind="unclear", sentences=(_UNKNOWN,))

    def _contents(self) -> Contents:
        return contents(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassModel(StudyModel):
    """A model that predicts labels.

    Attributes:
        classes: the labels.
    """

    classes: tuple[Label, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        super().__post_init__()

    @abstractmethod
    def decide(self, features: FloatArray) -> IntArray:
        """Label numbers of encoded curves or rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleModel(StudyModel):
    """A linear rule of encoded curves.

    score = intercept + coefficients · squash((z* - centers)/scales), where `squash` clips to ±1 if
    `clipped`, and is the identity otherwise. With folds, z* is replaced by its
    distances from the folds (`protocol.folds`).

    Attributes:
        encoder: maps a curve to z*.
        intercept: shape (m,), m scores.
        coefficients: shape (m, d), for the first d features.
        centers: shape (m, d).
        scales: shape (m, d).
        clipped: whether centered and scaled features are clipped to ±1.
        folds: centers of the first features, shape (f,), if distances from them are features too.
    """

    encoder: CurveEncoder
    intercept: FloatArray
    coefficients: FloatArray
    centers: FloatArray
    scales: FloatArray
    clipped: bool
    folds: FloatArray = field(default_factory=lambda: np.zeros(0))

    def _read(self, *names: str) -> None:
        """Convert fields that JSON stores in another form, and require finite numbers."""
        super().__post_init__()
        revive(self, "encoder", read_encoder)
        for name in (*names, "folds"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            if not np.all(np.isfinite(array)):
                raise InvalidParameter(name, "finite", "NaN or infinity")
            object.__setattr__(self, name, array)

    def _width(self, scores: int) -> int:
        """Number of features that these scores use; inconsistent shapes are refused."""
        if self.coefficients.ndim != 2 or len(self.coefficients) != scores:
            raise InvalidParameter("coefficients", f"{scores} rows", self.coefficients.shape)
        width, size = self.coefficients.shape[1], self.encoder.n_features
        if self.folds.ndim != 1 or len(self.folds) > size:
            rule = f"one number each for {size} features at most"
            raise InvalidParameter("folds", rule, self.folds.shape)
        if width > (2 * len(self.folds) or size):
            rule = f"of {2 * len(self.folds) or size} columns at most, as there are features"
            raise InvalidParameter("coefficients", rule, self.coefficients.shape)
        for name in ("centers", "scales"):
            if getattr(self, name).shape != self.coefficients.shape:
                rule = f"of the coefficients' shape {self.coefficients.shape}"
                raise InvalidParameter(name, rule, getattr(self, name).shape)
        if np.any(self.scales <= 0):
            raise InvalidParameter("scales", "above 0", "0 or less")
        return int(width)

    def rows(self, people: int) -> dict[str, FloatArray]:
        """The fields of a task: the arrays of the rule for each of `people`, and the folds."""
        own = {name: np.repeat(getattr(self, name)[None], people, axis=0) for name in NUMBERS}
        return own | {"folds": self.folds}

    def scores(self, features: FloatArray) -> FloatArray:
        """Scores of encoded curves, shape (n, m)."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return linear_scores(folded(features, self.folds), **numbers, clipped=self.clipped)

    def slope(self, points: ArrayLike | None = None) -> FloatArray:
        """β(t) of each score at `points`, or one weight per feature, without the clipping.

        Distances from the folds are left out, because they have no slope.
        """
        weights = np.zeros((len(self.coefficients), self.encoder.n_features))
        own = len(self.folds) or self.coefficients.shape[1]
        weights[:, :own] = (self.coefficients / self.scales)[:, :own]
        return self.encoder.slope(weights, points)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw β(t) for curves, one weight per feature for vectors; returns the axes."""
        ax = axes_or_new(ax)
        slope = self.slope()
        beside = " (distances count too)" if len(self.folds) else ""
        if self.encoder.basis.functional:
            rows = slope.reshape(-1, slope.shape[-1])  # one line for each channel
            ax.plot(np.linspace(*self.encoder.basis.domain_range, slope.shape[-1]), rows.T)
            ax.set(title="slope function β(t)" + beside, xlabel="t")
        else:
            ax.bar(np.arange(slope.shape[1]), slope[0])
            ax.set(title="weights" + beside, xlabel="feature")
        ax.axhline(0, color="0.6", linewidth=0.8)
        return ax


class CurveModelBody(Body):
    """The document of a `CurveModel`."""

    encoder: dict[str, Any]
    classes: tuple[Label, ...]
    intercept: list[float]
    coefficients: list[list[float]]
    centers: list[list[float]]
    scales: list[list[float]]
    clipped: bool
    variances: list[list[float]] | None = None
    damping: float = 1.0
    folds: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveModel(RuleModel, ClassModel):
    """A linear classifier of encoded curves, one score per class (or one score for two classes).

    A single score predicts ``classes[1]`` if it is at least 0, and ``classes[0]`` otherwise. Of
    several scores, the largest determines the class.

    Attributes:
        variances: posterior variances of intercept and coefficients, shape (m, 1 + d).
        damping: factor of the scores in the computation of probabilities.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> model = CurveModel.linear(
        ...     encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        ...     classes=("low", "high"),
        ...     intercept=[0.0], coefficients=[[1.0, 1.0]],
        ...     guarantee=Guarantee(epsilon=1.0, model="local"),
        ... )
        >>> model.predict([[0.5, 0.2], [-0.5, 0.2]]).tolist()
        ['high', 'low']
        >>> CurveModel.from_json(model.to_json()).predict([[0.5, 0.2]]).tolist()
        ['high']
    """

    kind: ClassVar[str] = "curve model"
    body: ClassVar[type[Body]] = CurveModelBody

    variances: FloatArray | None = None
    damping: float = 1.0

    def __post_init__(self) -> None:
        self._read(*NUMBERS, *(["variances"] if self.variances is not None else []))
        scores = len(self.intercept)
        if scores != (1 if len(self.classes) == 2 else len(self.classes)):
            raise InvalidParameter(
                "intercept", "one score for each class, or one score for two classes", scores
            )
        width = self._width(scores)
        if self.variances is not None and (
            self.variances.shape != (scores, 1 + width) or np.any(self.variances < 0)
        ):
            rule = f"{scores} × {1 + width} numbers, 0 or above"
            raise InvalidParameter("variances", rule, self.variances.shape)
        _validate.positive("damping", self.damping)

    @classmethod
    def linear(cls, *, intercept: ArrayLike, coefficients: ArrayLike, **parts: Any) -> Self:
        """A linear rule of z* without centering, scaling and clipping."""
        slopes = np.asarray(coefficients, dtype=np.float64)
        return cls(
            intercept=np.asarray(intercept, dtype=np.float64),
            coefficients=slopes,
            centers=np.zeros_like(slopes),
            scales=np.ones_like(slopes),
            clipped=False,
            **parts,
        )

    def decide(self, features: FloatArray) -> IntArray:
        """Label numbers of encoded curves."""
        return decided(self.scores(features))

    def chances(self, features: FloatArray) -> FloatArray:
        """Probabilities of the classes for encoded curves, shape (n, K).

        Logistic of the score for two classes, softmax for several; uncertain scores are shrunk
        towards 0 (docs/methods/probabilities.md).
        """
        rule: dict[str, Any] = {name: getattr(self, name) for name in NUMBERS}
        rule |= {"clipped": self.clipped, "variances": self.variances, "damping": self.damping}
        return class_chances(folded(features, self.folds), **rule)

    def predict(self, X: Curves, *, grid_points: GridPoints = None) -> AnyArray:
        """Labels of new curves."""
        return np.asarray(self.classes)[self.decide(self.encoder.encode(X, grid_points))]


_POINTS = 10  # of a slope function in a table
_NOTHING = 1e-9  # share of a range's width below which an end is 0 up to rounding


def contents(model: StudyModel) -> Contents:
    """The slope function or weights of a model; a model alone contains no estimate of its error."""
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    if isinstance(model, RuleModel):
        what = "slope function β(t)" if model.encoder.basis.functional else "weights of features"
        pictures = (Picture.of(model.plot, f"The {what} of the model, without a band."),)
        if model.encoder.basis.functional:
            tables = (slope_table(model, model.encoder, model.slope, common_range(model.encoder)),)
    doubts, notes = model.verdict.sentences, tuple(about(model))
    return Contents(doubts=doubts, tables=tables, pictures=pictures, notes=notes)


def about(model: StudyModel) -> list[str]:
    """Describe the predictions of the model in sentences."""
    sentences = []
    if isinstance(model, RuleModel) and len(model.folds):
        count = len(model.folds)
        sentences.append(f"how far the first {count} features are from their middles counts, too")
    if (classes := getattr(model, "classes", None)) is not None:
        sentences.append(f"classes: {', '.join(map(str, classes))}")
    if (ends := getattr(model, "target_range", None)) is not None:
        sentences.append("target: {:g} to {:g}".format(*ends))
    return sentences


def slope_table(
    model: object,
    encoder: CurveEncoder,
    slope: Callable[[FloatArray], FloatArray],
    ends: tuple[float, float] | None,
) -> Table:
    """A slope function at some points, with the public range of values."""
    start, end = encoder.basis.domain_range
    points = np.linspace(start, end, _POINTS)
    rows = slope(points).reshape(-1, len(points))
    cells = [(f"{t:.4g}", *(f"{row[place]:.4g}" for row in rows)) for place, t in enumerate(points)]
    note = ""
    if ends is not None:
        low, high = ends
        shown = (0.0 if abs(end) < _NOTHING * (high - low) else end for end in ends)
        note = "values from {:g} to {:g}".format(*shown)
    headings = ("t", *slope_names(model, len(rows)))
    return Table(headings=headings, rows=tuple(cells), note=note)


def slope_names(model: object, slopes: int) -> list[str]:
    """Names of slope functions: one, one per class, or one per channel."""
    classes = getattr(model, "classes", None) or ()
    if slopes == 1:
        return ["slope β(t)"]
    if slopes == len(classes) > 2:  # two classes share one function of each channel
        return [f"slope of {one}" for one in classes]
    return [f"slope {place + 1}" for place in range(slopes)]


def common_range(encoder: CurveEncoder) -> tuple[float, float] | None:
    """The public range of values, if all coefficients have the same one; otherwise None."""
    size = encoder.n_features
    scales, centers = encoder.rescaler.scales(size), encoder.rescaler.centers(size)
    if encoder.rescaler.name != "clip" or scales is None or np.ptp(scales) or np.ptp(centers):
        return None
    return float(centers[0] - scales[0]), float(centers[0] + scales[0])


class CurveRegressionBody(Body):
    """The document of a `CurveRegression`."""

    encoder: dict[str, Any]
    target_range: tuple[float, float]
    intercept: list[float]
    coefficients: list[list[float]]
    centers: list[list[float]]
    scales: list[list[float]]
    clipped: bool
    folds: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveRegression(RuleModel):
    """A linear rule whose single score is the predicted number.

    Attributes:
        target_range: public (low, high) of that number; predictions are clipped to it.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> from dpfda.privacy.guarantee import Guarantee
        >>> model = CurveRegression(
        ...     encoder=CurveEncoder("identity", feature_ranges=[(0, 10)]), target_range=(0, 5),
        ...     intercept=[2.0], coefficients=[[4.0]], centers=[[0.0]], scales=[[1.0]],
        ...     clipped=True, guarantee=Guarantee(epsilon=1.0, model="local"),
        ... )
        >>> CurveRegression.from_json(model.to_json()).predict([[5.0], [10.0]]).tolist()
        [2.0, 5.0]
    """

    kind: ClassVar[str] = "curve regression"
    body: ClassVar[type[Body]] = CurveRegressionBody

    target_range: tuple[float, float]

    def __post_init__(self) -> None:
        self._read(*NUMBERS)
        target = _validate.interval("target_range", self.target_range)
        object.__setattr__(self, "target_range", target)
        if self.intercept.shape != (1,):
            raise InvalidParameter("intercept", "one score", self.intercept.shape)
        self._width(1)

    def values(self, features: FloatArray) -> FloatArray:
        """Predictions for encoded curves, shape (n,)."""
        return np.clip(self.scores(features)[:, 0], *self.target_range)

    def predict(self, X: Curves, *, grid_points: GridPoints = None) -> FloatArray:
        """Predictions for new curves, inside the public range."""
        return self.values(self.encoder.encode(X, grid_points))
