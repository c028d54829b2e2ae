"""One seed, several releases: the same noise on two answers would show their difference exactly."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dpfda import (
    MomentClassifier,
    OnlineMRMA,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    SimulationSource,
    private_score,
)
from dpfda.noise import source_for

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 2))
Y = (X[:, 0] + RNG.normal(0, 0.3, 400) > 0).astype(int)
SEEDS = [7, np.random.SeedSequence(7), SimulationSource(7)]


@pytest.mark.parametrize("seed", SEEDS, ids=["int", "sequence", "source"])
def test_chunks_of_a_study_draw_different_noise(seed: Any) -> None:
    known = {"feature_ranges": (-1, 1), "classes": (0, 1), "mechanism": "laplace"}
    study = MomentClassifier(1.0, **known, random_state=seed)
    first = study.partial_fit(X, Y).server_.run.summaries[0]["total"]
    other = X.copy()
    other[0] = -other[0]  # one person among 400
    second = study.partial_fit(other, Y).server_.run.summaries[0]["total"] - first
    # With the same noise (and the same order) only that person's report would differ: by 2 at most.
    assert np.abs(second - first).max() > 5  # the noise of a sum is 2√2·√400 = 57 wide


def _sums(model: Any, rows: Any, values: Any) -> Any:
    model.partial_fit(rows, values)
    answers = model._passes.stream
    model.next_stage()
    return answers.transcript[0].answer.values


@pytest.mark.filterwarnings("ignore:noise hides how these features vary")
@pytest.mark.parametrize("seed", SEEDS[:2], ids=["int", "sequence"])
def test_a_second_pass_draws_different_noise(seed: Any) -> None:
    known = {"feature_ranges": (-1, 1), "target_range": (-1, 1), "mechanism": "gaussian_fm"}
    model = PrivateLinearRegression(1.0, **known, random_state=seed)
    y = X[:, 1]
    other = y.copy()
    other[0] = -other[0]
    one, two = (_sums(model, X, values) for values in (y, other))
    exact = PrivateLinearRegression(1e4, **known, random_state=1)
    difference = _sums(exact, X, y) - _sums(exact, X, other)
    assert np.abs(one - two - difference).max() > 1e-3  # 0 with the same noise
    model.fit_stream(lambda: [(X, y)])
    again = _sums(PrivateLinearRegression(1.0, **known, random_state=seed), X, y)
    np.testing.assert_array_equal(one, again)  # a new object and a new fit begin the seed anew


def test_a_score_does_not_share_the_noise_of_the_fit() -> None:
    drawn = [source_for(7).words(3), source_for(7, stream=1).words(3)]
    seen: list[Any] = []

    class Spy(SimulationSource):
        def words(self, count: int) -> Any:
            found = super().words(count)
            seen.append(found[:3])
            return found

    import dpfda.noise.source as home

    model = PrivateLogisticRegression(1.0, feature_ranges=(-1, 1), random_state=7).fit(X, Y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "SimulationSource", Spy)
        private_score(model, X, Y, epsilon=1.0, random_state=7)
    assert seen
    for words in seen:
        assert not any(np.isin(words, one).any() for one in drawn)


def test_a_sequence_keeps_data_noise_and_public_choices_apart() -> None:
    seed = np.random.SeedSequence(7)
    data = np.random.default_rng(seed).integers(0, 2**64, 50, dtype=np.uint64)
    child = np.random.default_rng(np.random.SeedSequence(7).spawn(1)[0])
    data = np.concatenate([data, child.integers(0, 2**64, 50, dtype=np.uint64)])
    noise = [source_for(seed, stream=one).words(50) for one in (None, 0, 1, 2)]
    everything = np.concatenate([data, *noise])
    assert len(np.unique(everything)) == len(everything)
    model = MomentClassifier(1.0, random_state=seed)
    assert model._public_seed() == model._public_seed()  # reproducible
    assert seed.n_children_spawned == 0  # the user's object is left as it was


def test_copies_of_a_source_draw_their_own_words() -> None:
    source = SimulationSource(3)
    copies = [clone(OnlineMRMA(1.0, random_state=source)).random_state for _ in range(2)]
    words = np.concatenate([one.words(4) for one in (source, *copies, deepcopy(source))])
    assert len(np.unique(words)) == 16
