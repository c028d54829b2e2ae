"""A study that found nothing says so where its result is read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from dpfda import SimulationSource, plan_study
from dpfda.collector.conclude import Conclusion, _describe
from dpfda.collector.pages import views
from dpfda.collector.pages.templating import text
from dpfda.collector.storage.base import StudyRecord
from dpfda.collector.summary import summarize
from dpfda.protocol.beside_guessing import beside_guessing
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
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
    told = json.loads(found.summary)["verdict"]
    assert "no better than guessing" in told["told"]
    assert told["nothing"]
    assert shown(plan, found).count(told["told"]) == 1
    assert "&lt;b&gt;" in shown(plan, found, notes=["<b>"])


CLASSES = plan_study(100, 1.0, value_range=(-1, 1), classes=("no", "yes"))
NUMBERS = plan_study(1000, 3.0, value_range=(-1, 1), target_range=(0, 9))


def _span(value: float, half: float) -> dict[str, Any]:
    return {"value": value, "low": value - half, "high": value + half, "people": 9}


def test_an_error_stands_beside_what_is_known_of_guessing() -> None:
    """The sentence is the judge's; before anybody judged the model, there may be one too."""
    found = {"error": _span(0.1, 0.05), "guessing": _span(0.4, 0.2)}
    judged = {"verdict": {"told": "A word.", "nothing": True}}
    said = beside_guessing(CLASSES, found | judged, finished=True)
    assert (said["told"], said["nothing"]) == ("A word.", True)
    assert [row[1:] for row in said["rows"]] == [
        (0.1, pytest.approx(0.05), pytest.approx(0.15)),
        (0.4, pytest.approx(0.2), 0.5),
        (0.5, None, None),
    ]
    silent = found | {"verdict": {"told": "", "nothing": False}}
    assert "not known" in beside_guessing(NUMBERS, silent, finished=True)["told"]
    silent |= {"error": None}
    assert "not answered yet" in beside_guessing(CLASSES, silent, finished=False)["told"]
    assert "Nobody judged" in beside_guessing(CLASSES, silent, finished=True)["told"]
    early = beside_guessing(CLASSES, silent | judged, finished=False)
    assert early["told"].startswith("A word. People who judge")
    assert early["nothing"]


def test_how_frequent_labels_are_is_told_with_its_doubt() -> None:
    """Shrunken beliefs would call one of ten four of ten: the interval holds the truth."""
    rng = np.random.default_rng(0)
    y = (rng.random(1200) < 0.15).astype(np.int64)
    z = np.clip(rng.normal(0, 0.25, (1200, 8)) + 0.3 * (2 * y - 1)[:, None], -1, 1)
    plan = plan_study(1200, 1.0, value_range=(-1, 1), classes=("no", "yes"))
    server = simulate(plan, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    told = server.findings.guessing
    assert told is not None
    low, high = told.interval()
    assert low < 0.15 < high
    assert told.standard_error < 0.15
    stated = plan_study(1200, 1.0, value_range=(-1, 1), classes=("no", "yes"), class_share=0.85)
    server = simulate(stated, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    assert server.findings.guessing is not None
    assert server.findings.guessing.interval() == pytest.approx((0.15, 0.15))


def test_a_band_is_as_wide_as_its_coefficients_are_unsure() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.uniform(-1, 1, (400, 8)), rng.integers(0, 2, 400)
    server = simulate(
        plan_study(400, 2.0, value_range=(-1, 1), classes=(0, 1), domain_range=(0, 4)),
        lambda a, b: (z[a:b], y[a:b]),
        source=SimulationSource(0),
    )
    (slope,) = summarize(server)["slope"]
    model, points = server.model, np.array(slope["t"])
    assert (points[0], points[-1]) == (0, 4)
    unit = model.encoder.slope(np.eye(8), points)
    (variances,) = model.variances[:, 1:]
    own = unit[: len(variances)] / model.scales[0][:, None]
    assert np.allclose(slope["error"], np.sqrt(variances @ own**2))
    assert np.allclose(slope["beta"], model.slope(points)[0])


def test_nothing_is_shown_before_there_is_a_model() -> None:
    found = summarize(Server(CLASSES))
    assert (found["model"], found["slope"], found["estimates"]) == (False, [], [])
    assert summarize(Server(NUMBERS))["model"] is False
