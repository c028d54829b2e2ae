"""Pure-ε noise for vectors whose neighbours differ inside an ellipsoid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.additive_laplace import ROUNDING_STEPS, check_axes
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source
from dpfda.noise.lattice import whole_steps
from dpfda.noise.spherical import spherical_laplace
from dpfda.privacy.guarantee import Guarantee

_SCALE = 1 << 20
_MOST_IN_BLOCK = 12


@dataclass(frozen=True, kw_only=True)
class EllipsoidLaplace(Mechanism, name="ellipsoid_laplace"):
    """Spherical Laplace noise in blocks of coordinates, for neighbours with ‖h/a‖₂ ≤ S.

    The noise of block b has density ∝ e^{-ε e_b ‖z_b/a_b‖₂/S}. Compared with independent Laplace
    noise the total variance falls by almost a half: independent noise pays for the corners of the
    ℓ1 ball, which neighbours inside an ellipsoid never reach.

    Privacy:
        ε-DP: Σ_b e_b ‖h_b/a_b‖₂ ≤ ‖e‖₂ ‖h/a‖₂ ≤ S since Σ e_b² = 1. Noise lives on a lattice of
        2^20 steps a block scale and is drawn exactly (`spherical_laplace`); what rounding the
        values to it can add is charged (C20). The caller answers for S.

    Attributes:
        sensitivity: S.
        axes: the a_j, all above 0; one entry for each coordinate. Blocks are runs of coordinates,
            chosen for the least total variance.

    Example:
        >>> noise = EllipsoidLaplace(epsilon=1.0, sensitivity=1.0, axes=(1.0,) * 8)
        >>> noise.blocks
        ((0, 8),)
        >>> round(float(noise.variances.sum()), 1)  # independent Laplace noise: 128
        72.0
    """

    sensitivity: float
    axes: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("sensitivity", self.sensitivity)
        object.__setattr__(self, "axes", check_axes(self.axes))

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Half-open ranges of coordinates that share a radius."""
        return best_blocks(self.axes)

    @cached_property
    def block_scales(self) -> FloatArray:
        """S/(ε e_b), enlarged for rounding: what multiplies a_b and a vector ∝ e^{-‖x‖₂}."""
        costs = np.array([_cost(self.axes, *block) for block in self.blocks])
        shares = np.sqrt(costs / costs.sum())
        # Rounding moves block b by at most r √|b| lattice steps: Σ_b r √|b|/2^20 comes off ε.
        sizes = np.array([stop - start for start, stop in self.blocks])
        rounding = ROUNDING_STEPS * float(np.sqrt(sizes).sum()) / _SCALE
        left = _validate.positive("epsilon minus the cost of rounding", self.epsilon - rounding)
        return np.asarray(self.sensitivity / (left * shares))

    @cached_property
    def scales(self) -> FloatArray:
        """a_j S/(ε e_b), one for each coordinate."""
        sizes = [stop - start for start, stop in self.blocks]
        return np.asarray(self.axes) * np.repeat(self.block_scales, sizes)

    @cached_property
    def variances(self) -> FloatArray:
        """(|b| + 1) times the squared scale: a radius ~ Gamma(|b|) on the sphere."""
        sizes = [stop - start for start, stop in self.blocks]
        return np.asarray(self.scales**2 * (1 + np.repeat(sizes, sizes)))

    @property
    def guarantee(self) -> Guarantee:
        """Central: a curator adds the noise."""
        return Guarantee(epsilon=self.epsilon, model="central")

    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        """Noisy vectors, shape (n, J); each row is a release of its own."""
        rows = _validate.batch("values", values, columns=len(self.axes))
        noise = [
            spherical_laplace(len(rows), dimension=stop - start, scale=_SCALE, source=rng)
            for start, stop in self.blocks
        ]
        step = self.scales / _SCALE
        return (whole_steps(rows, step, clip=clip) + np.concatenate(noise, axis=1)) * step

    def _round(self, values: FloatArray) -> IntArray:
        return np.rint(values / (self.scales / _SCALE)).astype(np.int64)

    def variance(self, values: Any) -> FloatArray:
        """The continuous law's; the lattice changes it by a relative 2^-40."""
        return np.broadcast_to(self.variances, np.shape(values)).copy()

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each noisy vector, up to one constant for all."""
        steps = (self._round(reports) - self._round(np.asarray(values))) / _SCALE
        lengths = [np.sqrt((steps[:, start:stop] ** 2).sum(axis=1)) for start, stop in self.blocks]
        return -np.asarray(sum(lengths))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """The difference in proportion to the blocks' shares, and all in one coordinate."""
        size = len(self.axes)
        first = np.zeros((1, size))
        first[0, 0] = self.sensitivity * self.axes[0]
        shares = self.sensitivity / (self.epsilon * self.block_scales)
        lengths = np.array([stop - start for start, stop in self.blocks])
        spread = np.repeat(shares / np.sqrt(lengths), lengths) * np.asarray(self.axes)
        spread = (self.sensitivity * spread)[None, :]
        return [(first, np.zeros((1, size))), (spread / 2, -spread / 2)]

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate, three, and several blocks."""
        return [
            cls(epsilon=1.0, sensitivity=2.0),
            cls(epsilon=0.5, sensitivity=0.1, axes=(1.0, 0.5, 0.1)),
            cls(epsilon=2.0, sensitivity=1.0, axes=(1.0, 1.0, 1.0, 0.2, 0.2, 0.2)),
        ]


def _cost(axes: tuple[float, ...], start: int, stop: int) -> float:
    """√((|b| + 1) Σ_b a_j²): the total variance is (Σ_b cost_b)² (S/ε)²."""
    return math.sqrt((stop - start + 1) * sum(a * a for a in axes[start:stop]))


@lru_cache(maxsize=256)
def best_blocks(axes: tuple[float, ...]) -> tuple[tuple[int, int], ...]:
    """The cut of the coordinates into runs of at most 12 with the least total variance.

    Example:
        >>> best_blocks((1.0, 1.0, 1e-9))
        ((0, 2), (2, 3))
    """
    best: list[tuple[float, int]] = [(0.0, 0)]  # cost of the first j coordinates, last cut
    for stop in range(1, len(axes) + 1):
        cuts = range(max(0, stop - _MOST_IN_BLOCK), stop)
        best.append(min((best[cut][0] + _cost(axes, cut, stop), cut) for cut in cuts))
    blocks, stop = [], len(axes)
    while stop:
        start = best[stop][1]
        blocks.append((start, stop))
        stop = start
    return tuple(reversed(blocks))
