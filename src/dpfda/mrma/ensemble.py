"""Classifiers that keep their members: averages of probabilities, and votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.documents import Body
from dpfda.errors import InvalidParameter
from dpfda.mrma.averaging import AVERAGES, combined_scores
from dpfda.protocol.model import CurveModel, CurveModelBody


class CurveEnsembleBody(CurveModelBody):
    """The document of a `CurveEnsemble`."""

    weights: list[float]
    average: str


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveEnsemble(CurveModel):
    """Linear members that decide together; for two classes.

    Attributes:
        weights: w_b with the reversals in their signs, shape (B,).
        average: ``scores``, ``probabilities`` or ``votes``.

    Example:
        >>> from dpfda.curves import CurveEncoder
        >>> from dpfda.privacy.guarantee import Guarantee
        >>> model = CurveEnsemble.linear(
        ...     encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)]), classes=("low", "high"),
        ...     intercept=[0.0, 0.3, -5.0], coefficients=[[1.0], [1.0], [0.1]],
        ...     weights=[0.4, 0.3, 0.3], average="votes",
        ...     guarantee=Guarantee(epsilon=1.0, model="local"),
        ... )
        >>> model.predict([[0.5], [-0.1]]).tolist()
        ['high', 'low']
    """

    kind: ClassVar[str] = "curve ensemble"
    body: ClassVar[type[Body]] = CurveEnsembleBody

    weights: FloatArray
    average: str = "votes"

    def __post_init__(self) -> None:
        _validate.one_of("average", self.average, AVERAGES)
        self._read("intercept", "coefficients", "centers", "scales", "weights")
        if len(self.classes) != 2:
            raise InvalidParameter("classes", "two labels", self.classes)
        if self.coefficients.ndim != 2 or self.intercept.shape != self.weights.shape:
            raise InvalidParameter("weights", "one for each member", self.weights.shape)

    def scores(self, features: FloatArray) -> FloatArray:
        """The combined score of encoded curves, shape (n, 1)."""
        members = super().scores(features)
        return combined_scores(members, self.weights, average=self.average)[:, None]
