"""A study that found nothing says so where its result is read."""

from __future__ import annotations

import numpy as np

from dpfda import SimulationSource, plan_study
from dpfda.collector.pages import views
from dpfda.collector.summary import summarize
from dpfda.simulate import simulate


def test_the_dashboard_says_that_a_model_is_no_better_than_guessing() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(0, 0.2, (1500, 8)), (rng.random(1500) < 0.2).astype(np.int64)
    plan = plan_study(1500, 0.5, value_range=(-1, 1), classes=(0, 1), class_share=0.2)
    server = simulate(plan, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    summary = summarize(server)
    (note,) = summary["notes"]
    assert "no better than guessing" in note
    assert note in views._error_card(summary)
    assert "&lt;b&gt;" in views._error_card(summary | {"notes": ["<b>"]})
