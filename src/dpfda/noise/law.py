"""The law of noise that was added: public, and all that bands and standard errors need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpfda._validate import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseLaw:
    """Noise on coefficients: which law, and its scale (Laplace b, Gaussian σ) for each.

    ``spherical``: the coefficients of a block share a radius, density ∝ e^{-‖z/scale‖₂}; blocks are
    half-open ranges of the last axis. Otherwise all coefficients are independent. With `mixing`
    (K, J) the noise was added to K numbers of which the J coefficients are linear combinations.

    Examples:
        >>> NoiseLaw(law="laplace", scales=np.array([1.0, 2.0])).variance
        array([2., 8.])
    """

    law: Literal["laplace", "gaussian", "spherical"]
    scales: FloatArray
    blocks: tuple[tuple[int, int], ...] = ()
    mixing: FloatArray | None = None

    @property
    def variance(self) -> FloatArray:
        """2b², σ², or (|block| + 1) times the squared scale, carried through the mixing."""
        factor: Any = 2.0 if self.law == "laplace" else 1.0
        if self.law == "spherical":
            sizes = [stop - start for start, stop in self.blocks]
            factor = 1 + np.repeat(sizes, sizes)
        variance = self.scales**2 * factor
        return np.asarray(variance if self.mixing is None else variance @ self.mixing**2)

    def along(self, functions: FloatArray) -> FloatArray:
        """Variance of Σ_j noise_j f_j for each column of `functions` (J, points)."""
        if self.mixing is None:
            return np.asarray(self.variance @ functions**2)
        plain = replace(self, mixing=None)
        return np.asarray(plain.variance @ (self.mixing @ functions) ** 2)

    def widened(self, size: int) -> NoiseLaw:
        """The same law with zero noise on further coefficients, `size` in all."""
        if self.mixing is not None:
            more = [(0, 0), (0, size - self.mixing.shape[1])]
            return replace(self, mixing=np.pad(self.mixing, more))
        known = self.scales.size
        blocks = (*self.blocks, (known, size)) if self.blocks and size > known else self.blocks
        return replace(self, scales=padded(self.scales, size), blocks=blocks)

    def first(self, size: int) -> NoiseLaw:
        """The law of the first coefficients alone; a block that reaches beyond is kept whole."""
        if self.mixing is not None:
            return replace(self, mixing=self.mixing[:, :size])
        blocks = tuple(block for block in self.blocks if block[0] < size)
        reach = max([size, *(stop for _, stop in blocks)])
        mixing = np.eye(reach, size) if reach > size else None
        return replace(self, scales=self.scales[..., :reach], blocks=blocks, mixing=mixing)

    @classmethod
    def normal(cls, covariance: FloatArray) -> NoiseLaw:
        """Normal with a covariance (J, J) that may be singular."""
        values, vectors = np.linalg.eigh(covariance)
        return cls(law="gaussian", scales=np.sqrt(np.maximum(values, 0.0)), mixing=vectors.T)

    def times(self, weights: FloatArray) -> NoiseLaw:
        """The law after multiplying coefficients by public weights."""
        if self.mixing is not None:
            return replace(self, mixing=self.mixing * weights)
        return replace(self, scales=self.scales * weights)

    def draw(self, size: int, generator: np.random.Generator) -> FloatArray:
        """Noise like the one added, to describe it; never used to protect anything."""
        shape = (size, *self.scales.shape)
        if self.mixing is not None:
            return np.asarray(replace(self, mixing=None).draw(size, generator) @ self.mixing)
        if self.law == "laplace":
            return np.asarray(generator.laplace(size=shape) * self.scales)
        noise = generator.standard_normal(size=shape)
        for start, stop in self.blocks if self.law == "spherical" else ():
            part = noise[..., start:stop]
            length = np.sqrt((part**2).sum(axis=-1, keepdims=True))
            part *= generator.gamma(stop - start, size=length.shape) / length
        return np.asarray(noise * self.scales)


def padded(values: FloatArray, size: int, *, fill: float = 0.0) -> FloatArray:
    """Values, and `fill` in further places, `size` in all."""
    return np.concatenate([values, np.full(size - values.size, fill)])
