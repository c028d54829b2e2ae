"""Means of groups: no worse than what is public, with bands that hold where little is known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dpfda import PrivateGroupComparison, PrivateMoments
from dpfda.central.moments.curve_moments import CurveMoments

T = np.linspace(0, 1, 40)
GROUPS = (0, 1, 2)


class Problem:
    """Curves of three groups of unequal size anywhere in the range (-4, 4), with fast waves."""

    def __init__(self, seed: int, n: int) -> None:
        rng = np.random.default_rng([seed, n])
        waves = np.cos(np.pi * np.outer(np.arange(12), T))
        scale = np.arange(1, 13) ** -rng.uniform(0, 1.5) * rng.uniform(0.05, 0.7)
        common = rng.uniform(-1.5, 1.5) + (rng.normal(size=12) * scale) @ waves
        self.means = common + (rng.normal(size=(3, 12)) * scale / 3) @ waves
        self.labels = rng.choice(3, p=[0.6, 0.3, 0.1], size=n)
        scores = rng.normal(size=(n, 12)) * scale / 2
        self.curves = self.means[self.labels] + scores @ waves
        self.seed = seed

    def fit(self, epsilon: float, delta: float = 0.0) -> PrivateMoments:
        """The release, silent."""
        known: dict[str, Any] = {"value_range": (-4, 4), "groups": GROUPS}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PrivateMoments(epsilon, delta=delta, random_state=self.seed, **known).fit(
                self.curves, self.labels
            )


@pytest.mark.parametrize(("n", "epsilon", "delta"), [(200, 0.1, 0.0), (1000, 0.01, 0.0)])
def test_means_of_groups_are_no_worse_than_the_public_center(
    n: int, epsilon: float, delta: float
) -> None:
    """They were 7 times worse: sums of noise were divided by sizes that are noise as well."""
    errors, center = [], []
    for seed in range(30):
        one = Problem(seed, n)
        errors.append(np.mean((one.fit(epsilon, delta).means_ - one.means) ** 2))
        center.append(np.mean(one.means**2))
    apart = np.array(errors) - np.array(center)
    assert np.mean(apart) <= 2 * np.std(apart) / np.sqrt(30)


@pytest.mark.parametrize(
    ("n", "epsilon", "delta"), [(10, 1.0, 1e-6), (200, 0.1, 0.0), (1000, 0.1, 1e-6)]
)
def test_bands_hold_where_sizes_and_radius_are_noise(n: int, epsilon: float, delta: float) -> None:
    """Of ten people half of the bands missed: the radius that was found was any."""
    held = []
    for seed in range(40):
        one = Problem(seed, n)
        band = one.fit(epsilon, delta).interval(group=seed % 3)
        truth = one.means[seed % 3]
        held.append(np.all((band.low <= truth) & (truth <= band.high)))
    assert np.mean(held) >= 0.95 - 2.5 * np.sqrt(0.95 * 0.05 / 40)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_released_curves_lie_in_their_bands_and_documents_hold_all_of_it(epsilon: float) -> None:
    for seed in range(3):
        found = Problem(seed, 300).fit(epsilon, 1e-6)
        again = CurveMoments.from_json(found.moments_.to_json())
        assert again.means == pytest.approx(found.means_)
        assert again.left_out == pytest.approx(found.moments_.left_out)
        for group in GROUPS:
            middle, low, high = found.interval(group=group)
            assert middle == pytest.approx(found.means_[group])
            assert np.all((low <= middle) & (middle <= high))
        share = found.moments_.share
        assert np.all((share >= 1 / 300) & (share <= 1))


def test_known_sizes_are_what_sums_are_divided_by() -> None:
    found = Problem(0, 3000).fit(10.0, 1e-6).moments_
    assert found.share == pytest.approx(found.sizes / found.n, rel=1e-3)


def test_the_mean_of_all_has_the_noise_that_is_said() -> None:
    found = Problem(0, 300).fit(1.0).moments_
    drawn = found.parts(found.law.draw(20_000, np.random.default_rng(0))).means.sum(axis=1)
    assert drawn.var(axis=0) == pytest.approx(found.pooled[1], rel=0.1)


def test_what_is_left_out_is_seen() -> None:
    """A mean in waves too fine to be released widens the band; one that is smooth does not."""
    wide = {}
    for name, wave in (("fine", 24), ("smooth", 1)):
        rng = np.random.default_rng(0)
        rows = np.cos(np.pi * wave * T) + 0.1 * rng.normal(size=(3000, 1))
        model = PrivateMoments(0.1, delta=1e-6, value_range=(-2, 2), random_state=0)
        wide[name] = float(model.fit(rows).moments_.left_out[0])
    assert wide["fine"] >= 0.6  # the root mean square of the wave is 0.7
    assert wide["smooth"] < 0.3


def test_a_small_group_is_called_so_only_where_something_follows() -> None:
    """20 people whose mean is known well: no test takes them, but the mean is right."""
    rng = np.random.default_rng(0)
    labels = np.repeat(GROUPS, [120, 60, 20])
    rows = 1.0 + labels[:, None] + 0.3 * rng.normal(size=(200, 1)) + 0 * T
    known: dict[str, Any] = {"value_range": (-4, 4), "groups": GROUPS, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = PrivateMoments(10.0, delta=1e-6, **known).fit(rows, labels)
    assert found.means_.mean(axis=1) == pytest.approx([1, 2, 3], abs=0.3)
    with pytest.warns(UserWarning, match="group 2 has about 18 people .*, too few"):
        PrivateGroupComparison(10.0, delta=1e-6, **known).fit(rows, labels)
