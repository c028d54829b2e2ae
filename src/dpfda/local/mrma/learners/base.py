"""The family of weak learners, and the batch of linear classifiers that a fit returns.

A model's *score* is a real number; its sign is the class, and a score of 0 counts as +1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from dpfda._registry import Registered
from dpfda.errors import InvalidData
from dpfda.local.mrma.learners._arrays import (
    Array,
    Batch,
    as_double,
    checked,
    checked_gram,
    namespace,
)


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

    def scores(self, features: Array) -> Array:
        """Every member's scores, (B, n).

        Args:
            features: (n, d), the same rows for every member, or (B, n, d), separate rows.
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

    def predict(self, features: Array) -> Array:
        """Every member's classes, (B, n), as -1.0 or +1.0; a score of 0 is +1."""
        scores = self.scores(features)
        xp = namespace(scores)
        return xp.where(scores >= 0, xp.ones_like(scores), -xp.ones_like(scores))


class Learner(Registered, ABC, family="learner"):
    """Fits B linear classifiers at once, each on its n rows.

    A learner is a frozen set of public parameters. Its data are noisy features and labels, so a fit
    is post-processing and spends no budget.

    The results of degenerate members are the same for every learner. If all rows have one class,
    the score is constant (±1); without rows (all weights 0) the score is 0. Constant features get
    the coefficient 0.
    """

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Parameters for the contract checks; the defaults unless overridden."""
        return (cls(),)

    def fit(
        self,
        features: Array,
        labels: Array,
        *,
        weights: Array | None = None,
        gram: Array | None = None,
    ) -> LinearModels:
        """Fit one classifier for each member of the batch.

        Args:
            features: (B, n, d), finite.
            labels: (B, n), -1 or +1.
            weights: (B, n), at least 0; weight 2 counts a row twice, weight 0 omits it. None means
                1 everywhere.
            gram: (d, d), integrals of products of the basis functions, for the learners that
                treat features as the coefficients of a curve; the others ignore it. None is the
                identity (an orthonormal basis).

        Returns:
            B models in double precision, in the array library of `features`.
        """
        batch = checked(features, labels, weights)
        matrix = checked_gram(gram, like=batch.features)
        parts = [self._fit_members(chunk, matrix) for chunk in batch.chunks()]
        xp = namespace(batch.features)
        intercept, coefficients = (xp.concat(arrays) for arrays in zip(*parts, strict=True))
        return LinearModels(intercept=intercept, coefficients=coefficients)

    @abstractmethod
    def _fit_chunk(self, batch: Batch, gram: Array) -> tuple[Array, Array]:
        """Intercept (B,) and coefficients (B, d) of members with both classes, or without rows."""

    def _fit_members(self, batch: Batch, gram: Array) -> tuple[Array, Array]:
        xp = namespace(batch.features)
        total = xp.sum(batch.weights, axis=1)
        balance = xp.sum(batch.labels * batch.weights, axis=1)
        # If there is only one class, |Σ w y| = Σ w, up to the rounding of two sums of n terms.
        single = xp.abs(balance) >= total * (1.0 - 1e-15 * batch.labels.shape[1])
        if not bool(xp.any(single)):
            return self._fit_chunk(batch, gram)
        present = xp.where(single[:, None], xp.zeros_like(batch.weights), batch.weights)
        intercept, coefficients = self._fit_chunk(
            Batch(batch.features, batch.labels, present), gram
        )
        return (
            xp.where(single, xp.sign(balance), intercept),
            xp.where(single[:, None], xp.zeros_like(coefficients), coefficients),
        )
