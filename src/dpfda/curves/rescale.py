"""The family of rescalers, which map coefficients of any size into the box [-1, 1]^d.

Every parameter is public. Scales estimated from data are not offered, because they would reveal
something about the data. Min-Max, (z_k − min|z|)/(max|z| − min|z|), is not offered, because its
results may lie outside the box (correction C1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dpfda._registry import Registered
from dpfda._validate import FloatArray, finite, positive
from dpfda.errors import InvalidParameter

#: The largest z* that the inverse of tanh still maps to a finite coefficient.
_BELOW_ONE = float(np.nextafter(1.0, 0.0))


class Rescaler(Registered, ABC, family="rescaler"):
    """A public map of coefficients into [-1, 1]^d.

    A subclass defines the map in `_squash`. This class guarantees that the result stays in the box,
    because the sensitivity of every report depends on it.
    """

    def rescale(self, z: npt.ArrayLike) -> FloatArray:
        """Coefficients (n, d) to z* in [-1, 1]^d; an unknown coefficient (NaN) becomes 0."""
        with np.errstate(over="ignore", invalid="ignore"):
            z_star = np.clip(self._squash(np.asarray(z, dtype=np.float64)), -1.0, 1.0)
        return np.where(np.isnan(z_star), 0.0, z_star)

    def restore(self, z_star: npt.ArrayLike) -> FloatArray:
        """Map z* back to coefficients; noisy values outside the box are moved to its boundary."""
        raise InvalidParameter("rescale", "an invertible rescaler", self.name)

    def scales(self, n_basis: int) -> FloatArray | None:
        """The diagonal D of C2, with z* ≈ (z − center)/D; None if there is none."""
        return None

    def centers(self, n_basis: int) -> FloatArray:
        """The coefficients that are encoded as 0."""
        return np.zeros(n_basis)

    @classmethod
    def examples(cls) -> list[Self]:
        """Small instances for the checks that every rescaler must pass."""
        return [cls()]

    @abstractmethod
    def _squash(self, z: FloatArray) -> FloatArray:
        """The map itself, on coefficients of shape (..., d)."""


@dataclass(frozen=True, kw_only=True)
class _CenteredRescaler(Rescaler):
    """Base of `tanh` and `clip`: a public center and scale, common or one per coefficient."""

    scale: float | Sequence[float] = 1.0
    center: float | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        for name, rule in (("scale", positive), ("center", finite)):
            value = getattr(self, name)
            if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
                object.__setattr__(self, name, tuple(rule(name, entry) for entry in value))
            else:
                object.__setattr__(self, name, rule(name, value))

    @classmethod
    def examples(cls) -> list[Self]:
        """The default, and a tiny and a huge scale off center."""
        return [cls(), cls(scale=5e-324, center=-3.0), cls(scale=1e308, center=1e308)]

    def scales(self, n_basis: int) -> FloatArray:
        """The public scale of each coefficient."""
        return _spread("scale", self.scale, n_basis)

    def centers(self, n_basis: int) -> FloatArray:
        """The public center of each coefficient."""
        return _spread("center", self.center, n_basis)

    def _standardize(self, z: FloatArray) -> FloatArray:
        return np.asarray((z - self.centers(z.shape[-1])) / self.scales(z.shape[-1]))

    def _unstandardize(self, z: FloatArray) -> FloatArray:
        return np.asarray(self.centers(z.shape[-1]) + z * self.scales(z.shape[-1]))


@dataclass(frozen=True, kw_only=True)
class TanhRescaler(_CenteredRescaler, name="tanh"):
    """z*_k = tanh((z_k − center_k)/scale_k): the papers' choice, smooth, never quite ±1.

    Coefficients much larger than `scale` become indistinguishable, so choose it from public
    knowledge of the size of the curves.

    Examples:
        >>> TanhRescaler(scale=(1.0, 10.0)).rescale([[1.0, 1.0]]).round(3).tolist()
        [[0.762, 0.1]]
    """

    def restore(self, z_star: npt.ArrayLike) -> FloatArray:
        """Invert tanh; ±1 is read as the nearest float inside the box."""
        inside = np.clip(np.asarray(z_star, dtype=np.float64), -_BELOW_ONE, _BELOW_ONE)
        return self._unstandardize(np.arctanh(inside))

    def _squash(self, z: FloatArray) -> FloatArray:
        return np.tanh(self._standardize(z))


@dataclass(frozen=True, kw_only=True)
class ClipRescaler(_CenteredRescaler, name="clip"):
    """z*_k = clip((z_k − center_k)/scale_k, −1, 1): linear inside the range.

    `scale` is half the width of the public range of a coefficient, and `center` its midpoint.

    Examples:
        >>> ClipRescaler(scale=50, center=100).rescale([[75.0, 100.0, 1e9]]).tolist()
        [[-0.5, 0.0, 1.0]]
    """

    def restore(self, z_star: npt.ArrayLike) -> FloatArray:
        """Invert the linear part."""
        return self._unstandardize(np.clip(np.asarray(z_star, dtype=np.float64), -1.0, 1.0))

    def _squash(self, z: FloatArray) -> FloatArray:
        return self._standardize(z)  # `rescale` clips


@dataclass(frozen=True, kw_only=True)
class MaxAbsRescaler(Rescaler, name="max_abs"):
    """z*_k = z_k / max_j |z_j|: divides each curve by its largest coefficient, which stays private.

    The size of a curve is lost, so this cannot be undone and has no slope function.
    A curve of zeros stays 0.

    Examples:
        >>> MaxAbsRescaler().rescale([[2.0, -4.0], [0.0, 0.0]]).tolist()
        [[0.5, -1.0], [0.0, 0.0]]
    """

    def _squash(self, z: FloatArray) -> FloatArray:
        largest = np.fmax.reduce(np.abs(z), axis=-1, keepdims=True)
        # |z_k| ≤ max exactly, and IEEE division rounds correctly, so no quotient exceeds 1.
        return z / np.where(largest > 0, largest, 1.0)


def _spread(name: str, value: float | Sequence[float], n_basis: int) -> FloatArray:
    if isinstance(value, Sequence) and len(value) != n_basis:
        raise InvalidParameter(name, f"one number or {n_basis} numbers", value)
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (n_basis,)).copy()
