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
import sqlalchemy as sa
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
    invited = plan_study(900, 2.0, **FACTS, title="Heart rate of a day, by invitation")
    fresh = plan_study(900, 2.0, **FACTS, title="Glucose over a day")
    odd = plan_study(900, 2.0, **FACTS, seed=7, title="Of another release")
    other = FACTS | {"classes": None, "target_range": (0, 50)}
    number = plan_study(1200, 4.0, **other, title="Grip force")
    people = curves(1500, 12, signal=0.3)
    targets = curves(1200, 12, signal=0.0, seed=1)

    def numbers(start: int, stop: int) -> Any:
        features, labels = targets(start, stop)
        target = features[:, 0] + 0.5 * features[:, 1]  # its place in its range comes first
        return np.column_stack([np.clip(target, -1, 1), features]), 0 * labels

    unreadable = hold(database, odd, people, people_who_answer=0)
    with sa.create_engine(database).begin() as connection:
        connection.exec_driver_sql("UPDATE study SET plan = '{}' WHERE id = ?", (unreadable,))
    by_invitation = hold(database, invited, people, people_who_answer=120, **UNITS)
    return {
        "database": database,
        "activity": "/activity",
        "interface": "/interface",
        "refused": "/study/" + "f" * 16,
        "unreadable": f"/study/{unreadable}",
        "invited": f"/study/{by_invitation}",
        "edit": f"/study/{hold(database, fresh, people, people_who_answer=0)}/edit",
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


LOOKS = [(1280, "light"), (390, "dark"), (390, "light"), (1280, "dark")]


@pytest.mark.parametrize(
    "name",
    [
        "new", "questionnaire", "hopeless", "edit", "list", "activity", "interface", "refused",
        "invited", "invitations", "close", "running", "null", "finished", "number", "unreadable",
        "viewed", "login", "wrong key",
    ],
)  # fmt: skip
def test_a_page_looks_well(
    shown: Any, studies: dict[str, str], collector: CollectorProcess, name: str
) -> None:
    """On a screen and on a phone, light and dark, and axe finds nothing."""
    page = REACH.get(name, _open)(shown, studies, collector, name)
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        if SCREENSHOTS:
            Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
            path = Path(SCREENSHOTS) / f"{name.replace(' ', '-')}-{width}-{scheme}.png"
            page.screenshot(path=str(path), full_page=True)
        _nothing_is_cut(page)
        if AXE.is_file():
            page.evaluate("window.axe || " + AXE.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
            told = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
            assert told == [], (width, scheme)
    assert shown.problems == []
    if page is not shown:
        page.context.close()


def _open(shown: Any, studies: dict[str, str], _: CollectorProcess, name: str) -> Any:
    """A page that has an address, with everything on it that can be opened."""
    shown.problems.clear()
    shown.set_viewport_size({"width": 1280, "height": 900})
    shown.goto(studies[name])
    shown.evaluate(
        "document.querySelectorAll('main details').forEach((one) => { one.open = true })"
    )
    return shown


def _form(shown: Any, studies: dict[str, str], collector: CollectorProcess, name: str) -> Any:
    """The form with a forecast."""
    page = _open(shown, studies, collector, name)
    page.fill("#title-0", "Gait at home")
    page.wait_for_selector("#outlook svg", timeout=60_000)
    page.wait_for_selector("#outlook:not([aria-busy])", timeout=60_000)
    return page


def _hopeless(shown: Any, studies: dict[str, str], collector: CollectorProcess, _: str) -> Any:
    """The form of a study that is refused unless it is meant."""
    page = _form(shown, studies, collector, "new")
    page.fill("#n_people-0", "30")
    page.click("text=Create the study")
    page.wait_for_selector("[name=anyway]", timeout=60_000)
    page.problems.clear()  # the browser tells of the status
    return page


def _pressed(shown: Any, studies: dict[str, str], collector: CollectorProcess, name: str) -> Any:
    """What comes after a button of a study's page."""
    page = _open(shown, studies, collector, "invited")
    buttons = {"invitations": "text=Show links", "close": "text=End this phase now"}
    page.fill("#count", "3")
    with page.expect_navigation():
        page.click(buttons[name])
    return page


def _refused(shown: Any, studies: dict[str, str], collector: CollectorProcess, _: str) -> Any:
    page = _open(shown, studies, collector, "refused")
    page.problems.clear()  # the browser tells of the status
    return page


def _other(shown: Any, studies: dict[str, str], collector: CollectorProcess, name: str) -> Any:
    """A page of somebody who is not signed in, or is not the administrator."""
    context = shown.context.browser.new_context(base_url=collector.url, bypass_csp=True)
    page = context.new_page()
    page.goto("/login")
    shown.problems.clear()
    if name == "login":
        return page
    asked = {"name": "vera", "role": "viewer"}
    viewed = name == "viewed"
    key = collector.request("POST", "/api/organizers", asked)["key"] if viewed else "no key"
    page.fill("#key", key)
    with page.expect_navigation():
        page.click("text=Sign in >> nth=-1")
    if viewed:
        page.goto(studies["invited"])
        assert "You can read it and download its results" in page.inner_text("main")
    else:
        assert page.inner_text(".error") == "This key is wrong."
    return page


REACH = {
    "new": _form, "questionnaire": _form, "hopeless": _hopeless, "invitations": _pressed,
    "close": _pressed, "refused": _refused, "viewed": _other, "login": _other, "wrong key": _other,
}  # fmt: skip


def _nothing_is_cut(page: Any) -> None:
    """Nothing lies beside the window, its card or its picture."""
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    outside = page.evaluate(
        "[...document.querySelectorAll('.card, .stack')].flatMap((card) => { "
        "const edge = card.getBoundingClientRect().right + 1; "
        "const others = innerWidth < 640 ? 'svg, thead' : 'svg'; "  # heads are hidden on phones
        "return [...card.querySelectorAll('*')].filter((one) => !one.closest(others) && "
        "[...one.getClientRects()].some((part) => part.right > edge)) })"
        ".map((one) => one.outerHTML.slice(0, 80))"
    )
    assert outside == [], "cut, or over its neighbor"
    unread = page.evaluate(  # a minus sign was cut from a phone's axis
        "[...document.querySelectorAll('svg text')].filter((one) => { "
        "const own = one.getBoundingClientRect(); "
        "const all = one.closest('svg').getBoundingClientRect(); "
        "return own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 3 })"
        ".map((one) => one.textContent)"
    )
    assert unread == []


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
    assert "start versus end" in texts["finished"]
    assert "t in hours from left to right" in texts["finished"]
    assert "root mean squared error" in texts["number"]
    assert "340 of 600 people have answered" in re.sub(r"\s+", " ", texts["running"])
    assert "Which features go with the label" in texts["running"]
    assert "What to do next" in texts["null"]
    assert "What to do next" not in texts["finished"] + texts["running"]
    assert "Each person is protected with ε = 4: noise is added on their own device." in " ".join(
        texts["finished"].split()
    )
    for words in ("direction", "stump", "null", "NaN", "None", "undefined"):
        assert words not in texts["running"].replace("direction of", ""), words


def test_numbers_of_a_chart_have_ticks_and_units(shown: Any, studies: dict[str, str]) -> None:
    shown.goto(studies["finished"])
    slope = "section:has(h2:text('What speaks for')) svg text"
    told = [one.strip() for one in shown.locator(slope).all_text_contents()]
    assert {"0", "6", "12", "18", "24 hours", "β(t)"} <= set(told)
    assert len(told) >= 8
    rows = "section:has(h2:text('Estimates')) tbody tr"
    assert shown.locator(f"{rows} svg.estimate").count() == shown.locator(rows).count() > 0


def test_the_list_counts_as_the_page_does(shown: Any, studies: dict[str, str]) -> None:
    """The list said 35 / 356 where the page said 694 of 1,070."""
    shown.goto(studies["list"])
    link = studies["running"]
    row = shown.locator(f"tr:has(a[href='{link}'])")
    assert row.locator("[data-name='people who answered']").inner_text() == "340"
    assert shown.locator(f"tr:has(a[href='{studies['finished']}'])").inner_text().count("1,500")


def test_the_model_is_offered_first_only_where_it_is_better(
    shown: Any, studies: dict[str, str]
) -> None:
    first = "section:has(h2:text('Downloads')) a.button:not(.quiet)"
    for name, words in (("finished", "Model"), ("null", "Report"), ("running", "Report")):
        shown.goto(studies[name])
        assert shown.locator(first).all_inner_texts() == [words], name


def test_the_form_speaks_to_organizers(shown: Any, studies: dict[str, str]) -> None:
    """Labels without options of a command, and the button beside the verdict."""
    shown.set_viewport_size({"width": 1280, "height": 900})
    shown.goto(studies["new"])
    assert "--" not in "".join(shown.locator("label").all_text_contents())
    shown.wait_for_selector("#outlook:not([aria-busy]) svg", timeout=60_000)
    button = shown.locator("#worth button:text('Create the study')")
    for _ in range(2):
        box = button.bounding_box()
        assert 0 <= box["y"] <= 900, "it is on the screen wherever the form is"
        shown.evaluate("window.scrollTo(0, document.body.scrollHeight)")
