"""Gradient request: in which direction should the logistic model move (methods 8.8)?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.logistic import probabilities
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests.base import Request, owner_guarantee
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.mechanisms.cap_index import CODEBOOKS, CapIndex
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee

_MANY_CODEWORDS_FROM = 7.0


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientRequest(Request, name="gradient"):
    """Each owner sends one codeword near the gradient of the log-likelihood of their rows.

    Privacy:
        ε-LDP for everything the owner holds, labels included: whatever the gradient, one cap-index
        report (`CapIndex`) is all that leaves.

    Attributes:
        features: how a row becomes φ.
        coefficients: θ, shape (K - 1, D).
        projection: k directions in which to look at the gradient, shape ((K - 1) D, k).
        radius: gradients longer than radius · √(k/N) are shortened to that.

    Example:
        >>> from dpfda.noise import SimulationSource
        >>> rows = np.random.default_rng(0).normal(size=(100, 2))
        >>> request = GradientRequest(
        ...     features=FeatureMap.learnt(rows, products=0), coefficients=np.zeros((1, 3)),
        ...     projection=np.eye(3))
        >>> owners = OwnerRows.grouped(rows, rows[:, 0] > 0, groups=np.arange(100) // 4)
        >>> replies = request.answer(owners, epsilon=3.0, rng=SimulationSource(0))
        >>> replies.shape, request.decode(replies, epsilon=3.0, sizes=owners.sizes).shape
        ((25, 2), (25, 3))
    """

    features: FeatureMap
    coefficients: FloatArray
    projection: FloatArray
    radius: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.features, Mapping):
            object.__setattr__(self, "features", FeatureMap.from_dict(self.features))
        for name in ("coefficients", "projection"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            if array.ndim != 2 or not np.isfinite(array).all():
                raise InvalidParameter(name, "a finite matrix", f"shape {array.shape}")
            object.__setattr__(self, name, array)
        if self.coefficients.shape[1] != self.features.size:
            rule = f"of {self.features.size} columns"
            raise InvalidParameter("coefficients", rule, self.coefficients.shape)
        if len(self.projection) != self.coefficients.size:
            rule = f"of {self.coefficients.size} rows"
            raise InvalidParameter("projection", rule, self.projection.shape)

    @property
    def width(self) -> int:
        """Number of the codebook and of the codeword."""
        return 2

    @property
    def columns(self) -> int:
        """d."""
        return len(self.features.centre)

    @property
    def classes(self) -> int:
        """K."""
        return len(self.coefficients) + 1

    @property
    def directions(self) -> int:
        """k."""
        return int(self.projection.shape[1])

    def mechanism(self, epsilon: float) -> CapIndex:
        """The randomizer of an owner who spends ε."""
        return CapIndex(
            epsilon=epsilon, dimension=self.directions, codewords=codebook_size(epsilon)
        )

    @staticmethod
    def gain(epsilon: float) -> float:
        """m of a report with ε, in any number of directions."""
        return CapIndex(epsilon=epsilon, codewords=codebook_size(epsilon)).gain

    def answer(self, rows: OwnerRows, *, epsilon: float, rng: Source) -> FloatArray:
        """Gradient, projected, shortened, and one codeword near it."""
        phi = self.features(rows.features)
        residual = -probabilities(phi, self.coefficients)
        classes = np.arange(1, len(self.coefficients) + 1)
        residual += rows.labels[..., None] == classes
        residual *= rows.present[..., None]
        sizes = rows.sizes
        gradient = np.einsum("hnk,hnd->hkd", residual, phi, optimize=True)
        projected = gradient.reshape(len(rows), -1) @ self.projection / sizes[:, None]
        return self.mechanism(epsilon).randomize(
            projected / self.longest(sizes)[:, None], rng, clip=True
        )

    def longest(self, sizes: IntArray) -> FloatArray:
        """ρ, the length at which a gradient of N rows is cut."""
        return np.asarray(self.radius * np.sqrt(self.directions / sizes))

    def decode(self, replies: FloatArray, *, epsilon: float, sizes: IntArray) -> FloatArray:
        """Unbiased estimates of the shortened gradients, in units of ρ, shape (H, k)."""
        values, mechanism = self.check(replies), self.mechanism(epsilon)
        whole = (values == np.rint(values)) & (values >= 0)
        if not (whole & (values < [CODEBOOKS, mechanism.codewords])).all():
            raise ProtocolError("a reply must be the numbers of a codebook and of a codeword")
        return mechanism.debias(values)

    def guarantee(self, epsilon: float) -> Guarantee:
        """ε for the owner."""
        return owner_guarantee(epsilon)

    @classmethod
    def example(cls) -> Any:
        """A small request, for audits."""
        rows = np.random.default_rng(0).normal(size=(50, 2))
        features = FeatureMap.learnt(rows, products=0)
        return cls(features=features, coefficients=np.zeros((1, 3)), projection=np.eye(3))


def codebook_size(epsilon: float) -> int:
    """B: the larger ε, the smaller the best cap, and it must hold a codeword.

    Example:
        >>> codebook_size(1.0), codebook_size(9.0)
        (256, 1024)
    """
    return 1024 if epsilon >= _MANY_CODEWORDS_FROM else 256
