"""Somebody with a link and a file takes part, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from devices import (
    GOOD,
    Device,
    answered,
    choose,
    keep,
    open_information,
    say_yes,
    send,
    study,
    withdraw,
)
from forked_collector import ForkedCollector

from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("take-part")
    found = ForkedCollector(f"sqlite:///{folder}/x.db")
    found.alone = True
    with found:
        yield found


def test_from_the_link_to_the_receipt(collector: CollectorProcess, device: Device) -> None:
    plan = study(collector, "Pulse <b>over</b> a day")
    page = device.tab(plan)
    assert page.inner_text("h1") == "Pulse <b>over</b> a day"
    assert "no reply is more than 54.6 times likelier from you" in page.inner_text("#promise")
    assert page.inner_text("#stays").startswith("Your data and your label stay on this device")
    assert "weak protection" in page.inner_text("#verdict")
    assert not page.is_visible("#if-yes"), "the key facts come first, and the rest is one tap away"
    open_information(page)
    assert page.inner_text("#if-yes-words").endswith("yes, it says yes 98 times out of 100.")
    assert page.locator("#if-no .full").count() == 2
    assert "spent nothing on studies yet" in page.inner_text("#spent")
    assert not page.is_visible("#accepted"), "there is nothing to accept"
    assert page.is_disabled("#yes")
    choose(page, GOOD)
    page.wait_for_selector("#yes:enabled")
    told = "Read 5 lines of 2 columns between semicolons, after a line of names. 5 points between"
    assert page.inner_text("#read").startswith(f"{told} t = 0 and t = 24.")
    assert page.is_visible("#curve polyline")
    keep(page, "take-part")
    assert device.posted == [], "nothing is sent before a yes"
    body = say_yes(page)
    assert device.posted == ["enrol"]
    assert "spent ε = 4 in 1 study, of at most ε = 5" in page.inner_text("#spent")
    assert answered(collector, plan) == 0
    keep(page, "take-part-what-leaves")
    page.reload()  # in the middle: the reply exists, and stays what it is
    page.wait_for_selector("#leaves:not([hidden])")
    assert page.inner_text("#bytes") == body
    assert "created before" in page.inner_text("#again")
    receipt = send(page)
    sent, home = json.loads(body), f"/api/studies/{plan.hash[:16]}"
    stored = collector.read("GET", f"{home}/phases/{sent['phase']}/replies")
    assert json.loads(stored)["values"] == sent["values"]
    assert device.posted == ["enrol", "reply"]
    with Connection(collector.url) as connection:
        told = connection.ask("GET", f"{home}/receipts/{receipt}").json()
    assert told == {"phase": sent["phase"], "counted": False}
    again = device.tab(plan, f"#study={'0' * 64}")  # and for ever; what stands in the path counts
    again.wait_for_selector("#done:not([hidden])")
    assert again.inner_text("#receipt") == receipt
    assert again.text_content("#sent") == body
    assert device.posted == ["enrol", "reply"]


def test_a_reply_is_withdrawn_on_the_page(collector: CollectorProcess, device: Device) -> None:
    """Its secret leaves the browser with this request, and never before."""
    plan = study(collector, "Second thoughts")
    page = device.tab(plan)
    choose(page, GOOD)
    body = say_yes(page)
    send(page)
    replies = f"/api/studies/{plan.hash[:16]}/phases/{json.loads(body)['phase']}/replies"
    assert len(collector.read("GET", replies).splitlines()) == 1
    page.click("#withdrawal summary")
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        keep(page, f"take-part-withdraw-{width}")
    page.click("#withdrawal summary")
    withdraw(page)
    assert page.inner_text("#withdrawn h2") == "Your reply was withdrawn"
    assert not page.is_visible("#done")
    keep(page, "take-part-withdrawn-390")
    assert collector.read("GET", replies) == b""
    assert device.posted == ["enrol", "reply", "withdraw"]
    wish = json.loads(device.bodies[-1])
    assert wish["reply"] == body
    assert not any(wish["secret"] in one for one in device.bodies[:-1])
    page.reload()
    page.wait_for_selector("#withdrawn:not([hidden])")
    assert not page.is_visible("#yours")
    assert "spent ε = 4" in page.inner_text("#spent")
    assert device.posted == ["enrol", "reply", "withdraw"]


def test_after_the_phase_a_reply_stays(collector: CollectorProcess, device: Device) -> None:
    plan = study(collector, "Too late")
    page = device.tab(plan)
    choose(page, GOOD)
    phase = json.loads(say_yes(page))["phase"]
    send(page)
    collector.request("POST", f"/api/studies/{plan.hash[:16]}/phases/{phase}/close")
    collector.wait_until(plan.hash[:16], phase=phase + 1)
    withdraw(page)
    assert "can no longer be removed" in page.inner_text("#problem")
    page.click("#ask")
    page.wait_for_selector("#counted:has-text('Yes, it was counted.')")
    assert not page.is_visible("#withdrawal")
    device.problems.clear()  # the browser itself tells of the refusal


FILES = {
    "": "The file is empty.",
    "t,x\n30,1\n40,2\n": "No point lies between t = 0 and t = 24",
    "t,x\n3,1\n40,2\n": "Only one point lies between t = 0 and t = 24",
    "t,x\n0,1\n1,high\n": '"x" has something that is not a number',
    "t,x\n0,1,5\n": "If commas are decimal commas",
    "PK\x03\x04": "The file is damaged or cut off.",
}


def test_a_file_that_cannot_be_used_is_said_before_anything_happens(
    collector: CollectorProcess, device: Device
) -> None:
    page = device.tab(study(collector, "Files"))
    for content, words in FILES.items():
        choose(page, content)
        page.wait_for_function(
            "words => document.querySelector('#problem').textContent.includes(words)", arg=words
        )
        assert page.is_disabled("#yes")
        assert "Still needed: a file that can be read" in page.inner_text("#missing")
        choose(page, GOOD, label=None)  # put right
        page.wait_for_selector("#yes:enabled")
        assert page.inner_text("#problem") == ""
    page.select_option("#label", value="")
    assert page.is_disabled("#yes"), "a label is chosen, not taken for granted"
    assert page.inner_text("#missing") == "Still needed: your label."
    choose(page, "t,x\n0,60\n12,75\n24,62\n")
    page.wait_for_function("() => document.querySelector('#read').textContent.includes('units')")
    assert "lie outside the study’s range" in page.inner_text("#read")
    assert device.posted == []


def test_two_tabs_at_once_answer_once(collector: CollectorProcess, device: Device) -> None:
    plan = study(collector, "Two tabs")
    tabs = [device.tab(plan), device.tab(plan)]
    for page in tabs:
        choose(page, GOOD)
        page.wait_for_selector("#yes:enabled")
    for page in tabs:
        page.evaluate("document.querySelector('#yes').click()")
    for page in tabs:
        page.wait_for_selector("#leaves:not([hidden])")
    assert tabs[0].inner_text("#bytes") == tabs[1].inner_text("#bytes")
    for page in tabs:
        page.evaluate("document.querySelector('#send').click()")
    for page in tabs:
        page.wait_for_selector("#done:not([hidden])")
    assert sorted(device.posted) == ["enrol", "reply"]
    assert answered(collector, plan) == 1
    # The limit of ε = 5 is for all studies of this browser: a second one of ε = 4 is refused.
    page = device.tab(study(collector, "One too many"))
    page.wait_for_selector("#problem:not(:empty)")
    assert "more than is left of your limit" in page.inner_text("#problem")
    assert sorted(device.posted) == ["enrol", "reply"]


def test_by_invitation_on_a_phone(browser: Any, collector: CollectorProcess) -> None:
    plan = study(collector, "By invitation", anybody=False)
    (token,) = collector.invite(plan.hash, 1)
    phone = Device(browser, collector.url, width=360)
    page = phone.tab(plan)
    page.wait_for_selector("#problem:not(:empty)")
    assert "for people who were invited" in page.inner_text("#problem")
    assert not page.is_visible("#yours")
    page = phone.tab(plan, f"#invitation={token}")
    choose(page, "x\n" + "\n".join(["0.5"] * 30))
    page.wait_for_selector("#yes:enabled")
    assert "30 points at equal distances" in page.inner_text("#read")
    keep(page, "take-part-360")
    say_yes(page)
    send(page)
    assert phone.posted == ["reply"]
    assert answered(collector, plan) == 1
    assert phone.problems == []
    phone.context.close()


def test_a_used_invitation_in_another_browser(browser: Any, collector: CollectorProcess) -> None:
    """Before: it drew and sent a second, independent reply of the same person."""
    plan = study(collector, "Used before", anybody=False)
    (token,) = collector.invite(plan.hash, 1)
    first, second, late = (Device(browser, collector.url, width=390) for _ in range(3))
    pages = [one.tab(plan, f"#invitation={token}") for one in (first, late)]
    for page in pages:
        choose(page, GOOD)
        say_yes(page)  # both have drawn, and nobody has sent
    send(pages[0])
    used = "This invitation was used already: the study has a reply to it, from another browser"
    pages[1].click("#send:enabled")
    pages[1].wait_for_selector("#problem:not(:empty)")
    assert pages[1].inner_text("#problem").startswith(used)
    pages[1].reload()
    pages[1].wait_for_selector("#problem:not(:empty)")
    assert "does not count" in pages[1].inner_text("#problem")
    page = second.tab(plan, f"#invitation={token}")
    choose(page, GOOD)
    page.click("#yes:enabled")
    page.wait_for_selector("#problem:not(:empty)")
    assert page.inner_text("#problem").startswith(used)
    assert "Nothing was created, spent or sent here." in page.inner_text("#problem")
    assert "spent nothing on studies yet" in page.inner_text("#spent")
    for one in (page, pages[1]):
        assert not one.is_visible("#yours")
        assert not one.is_visible("#leaves")
    keep(page, "take-part-used-390")
    assert (first.posted, second.posted, late.posted) == (["reply"], [], [])
    assert answered(collector, plan) == 1
    for one in (first, second, late):
        assert all("409" in told for told in one.problems)
        one.context.close()


def test_what_is_kept_is_on_the_disk(collector: CollectorProcess, device: Device) -> None:
    """A spend that a power failure undoes could be spent again."""
    plan = study(collector, "Durable")
    device.context.add_init_script(
        """window.kept = [];
        const begun = IDBDatabase.prototype.transaction;
        IDBDatabase.prototype.transaction = function (...given) {
          const step = begun.apply(this, given);
          if (step.mode === "readwrite") window.kept.push(step.durability);
          return step;
        };"""
    )
    page = device.tab(plan)
    choose(page, GOOD)
    say_yes(page)
    send(page)
    kept = page.evaluate("window.kept")
    assert len(kept) > 3
    assert set(kept) == {"strict"}


def test_what_a_study_takes_for_granted_is_agreed_to_first(
    collector: CollectorProcess, device: Device
) -> None:
    plan = study(collector, "Public curves", protects="labels")
    page = device.tab(plan)
    assert page.inner_text("#stays") == (
        "Your data would leave as they are: this study assumes that curves are public. "
        "Only your label is protected."
    )
    promise = page.inner_text("#promise")
    assert "times likelier with your label than with another label." in promise
    choose(page, GOOD)
    page.wait_for_selector("#curve:not([hidden])")
    assert page.is_disabled("#yes")
    page.check("#accepted")
    values = json.loads(say_yes(page))["values"]
    assert len(values) == plan.encoder.n_features + 1
    send(page)


def test_a_page_for_whole_hashes_of_known_studies(collector: CollectorProcess) -> None:
    plan = study(collector, "Addresses")
    with Connection(collector.url) as connection:
        assert connection.ask("GET", f"/take-part/{plan.hash}").status == 200
        for name in (plan.hash[:16], "0" * 64, "x", plan.hash[:16] + "0" * 48):
            assert connection.ask("GET", f"/take-part/{name}").status == 404, name


AXE = Path(__file__).resolve().parents[2] / "clients/browser/node_modules/axe-core/axe.min.js"
LOOKS = [(1280, "light"), (390, "dark"), (390, "light"), (1280, "dark")]
LANGUAGES = ["en-US", "de-DE"]


def accessible(page: Any, name: str) -> None:
    """No finding of axe, and pictures to look at: on a screen and on phones, light and dark."""
    for width, scheme in LOOKS:
        look = f"{name}-{width}-{scheme}"
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        keep(page, look)
        if AXE.is_file():
            page.evaluate("window.axe || " + AXE.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], look


@pytest.mark.parametrize("locale", LANGUAGES)
def test_everybody_can_use_every_state_of_the_page(
    browser: Any, collector: CollectorProcess, locale: str
) -> None:
    """By keyboard alone, but for the choice of the file itself."""
    people = 500 + LANGUAGES.index(locale)
    plan = study(collector, "Pulse over a day", epsilon=1.0, people=people)
    person = Device(browser, collector.url, width=1280, locale=locale)
    page, look = person.tab(plan), locale[:2]
    assert page.evaluate("document.documentElement.lang") == look
    choose(page, "t,x\n30,1\n40,2\n", label=None)
    page.wait_for_selector("#problem:not(:empty)")
    accessible(page, f"take-part-problem-{look}")
    choose(page, GOOD, label=None)
    page.wait_for_selector("#curve:not([hidden])")
    page.focus("#label")
    page.keyboard.press("ArrowDown")
    assert page.input_value("#label") == "0"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "limit"
    accessible(page, f"take-part-ready-{look}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "agreed"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "yes"
    page.keyboard.press("Enter")
    page.wait_for_selector("#leaves:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "what-leaves"
    accessible(page, f"take-part-leaves-{look}")
    for _ in range(2):  # by the bytes, which a narrow window scrolls
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "send"
    page.keyboard.press("Enter")
    page.wait_for_selector("#done:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "thanks"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "keep"
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    kept = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert kept == {
        "study": plan.hash,
        "collector": collector.url,
        "receipt": page.inner_text("#receipt"),
        "check": f"{page.url}#receipt={page.inner_text('#receipt')}",
    }, "nothing of what was sent: it can be shown to anybody"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#counted:not(:empty)")
    accessible(page, f"take-part-done-{look}")
    assert person.problems == []
    person.context.close()


@pytest.mark.parametrize("locale", LANGUAGES)
def test_everybody_can_use_the_states_that_few_see(
    browser: Any, collector: CollectorProcess, locale: str
) -> None:
    """Uninvited, offline, counted, withdrawn, and with an invitation that was used."""
    language, people = locale[:2], 600 + LANGUAGES.index(locale)
    plan = study(collector, "Pulse, by invitation", anybody=False, people=people)
    tokens = collector.invite(plan.hash, 2)
    person = Device(browser, collector.url, width=390, locale=locale)
    page = person.tab(plan)
    page.wait_for_selector("#problem:not(:empty)")
    accessible(page, f"take-part-uninvited-{language}")
    page = person.tab(plan, f"#invitation={tokens[0]}")
    accessible(page, f"take-part-informed-{language}")
    open_information(page)
    accessible(page, f"take-part-informed-fully-{language}")
    choose(page, GOOD)
    say_yes(page)
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    person.context.set_offline(True)
    page.click("#send")
    page.wait_for_selector("#waiting:not(:empty)")
    accessible(page, f"take-part-offline-{language}")
    person.context.set_offline(False)
    page.wait_for_selector("#done:not([hidden])")
    checked = person.tab(plan, f"#receipt={page.inner_text('#receipt')}")
    accessible(checked, f"take-part-checked-{language}")
    page.click("#withdrawal summary")
    accessible(page, f"take-part-withdraw-{language}")
    page.click("#withdrawal summary")
    withdraw(page)
    accessible(page, f"take-part-withdrawn-{language}")
    other = Device(browser, collector.url, width=390, locale=locale)
    again = other.tab(plan, f"#invitation={tokens[0]}")
    choose(again, GOOD)
    again.click("#yes:enabled")
    again.wait_for_selector("#problem:not(:empty)")
    accessible(again, f"take-part-used-{language}")
    for one in (person, other):
        assert all("ERR_INTERNET" in told or "40" in told for told in one.problems), one.problems
        one.context.close()


ROW = {"age": (0, 99), "sex": ["f", "m"]}
OTHERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "number": ({"classes": None, "target_range": (0, 100)}, GOOD, "#number"),
    "channels": (
        {"value_range": [(-2, 2), (0, 9)]},
        "t;up;down\n0;1;2\n9;0,5;3\n24;-1;8\n",
        "#column-x2",
    ),
    "row": (
        {"value_range": None, "domain_range": (0, 1), "feature_ranges": ROW},
        "sex,age,name\nf,40,Ann\n",
        "#cells li",
    ),
    "clear labels": ({}, GOOD, "#column-x"),
}


def test_other_kinds_of_studies(browser: Any, collector: CollectorProcess) -> None:
    person = Device(browser, collector.url, width=390)
    for number, (name, (facts, content, shown)) in enumerate(OTHERS.items()):
        if name == "clear labels":
            plan = noisy_vectors(collector)
        else:
            plan = study(collector, f"Of {name}", epsilon=1.0, people=900 + number, **facts)
        page = person.tab(plan)
        choose(page, content, label=None)
        page.wait_for_selector(shown)
        if plan.target_range:
            stays = "Your data and your number stay on this device."
            assert page.inner_text("#stays").startswith(stays)
            page.fill("#number", "a lot")
            assert page.inner_text("#missing").endswith("Still needed: your number.")
            page.fill("#number", "370")  # outside of the range: silence would tell
            told = "Your number lies outside 0…100: the nearer end counts."
            assert page.inner_text("#missing") == told
            assert page.is_enabled("#yes")
            page.fill("#number", "37,5")
            assert page.inner_text("#missing") == ""
        else:
            page.select_option("#label", index=1)
        if plan.protects != "both":
            page.check("#accepted")
        say_yes(page)
        accessible(page, f"take-part-{name.replace(' ', '-')}")
        if name == "row":
            assert page.inner_text("#own-cells") == "age: 40\nsex: f"
        if name == "clear labels":
            assert page.inner_text("#own-label") == "Your label: well (it leaves as it is)"
            assert page.is_visible("#own-curve .noisy")
            assert page.text_content("#stays").startswith("Your label would leave as it is")
        send(page)
    assert person.problems == []
    person.context.close()


def test_a_row_is_typed(browser: Any, collector: CollectorProcess) -> None:
    """Nobody has a file of two answers; a file is possible, and comes first where it is chosen."""
    person = Device(browser, collector.url, width=390, locale="de-DE", color_scheme="dark")
    facts = {"value_range": None, "domain_range": (0, 1), "feature_ranges": ROW}
    page = person.tab(study(collector, "Typed", epsilon=1.0, people=930, **facts))
    page.wait_for_selector("#yours:not([hidden])")
    assert "Sie tippen sie ein oder wählen eine Datei" in page.text_content("#needed")
    page.check("#agreed")
    page.select_option("#label", index=1)
    assert "alle Ihre Angaben oder eine Datei" in page.inner_text("#missing")
    page.fill("#cell-0", "forty")
    page.select_option("#cell-1", label="m")
    page.wait_for_selector("#problem:has-text('„age“ ist keine Zahl')")
    page.fill("#cell-0", "140,5")
    page.wait_for_function("() => document.querySelector('#read').textContent.includes('1 von 3')")
    page.fill("#cell-0", "40,5")
    assert page.inner_text("#cells") == "age: 40,5\nsex: m"
    assert page.inner_text("label[for=cell-0]") == "age, von 0 bis 99"
    accessible(page, "take-part-typed-390")
    choose(page, "sex,age\nf,30\n", label=None)
    page.wait_for_selector("#cells li:has-text('age: 30')")
    choose(page, "", label=None)
    page.wait_for_selector("#problem:not(:empty)")
    page.set_input_files("#file", [])
    page.wait_for_selector("#cells li:has-text('age: 40,5')")
    say_yes(page)
    assert person.problems == []
    person.context.close()


def noisy_vectors(collector: CollectorProcess) -> StudyPlan:
    """Of curves that leave with noise, beside labels that everybody knows."""
    plan = StudyPlan(
        epsilon=1.0,
        n_people=60,
        classes=("well", "ill"),
        encoder=CurveEncoder("cosine", n_basis=4, feature_ranges=(-5, 5), domain_range=(0, 24)),
        design={"name": "mrma", "n_classifiers": 4, "member_size": 6, "training_share": 0.4},
        protects="features",
        title="Curves with noise",
    )
    collector.create(plan, open=True, deadline=3600)
    return plan
