"""How long it takes somebody who has never seen the pages: an organizer, and then a participant.

A browser does what they would do, and every action is counted. The seconds of people are those of
the keystroke-level model (Card, Moran & Newell 1980) and of silent reading (Brysbaert 2019: 238
words a minute). The time of a participant counts every word of the key facts about the study, of
the form and of the reply. All information is one tap below; its words are counted apart. The
seconds of the machine are printed: other work on it would make them a chance.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "clients" / "samples"
POINT, PRESS, KEY, HAND, THINK = 1.1, 0.2, 0.28, 0.4, 1.35
WORDS_A_SECOND = 238 / 60


class Somebody:
    """A browser whose user is slow, and whose actions are counted."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.set_default_timeout(60_000)
        self.clicks = self.fields = self.keys = self.words = 0
        self.seconds = 0.0
        self.began = time.monotonic()

    def click(self, selector: str, times: int = 1) -> None:
        """Find it, point at it, press; more times for a list, or for a file that is chosen."""
        self.clicks += times
        self.seconds += THINK + times * (POINT + PRESS)
        if times == 1:
            self.page.click(selector)

    def type(self, selector: str, text: str, *, pasted: bool = False) -> None:
        self.fields += 1
        keys = 4 if pasted else len(text)
        self.keys += keys
        self.seconds += THINK + POINT + PRESS + HAND + keys * KEY
        self.page.fill(selector, text)

    def read(self, selector: str) -> None:
        """Every word that can be seen."""
        words = len(self.page.inner_text(selector).split())
        self.words += words
        self.seconds += words / WORDS_A_SECOND

    def __str__(self) -> str:
        waited = time.monotonic() - self.began
        counted = f"{self.clicks} clicks, {self.fields} fields, {self.keys} keys"
        return f"{counted}, {self.words} words, {self.seconds:.0f} s; the machine {waited:.0f} s"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """`dpfda serve` in an empty folder, and what it prints: its address and the key."""
    command = [sys.executable, "-m", "dpfda.cli", "serve", "--port", "0"]
    known = {k: v for k, v in os.environ.items() if not k.startswith("DPFDA_")}
    with subprocess.Popen(
        command, cwd=tmp_path, env=known, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        key = process.stderr.readline()
        yield process.stdout.readline().strip(), key.rpartition(" ")[2].strip()
        process.terminate()


def test_a_study_is_published_in_five_minutes_and_answered_in_two(
    browser: Any, served: tuple[str, str], tmp_path: Path, record_property: Any
) -> None:
    url, key = served
    organizer = Somebody(browser.new_page(base_url=url, viewport={"width": 1280, "height": 900}))
    page = organizer.page
    page.goto("/")
    organizer.type("#key", key, pasted=True)
    organizer.click("text=Sign in >> nth=-1")
    organizer.click("text=New study >> nth=0")
    organizer.click("text=heart rate over a day")
    organizer.read("form[data-planned]")
    organizer.type("#n_people-0", "1000")
    organizer.type("#information-institution", "University of Example, sleep laboratory")
    organizer.type("#information-contact", "sleep@example.org")
    organizer.type(
        "#information-purpose", "We ask how the heart rate over a day differs in illness."
    )
    page.wait_for_selector("#outlook:not([aria-busy]) svg")
    organizer.read("#worth")
    organizer.click("text=Create the study")
    page.wait_for_url(re.compile(r"/study/[0-9a-f]{16}$"))
    organizer.read("section.ask")
    with page.expect_download() as download:
        organizer.click("text=Download links")
    told = download.value.path().read_text(encoding="utf-8")
    links = [line.partition(",")[2] for line in told.splitlines()[1:]]
    assert len(set(links)) == 1000, "as many links as people"
    print("organizer:", organizer)
    record_property("organizer", str(organizer))
    assert organizer.seconds < 240, str(organizer)

    for sample in ("apple-export.zip", "fitbit-heart-rate.csv"):
        phone = browser.new_context(viewport={"width": 390, "height": 844})
        participant = Somebody(phone.new_page())
        page = participant.page
        participant.clicks += 1  # the link
        page.goto(links.pop())
        page.wait_for_selector("#yours:not([hidden])")
        participant.read("#about")
        key_facts = participant.words
        participant.read("#yours")
        assert "University of Example, sleep laboratory" in page.inner_text("main")
        participant.click("#file", times=3)  # the button, the file, open
        page.set_input_files("#file", SAMPLES / sample)
        page.wait_for_selector("#curve:not([hidden]) polyline")
        participant.read("#read")
        participant.click("#label", times=2)
        page.select_option("#label", label="well")
        participant.click("#agreed")
        participant.click("#yes:enabled")
        page.wait_for_selector("#leaves:not([hidden])")
        participant.read("#leaves")
        participant.click("#send:enabled")
        page.wait_for_selector("#done:not([hidden])")
        assert re.fullmatch("[0-9a-f]{48}", page.inner_text("#receipt"))
        page.click("#about > summary")
        page.click("#all > summary")
        everything = len(page.inner_text("#about").split())
        print(f"participant with {sample}:", participant)
        print(f"key facts: {key_facts} words, all information: {everything} words")
        record_property(sample, str(participant))
        assert participant.seconds < 120, str(participant)
        assert key_facts < 125
        assert everything < 450
        phone.close()
