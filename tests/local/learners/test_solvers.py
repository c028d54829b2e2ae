"""The parts below the learners: small systems at once, members that come and go."""

import numpy as np
import pytest

from dpfda.local.mrma.learners._newton import iterate, solver


@pytest.mark.parametrize("size", [1, 2, 5, 12, 13, 30])
def test_small_systems(size):
    rng = np.random.default_rng(size)
    roots = rng.normal(size=(40, size, size + 3))
    matrices = roots @ roots.transpose(0, 2, 1)
    right = rng.normal(size=(40, size))
    solution = solver(matrices)(right)
    assert np.allclose((matrices @ solution[:, :, None])[:, :, 0], right, atol=1e-8)


def test_a_singular_system_spoils_neither_itself_nor_its_neighbors():
    matrices = np.stack([np.ones((2, 2)), np.eye(2), np.zeros((2, 2))])
    solution = solver(matrices)(np.array([[1.0, 1.0], [1.0, 2.0], [0.0, 0.0]]))
    assert np.all(np.isfinite(solution))
    assert np.allclose(solution[0].sum(), 1.0)
    assert solution[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("members", [1, 7, 5000])
def test_members_stop_at_their_own_time_and_come_back_in_order(members):
    # Member b counts up to its own number of steps; rows make blocks of a few hundred members.
    goals = np.random.default_rng(0).integers(1, 30, members).astype(float)
    wide = np.zeros((members, 20, 20))

    def begin(fixed):
        return (np.zeros_like(fixed[1]),)

    def step(state, fixed, live):
        count = state[0] + live
        return (count,), count >= fixed[1]

    (counts,) = iterate(begin, step, fixed=(wide, goals), max_iterations=100)
    assert np.array_equal(counts, goals)
    (counts,) = iterate(begin, step, fixed=(wide, goals), max_iterations=10)
    assert np.all(counts <= goals)
    assert np.array_equal(counts[goals <= 10], goals[goals <= 10])
    assert np.all(counts[goals > 10] >= 10)
