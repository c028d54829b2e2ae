"""The dashboard in a real browser, and what it refuses without one."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from organizer import ENOUGH, QuickForecasts
from pages import checked, record

from dpfda import plan_study
from dpfda.client.crowd import RemoteCrowd
from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages.session import new_session
from dpfda.collector.settings import Settings
from dpfda.curves import CurveEncoder
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("pages")
    options = ["--rate", "50"]
    with QuickForecasts(f"sqlite:///{folder}/x.db", log=folder / "log", options=options) as found:
        yield found


@pytest.fixture(scope="module")
def finished(collector: CollectorProcess) -> StudyPlan:
    """An MRMA study that is over."""
    plan = StudyPlan(
        epsilon=6.0,
        n_people=300,
        encoder=CurveEncoder("bspline", n_basis=4, scale=1.0),
        classes=("no", "yes"),
        design={"name": "mrma", "n_classifiers": 8, "member_size": 20, "evaluation_share": 0.2},
        title="Gait <script>alert(1)</script>",
    )
    collector.create(plan)
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (300, 4))
    labels = (features[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(np.int64)
    crowd = RemoteCrowd(
        collector.url,
        plan,
        features,
        labels,
        tokens=collector.invite(plan.hash, plan.n_people),
        source=SimulationSource(0),
    )
    with ThreadPoolExecutor(1) as thread:  # the browser's driver has a loop in this one
        thread.submit(asyncio.run, crowd.take_part(connections=8)).result()
    collector.wait_until(plan.hash[:16])
    return plan


@pytest.fixture
def visit(browser: Any, collector: CollectorProcess) -> Iterator[Any]:
    """Open a signed-in page; every request elsewhere and every script error fails the test."""
    contexts = []

    def open_page() -> Any:
        context = browser.new_context(base_url=collector.url)
        context.set_default_timeout(1000 * ENOUGH)
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda line: line.type == "error" and page.problems.append(line.text))
        page.on(
            "request",
            lambda request: (
                request.url.startswith((collector.url, "data:"))
                or page.problems.append(request.url)
            ),
        )
        page.goto("/")
        page.fill("#key", collector.admin_key)
        page.click("text=Sign in >> nth=-1")
        page.wait_for_url(collector.url + "/")
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_signing_in_and_the_list(visit: Any, finished: StudyPlan) -> None:
    page = visit()
    assert page.inner_text("h1") == "Studies"
    assert "Gait <script>alert(1)</script>" in page.inner_text("table")
    cookie = next(one for one in page.context.cookies() if one["name"] == "dpfda_session")
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    page.click("text=Sign out")
    page.wait_for_url("**/login")
    page.goto("/")
    assert page.url.endswith("/login")
    assert page.problems == []


def test_a_finished_study(visit: Any, finished: StudyPlan) -> None:
    page = visit()
    page.goto(f"/study/{finished.hash[:16]}")
    text = page.inner_text("main")
    for words in ("Progress", "Privacy spent", "ε = 6", "by each of 300 people"):
        assert words in text
    for words in (
        "What was found",
        "95 % interval",
        "First models",
        "slope function",
        finished.hash,
    ):
        assert words in text
    assert page.locator("svg circle").count() == 8
    assert page.locator("svg polyline.line").count() == 2  # answers over time, and the slope
    assert page.problems == []


def test_downloads(visit: Any, finished: StudyPlan, collector: CollectorProcess) -> None:
    page = visit()
    page.goto(f"/study/{finished.hash[:16]}")
    with page.expect_download() as model:
        page.click("a:text-is('Model')")
    assert '"coefficients"' in Path(model.value.path()).read_text()
    with page.expect_download() as report:
        page.click("a:text-is('Report')")
    seen = checked(Path(report.value.path()).read_text())
    promised = record(seen)["privacy"]
    assert (promised["epsilon"], promised["model"]) == (finished.epsilon, "local")
    assert promised["records"] == 300
    assert "Every person added the noise" in seen.words
    tags = [tag for tag, _ in seen.tags]
    assert (tags.count("circle"), tags.count("polyline")) == (8, 2)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(Path(report.value.path()).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_creating_a_study_shows_what_people_would_be_asked(
    visit: Any, collector: CollectorProcess
) -> None:
    page = visit()
    page.click("text=New study >> nth=0")
    assert "is the finished classifier right about you?" in page.inner_text("#planned")
    before = page.inner_text("#planned .true >> nth=0")
    page.fill("#epsilon-0", "8")
    page.wait_for_function(
        "old => document.querySelector('#planned .true').textContent != old", arg=before
    )
    after = page.inner_text("#planned .true >> nth=0")
    assert float(after.lstrip("≤ ")) > float(before.lstrip("≤ "))
    page.fill("#title-0", "From the form")
    page.fill("#n_people-0", "400")
    page.fill("#value_range-1", "25")
    page.click("text=Create the study")
    page.wait_for_url("**/study/*")
    assert page.inner_text("h1") == "From the form"
    facts = {"value_range": (-1, 25), "evaluation_share": 0.15, "title": "From the form"}
    assert plan_study(400, 8, classes=("no", "yes"), **facts).hash in page.inner_text("main")
    page.click("text=End this phase now …")
    page.wait_for_url("**/close")
    assert "0 of " in page.inner_text("main")
    assert "This cannot be undone." in page.inner_text("main")
    page.click("text=End this phase now")
    collector.wait_until(page.url.rpartition("/")[2], phase=1)
    assert page.problems == []


def test_a_file_of_public_people_stays_chosen(visit: Any) -> None:
    page = visit()
    page.goto("/new")
    lines = ["ill,0,0.5,1"]
    rng = np.random.default_rng(0)
    lines += [f"{('no', 'yes')[k % 2]},{','.join(map(str, rng.normal(size=3)))}" for k in range(80)]
    content = "\n".join(lines).encode()
    page.click("text=Or a file of public examples")
    page.set_input_files("#sample", {"name": "a.csv", "mimeType": "text/csv", "buffer": content})
    page.click("text=Forecast the result")
    page.wait_for_selector("#outlook .error")
    assert "Column of classes must be given" in page.inner_text("#outlook")
    page.fill("#read-label", "ill")
    page.click("text=Forecast the result")  # the file is still chosen
    page.wait_for_selector("#outlook strong", timeout=60_000)
    assert "a public sample of 80 rows" in page.inner_text("#outlook")
    big = {"name": "a.csv", "mimeType": "text/csv", "buffer": b"1" * (5 << 20)}
    page.set_input_files("#sample", big)
    page.click("text=Forecast the result")
    assert "too large for this form" in page.inner_text("#outlook")
    page.fill("#title-0", "With a file beside it")
    page.click("text=Create the study")
    page.wait_for_url("**/study/*")
    assert page.problems == []


def test_an_example_and_a_draft(visit: Any, finished: StudyPlan) -> None:
    """What was typed stays in this browser until its study exists."""
    page = visit()
    page.goto("/new")
    assert not page.is_visible("#draft")
    assert page.is_visible("#value_range-0")
    assert not page.is_visible("#columns")
    page.click("text=a questionnaire")
    page.wait_for_selector("#columns:visible")
    assert not page.is_visible("#value_range-0")
    page.wait_for_selector("#planned li")
    page.fill("#title-0", "Sleep in five questions")
    page.check("text=Anybody who has the link")
    page.goto("/new")
    assert "Sleep in five questions" in page.inner_text("#draft")
    page.click("text=Continue with it")
    assert page.is_visible("#columns")
    assert page.input_value("#columns").startswith("age, 18, 99")
    assert page.is_checked("[name=open][value=yes]")
    page.wait_for_selector("#outlook svg", timeout=60_000)
    page.click("text=Create the study")
    page.wait_for_url("**/study/*")
    assert page.get_attribute("text=See the page as participants do", "href").startswith("http")
    page.goto("/new")
    assert not page.is_visible("#draft")
    assert page.problems == []


def test_a_form_that_makes_no_study_says_why(visit: Any) -> None:
    page = visit()
    page.goto("/new")
    page.fill("#title-0", "One label")
    page.fill("#classes-0", "only one")
    page.wait_for_selector("#planned .error")
    page.click("text=Create the study")
    assert "Labels must be at least two different labels" in page.inner_text("[role=alert]")


def form(connection: Connection, path: str, body: str, **headers: str) -> Any:
    connection._connection.request(
        "POST", path, body, {"Content-Type": "application/x-www-form-urlencoded", **headers}
    )
    answer = connection._connection.getresponse()
    answer.read()
    return answer


def test_no_page_without_the_key(collector: CollectorProcess, finished: StudyPlan) -> None:
    with Connection(collector.url) as connection:
        for path in ("/", "/new", "/planned", "/interface", f"/study/{finished.hash[:16]}"):
            assert connection.ask("GET", path).status == 303, path
        for path in (f"/study/{finished.hash[:16]}/report", f"/study/{finished.hash[:16]}/live"):
            assert connection.ask("GET", path).status == 303, path
        assert form(connection, "/login", "key=wrong").status == 401
        assert form(connection, "/new", "title=x", Cookie="dpfda_session=1.2.3").status == 303
        assert form(connection, "/logout", "").status == 303


def test_a_session_ends_by_itself(collector: CollectorProcess) -> None:
    """A cookie that was signed with the right key, but nine hours ago."""
    settings, now = Settings(database="", admin_key=collector.admin_key), time.time()
    with Connection(collector.url) as connection:
        for age, status in ((0, 200), (9 * 3600, 303)):
            cookie = new_session(settings, now - age)
            headers = {"Cookie": f"{cookie.key}={cookie.value}"}
            assert connection.ask("GET", "/", headers=headers).status == status


def test_forms_from_elsewhere_are_refused(collector: CollectorProcess) -> None:
    with Connection(collector.url) as connection:
        answer = form(connection, "/login", f"key={collector.admin_key}")
        assert answer.status == 303
        header = answer.headers["Set-Cookie"]
        assert "HttpOnly" in header
        assert "SameSite=strict" in header
        cookie = header.partition(";")[0]
        for body in ("title=x", "title=x&csrf=" + "0" * 64):
            assert form(connection, "/new", body, Cookie=cookie).status == 403
        forged = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
        assert form(connection, "/new", "title=x", Cookie=forged).status == 303
        page = connection.ask("GET", "/new", headers={"Cookie": cookie}).body.decode()
        token = re.search(r'name="csrf" value="(\w+)"', page)[1]  # type: ignore[index]
        good = f"csrf={token}&epsilon-0=x"
        assert form(connection, "/new", good, Cookie=cookie).status == 422
        crossed = form(
            connection, "/new", good, **{"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}
        )
        assert crossed.status == 403


def test_pages_allow_nothing_from_elsewhere(collector: CollectorProcess) -> None:
    with Connection(collector.url) as connection:
        connection._connection.request("GET", "/login")
        answer = connection._connection.getresponse()
        answer.read()
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
