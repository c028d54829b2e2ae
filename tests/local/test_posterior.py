"""The posterior: against brute force, and what it does with much and with little."""

from __future__ import annotations

import numpy as np
import pytest
from answered import answered
from scipy.special import expit

from dpfda.local.study.answers import above
from dpfda.local.study.beliefs import Prior
from dpfda.local.study.posterior import Posterior

ONE = Prior(turns=(0,), levels=(True,))


def test_before_anybody_answers_it_is_the_prior() -> None:
    posterior = Posterior(Prior(turns=tuple(range(6)), levels=(True, *[False] * 5)))
    np.testing.assert_allclose(posterior.hypotheses, posterior.prior.hypothesis_odds, atol=1e-9)
    expected = posterior.prior.hypothesis_odds @ posterior.prior.included
    np.testing.assert_allclose(posterior.differs, expected, atol=1e-6)
    assert posterior.evidence == pytest.approx(0.5)
    assert posterior.share[0] == pytest.approx(0.5)


def test_it_is_that_of_bayes() -> None:
    """One feature, against 200 000 draws from the prior, weighted."""
    posterior = Posterior(ONE)
    answered(posterior, (0.1, 0.2, 0.5), 0.35)
    rng = np.random.default_rng(0)
    n = 200_000
    places = ONE.places(0, rng.normal(size=(n, 3)))
    d = ONE.differences(rng.random(n))
    says = rng.random(n) < ONE.hypothesis_odds @ ONE.included[:, 0]
    d = np.where(says, d, 0.0)
    odds = np.where(rng.random(n) < 0.5, 0.15, 1.4) * rng.normal(size=n)
    share = expit(odds)
    told = posterior.answers
    logs = np.zeros(n)
    for k, threshold in enumerate(told.questions.threshold):
        ones, others = above(threshold, places[:, 0], np.exp(places[:, 1]), d, 0 * d)
        plain = told.means[k, 0] - told.alpha[k] * (share * ones + (1 - share) * others)
        joined = told.means[k, 1] - told.alpha[k] * (share * ones - (1 - share) * others)
        own, _, label = told.weights[k]
        logs -= 0.5 * (own * plain**2 + label * joined**2)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    size = 1 / (weights**2).sum()
    particles = posterior.particles
    for column, values in enumerate((places[:, 0], places[:, 1], d)):
        mean = float(weights @ values)
        spread = float(np.sqrt(weights @ (values - mean) ** 2))
        found = float(particles.mean(particles.points[..., column])[0])
        assert abs(found - mean) < 0.15 * spread + 4 * spread / np.sqrt(size)
        deviation = float(np.sqrt(particles.variance(particles.points[..., column])[0]))
        assert 0.8 < deviation / spread < 1.25
    assert abs(posterior.share[0] - weights @ share) < 0.02


@pytest.mark.parametrize("truth", [(0.1, 0.2, 0.5), (-0.6, 0.02, -1.2), (0.0, 0.1, 0.0)])
def test_much_is_learnt_from_much(truth: tuple[float, float, float]) -> None:
    posterior = Posterior(ONE)
    for _ in range(8):
        answered(posterior, truth, 0.3)
    particles = posterior.particles
    middle, width = (
        particles.mean(particles.points[..., 0])[0],
        particles.mean(particles.points[..., 1])[0],
    )
    assert abs(middle - truth[0]) < 0.2 * truth[1]
    assert abs(width - np.log(truth[1])) < 0.2
    assert abs(particles.mean(particles.points[..., 2])[0] - truth[2]) < 0.15
    assert (posterior.evidence > 0.99) is (truth[2] != 0)
    assert abs(posterior.share[0] - 0.3) < 0.03


def test_answers_about_one_feature_say_something_of_the_others() -> None:
    beliefs = Prior(turns=(0, 1, 2, 3), levels=(True, False, False, False))
    posterior = Posterior(beliefs)
    particles = posterior.particles
    before = particles.mean(particles.points[..., 1])
    for _ in range(4):
        answered(posterior, (0.1, 0.005, 0.0), 0.5)  # a range that is far too wide
    particles = posterior.particles
    assert np.all(particles.mean(particles.points[..., 1])[1:] < before[1:] - 0.5)


def test_a_share_that_is_public_stays() -> None:
    posterior = Posterior(Prior(turns=(0,), levels=(True,), class_share=0.2))
    answered(posterior, (0.1, 0.2, 0.5), 0.4)
    assert posterior.share[0] == pytest.approx(0.2)
    assert posterior.share[1] == pytest.approx(0.0)


@pytest.mark.parametrize("number", [1e4, 1e6])
def test_weights_of_a_nearly_constant_feature_far_from_0_are_finite(number: float) -> None:
    """Its middle is 50 widths from 0, and so many people say so: the prior of what is true, over
    that of where it is looked for, is below the least number."""
    posterior = Posterior(Prior(turns=(1, 2), levels=(False, False)))
    for _ in range(4):
        answered(posterior, (0.5, 0.01, 0.4), 0.3, number)
        particles = posterior.particles
        assert np.isfinite(particles.points).all()
        np.testing.assert_allclose(particles.weights.sum(axis=1), 1)
        assert posterior.hypotheses.sum() == pytest.approx(1)
        assert np.isfinite(posterior.differs).all()
