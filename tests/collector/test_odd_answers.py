"""A collector that answers anything at all: words, no traceback, and nothing is spent twice."""

from __future__ import annotations

import copy
import json
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda
from dpfda.client import RemoteClient
from dpfda.client.http import Answer, Connection, Unreachable
from dpfda.errors import DpfdaError, InvalidParameter, ProtocolError
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server

CURVE = np.array([0.2, -0.4])
ODD: list[Any] = [
    None, True, -1, 0, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", "x", "\x1b[2J",
    "a\nb", "\ud800", "é" * 50, "t" * 10**5, [], [[]], {}, {"name": "vector"}, {"": {}}, [None] * 3,
]  # fmt: skip
RAW = [
    b"",
    b"\xff\xfe",
    b"{",
    b'{"plan": {}',
    b"[" * 10**5,
    b'{"a":' * 10**4,
    b"9" * 10**5,
    b"null",
]
STATUSES = [200, 201, 202, 200, 201, 200, 204, 301, 400, 404, 410, 429, 500, 599, 999, 100]


class Odd:
    """A connection whose answers are honest ones with something changed."""

    def __init__(self, plan: StudyPlan, luck: random.Random, share: float) -> None:
        self.luck, self.share = luck, share
        self.sent: list[bytes] = []
        task = {"plan": plan.hash, "phase": 0, "ticket": 0, "task": Server(plan).issue(1).to_dict()}
        self.honest: dict[str, tuple[int, Any]] = {
            "enrol": (201, {"token": "t" * 43}),
            "task": (200, task),
            "reply": (200, {"receipt": "0-0-" + "0" * 32}),
            "study": (200, {"plan": plan.to_dict()}),
        }

    def ask(self, method: str, path: str, *, body: Any = None, headers: Any = None) -> Answer:
        name = path.rpartition("/")[2]
        if name == "reply":
            self.sent.append(body)
        status, found = self.honest.get(name, self.honest["study"])
        if self.luck.random() > self.share:
            return Answer(status, json.dumps(found).encode())
        if self.luck.random() < 0.2:
            return Answer(self.luck.choice(STATUSES), self.luck.choice(RAW))
        text = json.dumps(self.changed(copy.deepcopy(found))).encode("utf-8", "surrogatepass")
        return Answer(self.luck.choice([status, *STATUSES]), text)

    def changed(self, found: Any) -> Any:
        """One place of a document is something else, or gone."""
        if not isinstance(found, (dict, list)) or not found or self.luck.random() < 0.15:
            return self.luck.choice(ODD)
        keys: list[Any] = list(found) if isinstance(found, dict) else list(range(len(found)))
        key = self.luck.choice(keys)
        if self.luck.random() < 0.2:
            del found[key]
        else:
            found[key] = self.changed(found[key])
        return found

    def __enter__(self) -> Odd:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Device(RemoteClient):
    """Speaks to it."""

    odd: Odd

    def _connect(self, url: str, insecure: bool) -> Any:
        return self.odd


DESIGNS: list[dict[str, Any]] = [
    {"name": "moments"},
    {"name": "mrma", "n_classifiers": 4, "member_size": 5},
    {"name": "answers"},
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design["name"])
def test_whatever_a_collector_answers(make_plan: Any, tmp_path: Path, design: Any) -> None:
    plan = make_plan(120, epsilon=6.0, **design)
    luck = random.Random(str(design))
    done = 0
    for number in range(25):
        device = Device(tmp_path / str(number), limit_epsilon=60.0, patience=-1.0)
        device._sleep = lambda seconds: None
        device.odd = Odd(plan, luck, share=0.7)
        for _ in range(6):
            try:
                device.join("http://127.0.0.1", plan.hash, most_epsilon=6.0)
                device.submit(plan.hash, curve=CURVE, label="yes")
            except DpfdaError as error:
                words = str(error)
                assert words
                assert words.isprintable(), words
            else:
                done += 1
                break
            device.odd.share *= 0.6
        assert len(device.ledger.entries) <= 1, "one question, one answer"
        assert len(set(device.odd.sent)) <= 1, "and the same bytes of it"
    assert done > 12


PLACES = [
    *(("study", "plan", name) for name in ("epsilon", "encoder", "classes", "design", "title")),
    *(("study", "plan"), ("enrol", "token")),
    *(("task", "task", name) for name in ("name", "epsilon", "people", "positive")),
    *(("task", name) for name in ("plan", "phase", "ticket", "task")),
    ("reply", "receipt"),
]
"""In the order of a study: what was refused is asked for again, and what was done is not."""


def test_every_odd_value_in_every_place(make_plan: Any, tmp_path: Path) -> None:
    plan = make_plan(120, epsilon=6.0)
    said = []
    for number, value in enumerate(ODD):
        device = Device(tmp_path / str(number), limit_epsilon=60.0, patience=-1.0)
        device._sleep = lambda seconds: None
        for name, *place, last in PLACES:
            device.odd = Odd(plan, random.Random(0), share=0.0)
            status, found = copy.deepcopy(device.odd.honest[name])
            inner = found
            for part in place:
                inner = inner[part]
            inner[last] = value
            device.odd.honest[name] = (status, found)
            try:
                device.join("http://127.0.0.1", plan.hash, most_epsilon=6.0)
                device.submit(plan.hash, curve=CURVE, label="yes")
            except DpfdaError as error:
                said.append(str(error))
        assert len(device.ledger.entries) <= 1
    assert [words for words in said if not words.isprintable()] == []
    assert len(said) > 100


@contextmanager
def answering(*pieces: bytes, endless: bool = False) -> Iterator[str]:
    """A server that sends these bytes to whoever connects, once or for ever."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                try:
                    connection.recv(4096)
                    for piece in pieces:
                        connection.sendall(piece)
                    while endless and not over.is_set():
                        connection.sendall(pieces[-1])
                        over.wait(0.001)
                except OSError:
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join()
        listener.close()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.timed
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x00" * 50,
        b"HTTP/9 x\r\n\r\n",
        b"HTTP/1.1 99999 ?\r\n\r\n",
        OK + b"X: " + b"a" * 10**5 + b"\r\n\r\n",
        OK + b"X: a\r\n" * 500 + b"\r\n",
        OK + b"Content-Length: 100\r\n\r\n{}",  # cut off
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}",
    ],
)
def test_what_is_no_answer_is_told_in_words(sent: bytes) -> None:
    with answering(sent) as url, pytest.raises(Unreachable, match="the collector"):
        Connection(url, timeout=1.0).ask("GET", "/")


@pytest.mark.timed
def test_an_answer_without_end_is_not_waited_for() -> None:
    """A piece in time, again and again: the timeout alone would wait for ever."""
    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    with answering(go_on, endless=True) as url, pytest.raises(Unreachable, match="did not"):
        Connection(url, timeout=0.2).ask("GET", "/")


def test_an_answer_has_a_size() -> None:
    body = OK + b"Content-Length: 11\r\n\r\n" + b"x" * 11
    with answering(body) as url:
        with Connection(url, most=11) as connection:
            assert connection.ask("GET", "/").body == b"x" * 11
        with Connection(url, most=10) as connection, pytest.raises(Unreachable, match="too long"):
            connection.ask("GET", "/")


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "http://", "http://h:99999", "http://h:p", "http://[::1", "ftp://h", "//h"),
        *("http://a b", "http://a\x7f", f"http://{'a' * 64}", "http://h/a b", "http://h/\u00e4"),
    ],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InvalidParameter, match="http:// or https:// address"):
        Connection(url)


def test_what_is_no_certificate(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("no certificate")
    for name in ("bad", "missing"):
        with pytest.raises(InvalidParameter, match="certificates must be a file"):
            Connection("https://localhost", certificates=str(tmp_path / name))


ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202e\r\nroot#"


def test_nothing_that_a_collector_says_moves_the_cursor(
    make_plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(4, epsilon=1.0)
    odd = Odd(plan, random.Random(0), share=0.0)
    monkeypatch.setattr(RemoteClient, "_connect", lambda *_: odd)
    curve = tmp_path / "curve.csv"
    curve.write_text("0.2\n-0.4\n")
    home = ["--home", str(tmp_path / "home")]
    join = ["join", "http://127.0.0.1", plan.hash, "--most-epsilon", "1", "--limit-epsilon", "9"]
    submit = ["submit", plan.hash, str(curve), "--label", "no", *home]

    def said(command: list[str], code: int, answer: str = "") -> str:
        done = CliRunner().invoke(dpfda, command, input=answer)
        assert done.exit_code == code, done.output
        assert all(line.isprintable() for line in done.output.split("\n")), done.output
        return done.output

    for wrong in ({"title": ESCAPE}, {"classes": ["no", ESCAPE]}):
        odd.honest["study"] = (200, {"plan": plan.to_dict() | wrong})
        assert "plan cannot be understood" in said([*join, *home], 2)
    odd.honest["study"] = (200, {"plan": plan.to_dict()})
    said([*join, *home], 0)
    honest = odd.honest["task"]
    odd.honest["task"] = (403, {"error": {"message": ESCAPE}})
    assert "the collector refused: \\x1b]0;owned" in said(submit, 2)
    odd.honest["task"] = honest
    said([*submit, "--show"], 0, "n\n")
    for receipt in (ESCAPE, "r" * 201, ""):
        odd.honest["reply"] = (200, {"receipt": receipt})
        assert "holds no receipt" in said(submit, 2)
    odd.honest["reply"] = (200, {"receipt": "r" * 200})
    assert "sent; receipt rrr" in said(submit, 0)
    assert len(set(odd.sent)) == 1


def test_a_token_that_cannot_be_sent_is_refused(make_plan: Any, tmp_path: Path) -> None:
    """In a header it would have been a traceback, or a second header."""
    plan = make_plan(4, epsilon=1.0)
    device = Device(tmp_path, limit_epsilon=3.0)
    for wrong in ("a\r\nX: b", "é", "", "a b", "t" * 201):
        device.odd = Odd(plan, random.Random(0), share=0.0)
        with pytest.raises(InvalidParameter, match="invitation"):
            device.join("http://127.0.0.1", plan.hash, most_epsilon=1.0, invitation=wrong)
        device.odd.honest["enrol"] = (201, {"token": wrong})
        with pytest.raises(ProtocolError, match="holds no token"):
            device.join("http://127.0.0.1", plan.hash, most_epsilon=1.0)
    assert device.studies() == []


def test_a_device_asks_whether_its_reply_was_counted(make_plan: Any, tmp_path: Path) -> None:
    plan = make_plan(4, epsilon=1.0)
    device = Device(tmp_path, limit_epsilon=3.0)
    device.odd = Odd(plan, random.Random(0), share=0.0)
    device.join("http://127.0.0.1", plan.hash, most_epsilon=1.0)
    with pytest.raises(ProtocolError, match="no receipt"):
        device.counted(plan.hash)
    device.submit(plan.hash, curve=CURVE, label="yes")
    for counted in (True, False):
        device.odd.honest["0-0-" + "0" * 32] = (200, {"phase": 0, "counted": counted})
        assert device.counted(plan.hash) is counted
    for answer in ({}, [], {"counted": "yes"}, {"counted": 1}, None):
        device.odd.honest["0-0-" + "0" * 32] = (200, answer)
        with pytest.raises(ProtocolError, match="does not say"):
            device.counted(plan.hash)


def test_two_processes_of_one_device_join_and_answer_once(make_plan: Any, tmp_path: Path) -> None:
    """Before: the slower one wrote its new token over the reply that the other had paid for."""
    plan = make_plan(4, epsilon=1.0)
    devices = [Device(tmp_path, limit_epsilon=3.0) for _ in range(4)]
    odd = Odd(plan, random.Random(0), share=0.0)
    joined: list[str] = []
    honest_ask = odd.ask

    def slow(method: str, path: str, **how: Any) -> Answer:
        answer = honest_ask(method, path, **how)
        if path.endswith("/enrol"):
            joined.append(path)
            threading.Event().wait(0.05)
        return answer

    odd.ask = slow  # type: ignore[method-assign]
    receipts: list[Any] = []

    def work(device: Device) -> None:
        try:
            device.odd = odd
            device.join("http://127.0.0.1", plan.hash, most_epsilon=1.0)
            receipts.append(device.submit(plan.hash, curve=CURVE, label="yes"))
        except BaseException as error:
            receipts.append(error)

    threads = [threading.Thread(target=work, args=(device,)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert receipts == ["0-0-" + "0" * 32] * 4
    assert len(joined) == len(odd.sent) == 1
    assert len(devices[0].ledger.entries) == 1
