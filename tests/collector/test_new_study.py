"""The form for a new study tells the truth before anybody is asked, and creates nothing unmeant."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from organizer import Organizer

from dpfda import plan_study
from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages import planning
from dpfda.collector.pages.form import (
    EXAMPLES,
    PRESETS,
    facts_of,
    form_of,
    information_of,
    settings_of,
)
from dpfda.collector.pages.views import sample_reply
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import StudySettings
from dpfda.errors import InvalidParameter
from dpfda.local.recipe import plan_from_facts
from dpfda.protocol.wire import ReplyMessage


def created(organizer: Organizer, **typed: str) -> tuple[int, str]:
    form = PRESETS | {"csrf": organizer.csrf, "title-0": "Gait"} | typed
    status, page, headers = organizer.post("/new", form, organizer.cookie)
    return status, str(headers["Location"]) if status == 303 else unescape(page)


def ask(organizer: Organizer, path: str, cookie: str | None = None, **typed: str) -> Any:
    headers = {"Cookie": organizer.cookie if cookie is None else cookie}
    with Connection(organizer.url, timeout=60) as connection:
        return connection.ask("GET", f"{path}?{urlencode(PRESETS | typed)}", headers=headers)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"n_people-0": "2.5"}, "People must be a whole number, got 2.5"),
        ({"n_people-0": ""}, "People must be a number, got 'nothing'"),
        ({"epsilon-0": "much"}, "Privacy cost per person (ε) must be a number, got 'much'"),
        ({"class_share-0": "many"}, "How common each label is must be one share for each of two"),
        ({"class_share-0": "1.5, -0.5"}, "How common each label is must be"),
        ({"class_share-0": "60 %, 50 %"}, "must be one share for each"),
        ({"holds": "row"}, "Answers or numbers must be one in a line: name, lowest, highest"),
        ({"holds": "row", "columns": "age, 18, 99\nmood"}, "name: answer, answer, …, got 'mood'"),
        ({"holds": "row", "columns": "age, 18, 99\nage, 1, 2"}, "got 'age'"),
        ({"title-0": "  "}, "Title must be given: people see it before they take part"),
        ({"classes-0": "ill"}, "Labels must be at least two different labels"),
        ({"value_range-1": "-2"}, "Lowest and highest possible value must be"),
        ({"deadline": "-1"}, "Deadline must be above 0, and at most 30 years"),
        ({"deadline": "soon"}, "Deadline must be a number of minutes, hours or days, or empty"),
        ({"deadline": "3", "deadline_unit": "eons"}, "Deadline must be a number of minutes"),
        (
            {"target_range-0": "0", "target_range-1": "9", "classes-0": "well, ill"},
            "Labels must be empty if a number is to be predicted: clear the labels or the range",
        ),
        (
            {"target_range-1": "9", "classes-0": "", "class_share-0": ".5"},
            "Range of the number must be a number",
        ),
        (
            {"target_range-0": "0", "target_range-1": "9", "classes-0": "", "class_share-0": ".5"},
            "How common each label is must be one share for each of two labels",
        ),
        ({"domain_unit": "h" * 41}, "Unit of t must be at most 40 characters"),
        ({"information-purpose": "Sleep"}, "Who asks must be given"),
        ({"n_people-0": "3"}, "This study cannot work"),
    ],
)
def test_what_is_wrong_is_said_in_the_forms_words(
    organizer: Organizer, collector: CollectorProcess, typed: dict[str, str], told: str
) -> None:
    status, page = created(organizer, **typed)
    assert status == 422
    assert told in page.partition('role="alert">')[2].partition("</p>")[0]
    assert collector.request("GET", "/api/studies")["studies"] == []


def test_a_study_that_cannot_work_must_be_meant(
    organizer: Organizer, collector: CollectorProcess
) -> None:
    """Three people were accepted without a word."""
    few = {"n_people-0": "3", "deadline": "2", "deadline_unit": "hours"}
    few |= {"domain_unit": "s", "value_unit": "<b>m</b>"}
    _, page = created(organizer, **few)
    assert 'name="anyway" value="yes"' in page
    status, address = created(organizer, **few, anyway="yes")
    assert status == 303
    study = collector.request("GET", f"/api/studies/{address.rpartition('/')[2]}")
    assert (study["domain_unit"], study["value_unit"]) == ("s", "<b>m</b>")
    collector.request("DELETE", f"/api/studies/{study['id']}")


def test_what_participants_are_told_is_in_the_plan(
    organizer: Organizer, collector: CollectorProcess
) -> None:
    typed = {
        "information-institution": "Institute of Sleep",
        "information-contact": "sleep@example.org",
        "information-purpose": "Sleep\r\nand coffee",
    }
    _, address = created(organizer, **typed, anyway="yes")
    study = address.rpartition("/")[2]
    plan = collector.request("GET", f"/api/studies/{study}")["plan"]
    wanted = {"version": "1", "institution": "Institute of Sleep", "contact": "sleep@example.org"}
    assert plan["information"] == wanted | {"purpose": "Sleep and coffee"}
    collector.request("DELETE", f"/api/studies/{study}")


def test_the_settings_of_a_form() -> None:
    chosen = PRESETS | {"open": "yes", "deadline": "1.5", "deadline_unit": "days"}
    assert settings_of(chosen) == StudySettings(open=True, deadline=129_600.0)
    assert settings_of(PRESETS) == StudySettings()
    with pytest.raises(InvalidParameter, match="deadline must be"):
        settings_of(PRESETS | {"deadline": "nan"})


def test_a_public_share_of_labels_is_a_fact() -> None:
    for shares in ("0.8, 0.2", "80 %, 20%"):  # of "no, yes", in this order
        typed = PRESETS | {"class_share-0": shares}
        assert facts_of(typed) == facts_of(PRESETS) | {"class_share": 0.2}
    rare = PRESETS | {"classes-0": "well, ill", "class_share-0": "95 %, 5 %"}
    assert facts_of(rare)["class_share"] == 0.95, "of the label that sorts last, which is well"
    assert "class_share" not in facts_of(PRESETS)


@pytest.mark.parametrize(
    ("columns", "classes", "studies"), [(6, 2, 12), (40, 2, 12), (40, 4, 4), (20, 3, 7)]
)
def test_fewer_studies_are_simulated_of_larger_models(
    columns: int, classes: int, studies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody types: up to twelve, of 500 coefficients together, and never below four."""
    monkeypatch.setattr(planning, "_QUICK_STUDIES", 12)
    ranges = {f"c{j}": (-1.0, 1.0) for j in range(columns)}
    plan = plan_study(1000, 1.0, classes=tuple(range(classes)), feature_ranges=ranges)
    assert planning.quick_studies(plan) == studies


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_studies_that_work(organizer: Organizer, example: str) -> None:
    """And a form that is made of such a study makes it again, with another seed."""
    form = PRESETS | {"title-0": example} | EXAMPLES[example]
    found = asyncio.run(planning.outlook(facts_of(form), form, quick=True))
    assert found.prospect in ("works", "may work"), found
    told = INFORMATION if "day" in example else {}
    shares = {"class_share-0": "95 %, 5 %"} if "heart" in example else {}
    facts = facts_of(form | shares)
    plan = replace(plan_from_facts(facts), information=told)
    settings = settings_of(form | {"open": "yes", "deadline": "36", "deadline_unit": "hours"})
    again = form_of(plan, settings)
    assert settings_of(again) == settings
    assert information_of(again) == told
    repeated, other = plan_from_facts(facts_of(again)), plan.to_dict()
    assert repeated.seed == plan.seed + 1
    made = json.loads(json.dumps(replace(repeated, seed=plan.seed, information=told).to_dict()))
    assert str(made["encoder"]["basis"]) == str(json.loads(json.dumps(other))["encoder"]["basis"])
    assert (made["design"], made["classes"], made["epsilon"]) == (
        other["design"],
        other["classes"],
        1.0,
    )
    if example != "spectra":  # whose range of 6 over 200 nm has no exact scale
        assert replace(repeated, seed=plan.seed, information=told).hash == plan.hash
    page = unescape(ask(organizer, "/new", example=example).body.decode())
    assert f'value="{example.capitalize()}"' in page


INFORMATION = {
    "version": "2",
    "institution": "Institute of Sleep",
    "contact": "sleep@example.org",
    "purpose": "Sleep and coffee",
}


def test_a_study_is_duplicated(organizer: Organizer, collector: CollectorProcess) -> None:
    typed = {"holds": "row", "columns": EXAMPLES["a questionnaire"]["columns"], "deadline": "2"}
    _, address = created(organizer, **typed, **{"n_people-0": "4000"}, anyway="yes")
    study = address.rpartition("/")[2]
    shown = ask(organizer, address).body.decode()
    assert f'href="/new?like={study}"' in shown
    page = unescape(ask(organizer, "/new", like=study).body.decode())
    assert 'name="title-0" value="Gait"' in page
    assert "sex: female, male, other" in page
    assert 'name="seed-0" value="1"' in page
    assert re.search(r'value="row" checked', page)
    own = plan_study(50, 1.0, value_range=(0, 1), classes=("no", "yes"), n_features=3, title="Own")
    collector.create(own)
    page = unescape(ask(organizer, "/new", like=own.hash[:16]).body.decode())
    assert "this one was planned elsewhere, with other settings" in page
    assert ask(organizer, "/new", like="0" * 16).status == 404
    for one in (study, own.hash[:16]):
        collector.request("DELETE", f"/api/studies/{one}")


def test_what_it_is_worth_while_somebody_types(organizer: Organizer) -> None:
    shown = ask(organizer, "/outlook").body.decode()
    assert re.search("This study (may )?works?: its effective sample size is 427", shown)
    assert "<svg" in shown
    assert "<html" not in shown
    few = ask(organizer, "/outlook", **{"n_people-0": "3"}).body.decode()
    assert 'class="verdict cannot-work"' in few
    broken = ask(organizer, "/outlook", **{"classes-0": "<b>"}).body.decode()
    assert "No forecast: Labels must be at least two different labels" in broken
    assert "<b>" not in broken


def test_planning_is_no_door_for_strangers(organizer: Organizer) -> None:
    for path in ("/outlook", "/planned"):
        assert ask(organizer, path, cookie="").status == 303
    assert ask(organizer, "/outlook", **{"title-0": "x" * 20_000}).status in (413, 414, 431)


def test_a_forecast_while_somebody_types_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """And refused where others are under way; neither title nor seed make another one of it."""
    asked: list[dict[str, Any]] = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        asked.append(kwargs)
        raise InvalidParameter("n_people", "more", kwargs["n_people"])

    planning._simulated.cache_clear()
    monkeypatch.setattr(planning, "forecast", refuse)
    facts = {"n_people": 50, "epsilon": 1.0, "value_range": [0, 1], "classes": ["no", "yes"]}

    def outlook(**other: Any) -> planning.Outlook:
        given, form = facts | other, {"family": "smooth", "error": ""}
        return asyncio.run(planning.outlook(given, form, quick=True, waiting=2))

    assert outlook(title="a", seed=1) == outlook(title="b", seed=2)
    outlook(classes=["a", "b", "c"])
    assert [(one["studies"], one["most"], one["also"]) for one in asked] == [
        (12, 1000, ()),
        (12, 600, ()),
    ]
    monkeypatch.setattr(planning, "_under_way", {"one", "two"})
    with pytest.raises(Refused, match="other forecasts are under way"):
        outlook(n_people=60)
    planning._simulated.cache_clear()


@pytest.mark.parametrize(
    "facts",
    [
        {"n_people": 2000, "epsilon": 1.0, "classes": ("no", "yes")},
        {"n_people": 20_000, "epsilon": 8.0, "classes": tuple("abc"), "domain_range": (0, 24)},
        {"n_people": 20_000, "epsilon": 2.0, "target_range": (0, 50)},
    ],
)
def test_the_sample_is_a_reply_that_the_study_takes(facts: dict[str, Any]) -> None:
    plan = plan_study(**facts, value_range=(0, 10))
    sample = sample_reply(plan, (0, 10))
    sent = ReplyMessage(**json.loads(sample["body"]))
    assert sent.plan == plan.hash
    assert len(sent.values) == sample["answers"] == len(sample["sent"].split(", "))
    assert set(sample["sent"].split(", ")) <= {"yes", "no"}
    assert sample["bytes"] == len(sample["body"].encode())
