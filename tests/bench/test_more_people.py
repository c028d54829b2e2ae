"""Whether more people help, and what a belief changes."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.local.study import beliefs as prior
from dpfda_bench.benchmarks import beliefs, more_people


def test_a_step_up_is_seen_and_chance_is_not() -> None:
    rng = np.random.default_rng(0)
    falling = np.linspace(0.4, 0.2, len(more_people.EFFECTIVE))
    wrong = falling + rng.normal(0, 0.02, (40, len(falling)))
    level = more_people.concluded({0.5: wrong, 0.1: wrong})
    assert level.figures["largest_step_up"] <= 0
    assert len(level.rows) == 2 * len(more_people.EFFECTIVE)
    wrong[:, 9:] += 0.08
    assert more_people.concluded({0.5: wrong}).figures["largest_step_up"] > 0


def test_a_problem_of_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(more_people, "EFFECTIVE", (50.0, 75.0))
    found = more_people.errors(0.5, 0)
    assert len(found) == 2
    assert all(0 <= error <= 1 for error in found)


def test_beliefs_are_changed_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def regret(seed: int) -> float:
        seen.append((prior.NOTHING, prior.OWN_WIDTH))
        return 0.5

    monkeypatch.setattr(beliefs, "_regret", regret)
    outcome = beliefs.run(quick=True)
    assert outcome.figures["largest_change"] == 0
    assert len(outcome.rows) == 1 + 2 * len(beliefs.BELIEFS)
    assert (0.2, 0.55) in seen
    assert (0.1, 1.1) in seen
    assert (prior.NOTHING, prior.OWN_WIDTH) == (0.1, 0.55)
