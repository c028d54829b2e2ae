"""A study that found nothing says so where its result is read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from organizer import VISITOR

from dpfda import SimulationSource, plan_study
from dpfda.collector.conclude import Conclusion, _describe
from dpfda.collector.pages import views
from dpfda.collector.pages.templating import text
from dpfda.collector.storage.base import StudyRecord
from dpfda.collector.summary import summarize
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Findings, beside_guessing, found_of
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
    entry = found.recorded("a", 0, "end", created=0.0)
    entry = msgspec.structs.replace(entry, summary=changed)
    return text(views.study_page(record, 0, [entry], visitor=VISITOR))


def test_the_dashboard_says_that_a_model_is_no_better_than_guessing() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(0, 0.2, (1500, 12)), (rng.random(1500) < 0.2).astype(np.int64)
    plan = plan_study(1500, 0.5, value_range=(-1, 1), classes=(0, 1), class_share=0.2)
    server = simulate(plan, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    found = _describe(server, people=1500)
    told = json.loads(found.summary)["verdict"]
    assert told["kind"] in ("guessing", "unclear")
    (sentence,) = told["sentences"]
    assert "better than guessing" in sentence
    assert shown(plan, found).count(sentence) == 1
    assert "&lt;b&gt;" in shown(plan, found, notes=["<b>"])


CLASSES = plan_study(100, 1.0, value_range=(-1, 1), classes=("no", "yes"))
NUMBERS = plan_study(1000, 3.0, value_range=(-1, 1), target_range=(0, 9))


def _span(value: float, half: float) -> dict[str, Any]:
    return {"value": value, "low": value - half, "high": value + half, "people": 9}


def test_an_error_stands_beside_what_is_known_of_guessing() -> None:
    """The sentence is the judge's, once the study is finished."""
    found = {"error": _span(0.1, 0.05), "guessing": _span(0.4, 0.2), "evaluated": 9}
    judged = {"verdict": {"kind": "guessing", "sentences": ["A word."]}}
    said = beside_guessing(CLASSES, found | judged)
    assert (said["told"], said["nothing"], said["kind"]) == ("A word.", True, "guessing")
    assert [row[1:] for row in said["rows"]] == [
        (0.1, pytest.approx(0.05), pytest.approx(0.15)),
        (0.4, pytest.approx(0.2), 0.5),
        (0.5, None, None),
    ]
    number = beside_guessing(NUMBERS, found | judged)
    assert [row[0] for row in number["rows"]] == ["this model", "the mean alone"]
    silent = found | judged | {"error": None, "evaluated": None}
    assert "Nobody was asked about" in beside_guessing(CLASSES, silent)["told"]
    early = beside_guessing(CLASSES, silent, replies=(299, 300))
    assert early["told"].startswith("So far, from 299 of 300 replies.")
    assert "A word." not in early["told"], "half a study has no verdict"
    assert (early["kind"], early["rows"]) == ("unclear", [])


def test_shares_lie_between_0_and_1_and_few_answers_are_no_number() -> None:
    """550.4 % wrong, 95 % interval -299.0 % to 1399.8 %, was the largest type on a page."""
    known: dict[str, Any] = {"classes": ("no", "yes"), "phases": ()}
    few = found_of(Findings(**known, error=Estimate(5.504, 4.334, 4)))
    assert few["error"] is None
    assert few["verdict"]["kind"] == "unclear"
    told = beside_guessing(CLASSES, few)["told"]
    assert told == "4 evaluation answers cannot tell how often the model is wrong."
    rng = np.random.default_rng(0)
    for value, error in zip(rng.normal(0.3, 1, 50), rng.exponential(0.1, 50), strict=True):
        some = found_of(Findings(**known, error=Estimate(value, error, 90)))["error"]
        if some is not None:
            assert 0 <= some["low"] <= some["value"] <= some["high"] <= 1


def test_how_frequent_labels_are_is_told_with_its_doubt() -> None:
    """Shrunken beliefs would call one of ten four of ten: the interval holds the truth."""
    rng = np.random.default_rng(0)
    y = (rng.random(1200) < 0.15).astype(np.int64)
    z = np.clip(rng.normal(0, 0.25, (1200, 12)) + 0.3 * (2 * y - 1)[:, None], -1, 1)
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


@pytest.mark.parametrize("known", [12, 3])
def test_a_band_is_as_wide_as_its_coefficients_are_unsure(
    known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where nothing is known of some there is none: it would be of width 0 somewhere."""
    rng = np.random.default_rng(0)
    z, y = rng.uniform(-1, 1, (400, 12)), rng.integers(0, 2, 400)
    plan = plan_study(400, 2.0, value_range=(-1, 1), classes=(0, 1), domain_range=(0, 4))
    server = simulate(plan, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    (covariance,) = server.findings.covariances
    found = replace(server.findings, covariances=[covariance * (np.arange(12) < known)])
    monkeypatch.setattr(Server, "findings", found)
    (slope,) = summarize(server)["slope"]
    if known < 12:
        assert slope["error"] is None
        found = _describe(server, people=400)
        assert "There is no band: not every feature was selected" in shown(plan, found)
        return
    assert min(slope["error"]) > 0
    model, points = server.model, np.array(slope["t"])
    assert (points[0], points[-1]) == (0, 4)
    own = model.encoder.slope(np.eye(12), points) / model.scales[0][:, None]
    assert np.allclose(slope["error"], np.sqrt(np.diag(covariance) @ own**2))
    assert np.allclose(slope["beta"], model.slope(points)[0])


def test_nothing_is_shown_before_there_is_a_model() -> None:
    found = summarize(Server(CLASSES))
    assert (found["model"], found["slope"], found["estimates"]) == (False, [], [])
    assert summarize(Server(NUMBERS))["model"] is False
