"""The form's forecast: what an organizer sees before the first person, whatever is typed in."""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from organizer import ENOUGH, Organizer

from dpfda.client.http import Connection
from dpfda.collector.pages import planning
from dpfda.collector.pages.form import PRESETS
from dpfda.errors import InvalidParameter


def test_a_study_that_works_and_one_that_cannot(organizer: Organizer) -> None:
    status, page = organizer.forecast(**{"n_people-0": "20000", "epsilon-0": "4"})
    assert status == 200
    assert "This study works" in page
    assert 'value="20000"' in page  # the form is filled in again
    few = {"n_people-0": "40", "epsilon-0": "1", "non_private_error": "0.4"}
    assert "This study cannot work: its effective sample size is 9" in organizer.forecast(**few)[1]


def test_people_or_epsilon_for_an_error_and_what_else_an_organizer_asks(
    organizer: Organizer,
) -> None:
    _, page = organizer.forecast(error="0.25", **{"n_people-0": ""})
    assert re.search(r"[\d,]+ people are needed \(nine times of ten", page), page
    assert re.search(r"A second study, of as many other people, would bring [\d.]+ % to", page)
    assert "that four of five such studies" in page  # the smallest difference, or none
    assert 'name="error" value="0.25"' in page
    _, page = organizer.forecast(error="0.25", **{"epsilon-0": ""})
    assert re.search(r"ε = [\d.]+ is needed \(nine times of ten", page), page
    _, page = organizer.forecast(error="0.25")
    assert "n_people, epsilon and error must be two of the three" in page


def test_a_study_of_numbers(organizer: Organizer) -> None:
    filled = {"classes-0": "", "target_range-0": "0", "target_range-1": "50"}
    filled |= {"n_people-0": "60", "epsilon-0": "1"}
    _, page = organizer.forecast(**filled)
    assert "This study cannot work: its effective sample size is 9" in page
    assert "the private mean gives" in page


def test_what_was_forecast_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what a forecast may cost is bounded."""
    asked = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        asked.append(kwargs)
        raise InvalidParameter("n_people", "more", kwargs["n_people"])

    planning._simulated.cache_clear()
    monkeypatch.setattr(planning, "forecast", refuse)
    facts = {"n_people": 50, "epsilon": 1.0, "value_range": [0, 1], "classes": ["no", "yes"]}

    def outlook(**other: Any) -> planning.Outlook:
        return asyncio.run(planning.outlook(facts | other, {"family": "smooth"}))

    assert outlook() == outlook()
    assert len(asked) == 1
    assert (asked[0]["studies"], asked[0]["most"]) == (16, 2000)
    assert outlook(n_people=60) != outlook()
    assert len(asked) == 2
    planning._simulated.cache_clear()


@pytest.mark.timed
@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("n_people-0", "9" * 40), ("n_people-0", "9" * 9), ("n_people-0", "9" * 9000),
        ("n_people-0", "-1"), ("n_people-0", "0"), ("n_people-0", "nan"), ("n_people-0", ""),
        ("epsilon-0", "1e-300"), ("epsilon-0", "1e300"), ("epsilon-0", "nan"),
        ("epsilon-0", "inf"), ("epsilon-0", "0"), ("value_range-0", "nan"),
        ("value_range-0", "-1e308"), ("value_range-1", "1e308"), ("domain_range-1", "0"),
        ("evaluation_share-0", "1"), ("evaluation_share-0", "nan"), ("seed-0", "-5"),
        ("seed-0", "9" * 400), ("classes-0", ",".join(map(str, range(1500)))),
        ("classes-0", "a"), ("family", "<script>"), ("family", "table"),
        ("non_private_error", "nan"), ("non_private_error", "0.5"), ("non_private_error", "x"),
        ("non_private_error", "1e-300"), ("error", "nan"), ("error", "2"),
        ("title-0", "<script>alert(1)</script>"),
    ],
)  # fmt: skip
def test_whatever_is_typed_is_answered(organizer: Organizer, name: str, typed: str) -> None:
    began = time.monotonic()
    status, page = organizer.forecast(**{name: typed})
    assert status == 200, page
    assert "No forecast:" in page or "This study" in page
    assert "<script>" not in page.replace('<script src="/static/script.js" defer></script>', "")
    assert time.monotonic() - began < ENOUGH


def test_no_forecast_without_the_key_or_the_session(organizer: Organizer) -> None:
    assert organizer.post("/forecast", dict(PRESETS))[0] == 303
    wrong = PRESETS | {"csrf": "0" * 64}
    assert organizer.post("/forecast", wrong, organizer.cookie)[0] == 403


@pytest.mark.timed
def test_others_are_served_meanwhile_and_too_many_are_sent_away(organizer: Organizer) -> None:
    with ThreadPoolExecutor(8) as threads:
        asked = [
            threads.submit(organizer.forecast, **{"n_people-0": str(1500 + number)})
            for number in range(8)
        ]
        with Connection(organizer.url) as connection:
            began = time.monotonic()
            assert connection.ask("GET", "/health").status == 200
            assert time.monotonic() - began < 10
        statuses = [one.result()[0] for one in asked]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 4
