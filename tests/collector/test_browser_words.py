"""The page on which people take part: with files that people have, in their own language."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from devices import GOOD, Device, choose, keep, open_information, say_yes, send, study, withdraw
from forked_collector import ForkedCollector
from hostile_files import zipped

from dpfda.collector.collector_process import CollectorProcess

SAMPLES = Path(__file__).resolve().parents[2] / "clients" / "samples"
PULSE = {"value_range": (40, 200), "domain_range": (0, 24), "epsilon": 1.0, "people": 400}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("words")
    with ForkedCollector(f"sqlite:///{folder}/x.db") as found:
        yield found


def test_an_apple_export_day_by_day(browser: Any, collector: CollectorProcess) -> None:
    """From the archive that a phone writes: the series and the day are named, and can be chosen."""
    person = Device(browser, collector.url, width=390, timezone_id="Europe/Berlin", locale="en-GB")
    page = person.tab(study(collector, "Pulse over a day", **PULSE))
    choose(page, SAMPLES / "apple-export.zip")
    page.wait_for_selector("#yes:enabled")
    assert page.locator("#column-x option:checked").inner_text() == "heart rate (count/min)"
    assert not page.is_visible("#column-t"), "an export has its own times"
    told = page.inner_text("#read")
    assert told.startswith("Read Apple Health: 4 series, 17 measurements. Used: Monday")
    assert "16 November 2026, one of the 2 days in the file." in told, "as in Britain"
    assert "7 points between t = 0 and t = 24." in told
    assert page.locator("#day option").count() == 3
    page.select_option("#day", "average")
    assert "Used: the average of the 2 days in the file." in page.inner_text("#read")
    keep(page, "take-part-export-390")
    page.select_option("#column-x", label="step count (count)")
    page.wait_for_function("() => /1 point/.test(document.querySelector('#read').textContent)")
    assert page.locator("#day option").count() == 3, "the days of this series"
    page.select_option("#column-x", label="heart rate (count/min)")
    page.select_option("#day", "2026-11-15")
    page.wait_for_selector("#yes:enabled")
    say_yes(page)
    assert not page.locator("#leaves :text('True')").count(), "the true answer is not shown"
    send(page)
    assert person.problems == []
    person.context.close()


@pytest.mark.parametrize("name", ["fitbit-heart-rate.csv", "fitbit-heart_rate.json", "garmin.tcx",
    "google-fit.json", "withings-raw_hr.csv", "oura.json", "samsung-heart-rate.csv", "german.csv",
    "unix.csv"])  # fmt: skip
def test_every_export_gets_in(
    browser: Any, collector: CollectorProcess, name: str, people: dict[str, Any]
) -> None:
    if "page" not in people:
        zone = {"timezone_id": "Europe/Berlin"}
        people["device"] = Device(browser, collector.url, width=390, **zone)
        people["page"] = people["device"].tab(study(collector, "Pulse of anybody", **PULSE))
    page = people["page"]
    choose(page, SAMPLES / name)
    page.wait_for_function(
        "() => /Used: Monday, November 16, 2026/.test(document.querySelector('#read').textContent)"
    )
    assert page.is_enabled("#yes")
    assert page.inner_text("#problem") == ""
    choose(page, "")  # and on to the next one
    page.wait_for_selector("#problem:not(:empty)")


HOSTILE = {
    "bomb.zip": (
        zipped(**{"export.xml": b"<HealthData>" + b" " * (64 << 20)}),
        "far more data than an export",
    ),
    "wide.csv": (b"x," * 10**6 + b"\n" + b"1," * 10**6, "more than 5,000 columns"),
    "wide.json": (
        b"{" + b",".join(b'"%d":1' % k for k in range(10**6)) + b"}",
        "more than 5,000 columns or fields",
    ),
    "entities.xml": (b'<!DOCTYPE a [<!ENTITY a "a">]><HealthData>&a;</HealthData>', "entities"),
}


def test_hostile_files_are_refused_within_two_seconds(
    browser: Any, collector: CollectorProcess
) -> None:
    person = Device(browser, collector.url, width=390)
    page = person.tab(study(collector, "Hostile", **PULSE | {"people": 405}))
    page.wait_for_selector("#yours:not([hidden])")
    metrics = page.context.new_cdp_session(page)
    metrics.send("Performance.enable", {"timeDomain": "threadTicks"})  # of the processor

    def spent() -> float:
        found = metrics.send("Performance.getMetrics")["metrics"]
        return float({one["name"]: one["value"] for one in found}["TaskDuration"])

    for name, (content, words) in HOSTILE.items():
        file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
        begin = spent()
        page.set_input_files("#file", file)
        page.wait_for_selector(f"#problem:has-text('{words}')")
        print(f"{name}: {spent() - begin:.3f} s")
        assert spent() - begin < 2, name
    assert person.problems == []
    person.context.close()


@pytest.fixture(scope="module")
def people() -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {}
    yield found
    if found:
        assert found["device"].problems == []
        found["device"].context.close()


def test_in_german(browser: Any, collector: CollectorProcess) -> None:
    plan = study(collector, "Puls über den Tag", **PULSE | {"people": 401})
    person = Device(browser, collector.url, width=390, locale="de-DE")
    page = person.tab(plan)
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.title() == "Teilnehmen: Puls über den Tag"
    assert "mehr als 2,72-mal so wahrscheinlich" in page.inner_text("#promise"), "a decimal comma"
    keep(page, "take-part-german-390")
    choose(page, SAMPLES / "german.csv")
    page.wait_for_selector("#yes:enabled")
    assert "Montag, 16. November 2026" in page.inner_text("#read")
    page.select_option("#language", "en")
    page.wait_for_function("() => document.documentElement.lang == 'en'")
    assert page.inner_text("#yours h2, #about summary").startswith("About")
    assert person.problems == []
    person.context.close()


OUTSIDE = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const data = "#language, code, noscript, #title, #column-t, #values option, #label";
    const own = node.parentElement.closest(data);
    let rest = node.textContent;
    while (/⟦[^⟦⟧]*⟧/.test(rest)) rest = rest.replace(/⟦[^⟦⟧]*⟧/g, "");
    if (!own && /\\p{L}{2}/u.test(rest)) found.push(node.textContent.trim());
  }
  for (const one of document.querySelectorAll("[aria-label]")) {
    if (!one.getAttribute("aria-label").startsWith("⟦")) found.push(one.outerHTML);
  }
  return found;
}"""


def test_every_word_is_in_a_message_file(browser: Any, collector: CollectorProcess) -> None:
    """In a language that only marks them, what is not marked was written into the code."""
    plan = study(collector, "Words", **PULSE | {"people": 402})
    person = Device(browser, collector.url, width=1280)
    page = person.tab(plan, "#lang=en-XA")
    assert page.inner_text("header p") == "⟦Take part in a study⟧"
    assert page.evaluate(OUTSIDE) == []
    choose(page, "t,x\n30,1\n40,2\n")
    page.wait_for_selector("#problem:not(:empty)")
    assert page.evaluate(OUTSIDE) == []
    choose(page, SAMPLES / "fitbit-heart-rate.csv")
    page.wait_for_selector("#yes:enabled")
    assert page.evaluate(OUTSIDE) == []
    choose(page, GOOD)
    page.wait_for_selector("#yes:enabled")
    say_yes(page)
    assert page.evaluate(OUTSIDE) == []
    send(page)
    page.click("#ask")
    page.wait_for_selector("#counted:not(:empty)")
    assert page.evaluate(OUTSIDE) == []
    withdraw(page)
    assert page.evaluate(OUTSIDE) == []
    page.evaluate("document.querySelector('#was-withdrawn').textContent = 'written here'")
    assert page.evaluate(OUTSIDE) == ["written here"], "the check itself finds what is not marked"
    assert person.problems == []
    person.context.close()


INFORMATION = {
    "version": "2 of 16 November",
    "institution": "Institute of Sleep <b>",
    "contact": "sleep@example.org",
    "purpose": "Whether coffee changes sleep.",
    "approval": "Board 7, 2026/11",
    "retention": "Replies are deleted after ten years.",
}


def test_the_information_can_be_kept(browser: Any, collector: CollectorProcess) -> None:
    """It is part of the plan, and so of the hash; its version stands in the receipt."""
    none = study(collector, "Kept", **PULSE | {"people": 403})
    plan = replace(none, information=INFORMATION, title="Kept and told")
    collector.create(plan, open=True, deadline=3600)
    person = Device(browser, collector.url)
    page = person.tab(none)
    assert "has not said who they are" in page.inner_text("#who")
    assert "tells “ill” and “well” apart" in page.inner_text("#purpose")
    assert not page.is_visible("#contact")
    page = person.tab(plan)
    assert page.inner_text("#who") == "Institute of Sleep <b>"
    assert page.inner_text("#purpose") == "Whether coffee changes sleep."
    assert page.inner_text("#contact") == "sleep@example.org"
    assert not page.is_visible("#approval")
    open_information(page)
    assert page.is_visible("#approval")
    assert page.inner_text("#goes").startswith(f"To {collector.url[7:]}. The study needs 403")
    assert not page.is_visible("#officer")
    assert page.inner_text("#retention") == "Replies are deleted after ten years."
    assert "version 2 of 16 November" in page.inner_text("#consent-version")
    page.wait_for_selector("#consent-keep[download]")
    with page.expect_download() as saved:
        page.click("#consent-keep")
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    for words in (
        *INFORMATION.values(),
        "Kept",
        "What you will be asked:",
        "What is asked:",
        "Yes/no questions about your curve and your label (ill or well), which this device",
        "it says yes 73 times out of 100.",
        "Changing your mind:",
        plan.hash,
    ):
        assert words in text
    assert "can withdraw your reply on this page, in this browser, until this part" in text
    assert json.dumps(text).count("undefined") == 0
    assert "Data protection officer" not in text
    choose(page, GOOD)
    page.wait_for_selector("#yes:enabled")
    say_yes(page)
    send(page)
    with page.expect_download() as saved:
        page.click("#keep")
    receipt = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert (receipt["study"], receipt["information"]) == (plan.hash, INFORMATION["version"])
    assert set(receipt) == {"study", "information", "collector", "receipt", "check"}
    link = page.get_attribute("#check-link", "href")
    assert link == receipt["check"] == f"{page.url}#receipt={receipt['receipt']}"
    stranger = Device(browser, collector.url, width=390, color_scheme="dark")
    other = stranger.open(link)
    other.wait_for_selector("#checked:has-text('has arrived. It will be counted when')")
    assert other.inner_text("#checked-receipt") == receipt["receipt"]
    assert not other.is_visible("#yours")
    assert stranger.posted == []
    keep(other, "take-part-receipt-390")
    assert stranger.problems == []
    other = stranger.open(f"{page.url}#receipt={'0' * 48}")
    other.wait_for_selector("#problem:has-text('This receipt is not one of this study')")
    stranger.context.close()
    assert person.problems == []
    person.context.close()
