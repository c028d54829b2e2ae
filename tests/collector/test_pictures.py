"""Pictures of the dashboard to look at, in a real browser, and what a machine sees of them.

DPFDA_SCREENSHOTS names the folder that they are written to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from held_study import curves, hold
from organizer import QuickForecasts

from dpfda import plan_study
from dpfda.collector.collector_process import CollectorProcess

SCREENSHOTS = os.environ.get("DPFDA_SCREENSHOTS")
AXE = Path(__file__).resolve().parents[2] / "clients/browser/node_modules/axe-core/axe.min.js"
FACTS: dict[str, Any] = {
    "value_range": (0, 3), "domain_range": (0, 24), "classes": ("healthy", "ill"),
    "evaluation_share": 0.2,
}  # fmt: skip
UNITS = {"domain_unit": "hours", "value_unit": "g"}


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of the pages."""
    database = f"sqlite:///{tmp_path_factory.mktemp('pictures')}/x.db"
    good = plan_study(1500, 4.0, **FACTS, class_share=0.5, title="Gait at home")
    null = plan_study(1500, 0.5, **FACTS, title="Sleep and coffee")
    begun = plan_study(600, 2.0, **FACTS, title="Steps of a day, anybody may take part")
    other = FACTS | {"classes": None, "target_range": (0, 50)}
    number = plan_study(1200, 4.0, **other, title="Grip force")
    people = curves(1500, 12, signal=0.3)
    targets = curves(1200, 12, signal=0.0, seed=1)

    def numbers(start: int, stop: int) -> Any:
        features, labels = targets(start, stop)
        target = features[:, 0] + 0.5 * features[:, 1]  # its place in its range comes first
        return np.column_stack([np.clip(target, -1, 1), features]), 0 * labels

    return {
        "database": database,
        "new": "/new",
        "questionnaire": "/new?example=a%20questionnaire",
        "list": "/",
        "number": "/study/" + hold(database, number, numbers, people_who_answer=1200),
        "null": "/study/"
        + hold(database, null, curves(1500, 12, signal=0.0), people_who_answer=1500, **UNITS),
        "running": "/study/"
        + hold(database, begun, people, people_who_answer=340, open=True, deadline=9e8, **UNITS),
        "finished": "/study/" + hold(database, good, people, people_who_answer=1500, **UNITS),
    }


@pytest.fixture(scope="module")
def collector(studies: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    log = tmp_path_factory.mktemp("log") / "log"
    with QuickForecasts(studies["database"], log=log, options=["--rate", "100"]) as found:
        yield found


@pytest.fixture(scope="module")
def shown(browser: Any, collector: CollectorProcess) -> Iterator[Any]:
    """A page of a signed-in browser, which gets other sizes and colors; and what went wrong."""
    # axe is no part of the pages: their policy would refuse it.
    context = browser.new_context(base_url=collector.url, bypass_csp=True)
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda line: line.type == "error" and page.problems.append(line.text))
    page.goto("/")
    page.fill("#key", collector.admin_key)
    page.click("text=Sign in >> nth=-1")
    page.wait_for_url(collector.url + "/")
    yield page
    context.close()


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("new", 1280, False), ("new", 390, True),
        ("questionnaire", 1280, True), ("questionnaire", 390, False),
        ("list", 1280, False), ("list", 390, False),
        ("running", 1280, False), ("running", 390, False),
        ("null", 1280, False), ("null", 390, True),
        ("finished", 1280, False), ("finished", 390, False), ("finished", 1280, True),
        ("number", 1280, False),
    ],
)  # fmt: skip
def test_a_page_looks_well(
    shown: Any, studies: dict[str, str], name: str, width: int, dark: bool
) -> None:
    shown.problems.clear()
    shown.set_viewport_size({"width": width, "height": 900})
    shown.emulate_media(color_scheme="dark" if dark else "light")
    shown.goto(studies[name])
    if name in ("new", "questionnaire"):
        shown.fill("#title-0", "Gait at home")
        shown.wait_for_selector("#outlook svg", timeout=60_000)
        shown.wait_for_selector("#outlook:not([aria-busy])")
    if SCREENSHOTS:
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        path = Path(SCREENSHOTS) / f"{name}-{width}{'-dark' * dark}.png"
        shown.screenshot(path=str(path), full_page=True)
    assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    outside = shown.evaluate(
        "[...document.querySelectorAll('.card, .stack')].flatMap((card) => { "
        "const edge = card.getBoundingClientRect().right + 1; "
        "const others = innerWidth < 640 ? 'svg, thead' : 'svg'; "  # heads are hidden on phones
        "return [...card.querySelectorAll('*')].filter((one) => !one.closest(others) && "
        "[...one.getClientRects()].some((part) => part.right > edge)) })"
        ".map((one) => one.outerHTML.slice(0, 80))"
    )
    assert outside == [], "cut, or over its neighbor"
    unread = shown.evaluate(  # a minus sign was cut from a phone's axis
        "[...document.querySelectorAll('svg text')].filter((one) => { "
        "const own = one.getBoundingClientRect(); "
        "const all = one.closest('svg').getBoundingClientRect(); "
        "return own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 3 })"
        ".map((one) => one.textContent)"
    )
    assert unread == []
    if AXE.is_file():
        shown.add_script_tag(path=str(AXE))
        found = shown.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
        bad = [one for one in found if one["impact"] in ("serious", "critical")]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in bad] == []
    assert shown.problems == []


def test_a_forecast_of_the_form_as_it_was_says_so(shown: Any, studies: dict[str, str]) -> None:
    """The old verdict stood there in green until the new one came."""
    words = "getComputedStyle(document.querySelector('#outlook'), '::before').content"
    shown.goto(studies["new"])
    shown.wait_for_selector("#outlook:not([aria-busy]) svg", timeout=60_000)
    assert shown.evaluate(words) == "none"
    shown.fill("#n_people-0", "400")
    assert shown.evaluate(words).startswith('"Updating: ')
    shown.wait_for_selector("#outlook:not([aria-busy]) svg", timeout=60_000)
    assert shown.evaluate(words) == "none"


def test_the_pages_say_what_there_is(shown: Any, studies: dict[str, str]) -> None:
    texts = {}
    for name in ("null", "finished", "running", "number"):
        shown.goto(studies[name])
        texts[name] = shown.inner_text("main")
    assert "better than guessing: starting from 50:50" in texts["null"]
    assert "The band holds 0 everywhere: this curve may be noise alone." in texts["null"]
    assert "may be noise" not in texts["finished"]
    assert "This model is better than guessing." in texts["finished"]
    assert "better than the mean alone" in texts["number"]
    assert "So far, from 340 of 600 replies." in texts["running"]
    assert "guessing" not in texts["running"], "half a study has no verdict"
    assert "always the most frequent label" in texts["null"]
    assert "beginning against end" in texts["finished"]
    assert "t in hours from left to right" in texts["finished"]
    assert "root mean squared error" in texts["number"]
    assert "340 of 600 people have answered" in re.sub(r"\s+", " ", texts["running"])
    assert "What goes with the label, and where" in texts["running"]
    for words in ("direction", "stump", "null", "NaN", "None", "undefined"):
        assert words not in texts["running"].replace("direction of", ""), words
