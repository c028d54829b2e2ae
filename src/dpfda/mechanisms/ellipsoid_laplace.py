"""Laplace noise with elliptical contours, and the choice of noise for a share of a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.mechanisms.additive import ROUNDING_STEPS, Additive, AdditiveLaplace, Gaussian
from dpfda.noise import Source
from dpfda.noise.discrete import spherical_laplace
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.cost import Cost

_MOST_IN_BLOCK = 12


@dataclass(frozen=True, kw_only=True)
class EllipsoidLaplace(Additive, name="ellipsoid_laplace"):
    """Spherical Laplace noise in blocks of coordinates, for neighbors with ‖h/a‖₂ ≤ S.

    The noise of block b has density ∝ e^{-ε e_b ‖z_b/a_b‖₂/S}. The total variance is almost half of
    that of independent Laplace noise, which also covers the corners of the ℓ1 ball, where neighbors
    inside an ellipsoid never lie.

    Privacy:
        ε-DP: Σ_b e_b ‖h_b/a_b‖₂ ≤ ‖e‖₂ ‖h/a‖₂ ≤ S since Σ e_b² = 1. Noise is drawn exactly on a
        lattice of 2^20 steps per block scale (`spherical_laplace`); S is enlarged to cover rounding
        (C20). The caller guarantees S.

    Blocks are runs of coordinates, chosen for the least total variance.

    Examples:
        >>> noise = EllipsoidLaplace(epsilon=1.0, sensitivity=1.0, axes=(1.0,) * 8)
        >>> noise.blocks
        ((0, 8),)
        >>> round(float(noise.law.variance.sum()), 1)  # independent Laplace noise: 128
        72.0
    """

    kind = "spherical"
    steps: ClassVar[int] = 1 << 20

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Half-open ranges of coordinates that share a radius."""
        return best_blocks(self.axes)

    @cached_property
    def block_scales(self) -> FloatArray:
        """Block scales S/(ε e_b), enlarged for rounding."""
        costs = _block_costs(self.axes)
        shares = np.sqrt(costs / costs.sum())
        # Rounding moves block b by at most r √|b| lattice steps, so Σ_b r √|b|/2^20 is subtracted
        # from ε.
        sizes = np.array([stop - start for start, stop in self.blocks])
        rounding = ROUNDING_STEPS * float(np.sqrt(sizes).sum()) / self.steps
        left = _validate.positive("epsilon minus the cost of rounding", self.epsilon - rounding)
        return np.asarray(self.sensitivity / (left * shares))

    @cached_property
    def scales(self) -> FloatArray:
        """a_j S/(ε e_b), one for each coordinate."""
        sizes = [stop - start for start, stop in self.blocks]
        return np.asarray(self.axes) * np.repeat(self.block_scales, sizes)

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise; the coordinates of a block share a radius."""
        return replace(super().law, blocks=self.blocks)

    def _integers(self, rows: int, source: Source) -> IntArray:
        noise = [
            spherical_laplace(rows, dimension=stop - start, scale=self.steps, source=source)
            for start, stop in self.blocks
        ]
        return np.concatenate(noise, axis=1)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each noisy vector, up to one constant for all."""
        away = self._distance(reports, values)
        lengths = [np.sqrt((away[:, start:stop] ** 2).sum(axis=1)) for start, stop in self.blocks]
        return -np.asarray(sum(lengths))

    def _worst_direction(self) -> FloatArray:
        """The direction in which blocks differ in proportion to their shares."""
        lengths = np.array([stop - start for start, stop in self.blocks])
        spread = np.repeat(1 / (self.block_scales * np.sqrt(lengths)), lengths)
        return np.asarray(spread * np.asarray(self.axes))

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate, three, and several blocks."""
        return [
            cls(epsilon=1.0, sensitivity=2.0),
            cls(epsilon=0.5, sensitivity=0.1, axes=(1.0, 0.5, 0.1)),
            cls(epsilon=2.0, sensitivity=1.0, axes=(1.0, 1.0, 1.0, 0.2, 0.2, 0.2)),
        ]


def total_cost(axes: FloatArray) -> float:
    """√(total variance) of the noise along these axes, for S = ε."""
    return float(sum(_block_costs(tuple(axes.tolist())).tolist()))


def _block_costs(axes: tuple[float, ...]) -> FloatArray:
    """The cost of each of the best blocks."""
    costs = _all_costs(axes)
    chosen = [costs[stop - 1, start - stop] for start, stop in best_blocks(axes)]
    return np.array(chosen, dtype=np.float64)


def _all_costs(axes: tuple[float, ...]) -> FloatArray:
    """√((|b| + 1) Σ_b a_j²) of every block b, in row `last` and column -|b|; infinite if too long.

    The total variance is (Σ_b cost_b)² (S/ε)².
    """
    squares = np.square(axes)
    costs = np.full((len(squares), _MOST_IN_BLOCK), np.inf)
    sums = np.zeros(len(squares))
    for size in range(1, min(_MOST_IN_BLOCK, len(squares)) + 1):
        sums = sums[: len(squares) - size + 1] + squares[size - 1 :]  # of the blocks by their start
        costs[size - 1 :, -size] = np.sqrt((size + 1) * sums)
    return costs


@lru_cache(maxsize=256)
def best_blocks(axes: tuple[float, ...]) -> tuple[tuple[int, int], ...]:
    """The partition of the coordinates into runs of at most 12 with the least total variance.

    Examples:
        >>> best_blocks((1.0, 1.0, 1e-9))
        ((0, 2), (2, 3))
    """
    best = [math.inf] * (_MOST_IN_BLOCK - 1) + [0.0]  # least cost of the first j coordinates
    sizes = []
    for row in _all_costs(axes).tolist():
        least, size = math.inf, 1
        for place, cost in enumerate(row):
            if best[place - _MOST_IN_BLOCK] + cost < least:
                least, size = best[place - _MOST_IN_BLOCK] + cost, _MOST_IN_BLOCK - place
        best.append(least)
        sizes.append(size)
    blocks, stop = [], len(axes)
    while stop:
        blocks.append((stop - sizes[stop - 1], stop))
        stop -= sizes[stop - 1]
    return tuple(reversed(blocks))


def l2_noise(cost: Cost, *, sensitivity: float, axes: FloatArray) -> Additive:
    """Noise for neighbors with ‖h/a‖₂ ≤ S: spherical Laplace, or Gaussian if δ > 0.

    Examples:
        >>> import numpy as np
        >>> l2_noise(Cost(epsilon=1.0).part(0.5), sensitivity=2.0, axes=np.ones(3)).epsilon
        0.5
    """
    shape = tuple(axes.tolist())
    if cost.pure:
        return EllipsoidLaplace(epsilon=cost.epsilon_spent, sensitivity=sensitivity, axes=shape)
    return Gaussian(mu=cost.mu, delta=cost.delta, sensitivity=sensitivity, axes=shape)


def l1_noise(cost: Cost, *, sensitivity: float, axes: FloatArray) -> AdditiveLaplace:
    """Noise for neighbors with Σ|h_j|/a_j ≤ S: independent Laplace, pure ε only."""
    shape = tuple(axes.tolist())
    return AdditiveLaplace(epsilon=cost.epsilon_spent, sensitivity=sensitivity, axes=shape)
