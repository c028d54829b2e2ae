"""The features of a study as they are known so far: a public map from z* to ψ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray


@dataclass(frozen=True)
class FeatureMap:
    """ψ = matrix · clip((z* - location)/width, ±clip) + offset.

    Attributes:
        location: of each feature, shape (d,).
        width: its standard deviation, or something small where only its sign is used.
        clip: how many widths are looked at.
        matrix: shape (q, d).
        offset: shape (q,).
    """

    location: FloatArray
    width: FloatArray
    clip: float
    matrix: FloatArray
    offset: FloatArray

    @classmethod
    def standard(cls, location: FloatArray, width: FloatArray, clip: float) -> FeatureMap:
        """Every feature by itself."""
        d = len(location)
        return cls(location, width, clip, np.eye(d), np.zeros(d))

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
        }

    def rule(self, intercept: FloatArray, slopes: FloatArray) -> dict[str, Any]:
        """The numbers of a `CurveModel` with these scores of ψ."""
        shape = (len(intercept), len(self.location))
        return {
            "intercept": intercept + slopes @ self.offset,
            "coefficients": self.clip * slopes @ self.matrix,
            "centers": np.broadcast_to(self.location, shape),
            "scales": np.broadcast_to(self.clip * self.width, shape),
            "clipped": True,
        }
