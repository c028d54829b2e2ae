"""A finished regression of curves that nobody saw: public, portable, with its guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.protocol.linear_scores import NUMBERS
from dpfda.protocol.model import RuleModel
from dpfda.report.documents import Body


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
    """A linear rule whose one score is the number that it predicts.

    Attributes:
        target_range: public (low, high) of that number; no prediction lies outside.

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

    def predict(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Predictions for new curves, inside the public range."""
        return self.values(self.encoder.encode(X, grid_points))
