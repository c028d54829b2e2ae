"""Replies that a gateway brings many at once: each is judged as if it had come alone."""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from forked_collector import Death, ForkedCollector

from dpfda.client.http import Answer, Connection, Unreachable
from dpfda.collector import people
from dpfda.collector.middleware import LARGE, MOST_AT_ONCE
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import ReplyMessage

SEEDS = iter(range(3000, 4000))


class Gateway:
    """A collector, a study in it, and people whose replies wait to be brought."""

    def __init__(self, collector: ForkedCollector) -> None:
        self.collector = collector

    def ask(self, method: str, path: str, body: bytes = b"", token: str = "") -> Answer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with Connection(self.collector.url) as connection:
            return connection.ask(method, self.path + path, body=body or None, headers=headers)

    def send(self, body: bytes) -> Answer:
        """A batch, in the name of somebody who takes part."""
        return self.ask("POST", "/replies", body, token=self.member)

    def begin(self, plan: StudyPlan, people: int) -> list[dict[str, Any]]:
        """A study, and one honest reply for each of its first people."""
        self.plan = plan
        self.collector.create(plan)
        self.path = f"/api/studies/{plan.hash[:16]}"
        found = self.collector.request("POST", f"{self.path}/tokens", {"count": people})
        self.member = found["tokens"][0]
        return [self.honest(token) for token in found["tokens"]]

    def honest(self, token: str) -> dict[str, Any]:
        ticket = self.ask("GET", "/task", token=token).json()["ticket"]
        reply = {"plan": self.plan.hash, "phase": 0, "ticket": ticket, "values": [0.25, ticket]}
        return {"token": token, "reply": {**reply, "nonce": secrets.token_hex(16)}}

    def bring(self, deliveries: list[Any]) -> list[Any]:
        answer = self.send(json.dumps({"replies": deliveries}).encode())
        assert answer.status == 200
        verdicts: list[Any] = answer.json()["verdicts"]
        return verdicts

    def alone(self, delivery: dict[str, Any]) -> dict[str, Any]:
        """What the single route says to it, in the words of a verdict."""
        answer = self.ask(
            "POST", "/reply", json.dumps(delivery["reply"]).encode(), delivery["token"]
        )
        told: dict[str, Any] = answer.json()
        return (
            told if answer.status == 200 else {"error": {"status": answer.status} | told["error"]}
        )

    def kept(self) -> list[dict[str, Any]]:
        lines = self.collector.read("GET", f"{self.path}/phases/0/replies").splitlines()
        return [json.loads(line) for line in lines]


def without_nonce(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reply.items() if name != "nonce"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('gateway') / 'study.db'}"
    else:
        url = request.getfixturevalue("postgresql")
    collector = ForkedCollector(url).start()
    yield Gateway(collector)
    collector.stop()


@pytest.fixture
def plan(make_plan: Any) -> StudyPlan:
    made: StudyPlan = make_plan(50, seed=next(SEEDS))
    return made


def test_the_same_batch_again_gets_the_same_receipts(gateway: Gateway, plan: StudyPlan) -> None:
    brought = gateway.begin(plan, 5)
    verdicts = gateway.bring(brought)
    assert [list(verdict) for verdict in verdicts] == [["receipt"]] * 5
    assert len({verdict["receipt"] for verdict in verdicts}) == 5
    assert gateway.bring(brought) == verdicts
    assert gateway.bring(brought[::-1] + brought) == verdicts[::-1] + verdicts
    assert [gateway.alone(one) for one in brought] == verdicts, "the single route knows them"
    assert gateway.kept() == [without_nonce(one["reply"]) for one in brought]


def test_a_bad_reply_harms_no_other(gateway: Gateway, plan: StudyPlan, make_plan: Any) -> None:
    (stranger,) = gateway.begin(make_plan(50, seed=next(SEEDS)), 1)
    good = gateway.begin(plan, 6)
    answered = gateway.honest(gateway.collector.request(
        "POST", f"{gateway.path}/tokens", {"count": 1})["tokens"][0])  # fmt: skip
    gateway.bring([answered])

    def but(delivery: dict[str, Any], **parts: Any) -> dict[str, Any]:
        return {**delivery, "reply": {**delivery["reply"], **parts}}

    first, second = good[:2]
    bad = {
        "other bytes": (409, but(answered, values=[0.5, 0.5])),
        "a token of another study": (403, but(stranger, plan=plan.hash)),
        "another study": (409, stranger),
        "somebody else's ticket": (403, {**second, "reply": first["reply"]}),
        "no token of anybody": (401, {**first, "token": "x" * 43}),
        "too short": (422, but(first, values=[1.0])),
        "too long": (413, but(first, values=[0.1] * 30_000)),
        "no such ticket": (422, but(first, ticket=50)),
        "a phase to come": (409, but(first, phase=1)),
        "no number": (400, but(first, values=["a", "b"])),
        "more than a reply": (400, but(first, more=1)),
        "a nonce too short": (400, but(first, nonce="0" * 31)),
    }
    mixed = good[:3] + [delivery for _, delivery in bad.values()] + good[3:]
    told = gateway.bring(mixed)
    verdicts = {json.dumps(one): verdict for one, verdict in zip(mixed, told, strict=True)}
    for name, (status, delivery) in bad.items():
        verdict = verdicts[json.dumps(delivery)]
        assert verdict["error"]["status"] == status, name
        assert verdict == gateway.alone(delivery), "as if it had come alone"
    assert all("receipt" in verdicts[json.dumps(one)] for one in good)
    assert sorted(reply["ticket"] for reply in gateway.kept()) == list(range(7))


@pytest.mark.parametrize("odd", [5, None, [], {"token": "a"}, {"token": 1, "reply": {}}, {"x": 1}])
def test_what_is_no_delivery_is_the_mistake_of_the_gateway(
    gateway: Gateway, plan: StudyPlan, odd: Any
) -> None:
    good = gateway.begin(plan, 2)
    answer = gateway.send(json.dumps({"replies": [good[0], odd, good[1]]}).encode())
    assert (answer.status, answer.json()["error"]["code"]) == (400, "malformed")
    assert gateway.kept() == []


def test_too_many_or_too_much_is_refused_as_a_whole(gateway: Gateway, plan: StudyPlan) -> None:
    (good,) = gateway.begin(plan, 1)

    def refused(body: bytes) -> tuple[int, str]:
        answer = gateway.send(body)
        return answer.status, answer.json()["error"]["code"]

    many = {"replies": [good] * (people.MOST_REPLIES + 1)}
    assert refused(json.dumps(many).encode()) == (413, "too_many")
    assert refused(b" " * people.MOST_BYTES + b"{}") == (413, "too_large")
    for malformed in (b"", b"[]", b'{"replies": 1}', b'{"replies": []', b"[" * 5000, b"\xff"):
        assert refused(malformed) == (400, "malformed")
    assert gateway.kept() == []
    assert gateway.bring([]) == []
    assert len(gateway.bring([good] * people.MOST_REPLIES)) == people.MOST_REPLIES
    assert len(gateway.kept()) == 1


@pytest.mark.timed
def test_one_address_brings_a_few_at_a_time(gateway: Gateway, plan: StudyPlan) -> None:
    """Each may hold megabytes until it is whole."""
    brought = gateway.begin(plan, 1)
    with ExitStack() as stack:
        for _ in range(MOST_AT_ONCE):
            slow = socket.create_connection(("127.0.0.1", gateway.collector.port))
            stack.enter_context(slow)
            slow.sendall(
                f"POST {gateway.path}/replies HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {gateway.member}\r\n"
                "Content-Length: 100000\r\n\r\n{".encode()
            )
        small = json.dumps({"replies": brought}).encode()
        large = small + b" " * LARGE
        deadline = time.monotonic() + 10
        while gateway.send(large).status != 429:  # until all have arrived
            assert time.monotonic() < deadline
        assert gateway.send(small).status == 200, "small ones are no matter"
    while (answer := gateway.send(large)).status == 429:
        assert time.monotonic() < deadline + 10
    assert "receipt" in answer.json()["verdicts"][0]


def test_a_reply_may_be_so_long_and_no_longer(gateway: Gateway, plan: StudyPlan) -> None:
    brought = gateway.begin(plan, 2)
    texts = [json.dumps(one["reply"]) for one in brought]
    sizes = [people.SMALL, people.SMALL + 1]
    padded = [
        text[:-1] + " " * (size - len(text)) + "}" for text, size in zip(texts, sizes, strict=True)
    ]
    entries = [
        f'{{"token": "{one["token"]}", "reply": {text}}}'
        for one, text in zip(brought, padded, strict=True)
    ]
    answer = gateway.send(f'{{"replies": [{",".join(entries)}]}}'.encode())
    stored, refused = answer.json()["verdicts"]
    assert refused["error"]["status"] == 413
    alone = [
        gateway.ask("POST", "/reply", text.encode(), one["token"])
        for one, text in zip(brought, padded, strict=True)
    ]
    assert [one.status for one in alone] == [200, 413]
    assert alone[0].json() == stored
    assert gateway.send(b"{" + b" " * (people.MOST_BYTES - 2) + b"}").status == 400


def test_a_token_that_asks_too_often_waits_in_a_batch_too() -> None:
    class Once:
        def allows(self, key: bytes, seen: set[bytes] = set()) -> bool:  # noqa: B006
            return key not in seen and not seen.add(key)

    said = ReplyMessage.saying("p", 0, 0, [])
    brought = people.Delivery("a", msgspec.Raw(msgspec.json.encode(said)))
    limit: Any = Once()
    first, second = (people._opened(brought, limit) for _ in range(2))
    assert getattr(first, "message", None) == said
    assert getattr(second, "status", None) == 429


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_killed_before_anybody_was_told(database: str, make_plan: Any, tmp_path: Path) -> None:
    """The batch is stored and nobody knows: sent again, it gets its receipts and counts once."""
    collector = ForkedCollector(database).start()
    try:
        gateway = Gateway(collector)
        plan = make_plan(50)
        brought = gateway.begin(plan, 20)
        collector.stop()
        collector.start(Death("told", plan.hash[:16], 0, quota=13))
        with pytest.raises(Unreachable):
            gateway.bring(brought)
        collector.await_death()
        collector.start()
        assert gateway.kept() == [without_nonce(one["reply"]) for one in brought]
        verdicts = gateway.bring(brought)
        assert [list(verdict) for verdict in verdicts] == [["receipt"]] * 20
        assert gateway.kept() == [without_nonce(one["reply"]) for one in brought]
    finally:
        collector.stop()
