"""Whether more people help, and what a belief changes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from dpfda.local.study.beliefs import Beliefs
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

    def studies(seed: int, *, beliefs: Beliefs) -> list[dict[str, float]]:
        seen.append(beliefs)
        return [{"regret": 0.5}]

    monkeypatch.setattr(beliefs, "studies", studies)
    outcome = beliefs.run(quick=True)
    names = [one.name for one in fields(Beliefs)]
    assert outcome.figures["largest_change"] == 0
    assert [row["belief"] for row in outcome.rows] == names
    assert all(str(row["reason"]).endswith(".") for row in outcome.rows)
    assert set(seen) == {Beliefs()} | {beliefs.changed(n, f) for n in names for f in (0.5, 2.0)}
    assert all(beliefs.changed(name, 2.0) != Beliefs() for name in names)


_STUDY = """
from dpfda_bench.benchmarks.beliefs import changed
from dpfda.local.recipe import plan_study
from dpfda.local.study.beliefs import believing
from dpfda.protocol.server import Server

def model(name, **facts):
    with believing(changed(name, 2.0)):
        server = Server(plan_study(300, 1.0, classes=(0, 1), **facts))
        while not server.finished:
            task = server.issue(server.wanted)
            server.receive(task.people * [[1.0] * task.width], start=0)
        return server.model.to_json()
"""


def test_changed_beliefs_hold_in_a_process_that_ran_other_studies() -> None:
    """Whatever is stored between studies is stored for the beliefs that it follows from."""
    of_curves = {"value_range": (-1, 1), "spread_differs": True}
    space: dict[str, Any] = {}
    exec(_STUDY, space)
    for name in ("apart", "matter", "wider"):
        warm = [space["model"](one, **of_curves) for one in ("better", name)]
        code = _STUDY + f"print(model({name!r}, **{of_curves!r}))"
        fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert warm[1] == fresh.stdout.decode().strip()
        assert warm[0] != warm[1]
