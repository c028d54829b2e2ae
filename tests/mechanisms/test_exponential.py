"""The exponential mechanism draws exactly what it says (the shipped contract runs on it too)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.exponential import Exponential
from dpfda.noise import SimulationSource


class Scripted:
    """A source that plays back given words."""

    sampler = "simulation"

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def words(self, count: int) -> np.ndarray:
        played, self._words = self._words[:count], self._words[count:]
        return np.array(played, dtype=np.uint64)


def test_rational_thresholds_are_told_apart() -> None:
    # Equal scores and weights: c = 1/2 exactly, so a word of 2^63 has its first digits in common.
    mechanism = Exponential(epsilon=1.0, prior=(1, 1))
    below = mechanism.randomize([[0, 0]], Scripted((1 << 63) - 1, 5))
    # u = 0.1000...: c ≤ u holds with equality, which no finite number of digits decides, so the
    # next words decide as soon as one of them is not 0.
    above = mechanism.randomize([[0, 0]], Scripted(1 << 63, 0, 5))
    assert (below[0], above[0]) == (0, 1)


def test_last_word_is_not_trusted() -> None:
    # The last candidate has weight e^-100: its threshold is closer to 1 than a word can say.
    mechanism = Exponential(epsilon=2.0, prior=(1, 1))
    chosen = mechanism.randomize([[0, 100]], Scripted((1 << 64) - 1, 0))
    assert chosen[0] == 0


def test_only_differences_of_scores_matter() -> None:
    mechanism = Exponential(epsilon=0.3, prior=(1, 2, 3))
    near, far = ([[5, 7, 4]], [[10**9 + 5, 10**9 + 7, 10**9 + 4]])
    np.testing.assert_allclose(mechanism.target(near), mechanism.target(far), rtol=1e-12)
    expected = np.array([1, 2 * math.exp(-0.3), 3 * math.exp(0.15)])
    np.testing.assert_allclose(mechanism.target(near)[0], expected / expected.sum(), rtol=1e-12)


def test_hopeless_candidates_are_never_chosen() -> None:
    mechanism = Exponential(epsilon=1.0, prior=(1, 1, 1))
    chosen = mechanism.randomize(np.tile([10**6, 0, 10**6], (500, 1)), SimulationSource(0))
    assert (chosen == 1).all()


@pytest.mark.parametrize("prior", [(1,), (), (1, 0), (1, 0.5)])
def test_bad_priors(prior: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameter, match="prior"):
        Exponential(epsilon=1.0, prior=prior)


def test_scores_must_be_integers() -> None:
    with pytest.raises(InvalidData, match="integer"):
        Exponential(epsilon=1.0, prior=(1, 1)).randomize([[0.5, 1.0]], SimulationSource(0))
