"""A mean whose band holds that of the population: what it covers, and what it says it covers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import PrivateGroupComparison, PrivateMean
from dpfda.central.ball_search import candidates
from dpfda.central.moments.moments_release import FOR_BANDS
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter

T = np.linspace(0, 1, 30)
MEAN = np.sin(2 * np.pi * T)


def curves(n: int, seed: int) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(n, 2)) * [0.8, 0.4]
    return np.asarray(MEAN + scores @ np.stack([np.ones(30), np.sqrt(2) * np.cos(np.pi * T)]))


def release(n: int = 2000, seed: int = 0, **given: Any) -> Release:
    known: dict[str, Any] = {"value_range": (-4, 4), "inference": True, "random_state": seed}
    return PrivateMean(4.0, **(known | given)).fit(curves(n, seed)).release_


def held(band: tuple[Any, Any], truth: Any) -> Any:
    return (band[0] <= truth) & (band[1] >= truth)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_bands_hold_whose_mean_they_say(delta: float) -> None:
    whole, points, sample, wrong = [], [], [], []
    for seed in range(60):
        found = release(1000, seed, delta=delta)
        whole.append(held(found.interval(0.9, simultaneous=True), MEAN).all())
        points.append(held(found.interval(0.9), MEAN).mean())
        own = curves(1000, seed).mean(axis=0)
        sample.append(held(found.interval(0.9, of="sample"), own).mean())
        wrong.append(held(found.interval(0.9, of="sample"), MEAN).mean())
    # 54 of 60 are expected; 3 standard deviations are 7.
    assert 47 <= sum(whole) <= 60
    assert 0.82 < np.mean(points) < 0.96
    assert np.mean(sample) > 0.82
    assert np.mean(wrong) < 0.8  # noise alone says too little of the population


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_sampling_error_is_that_of_the_people(delta: float) -> None:
    found = release(5000, delta=delta)
    (law,) = found.sampling
    variance = law.along(found.basis.functions)
    truth = curves(5000, 0).var(axis=0) / 5000
    # A floor under the eigenvalues adds to it, at the ends of the domain most.
    assert 0.85 < np.median(variance / truth) < 1.3


def test_a_band_is_of_the_population_where_that_is_known() -> None:
    known, unknown = release(), release(inference=False)
    assert np.array_equal(known.interval(), known.interval(of="population"))
    assert np.array_equal(unknown.interval(), unknown.interval(of="sample"))
    wide, narrow = (np.mean(np.subtract(*known.interval(of=of)[::-1])) for of in OF)
    assert wide > 1.2 * narrow
    with pytest.raises(
        InvalidParameter, match=r"of must be 'sample': .*needs a release with inference=True"
    ):
        unknown.interval(of="population")
    with pytest.raises(InvalidParameter, match="of must be"):
        known.interval(of="people")  # type: ignore[arg-type]
    assert (known.covered, unknown.covered) == ("of noise and sampling", "of the privacy noise")


OF: Any = ("population", "sample")


def test_the_radius_is_wider_than_the_one_found_by_half() -> None:
    found = release(bound=2.0, value_range=None)
    axes = FOR_BANDS.axes(len(found.noisy))
    radii = 1.5 * candidates(2.0, axes)
    assert np.isclose(found.parameters["radius"], radii).any()


def test_looks_are_combined() -> None:
    # A curve that fills its range: the joint look alone would have a third more noise.
    found = release(value_range=(-2.5, 2.5), delta=1e-5)
    assert len(found.noise) == 2
    first = found.noise[1].along(found.basis.functions)
    assert np.all(first > 0)


def test_channels_have_errors_of_their_own() -> None:
    X = np.stack([curves(2000, 0), 10 * curves(2000, 1)], axis=2)
    found = PrivateMean(8.0, value_range=[(-4, 4), (-40, 40)], inference=True, random_state=0).fit(
        X
    )
    low, high = found.release_.interval(simultaneous=True)
    assert np.all((low <= [MEAN, 10 * MEAN]) & (high >= [MEAN, 10 * MEAN]))
    spread = [law.along(found.release_.basis.functions) for law in found.release_.sampling]
    assert np.sum(spread, axis=0)[1].mean() == pytest.approx(
        100 * np.sum(spread, axis=0)[0].mean(), rel=0.2
    )


def test_it_can_be_saved_and_read_again() -> None:
    found = release()
    again = Release.from_json(found.to_json())
    assert np.allclose(again.interval(), found.interval(), rtol=1e-12)
    assert again.covered == found.covered


def test_few_people_are_warned_where_they_asked() -> None:
    known: dict[str, Any] = {"value_range": (-4, 4), "random_state": 0}
    groups = np.arange(100) % 2
    model = PrivateGroupComparison(4.0, **known)
    with pytest.warns(UserWarning, match="n·epsilon is 400, below 500: bands and") as caught:
        model.fit(curves(100, 0), groups)
    assert caught[0].filename == __file__


def test_only_the_default_mechanism_knows_how_curves_scatter() -> None:
    with pytest.raises(InvalidParameter, match="mechanism must be 'adaptive' with inference=True"):
        release(mechanism="frl")
