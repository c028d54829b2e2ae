"""What liars can do to a study of answers, and what its findings say about it."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.local.recipe import plan_study
from dpfda.noise import SimulationSource
from dpfda.protocol.person import Crowd
from dpfda.protocol.server import Server

_PEOPLE = 6000


@pytest.mark.parametrize(("share", "evaluation"), [(0.15, 0.0), (0.3, 0.0), (0.3, 0.2)])
def test_a_forged_finding_names_the_share_that_forged_it(share: float, evaluation: float) -> None:
    """Nothing is to be found; liars say yes to every question about a feature with the label."""
    plan = plan_study(
        _PEOPLE, 1.0, classes=(0, 1), value_range=(-3, 3), evaluation_share=evaluation
    )
    rng = np.random.default_rng(7)
    features = rng.normal(0, 0.2, (_PEOPLE, plan.encoder.n_features))
    labels = rng.integers(2, size=_PEOPLE)
    liars, source, first = rng.random(_PEOPLE) < share, SimulationSource(3), 0
    server = Server(plan)
    while not server.finished:
        task = server.issue(server.wanted)
        own = slice(first, first + task.people)
        first += task.people
        rows = features[own], labels[own]
        reply = Crowd(plan, lambda start, stop, rows=rows: rows, source=source).answer(task).values
        lies = np.ones(task.people, dtype=bool)
        if task.name == "stump":
            lies = (task.thresholds[:, 0] > -2) & task.uses_label
        told = np.where((liars[own] & lies)[:, None], 1.0, reply)
        server.receive(told, start=0)
    found = server.findings
    assert found.verdict.kind == "signal"
    assert found.liars is not None
    # Some 2500 answers with the label about twelve features, standard error .07 of one; the largest
    # of twelve lies above its mean.
    assert abs(found.liars - share) < 0.1
    (said,) = [told for told in found.verdict.sentences if "lied in agreement" in told]
    assert f"{100 * found.liars:.0f} %" in said
