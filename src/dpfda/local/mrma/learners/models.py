"""What a batch fit returns: B linear classifiers in two arrays.

A model's *score* is a real number; its sign is the class, and a score of 0 counts as +1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpfda.errors import InvalidData
from dpfda.local.mrma.learners._arrays import Array, as_double, namespace


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModels:
    """B linear classifiers: score = intercept + coefficients · features.

    Attributes:
        intercept: (B,).
        coefficients: (B, d).

    Examples:
        >>> models = LinearModels(intercept=[0.0, 1.0], coefficients=[[3.0, 4.0], [0.0, 2.0]])
        >>> models.scores([[1.0, 1.0]])
        array([[7.],
               [3.]])
    """

    intercept: Array
    coefficients: Array

    def __post_init__(self) -> None:
        coefficients = as_double("coefficients", self.coefficients)
        intercept = as_double("intercept", self.intercept, like=coefficients)
        if coefficients.ndim != 2 or tuple(intercept.shape) != (coefficients.shape[0],):
            raise InvalidData(
                "coefficients",
                "an array (B, d) beside an intercept (B,)",
                f"shapes {tuple(coefficients.shape)} and {tuple(intercept.shape)}",
            )
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "coefficients", coefficients)

    def __len__(self) -> int:
        return int(self.coefficients.shape[0])

    def scores(self, features: Any) -> Array:
        """Every member's scores, (B, n).

        Args:
            features: (n, d), the same rows for every member, or (B, n, d), each its own.
        """
        rows = as_double("features", features, like=self.coefficients)
        members, d = self.coefficients.shape
        if rows.ndim not in (2, 3) or tuple(rows.shape) not in (
            (rows.shape[-2], d),
            (members, rows.shape[-2], d),
        ):
            wanted = f"an array (n, {d}) or ({members}, n, {d})"
            raise InvalidData("features", wanted, f"shape {tuple(rows.shape)}")
        if rows.ndim == 2:
            xp = namespace(rows)
            return self.intercept[:, None] + self.coefficients @ xp.matrix_transpose(rows)
        return self.intercept[:, None] + (rows @ self.coefficients[:, :, None])[:, :, 0]

    def predict(self, features: Any) -> Array:
        """Every member's classes, (B, n), as -1.0 or +1.0; a score of 0 is +1."""
        scores = self.scores(features)
        xp = namespace(scores)
        return xp.where(scores >= 0, xp.ones_like(scores), -xp.ones_like(scores))
