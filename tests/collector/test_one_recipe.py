"""Form, HTTP interface, command line and estimator: the same facts, the same plan, the same model.

Everybody comes one after the other here, because how many are asked at once is part of what a seed
of simulated people stands for.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from click.testing import CliRunner
from forked_collector import QuickCollector
from organizer import VISITOR

from dpfda import LocalCurveClassifier, LocalCurveRegressor, plan_study
from dpfda.cli._group import dpfda
from dpfda.client.crowd import RemoteCrowd
from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages import views
from dpfda.collector.pages.form import PRESETS, facts_of
from dpfda.collector.pages.templating import text
from dpfda.datasets import simulate_001
from dpfda.estimators import local_curve_classifier, local_curve_regressor
from dpfda.local.recipe import JUDGES, plan_from_facts
from dpfda.noise import source_for
from dpfda.protocol.plan import StudyPlan
from dpfda.simulate import people_from, simulate

PEOPLE, SEED = 120, 7
FACTS: dict[str, Any] = {
    "n_people": PEOPLE, "epsilon": 2, "value_range": [-6, 6], "classes": ["no", "yes"],
    "evaluation_share": 0.2, "seed": SEED,
}  # fmt: skip
DATA = simulate_001(PEOPLE, 3)
LABELS = np.where(np.asarray(DATA.y) > 0, "yes", "no")


def by_form(collector: CollectorProcess, facts: dict[str, Any] = FACTS) -> str:
    """Fill in the form as a browser does; the id of the study that it leads to."""
    filled: dict[str, Any] = {
        "n_people-0": PEOPLE, "epsilon-0": "2.0", "value_range-0": -6, "value_range-1": 6,
        "domain_range-0": 0, "domain_range-1": 1, "classes-0": "yes, no",
        "evaluation_share-0": ".2", "seed-0": SEED, "title-0": "By form", "anyway": "yes",
    }  # fmt: skip
    for end, value in enumerate(facts.get("target_range", ())):
        filled |= {f"target_range-{end}": value, "classes-0": ""}
    with Connection(collector.url) as connection:

        def send(path: str, **headers: str) -> Any:
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            connection._connection.request("POST", path, urlencode(filled), kind | headers)
            answer = connection._connection.getresponse()
            answer.read()
            return answer

        filled["key"] = collector.admin_key
        cookie = {"Cookie": send("/login").headers["Set-Cookie"].partition(";")[0]}
        page = connection.ask("GET", "/new", headers=cookie).body.decode()
        filled["csrf"] = re.search(r'name="csrf" value="(\w+)"', page)[1]  # type: ignore[index]
        return str(send("/new", **cookie).headers["Location"]).rpartition("/")[2]


def by_facts(collector: CollectorProcess, facts: dict[str, Any] = FACTS) -> str:
    return str(collector.request("POST", "/api/studies", {"facts": facts})["id"])


@pytest.fixture
def estimator(monkeypatch: pytest.MonkeyPatch) -> LocalCurveClassifier:
    monkeypatch.setattr(local_curve_classifier, "simulate", partial(simulate, at_once=1))
    facts = {name: fact for name, fact in FACTS.items() if name not in ("n_people", "seed")}
    return LocalCurveClassifier(**facts, random_state=SEED).fit(
        DATA.X, LABELS, grid_points=DATA.grid_points
    )


def model_of_crowd(
    collector: CollectorProcess, fitted: Any, facts: dict[str, Any], answers: Any, run: int
) -> Any:
    """Form and facts make the estimator's plan; the model of the study that one of them made."""
    studies = [create(collector, facts) for create in (by_form, by_facts)]
    plans = [
        StudyPlan.from_dict(collector.request("GET", f"/api/studies/{study}")["plan"])
        for study in studies
    ]
    for made in plans:
        assert made.hash == replace(fitted.plan_, title=made.title).hash
    plan = plans[run]
    people = people_from(plan, DATA.X, answers, grid_points=DATA.grid_points)
    crowd = RemoteCrowd(
        collector.url,
        plan,
        *people(0, PEOPLE),
        tokens=collector.invite(plan.hash, plan.n_people),
        source=source_for(SEED, stream=fitted._stream),
    )
    asyncio.run(crowd.take_part(connections=1))
    collector.wait_until(studies[run])
    return collector.request("GET", f"/api/studies/{studies[run]}/model")


def test_the_same_facts_give_the_same_plan_and_the_same_model(
    estimator: LocalCurveClassifier, tmp_path: Path
) -> None:
    with QuickCollector(f"sqlite:///{tmp_path / 'x.db'}") as collector:
        model = model_of_crowd(collector, estimator, FACTS, LABELS, 0)
    assert model == json.loads(estimator.server_.run.result.model.to_json())


NUMBERS: dict[str, Any] = {name: FACTS[name] for name in FACTS if name != "classes"} | {
    "target_range": [-20, 20]
}


def test_the_same_holds_for_a_regression(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_curve_regressor, "simulate", partial(simulate, at_once=1))
    own = {name: fact for name, fact in NUMBERS.items() if name not in ("n_people", "seed")}
    targets = 4 * np.asarray(DATA.X).mean(axis=1) + 1
    regressor = LocalCurveRegressor(**own, random_state=SEED).fit(
        DATA.X, targets, grid_points=DATA.grid_points
    )
    with QuickCollector(f"sqlite:///{tmp_path / 'x.db'}") as collector:
        model = model_of_crowd(collector, regressor, NUMBERS, targets, 1)
    assert model == json.loads(regressor.server_.run.result.model.to_json())


def test_the_command_writes_that_plan(estimator: LocalCurveClassifier, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    told = CliRunner().invoke(
        dpfda,
        ["plan", "--people", str(PEOPLE), "--epsilon", "2", "--classes", "no, yes",
         "--range", "-6", "6", "--evaluation-share", ".2", "--seed", str(SEED),
         "--out", str(path)],
        catch_exceptions=False,
    )  # fmt: skip
    plan = StudyPlan.from_dict(json.loads(path.read_text()))
    assert plan.hash == estimator.plan_.hash
    assert plan.hash in told.stdout
    for words in ("answers", "evaluation", "protected with ε = 2", "e^ε = 7.39"):
        assert words in told.stdout


def test_form_and_command_propose_the_same_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    given = ["--people", "2000", "--epsilon", "1", "--classes", "no,yes", "--range", "-1", "1"]
    CliRunner().invoke(dpfda, ["plan", *given, "--out", str(path)], catch_exceptions=False)
    written = StudyPlan.from_dict(json.loads(path.read_text()))
    assert written.hash == plan_from_facts(facts_of(PRESETS)).hash
    assert written.design["evaluation_share"] == JUDGES == 0.15
    more = ["--protects", "labels", "--out", str(path)]  # nobody can judge without their label
    CliRunner().invoke(dpfda, ["plan", *given, *more], catch_exceptions=False)
    assert json.loads(path.read_text())["design"] == {"name": "noisy_labels"}


def test_the_guide_plans_one_study_three_times(tmp_path: Path) -> None:
    guides = Path(__file__).parents[2] / "docs" / "guides"
    guide = (guides / "run-a-study.md").read_text(encoding="utf-8")
    block = re.search(r"^plan = plan_study\(.*?^\)$", guide, re.S | re.M)
    command = re.search(r"^dpfda (plan .* --out) plan\.json$", guide, re.M)
    facts = re.search(r'-d \'\{"facts": (\{.*?\}), "settings"', guide, re.S)
    assert block is not None
    assert command is not None
    assert facts is not None
    names: dict[str, Any] = {"plan_study": plan_study}
    exec(block[0], names)
    path = tmp_path / "plan.json"
    CliRunner().invoke(dpfda, [*command[1].split(), str(path)], catch_exceptions=False)
    written = StudyPlan.from_dict(json.loads(path.read_text()))
    assert written.hash == names["plan"].hash == plan_from_facts(json.loads(facts[1])).hash


def test_facts_that_make_no_study_are_refused(tmp_path: Path) -> None:
    with QuickCollector(f"sqlite:///{tmp_path / 'x.db'}") as collector:
        plan = plan_study(9, 1.0, value_range=(0, 1), classes=(0, 1)).to_dict()
        key = {"Authorization": f"Bearer {collector.admin_key}"}
        with Connection(collector.url) as connection:
            for sent, told in (
                ({}, "either a plan or facts"),
                ({"plan": plan, "facts": FACTS}, "either a plan or facts"),
                ({"facts": FACTS | {"scales": [1]}}, "scales"),
                ({"facts": FACTS | {"epsilon": "2"}}, "epsilon"),
                ({"facts": FACTS | {"n_people": 10**8}}, "n_people must be at most"),
                ({"facts": FACTS | {"n_people": None}}, "n_people"),
            ):
                answer = connection.ask(
                    "POST", "/api/studies", body=json.dumps(sent).encode(), headers=key
                )
                assert answer.status == 400, told
                assert told in answer.json()["error"]["message"]


@pytest.mark.parametrize("fact", ["spread_differs"])
def test_every_door_can_say_more_of_the_curves(fact: str, tmp_path: Path) -> None:
    facts = FACTS | {fact: True, "value_range": [-60, 20]}
    plan, path = plan_from_facts(facts), tmp_path / "plan.json"
    own = {name: fact for name, fact in facts.items() if name not in ("n_people", "seed")}
    fitted = LocalCurveClassifier(**own, random_state=SEED).fit(DATA.X, LABELS)
    given = ["--people", str(PEOPLE), "--epsilon", "2", "--classes", "no,yes"]
    given += ["--range", "-60", "20", "--evaluation-share", ".2", "--seed", str(SEED)]
    given.append("--" + fact.replace("_", "-"))
    CliRunner().invoke(dpfda, ["plan", *given, "--out", str(path)], catch_exceptions=False)
    filled = {"n_people-0": str(PEOPLE), "epsilon-0": "2", "classes-0": "no, yes"}
    filled |= {"value_range-0": "-60", "value_range-1": "20", "evaluation_share-0": ".2"}
    form = PRESETS | filled | {"seed-0": str(SEED), fact: "yes"}
    written = StudyPlan.from_dict(json.loads(path.read_text()))
    sent = plan_from_facts(facts_of(form))
    assert plan.hash == fitted.plan_.hash == written.hash == sent.hash


@pytest.mark.parametrize(
    ("fact", "asked"), [("spread_differs", "distance of each feature from its center")]
)
def test_the_form_says_more_of_the_curves(fact: str, asked: str) -> None:
    before = PRESETS | {"classes-0": "a, b, c", "n_people-0": "500"}
    assert fact not in facts_of(before)
    assert asked not in text(views.new_page(before, visitor=VISITOR))
    form = before | {fact: "yes"}
    assert facts_of(form) == facts_of(before) | {fact: True}
    page = text(views.new_page(form, visitor=VISITOR))
    assert f'name="{fact}" value="yes" checked' in page
    assert asked in page
    assert 'name="open" value="no" checked>' in page
