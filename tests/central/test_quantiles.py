"""Quantile curves: right without noise, covered with it, and hardly moved by far curves."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import PrivateMean
from dpfda.central.quantiles import QUARTILES, below, quantile_curves
from dpfda.errors import InvalidData, InvalidParameter

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # small fits say what they are

T, LEVELS = np.linspace(0, 1, 15), np.linspace(0, 8, 25)


def curves(n: int, seed: int) -> np.ndarray:
    """Skewed: a log-normal size times a wave."""
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(0, 0.5, (n, 1))) * (1.5 + np.sin(2 * np.pi * T))


def fitted(rows: np.ndarray, epsilon: float, seed: int = 0):
    mean = PrivateMean(epsilon, value_range=(0, 1), random_state=seed)
    return mean.fit(below(rows, LEVELS), grid_points=(LEVELS, T)).release_


def test_bands_hold_the_quantiles_and_estimates_are_near() -> None:
    rows, held, off = curves(2000, 0), [], []
    truth = np.quantile(rows, QUARTILES, axis=0)
    for seed in range(3):
        found = quantile_curves(fitted(rows, 2.0, seed))
        held.append(((found.low <= truth) & (truth <= found.high)).mean())
        off.append(np.sqrt(np.mean((found.values - truth) ** 2)))
        assert (np.diff(found.values, axis=0) >= 0).all(), "quantiles do not cross"
        assert (found.low <= found.values).all()
        assert (found.values <= found.high).all()
    # 45 ends a fit that hang together: three fits at 95 % with room for one that misses a region.
    assert np.mean(held) > 0.9
    assert np.mean(off) < 0.15  # of curves between 0.5 and 2.5
    few = quantile_curves(fitted(rows[:200], 0.2))
    assert (few.high - few.low).mean() > 2 * (found.high - found.low).mean()


def test_curves_far_away_move_the_mean_and_not_the_median() -> None:
    rows = curves(2000, 1)
    moved = rows.copy()
    moved[:100] = 8.0  # one in twenty, at the end of the range
    medians = [quantile_curves(fitted(one, 4.0), [0.5]).values[0] for one in (rows, moved)]
    means = [
        PrivateMean(4.0, value_range=(0, 8), random_state=0).fit(one, grid_points=T).mean_
        for one in (rows, moved)
    ]
    shift = [np.abs(one[1] - one[0]).mean() for one in (medians, means)]
    assert shift[0] < 0.6 * shift[1]


def test_a_band_that_is_too_narrow_would_be_noticed() -> None:
    """The planted twin: bands at a tenth of the level hold far fewer quantiles."""
    rows = curves(2000, 0)
    truth = np.quantile(rows, QUARTILES, axis=0)
    found = quantile_curves(fitted(rows, 0.5), level=0.01)
    good = quantile_curves(fitted(rows, 0.5))
    held = [((one.low <= truth) & (truth <= one.high)).mean() for one in (found, good)]
    assert held[0] < held[1]


def test_what_is_no_surface_of_shares_is_refused() -> None:
    with pytest.raises(InvalidData, match="without gaps"):
        below([[np.nan, 1.0]], LEVELS)
    with pytest.raises(InvalidParameter, match="levels"):
        below(curves(3, 0), [1.0, 1.0])
    mean = PrivateMean(1.0, value_range=(0, 8), random_state=0).fit(curves(50, 0), grid_points=T)
    with pytest.raises(InvalidParameter, match="release"):
        quantile_curves(mean.release_)
    with pytest.raises(InvalidParameter, match="quantiles"):
        quantile_curves(fitted(curves(50, 0), 1.0), [1.0])
