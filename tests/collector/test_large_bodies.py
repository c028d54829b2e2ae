"""Large bodies are refused before they are read, and cost others little."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from forked_collector import ForkedCollector

from dpfda.collector import people
from dpfda.collector.limits import RateLimit
from dpfda.collector.middleware import _REFUSAL, LARGE, LargeBodies, ProcessorTime
from dpfda.collector.refusal import Refused, note_known

BOMB = b'{"replies":[' + b"1," * 2_000_000 + b"1]}"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedCollector]:
    with ForkedCollector(f"sqlite:///{tmp_path_factory.mktemp('large') / 'x.db'}") as found:
        yield found


def post(
    collector: ForkedCollector, path: str, body: bytes, token: str, place: str, method: str = "POST"
) -> int:
    """The status, or 0 if the connection was closed first."""
    wire = HTTPConnection("127.0.0.1", collector.port, timeout=30, source_address=(place, 0))
    try:
        wire.request(
            method, path, body or None, {"Authorization": f"Bearer {token}"} if token else {}
        )
        return wire.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        return 0
    finally:
        wire.close()


@pytest.mark.parametrize(
    ("path", "token"),
    [("replies", ""), ("replies", "made-up"), ("tokens", ""), ("tokens", "made-up")],
)
def test_nothing_is_read_of_a_stranger(
    collector: ForkedCollector, make_plan: Any, path: str, token: str
) -> None:
    """The head says who it is: a body that never comes is not waited for."""
    study = collector.create(make_plan(20, seed=len(path) + len(token)))["id"]
    wire = HTTPConnection("127.0.0.1", collector.port, timeout=5)
    wire.putrequest("POST", f"/api/studies/{study}/{path}")
    wire.putheader("Content-Length", str(people.MOST_BYTES))
    wire.putheader("Content-Type", "application/json")
    if token:
        wire.putheader("Authorization", f"Bearer {token}")
    wire.endheaders()
    assert wire.getresponse().status == 401
    wire.close()


@pytest.mark.parametrize(
    "body", [BOMB, b'{"replies":[' + b'{"token":"","reply":1},' * 180_000 + b"1]}"]
)
def test_they_are_counted_before_they_are_read(body: bytes) -> None:
    """Millions of deliveries are refused in the time that one look at the bytes takes."""
    began = time.process_time()
    for _ in range(5):
        with pytest.raises(Refused):
            people._read_deliveries(body)
    took = time.process_time() - began
    began = time.process_time()
    for _ in range(5):
        body.count(b"{"), body.count(b"[")
    assert took < 20 * (time.process_time() - began) + 0.05  # 0.7 s before


def test_an_address_that_was_refused_often_waits() -> None:
    pauses: list[float] = []
    clock = [0.0]

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        status = 401 if scope["path"] == "/bad" else 200
        await send({"type": "http.response.start", "status": status, "headers": []})

    limit = RateLimit(rate=0.5, burst=2, clock=lambda: clock[0])
    guarded = LargeBodies(application, limit=limit, sleep=sleep)

    def ask(path: str, host: str = "192.0.2.1", length: int = LARGE + 1) -> int:
        answers: list[Any] = []

        async def send(message: Any) -> None:
            answers.append(message)

        async def receive() -> Any:
            raise AssertionError("nobody has asked for the body")

        head = [(b"content-length", b"%d" % length)]
        scope = {"type": "http", "path": path, "headers": head, "client": (host, 1)}
        asyncio.run(guarded(scope, receive, send))
        found: int = answers[0]["status"]
        assert (found == 429) == ((b"connection", b"close") in answers[0]["headers"])
        return found

    assert [ask("/good") for _ in range(9)] == [200] * 9, "what is accepted costs nothing"
    assert [ask("/bad") for _ in range(3)] == [401, 401, 429]
    assert pauses == [1.0]
    assert ask("/good") == 429, "nothing is read to find out"
    assert ask("/bad", length=LARGE) == 401
    assert ask("/bad", host="192.0.2.2") == 401
    clock[0] += 2.0
    assert ask("/good") == 200


def test_strangers_use_their_seconds_up() -> None:
    """Of one address, and until time has passed; who is known is not counted."""
    pauses: list[float] = []
    refusals: list[int] = []
    clock = [0.0]

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        spent, half = time.thread_time(), 0.02 if "task" not in scope["path"] else 2 * _REFUSAL
        while time.thread_time() < spent + half:
            pass
        await asyncio.sleep(0)
        while time.thread_time() < spent + 2 * half:  # before the wait and after it
            pass
        if scope["path"] == "/known":
            note_known(scope)
        status = 403 if scope["path"].endswith("/task") else 200
        status = 303 if scope["path"].startswith("/study/") else status
        await send({"type": "http.response.start", "status": status, "headers": []})

    limit = RateLimit(rate=0.1, burst=0.1, clock=lambda: clock[0])
    guarded = ProcessorTime(
        application, limit=limit, sleep=sleep, refused=lambda: refusals.append(1)
    )

    def ask(path: str, host: str = "192.0.2.1") -> int:
        answers: list[Any] = []

        async def send(message: Any) -> None:
            answers.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "client": (host, 1)}
        asyncio.run(guarded(scope, None, send))  # type: ignore[arg-type]
        found: int = answers[0]["status"]
        return found

    assert [ask("/known") for _ in range(9)] == [200] * 9
    assert [ask("/") for _ in range(5)] == [200, 200, 200, 429, 429], "0.12 s of 0.1 s"
    assert pauses == [1.0, 1.0]
    assert len(refusals) == 2
    assert ask("/", "192.0.2.2") == 200
    assert [ask("/", "127.0.0.1") for _ in range(9)] == [200] * 9
    clock[0] += 0.5
    assert [ask("/"), ask("/")] == [200, 429]
    refused = [ask("/api/studies/a/task", "192.0.2.3") for _ in range(400)]
    assert refused.count(403) == pytest.approx(0.1 / _REFUSAL, abs=2), "a fixed amount each"
    elsewhere = [ask("/study/a/export/task", "192.0.2.4") for _ in range(400)]
    assert elsewhere.count(303) == pytest.approx(0.1 / _REFUSAL, abs=2), "no participant's path"


ATTACKS = {
    "bodies": ("POST", "/api/studies/{}/replies", BOMB, ""),
    "document": ("GET", "/openapi/openapi.json", b"", ""),
    "page": ("GET", "/login", b"", ""),
    "tokens": ("GET", "/api/studies/{}/task", b"", "made-up"),
}


@pytest.mark.timed
@pytest.mark.parametrize("kind", ATTACKS)
def test_eight_strangers_hardly_cost_anything(
    collector: ForkedCollector, make_plan: Any, kind: str
) -> None:
    """The processor time of the collector while strangers send, compared with honest requests."""
    method, path, body, token = ATTACKS[kind]
    # A rerun needs a study of its own.
    study = collector.create(make_plan(400, seed=time.time_ns() % 10**9))["id"]
    place = f"127.0.3.{20 + list(ATTACKS).index(kind)}"
    tokens = collector.invite(study, 300)
    began = seconds_of(collector)
    for invited in tokens:
        collector.read("GET", f"/api/studies/{study}/task", token=invited)
    honest = (seconds_of(collector) - began) / len(tokens)
    over, late = threading.Event(), threading.Semaphore(0)

    def attack() -> None:
        while not over.is_set():
            status = post(collector, path.format(study), body, token, place, method=method)
            if status in (0, 429):
                late.release()

    strangers = [threading.Thread(target=attack) for _ in range(8)]
    for one in strangers:
        one.start()
    assert all(late.acquire(timeout=60) for _ in range(20)), "what an address has at once is used"
    began, clock = seconds_of(collector), time.monotonic()
    time.sleep(2)
    share = (seconds_of(collector) - began) / (time.monotonic() - clock)
    over.set()
    for one in strangers:
        one.join()
    # An attack kept a processor busy. Eight strangers who wait a second for each refusal are as
    # much work as some ten honest requests a second.
    assert share < 0.1 + 100 * honest
    assert share < 0.33, "the rest of a processor serves honest requests: 1.5 times as long"


def seconds_of(collector: ForkedCollector) -> float:
    """What a process has computed."""
    spent = Path(f"/proc/{collector.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")


def test_a_batch_of_somebody_who_takes_part_is_read(
    collector: ForkedCollector, make_plan: Any
) -> None:
    study = collector.create(make_plan(30, seed=100))["id"]
    (token,) = collector.invite(study, 1)
    body = json.dumps({"replies": []}).encode() + b" " * LARGE
    path = f"/api/studies/{study}/replies"
    assert post(collector, path, body, token, "127.0.3.9") == 200
    assert post(collector, path, body, "made-up", "127.0.3.9") in (0, 401)
