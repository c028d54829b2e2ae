"""Keys, passwords and sessions of real collectors: who sees them, tries them, ends them."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import randrange
from typing import Any
from urllib.parse import urlencode

import pytest
from forked_collector import ForkedCollector

from dpfda.client.administrator import Administrator
from dpfda.client.remote import NotGranted
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.limits import WRONG_A_SECOND, WRONG_KEYS
from dpfda.collector.storage.base import Storage


class Browser:
    """Requests from an address of this machine, through a proxy if it says so."""

    def __init__(self, collector: CollectorProcess, *, address: str = "127.0.0.1") -> None:
        source = (address, 0)
        self._wire = http.client.HTTPConnection(
            "127.0.0.1", collector.port, source_address=source, timeout=20
        )
        self.cookie = ""

    def ask(self, method: str, path: str, form: Any = None, **headers: str) -> Any:
        if self.cookie:
            headers["Cookie"] = self.cookie
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._wire.request(method, path, urlencode(form or {}) or None, named)
        answer = self._wire.getresponse()
        answer.text = answer.read().decode()  # type: ignore[attr-defined]
        self._wire.close()
        return answer

    def guess(self, key: str, **headers: str) -> int:
        """The interface with a key."""
        answer = self.ask("POST", "/api/studies", Authorization=f"Bearer {key}", **headers)
        return int(answer.status)

    def sign_in(self, key: str, **headers: str) -> Any:
        answer = self.ask("POST", "/login", {"key": key}, **headers)
        self.cookie = (answer.headers.get("Set-Cookie") or "").partition(";")[0]
        return answer

    def csrf(self) -> str:
        page = self.ask("GET", "/").text
        return str(page.partition('name="csrf" value="')[2].partition('"')[0])


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("collector")
    with CollectorProcess(f"sqlite:///{folder}/x.db") as process:
        yield process


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    """A collector that believes a proxy at 127.0.0.2."""
    folder = tmp_path_factory.mktemp("behind")
    options = ["--proxy", "127.0.0.2"]
    with CollectorProcess(f"sqlite:///{folder}/x.db", options=options) as process:
        yield process


def test_no_secret_is_an_argument(collector: CollectorProcess) -> None:
    """``ps`` shows arguments to everybody."""
    assert collector._process is not None
    arguments = Path(f"/proc/{collector._process.pid}/cmdline").read_bytes()
    assert collector.admin_key.encode() not in arguments
    assert b"sqlite" not in arguments


def wait_until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextmanager
def guessing(
    collector: CollectorProcess, address: str, ask: Callable[[Browser], int], hands: int = 4
) -> Iterator[Counter[int]]:
    """Somebody who sends wrong keys without a pause, and what they are told."""
    told: Counter[int] = Counter()
    over = threading.Event()

    def guess() -> None:
        browser = Browser(collector, address=address)
        while not over.is_set():
            told[ask(browser)] += 1

    threads = [threading.Thread(target=guess) for _ in range(hands)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: told[429] > 0)
        yield told
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.timed
@pytest.mark.parametrize(
    "ask",
    [
        lambda browser: browser.guess("guess", X_Forwarded_For=f"10.0.0.{randrange(256)}"),
        lambda browser: browser.sign_in("guess").status,
    ],
    ids=["interface, as if from elsewhere", "form"],
)
def test_wrong_keys_are_limited_and_shut_nobody_out(
    collector: CollectorProcess, ask: Callable[[Browser], int]
) -> None:
    """Thousands were compared within seconds; then, after ten of them, the right one was not."""
    began = time.monotonic()
    with guessing(collector, "127.0.0.3", ask) as told:
        neighbor, other = (Browser(collector, address=a) for a in ("127.0.0.3", "127.0.0.4"))
        assert other.sign_in(collector.admin_key).status == 303
        statuses = [neighbor.sign_in(collector.admin_key).status for _ in range(8)]
    assert told[401] <= WRONG_KEYS + WRONG_A_SECOND * (time.monotonic() - began)
    assert set(told) == {401, 429}
    assert 303 in statuses
    assert set(statuses) <= {303, 429}


def test_an_organizer_beside_a_thief_gets_through(collector: CollectorProcess) -> None:
    """Commands try again by themselves, also those that change something."""
    with guessing(collector, "127.0.0.1", lambda browser: browser.guess("guess")):
        organizer = Administrator(collector.url, collector.admin_key)
        assert list(organizer.studies()) == []
        with pytest.raises(NotGranted, match="no such study"):
            organizer.delete("0" * 16)
        organizer.hang_up()


def test_a_proxy_is_believed_when_it_was_named(behind: CollectorProcess, make_plan: Any) -> None:
    """Of one address there is one place in this study."""
    study = behind.create(make_plan(5), open=True)["id"]
    proxy, other = (Browser(behind, address=address) for address in ("127.0.0.2", "127.0.0.6"))

    def enrol(browser: Browser, *said: str) -> int:
        headers = {"X_Forwarded_For": ", ".join(said)}
        return int(browser.ask("POST", f"/api/studies/{study}/enrol", **headers).status)

    assert enrol(proxy, "10.0.0.1", "192.0.2.1") == 201
    assert enrol(proxy, "10.0.0.2", "192.0.2.1") == 429, "the last one is what the proxy saw"
    assert enrol(proxy, "192.0.2.2") == 201
    assert enrol(other, "192.0.2.3") == 201
    assert enrol(other, "192.0.2.4") == 429, "whoever else says so is not"


def test_cookies_are_secure_behind_a_proxy(
    collector: CollectorProcess, behind: CollectorProcess
) -> None:
    plain = Browser(collector).sign_in(collector.admin_key).headers["Set-Cookie"]
    secure = Browser(behind).sign_in(behind.admin_key).headers["Set-Cookie"]
    assert "Secure" not in plain
    assert "Secure" in secure
    assert all("HttpOnly" in cookie and "SameSite=strict" in cookie for cookie in (plain, secure))


def test_signing_out_ends_the_session(collector: CollectorProcess) -> None:
    """A copy of the cookie stayed good for eight hours."""
    owner, thief = Browser(collector), Browser(collector)
    owner.sign_in(collector.admin_key)
    thief.cookie = owner.cookie
    assert thief.ask("GET", "/").status == 200
    assert owner.ask("POST", "/logout", {"csrf": "forged"}).status == 403
    assert thief.ask("GET", "/").status == 200
    assert owner.ask("POST", "/logout", {"csrf": owner.csrf()}).status == 303
    assert thief.ask("GET", "/").status == 303, "sent to the form"
    owner.sign_in(collector.admin_key)
    assert owner.ask("GET", "/").status == 200


def test_a_session_that_was_ended_stays_so(tmp_path: Path) -> None:
    collector = ForkedCollector(f"sqlite:///{tmp_path}/x.db").start()
    try:
        kept, ended = Browser(collector), Browser(collector)
        for one in (kept, ended):
            one.sign_in(collector.admin_key)
        ended.ask("POST", "/logout", {"csrf": ended.csrf()})
        collector.kill()
        collector.start()
        for one, status in ((kept, 200), (ended, 303)):
            again = Browser(collector)
            again.cookie = one.cookie
            assert again.ask("GET", "/").status == status
    finally:
        collector.stop()


@pytest.mark.parametrize("database", ["memory", "sqlite", "postgresql"], indirect=True)
def test_ended_sessions_are_kept_as_long_as_they_matter(storage: Storage) -> None:
    first, second = b"1" * 32, b"2" * 32
    assert not storage.session_ended(first)
    storage.end_session(first, until=10.0, now=1.0)
    storage.end_session(first, until=10.0, now=1.0)
    assert storage.session_ended(first)
    assert not storage.session_ended(second)
    storage.end_session(second, until=20.0, now=10.0)
    assert storage.session_ended(first)
    storage.end_session(second, until=20.0, now=10.5)
    assert not storage.session_ended(first)
    assert storage.session_ended(second)
