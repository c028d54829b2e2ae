"""Ten thousand malformed requests: refused every one, with never a 5xx."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_collector import QuickCollector
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from litestar import Litestar

from dpfda.collector.app import create_app
from dpfda.collector.settings import Settings, StudySettings
from dpfda.protocol.wire import token_hash

KEY = "k" * 24
EXAMPLES = 1700  # each is sent to six addresses


class InProcess:
    """The application on a loop in a thread: requests without a network, thousands a second."""

    def __init__(self) -> None:
        self.application = create_app(
            Settings(database="memory:", admin_key=KEY, rate=1e6, burst=10**6)
        )
        self.loop = asyncio.new_event_loop()
        self.statuses: Counter[int] = Counter()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self.loop.run_until_complete, args=(self._live(),))
        self._thread.start()
        assert self._ready.wait(60)

    async def _live(self) -> None:
        framework: Any = self.application
        while not isinstance(framework, Litestar):
            framework = framework.application
        async with framework.lifespan():
            self.collector = framework.state.collector
            self._ready.set()
            await self._stop.wait()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self.loop.close()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    async def ask(self, method: str, path: str, body: bytes, credential: bytes) -> int:
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(),
            "query_string": b"", "http_version": "1.1", "scheme": "http", "root_path": "",
            "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "asgi": {"version": "3.0"},
            "state": {}, "headers": [
                (b"host", b"x"), (b"authorization", b"Bearer " + credential),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ],
        }  # fmt: skip
        found: list[int] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])

        await self.application(scope, receive, send)
        self.statuses[found[0]] += 1
        return found[0]


@pytest.fixture(scope="module")
def inside() -> Iterator[InProcess]:
    made = InProcess()
    yield made
    made.close()


@pytest.fixture
def study(inside: InProcess, make_plan: Any) -> tuple[str, str, str]:
    """Id and hash of a study, and the token of somebody with ticket 0."""
    plan = make_plan(5)
    record = inside.run(inside.collector.create(plan.to_dict(), StudySettings(open=True)))
    token = inside.run(inside.collector.enrol(record.id))
    inside.run(inside.collector.task(record.id, token_hash(token)))
    return record.id, record.hash, token


numbers = st.one_of(
    st.integers(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0, -1, 2**31, 2**63, 2**64, 10**40, 1e308, -0.0]),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def messages(plan_hash: str) -> st.SearchStrategy[dict[str, Any]]:
    """Replies that are nearly right."""
    return st.fixed_dictionaries(
        {},
        optional={
            "plan": st.one_of(st.just(plan_hash), values),
            "phase": st.one_of(st.just(0), numbers, values),
            "ticket": st.one_of(st.just(0), numbers, values),
            "values": st.one_of(st.lists(numbers, max_size=4), values),
            "nonce": st.one_of(st.just("0" * 32), values),
            "count": st.one_of(st.integers(-3, 3), values),
            "more": values,
        },
    )


def test_the_wire_format(inside: InProcess, study: tuple[str, str, str], make_plan: Any) -> None:
    name, plan_hash, token = study
    template = make_plan(5, seed=9).to_dict()
    plans = st.fixed_dictionaries(
        {}, optional={key: st.one_of(st.just(value), values) for key, value in template.items()}
    )

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(messages(plan_hash), st.binary(max_size=30), st.integers(0, 200), plans, st.data())
    def attack(message: Any, noise: bytes, cut: int, plan: Any, data: Any) -> None:
        body = json.dumps(message).encode()
        path = f"/api/studies/{name}"
        requests = [
            ("POST", path + "/reply", body, token.encode()),
            ("POST", path + "/reply", body[:cut] + noise, token.encode()),
            ("POST", path + "/replies", body[:cut] + noise, token.encode()),
            ("POST", path + "/tokens", body, KEY.encode()),
            ("POST", path + "/reply", noise, noise.replace(b"\n", b"").replace(b"\r", b"")),
            ("GET", path + "/task", b"", noise.replace(b"\n", b"").replace(b"\r", b"")),
        ]
        if data.draw(st.integers(0, 20)) == 0:  # plans are checked in the worker: slow
            requests.append(
                ("POST", "/api/studies", json.dumps({"plan": plan}).encode(), KEY.encode())
            )
        for request in requests:
            status = inside.run(inside.ask(*request))
            assert status < 500, request

    attack()
    total = sum(inside.statuses.values())
    assert total >= 10_000
    refused = sum(count for status, count in inside.statuses.items() if 400 <= status < 500)
    assert refused > 0.9 * total
    for _, body in inside.collector.storage.replies(name, 0):  # whatever was accepted is good
        assert all(abs(value) < 1e309 for value in json.loads(body)["values"])


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 5000,
        b'{"plan":' + b"[" * 5000,
        b'{"plan": {}, "settings": null}',
        b'{"plan": {"title": "\\ud800"}}',
        b'{"plan": {"epsilon": 1' + b"0" * 400 + b"}}",
        b"\xff\xfe",
        b'{"plan": {"\xbf": 1}}',
        b'"\xbf"',
        b"",
    ],
)
def test_bodies_that_once_broke_something(inside: InProcess, body: bytes) -> None:
    assert inside.run(inside.ask("POST", "/api/studies", body, KEY.encode())) == 400


@pytest.mark.filterwarnings("ignore")
def test_the_openapi_document(tmp_path: Path, make_plan: Any) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from schemathesis import checks

    conforming = [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    with QuickCollector(f"sqlite:///{tmp_path}/x.db", options=["--rate", "1000"]) as collector:
        collector.create(make_plan(5))
        schema = schemathesis.openapi.from_url(collector.url + "/openapi/openapi.json")
        seen: Counter[int] = Counter()
        for operation in schema.get_all_operations():
            case_strategy = operation.ok().as_strategy()

            @settings(
                max_examples=25,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                database=None,
            )
            @given(case_strategy)
            def attack(case: Any) -> None:
                answer = case.call(headers={"Authorization": f"Bearer {collector.admin_key}"})
                seen[answer.status_code] += 1
                assert answer.status_code < 500, (case.method, case.path, answer.text)
                case.validate_response(answer, checks=conforming)

            attack()
    assert sum(seen.values()) > 200
