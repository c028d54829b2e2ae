"""The features of a study as they are known so far: a public map from z* to ψ."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray

_MEAN_DISTANCE = np.sqrt(2 / np.pi)  # of a normal number, from its middle
_DISTANCES_VARY = np.sqrt(1 - 2 / np.pi)


@dataclass(frozen=True)
class FeatureMap:
    """ψ = matrix · clip((z* - location)/width, ±clip) + offset; of folded z* where there are folds.

    Attributes:
        location: of each feature, shape (d,).
        width: its standard deviation, or something small where only its sign is used.
        clip: how many widths are looked at.
        matrix: shape (q, d).
        offset: shape (q,).
        folds: middles from which distances count too, see `protocol.folds`.
    """

    location: FloatArray
    width: FloatArray
    clip: float
    matrix: FloatArray
    offset: FloatArray
    folds: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def standard(cls, location: FloatArray, width: FloatArray, clip: float) -> FeatureMap:
        """Every feature by itself."""
        d = len(location)
        return cls(location, width, clip, np.eye(d), np.zeros(d))

    @classmethod
    def with_distances(cls, middle: FloatArray, deviation: FloatArray, clip: float) -> FeatureMap:
        """Every feature, and how far it is from its middle, as if features were normal."""
        far = np.r_[middle, _MEAN_DISTANCE * deviation]
        alone = cls.standard(far, np.r_[deviation, _DISTANCES_VARY * deviation], clip)
        return replace(alone, folds=middle)

    def then(self, matrix: FloatArray, shift: FloatArray | float = 0.0) -> FeatureMap:
        """matrix · (ψ - shift)."""
        moved = self.offset - shift
        return replace(self, matrix=matrix @ self.matrix, offset=matrix @ moved)

    def public(self) -> dict[str, Any]:
        """As tasks carry it."""
        return {
            "centers": self.location,
            "scales": self.width,
            "clip": self.clip,
            "matrix": self.matrix,
            "offsets": self.offset[None],
            "folds": self.folds,
        }

    def rule(self, intercept: FloatArray, slopes: FloatArray) -> dict[str, Any]:
        """The numbers of a `CurveModel` with these scores of ψ, and with these folds."""
        shape = (len(intercept), len(self.location))
        return {
            "intercept": intercept + slopes @ self.offset,
            "coefficients": self.clip * slopes @ self.matrix,
            "centers": np.broadcast_to(self.location, shape),
            "scales": np.broadcast_to(self.clip * self.width, shape),
            "clipped": True,
        }
