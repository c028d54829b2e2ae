"""Devices of people: browsers with tabs, files to choose, and what is looked at in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dpfda import plan_study
from dpfda.collector.collector_process import CollectorProcess
from dpfda.protocol.plan import StudyPlan

SCREENSHOTS = Path(os.environ.get("DPFDA_SCREENSHOTS", "out/screenshots"))
GOOD = "hour;pulse\n0;-1,5\n6;-0,5\n12;1,2\n18;0,8\n24;-1,1\n"


def study(
    collector: CollectorProcess,
    title: str,
    *,
    anybody: bool = True,
    settings: dict[str, Any] | None = None,
    **facts: Any,
) -> Any:
    """A study of curves over a day, which costs ε = 4."""
    known: dict[str, Any] = {"value_range": (-2, 2), "domain_range": (0, 24), "title": title}
    known |= {"people": 40, "epsilon": 4.0, "classes": ("well", "ill")} | facts
    plan: StudyPlan = plan_study(known.pop("people"), known.pop("epsilon"), **known)
    collector.create(plan, open=anybody, deadline=3600, **(settings or {}))
    return plan


def answered(collector: CollectorProcess, plan: StudyPlan) -> int:
    """How many replies the study has."""
    found: int = collector.request("GET", f"/api/studies/{plan.hash[:16]}")["answered"]
    return found


class Device:
    """A browser of one person, with tabs; whatever is asked of another host fails the test.

    Args:
        browser: Chromium.
        hosts: the addresses that may be asked, the first of them the page's own.
        more: options of the browser's context.
    """

    def __init__(self, browser: Any, *hosts: str, width: int = 800, **more: Any) -> None:
        self.context = browser.new_context(
            base_url=hosts[0], viewport={"width": width, "height": 900}, **more
        )
        self.problems: list[str] = []
        self.posted: list[str] = []
        self.bodies: list[str] = []
        self.hosts = hosts

    def tab(self, plan: StudyPlan, fragment: str = "") -> Any:
        """The page of a study."""
        return self.open(f"/take-part/{plan.hash}{fragment}")

    def open(self, address: str) -> Any:
        """A page on which somebody takes part, once it has its study."""
        page = self.context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: line.type == "error" and self.problems.append(line.text))
        page.on("request", self._note)
        page.goto(address)
        page.wait_for_function("() => document.querySelector('#title').textContent != '…'")
        return page

    def _note(self, request: Any) -> None:
        if not request.url.startswith((*self.hosts, "data:", "blob:")):
            self.problems.append(request.url)
        if request.method == "POST":
            self.posted.append(request.url.rpartition("/")[2])
            self.bodies.append(request.post_data or "")


def open_information(page: Any) -> None:
    """All information about the study, below the key facts."""
    page.click("#all > summary")


def choose(page: Any, content: str | Path, label: str | None = "ill") -> None:
    """A file, a label, and that the person agrees."""
    page.wait_for_selector("#yours:not([hidden])")  # before, nobody could choose one
    if isinstance(content, Path):
        page.set_input_files("#file", content)
    else:
        file = {"name": "mine.csv", "mimeType": "text/csv", "buffer": content.encode()}
        page.set_input_files("#file", file)
    page.check("#agreed")
    if label is not None:
        page.select_option("#label", label=label)


def say_yes(page: Any) -> str:
    """The bytes that would leave."""
    page.click("#yes:enabled")
    page.wait_for_selector("#leaves:not([hidden])")
    text: str = page.inner_text("#bytes")
    return text


def send(page: Any) -> str:
    """The receipt."""
    page.click("#send:enabled")
    page.wait_for_selector("#done:not([hidden])")
    text: str = page.inner_text("#receipt")
    return text


def withdraw(page: Any) -> None:
    """Take the reply out of the study."""
    page.click("#withdrawal summary")
    page.click("#withdraw:enabled")
    page.wait_for_selector("#withdrawn:not([hidden]), #problem:not(:empty)")


def keep(page: Any, name: str) -> None:
    """A picture of the page as it is; nothing of it may lie beside the window."""
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth"), name
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SCREENSHOTS / f"{name}.png"), full_page=True)
