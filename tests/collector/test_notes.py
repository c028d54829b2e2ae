"""A study that found nothing says so where its result is read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np

from dpfda import SimulationSource, plan_study
from dpfda.collector.conclude import Conclusion, _describe
from dpfda.collector.pages import views
from dpfda.collector.pages.templating import text
from dpfda.collector.storage.base import StudyRecord
from dpfda.protocol.plan import StudyPlan
from dpfda.simulate import simulate


def shown(plan: StudyPlan, found: Conclusion, **summary: Any) -> str:
    """A study's page, with this in its summary."""
    record = StudyRecord(
        id="a", hash=plan.hash, plan=json.dumps(plan.to_dict()), settings="{}", created=0.0,
        seal="", **found.following,
    )  # fmt: skip
    changed = json.dumps(json.loads(found.summary) | summary)
    entry = msgspec.structs.replace(found.recorded("a", 0, "end"), summary=changed)
    return text(views.study_page(record, 0, [entry], csrf=""))


def test_the_dashboard_says_that_a_model_is_no_better_than_guessing() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(0, 0.2, (1500, 8)), (rng.random(1500) < 0.2).astype(np.int64)
    plan = plan_study(1500, 0.5, value_range=(-1, 1), classes=(0, 1), class_share=0.2)
    server = simulate(plan, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    found = _describe(server, people=1500)
    (note,) = json.loads(found.summary)["notes"]
    assert "no better than guessing" in note
    assert note in shown(plan, found)
    assert "&lt;b&gt;" in shown(plan, found, notes=["<b>"])
