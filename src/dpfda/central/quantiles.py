"""Pointwise quantile curves, computed from a released surface of distribution functions.

The surface F(c, t) is the share of people with X(t) ≤ c. It is the mean of one surface of zeros and
ones for each person, so `PrivateMean` releases it like any other surface. The quantiles are
post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray
from dpfda.central.release import Release
from dpfda.errors import InvalidData, InvalidParameter

QUARTILES = (0.25, 0.5, 0.75)


def below(curves: ArrayLike, levels: ArrayLike) -> FloatArray:
    """For each curve, level and point: 1 if the curve is at or below the level, otherwise 0.

    Args:
        curves: an array (n, T) without gaps.
        levels: increasing public levels across the public range, L of them; 17 to 33 suffice. The
            surfaces take L times the memory of the curves.

    Returns:
        Surfaces (n, L, T) for `PrivateMean(value_range=(0, 1))` with ``grid_points=(levels, t)``.

    Examples:
        >>> below([[0.0, 2.0]], [1.0, 2.0]).tolist()
        [[[1.0, 0.0], [1.0, 1.0]]]
    """
    rows, steps = np.asarray(curves, dtype=np.float64), np.asarray(levels, dtype=np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InvalidData("curves", "of shape (n, T), without gaps", f"shape {rows.shape}")
    if steps.ndim != 1 or steps.size < 2 or not (np.diff(steps) > 0).all():
        raise InvalidParameter("levels", "two or more increasing numbers", f"shape {steps.shape}")
    return (rows[:, None, :] <= steps[:, None]).astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantileCurves:
    """Quantile curves and their bands.

    Attributes:
        quantiles: Q numbers in (0, 1).
        grid_points: the T points.
        values: shape (Q, T); linear between levels.
        low, high: ends of bands for the quantiles of the people in the data; both ends are levels.
    """

    quantiles: tuple[float, ...]
    grid_points: FloatArray
    values: FloatArray
    low: FloatArray
    high: FloatArray


def quantile_curves(
    release: Release, quantiles: Sequence[float] = QUARTILES, *, level: float = 0.95
) -> QuantileCurves:
    """Quantile curves of a released surface of shares, with pointwise bands.

    Privacy:
        None beyond that of the release: everything here is computed from it.

    The band of a quantile q at t is computed from the band of F(c, t). It begins at the last level
    before the upper end of the band of F first reaches q. It ends at the first level from which on
    the lower end of the band of F is at least q. Either end is wrong only if the band of F does not
    cover F at one level, the one next to the quantile. The band covers quantiles inside the range
    of the levels.

    Args:
        release: a release of surfaces made by `below`.
        quantiles: numbers in (0, 1).
        level: coverage probability of the bands.

    Examples:
        >>> from dpfda import PrivateMean
        >>> t, levels = np.linspace(0, 1, 20), np.linspace(0, 8, 17)
        >>> curves = np.random.default_rng(0).exponential(size=(3000, 1)) * (1 + t)
        >>> mean = PrivateMean(1.0, value_range=(0, 1), random_state=0)
        >>> mean = mean.fit(below(curves, levels), grid_points=(levels, t))
        >>> found = quantile_curves(mean.release_, [0.5])
        >>> bool(np.abs(found.values - np.median(curves, axis=0)).max() < 0.3)
        True
    """
    if len(release.basis.grid) != 2:
        raise InvalidParameter("release", "a release of surfaces made by `below`", "a curve")
    wanted = tuple(_validate.fraction("quantiles", one) for one in quantiles)
    levels, t = release.basis.grid
    share = release.values()
    # F increases with the level, so take the mean of its two monotone envelopes.
    share = np.maximum.accumulate(share, axis=0) / 2
    share += np.minimum.accumulate(release.values()[::-1], axis=0)[::-1] / 2
    lower, upper = release.interval(level)
    values = [[np.interp(q, share[:, k], levels) for k in range(t.size)] for q in wanted]
    return QuantileCurves(
        quantiles=wanted,
        grid_points=t,
        values=np.array(values),
        low=np.array([_last_below(upper, q, levels) for q in wanted]),
        high=np.array([_first_above(lower, q, levels) for q in wanted]),
    )


def _last_below(upper: FloatArray, q: float, levels: FloatArray) -> FloatArray:
    """The level before the first one at which the share may reach q."""
    reached = upper >= q
    first = np.where(reached.any(axis=0), reached.argmax(axis=0), len(levels))
    return np.asarray(levels[np.maximum(first - 1, 0)])


def _first_above(lower: FloatArray, q: float, levels: FloatArray) -> FloatArray:
    """The level after the last one at which the share may be less than q."""
    less = (lower < q)[::-1]
    last = np.where(less.any(axis=0), len(levels) - 1 - less.argmax(axis=0), -1)
    return np.asarray(levels[np.minimum(last + 1, len(levels) - 1)])
