"""Somebody who takes places in an open study and never answers, on real collectors."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from devices import GOOD, Device, choose, study
from forked_collector import ForkedCollector

from dpfda.client import RemoteClient
from dpfda.client.remote import NotGranted
from dpfda.errors import ProtocolError
from dpfda.noise import SimulationSource
from dpfda.protocol.task import Task
from dpfda.protocol.wire import ReplyMessage

pytestmark = pytest.mark.timed

SEEDS = count(100)
LAPSE, LATE = 0.4, 0.6  # seconds; a quarter of a ticket's time more until others get it


class Guarded(ForkedCollector):
    """With the limits that everybody has."""

    enrolments = 20
    alone = True


class Caller:
    """Requests from one address of this machine."""

    def __init__(self, collector: ForkedCollector, study: str, address: str = "127.0.0.1") -> None:
        self._wire = HTTPConnection(
            "127.0.0.1", collector.port, source_address=(address, 0), timeout=30
        )
        self._path = f"/api/studies/{study}"
        self.retry_after = ""

    def ask(
        self, method: str, what: str, token: str = "", body: bytes | None = None
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._wire.request(method, self._path + what, body, headers)
        answer = self._wire.getresponse()
        self.retry_after = answer.headers.get("Retry-After", "")
        found = json.loads(answer.read())
        self._wire.close()
        return answer.status, found

    def enrol(self) -> str:
        status, found = self.ask("POST", "/enrol")
        return str(found["token"]) if status == 201 else ""

    def task(self, token: str) -> tuple[int, Any]:
        return self.ask("GET", "/task", token)

    def answer(self, token: str, message: Any, n_features: int = 2) -> tuple[int, Any]:
        task = Task.from_dict(message["task"])
        features, labels = np.eye(1, n_features), np.array([1])
        values = task.answer((features, labels), SimulationSource(0)).values[0].tolist()
        ticket = message["plan"], message["phase"], message["ticket"]
        sent = ReplyMessage(*ticket, values, "0" * 32)  # the same bytes each time
        return self.ask("POST", "/reply", token, msgspec.json.encode(sent))

    def take_part(self) -> None:
        """From the first request to the receipt, however long it takes."""
        while not (token := self.enrol()):
            time.sleep(0.05)
        while (asked := self.task(token))[0] != 200:
            assert asked[0] in (202, 410), asked
            token = token if asked[0] == 202 else self.enrol()
            time.sleep(0.05)
        status, found = self.answer(token, asked[1])
        assert status == 200, found


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def collector(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    database = f"sqlite:///{tmp_path_factory.mktemp('enrolment')}/x.db"
    if request.param == "postgresql":
        database = request.getfixturevalue("postgresql")
    process = Guarded(database).start()
    yield process
    process.stop()


def test_one_address_gets_few_places(collector: Guarded, make_plan: Any) -> None:
    """It got all 500 within nine seconds."""
    plan = make_plan(500, seed=next(SEEDS))
    study = collector.create(plan, open=True, address_hourly=0)["id"]
    thief, other = (Caller(collector, study, address) for address in ("127.0.0.6", "127.0.0.7"))
    tokens = [token for _ in range(100) if (token := thief.enrol())]
    assert len(tokens) == 20
    status, found = thief.ask("POST", "/enrol")
    assert (status, found["error"]["code"]) == (429, "too_many_here")
    assert int(thief.retry_after) > 1
    assert other.enrol()
    assert collector.invite(study, 1), "and whom the organizer knows"
    asked = thief.task(tokens[0])[1]
    assert thief.answer(tokens[0], asked)[0] == 200
    assert thief.enrol(), "who answers makes room for a neighbor"
    assert thief.answer(tokens[0], asked)[0] == 200
    assert not thief.enrol(), "once"


@pytest.mark.parametrize(
    ("language", "words"),
    [("en-US", "altogether. Try again in a few minutes"), ("de-DE", "innerhalb einer Stunde")],
)
def test_the_page_says_at_once_that_an_address_is_full(
    browser: Any, collector: Guarded, language: str, words: str
) -> None:
    """Twenty people of this address have joined and answered, and one an hour may follow."""
    plan = study(collector, f"Full {next(SEEDS)}", people=400, settings={"address_hourly": 1})
    caller = Caller(collector, plan.hash[:16])
    for _ in range(20):
        asked = caller.task(token := caller.enrol())[1]
        assert caller.answer(token, asked, plan.encoder.n_features)[0] == 200
    person = Device(browser, collector.url, width=390, locale=language)
    page = person.tab(plan)
    choose(page, GOOD)
    page.click("#yes:enabled")
    page.wait_for_selector(f"#problem:has-text('{words}')", timeout=5_000)
    assert page.is_visible("#yours"), "it can be tried again"
    assert page.evaluate("document.querySelector('#bytes').textContent") == ""
    assert "ε = 4" not in page.inner_text("#spent")
    assert person.posted == ["enrol"]
    person.context.close()


def test_one_address_cannot_stop_a_study(collector: Guarded, make_plan: Any) -> None:
    """It held every ticket, and nobody else was ever asked."""
    people, stop = 15, threading.Event()
    study = collector.create(make_plan(people, seed=next(SEEDS)), open=True, lapse=0.4)["id"]
    taken = []

    def hold() -> None:
        thief = Caller(collector, study, "127.0.0.6")
        while not stop.is_set():
            if token := thief.enrol():
                taken.append(thief.task(token)[0])

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        while taken.count(200) < people // 5:
            time.sleep(0.01)
        crowd = [
            threading.Thread(target=Caller(collector, study, f"127.0.2.{n + 1}").take_part)
            for n in range(people)
        ]
        for person in crowd:
            person.start()
        for person in crowd:
            person.join(30)
        status = collector.wait_until(study)
    finally:
        stop.set()
        thread.join()
    assert status["status"] == "finished"
    history = collector.request("GET", f"/api/studies/{study}/models")
    assert history[-1]["people"] == people


def test_who_is_late_is_told_in_words_in_every_process(collector: Guarded, make_plan: Any) -> None:
    """Two processes, one of which is killed: one ticket, one person."""
    other = Guarded(collector.database).start()
    try:
        study = collector.create(make_plan(1, seed=next(SEEDS)), lapse=LAPSE)["id"]
        slow, quick = collector.invite(study, 2)
        status, asked = Caller(other, study).task(slow)
        assert status == 200
        other.kill()
        other.start()
        time.sleep(LATE)
        near, far = Caller(collector, study), Caller(other, study)
        assert near.task(quick) == (200, asked)
        time.sleep(0.1)
        assert far.task(slow)[0] == 202, "asked again, they wait: nothing was spent for nothing"
        status, found = far.answer(slow, asked)
        assert (status, found["error"]["code"]) == (410, "lapsed")
        assert "the task was given to another person" in found["error"]["message"]
        assert far.answer(quick, asked)[0] == 200
        collector.wait_until(study)
        assert len(collector.read("GET", f"/api/studies/{study}/phases/0/replies").split()) == 1
    finally:
        other.stop()


def test_a_device_that_comes_late_spends_nothing_for_nothing(
    collector: Guarded, make_plan: Any, tmp_path: Path
) -> None:
    plan = make_plan(20, epsilon=1.0, seed=next(SEEDS))
    collector.create(plan, open=True, lapse=LAPSE)
    device = RemoteClient(tmp_path / "joined", limit_epsilon=1.0)
    device.join(collector.url, plan.hash, most_epsilon=1.0)
    time.sleep(LATE)
    assert device.submit(plan.hash, curve=[0.1, 0.2], label="yes"), "it joins again by itself"
    assert device.ledger.remaining.epsilon == 0.0

    plan = make_plan(1, epsilon=1.0, seed=next(SEEDS))
    study = collector.create(plan, lapse=LAPSE)["id"]
    first, second = collector.invite(study, 2)
    assert Caller(collector, study).task(first)[0] == 200
    time.sleep(LATE)
    assert Caller(collector, study).task(second)[0] == 200
    late = RemoteClient(tmp_path / "late", limit_epsilon=1.0, patience=0.0)
    late.join(collector.url, plan.hash, most_epsilon=1.0, invitation=first)
    with pytest.raises(ProtocolError, match="has no free place now"):
        late.submit(plan.hash, curve=[0.1, 0.2], label="yes")
    assert late.ledger.remaining.epsilon == 1.0


def test_a_reply_that_lies_around_is_refused_in_words(
    collector: Guarded, make_plan: Any, tmp_path: Path
) -> None:
    plan = make_plan(1, epsilon=1.0, seed=next(SEEDS))
    study = collector.create(plan, lapse=LAPSE)["id"]
    first, second = collector.invite(study, 2)
    device = RemoteClient(tmp_path, limit_epsilon=1.0)
    device.join(collector.url, plan.hash, most_epsilon=1.0, invitation=first)
    device.prepare(plan.hash, curve=[0.1, 0.2], label="yes")
    time.sleep(LATE)
    caller = Caller(collector, study)
    asked = caller.task(second)[1]
    with pytest.raises(
        NotGranted, match="no reply came in time, and the task was given to another"
    ):
        device.send(plan.hash)
    assert caller.answer(second, asked)[0] == 200
    collector.wait_until(study)
