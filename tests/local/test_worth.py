"""What is asked next follows from what is believed."""

from __future__ import annotations

import numpy as np
import pytest
from answered import answered

from dpfda._validate import FloatArray
from dpfda.local.study.beliefs import Prior
from dpfda.local.study.posterior import Posterior
from dpfda.local.study.worth import Batch, best_batch, remaining

PRIOR = Prior(turns=(0, 1, 2), levels=(True, False, False))


def by_feature(batch: Batch, kind: int) -> FloatArray:
    return batch.shares[1:, kind].reshape(3, -1).sum(axis=1)


def test_shares_add_up_and_everything_is_asked_now_and_then() -> None:
    posterior = Posterior(PRIOR)
    for epsilon in (0.3, 1.0, 3.0, 8.0):
        batch = best_batch(posterior, 100, left=2000, epsilon=epsilon)
        assert batch.shares.sum() == pytest.approx(1.0)
        assert batch.shares.min() >= 0
        assert np.all(by_feature(batch, 0) > 0)
        if batch.per_person == 1:
            assert np.all(by_feature(batch, 1) > 0)
            assert batch.shares[0, 1] > 0
        assert 1 <= batch.per_person <= 4


def test_a_large_epsilon_pays_for_several_questions() -> None:
    posterior = Posterior(PRIOR)
    found = [best_batch(posterior, 100, left=2000, epsilon=e).per_person for e in (0.5, 8.0)]
    assert found[0] == 1 < found[1]


def test_a_feature_that_is_known_is_hardly_asked_about_again() -> None:
    posterior = Posterior(PRIOR)
    for _ in range(4):
        answered(posterior, (0.1, 0.2, 0.3), 0.5)  # of feature 0
    batch = best_batch(posterior, 100, left=0, epsilon=1.0)
    assert by_feature(batch, 0)[0] < 0.03  # the even part
    assert by_feature(batch, 1)[0] < 0.05
    assert by_feature(batch, 1)[1:].sum() > 0.5


def test_at_the_end_middles_of_features_that_say_nothing_are_worth_nothing() -> None:
    posterior = Posterior(PRIOR)
    batch = best_batch(posterior, 100, left=0, epsilon=1.0)
    assert batch.shares[:, 0].sum() < 0.2


def test_the_more_people_are_still_to_come_the_more_are_asked_where_features_lie() -> None:
    posterior = Posterior(PRIOR)
    plain = [
        best_batch(posterior, 100, left=left, epsilon=0.5).shares[:, 0].sum()
        for left in (0, 500, 2000, 20_000)
    ]
    assert plain == sorted(plain)
    assert plain[0] < 0.1 < 0.8 < plain[-1]


def test_what_remains_is_the_mean_over_how_much_of_the_information_arrives() -> None:
    part = (np.arange(10_000) + 0.5) / 10_000
    for variance, information in ((0.3, 5.0), (4.0, 0.0), (0.0, 3.0)):
        expected = np.mean(variance / (1 + part * information * variance))
        assert remaining(np.array(variance), information) == pytest.approx(expected, rel=1e-6)


def test_a_public_share_is_not_asked_for() -> None:
    prior = Prior(turns=(0, 1, 2), levels=(True, False, False), class_share=0.3)
    batch = best_batch(Posterior(prior), 100, left=100, epsilon=0.5)
    assert batch.shares[0, 1] == 0
