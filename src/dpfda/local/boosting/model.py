"""Finished classifiers of rows: public, portable, with plots of each round.

The plots are those of Figures 4, 5, 7 and 8 of 004.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpfda._registry import Registered, revive
from dpfda._validate import AnyArray, FloatArray, IntArray
from dpfda.curves.observations import Curves, GridPoints
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter, MissingExtra
from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.protocol.fields import array, check_fields, part
from dpfda.protocol.model import ClassModel
from dpfda.protocol.plan import Label
from dpfda.report.documents import Body

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostedModel(Registered, family="boosted model"):
    """Scores rows, one score per class; the largest wins (of two classes, ties go to class 1)."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of features d of the rows."""

    @abstractmethod
    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of rows (n, d), shape (n, K)."""

    def decide(self, rows: FloatArray) -> IntArray:
        """Label numbers of rows, from the largest score."""
        scores = self.scores(rows)
        if scores.shape[1] == 2:
            return (scores[:, 1] >= scores[:, 0]).astype(np.int64)
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticModel(BoostedModel, name="logistic"):
    """A logistic model of φ(x); scores are log probabilities up to a constant.

    Attributes:
        features: maps a row to φ.
        coefficients: θ, shape (K - 1, D).
    """

    features: FeatureMap = part(lambda: FeatureMap)
    coefficients: FloatArray = array("real", "scores", "size", least=-1e50, most=1e50)

    @property
    def columns(self) -> int:
        """The number of features d."""
        return len(self.features.center)

    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores (n, K): 0 for class 0 and θ_k·φ for class k."""
        scores = self.features(np.asarray(rows)) @ self.coefficients.T
        return np.concatenate([np.zeros((len(scores), 1)), scores], axis=1)


class RowModelBody(Body):
    """The document of a `RowModel`."""

    boosted: dict[str, Any]
    classes: tuple[Label, ...]
    table: PublicColumns | None


@dataclass(frozen=True, kw_only=True, eq=False)
class RowModel(ClassModel):
    """The result of a study of owners: a boosted model, its labels and its guarantee.

    Attributes:
        boosted: the model of rows of numbers.
        table: public columns with names or categories, if rows are given as a table.

    Examples:
        >>> from dpfda.local.boosting.ensemble import Ensemble
        >>> from dpfda.privacy.guarantee import Guarantee
        >>> model = RowModel(boosted=Ensemble.empty([(0, 1)], classes=2), classes=("no", "yes"),
        ...                  guarantee=Guarantee(epsilon=1.0, model="local", unit="owner"))
        >>> RowModel.from_json(model.to_json()).predict([[0.5]]).tolist()
        ['yes']
    """

    kind: ClassVar[str] = "row model"
    body: ClassVar[type[Body]] = RowModelBody

    boosted: BoostedModel
    table: PublicColumns | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        revive(self, "boosted", BoostedModel.from_dict)
        revive(self, "table", PublicColumns.from_dict)

    def scores(self, features: FloatArray) -> FloatArray:
        """Scores of rows of numbers: (n, 1) for two classes, (n, K) for more."""
        scores = self.boosted.scores(features)
        return scores[:, [1]] - scores[:, [0]] if scores.shape[1] == 2 else scores

    def decide(self, features: FloatArray) -> IntArray:
        """Label numbers of rows (n, d)."""
        return self.boosted.decide(features)

    def predict(self, X: Curves, *, grid_points: GridPoints = None) -> AnyArray:
        """Labels of rows (n, d), or of a table with the columns of the fit."""
        no_grid(grid_points)
        rows = np.asarray(X, dtype=np.float64) if self.table is None else self.table.read(X)
        if rows.ndim != 2 or rows.shape[1] != self.boosted.columns:
            rule = f"a table of {self.boosted.columns} columns, as in the fit"
            raise InvalidData("X", rule, f"shape {rows.shape}")
        return np.asarray(self.classes)[self.decide(rows)]


def no_grid(grid_points: object) -> None:
    """Refuse grid points, because owners have rows of a table and no curves."""
    if grid_points is not None:
        rule = "None: owners hold rows of a table (curves become rows by a CurveEncoder before it)"
        raise InvalidParameter("grid_points", rule, "some")


def draw_rounds(history: list[dict[str, Any]]) -> Figure:
    """Weighted error and α of every rule, or step and directions of every gradient round."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    boosted = bool(history) and "alpha" in history[0]
    names = ("error", "alpha") if boosted else ("step", "directions")
    titles = {
        "error": "weighted error",
        "alpha": "weight α",
        "step": "how far the model moved",
        "directions": "directions asked about",
    }
    places = range(1, len(history) + 1)
    for axes, name in zip((left, right), names, strict=True):
        axes.plot(places, [row[name] for row in history], "o-")
        dropped = [p for p, row in zip(places, history, strict=True) if not row.get("kept", True)]
        axes.plot(dropped, [history[p - 1][name] for p in dropped], "x", color="crimson", ms=10)
        axes.set(title=titles[name], xlabel="round")
    return figure
