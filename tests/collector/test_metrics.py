"""Metrics are true for all workers, and a listener for administrators keeps others out."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from forked_collector import QuickCollector
from prometheus_client.parser import text_string_to_metric_families

from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.tracing import ENDPOINT


def families(text: str) -> dict[str, Any]:
    return {one.name: one for one in text_string_to_metric_families(text)}


def scrape(collector: CollectorProcess) -> dict[str, Any]:
    return families(collector.read("GET", "/metrics").decode())


def value(found: dict[str, Any], family: str, sample: str, **labels: str) -> float:
    return sum(
        one.value
        for one in found[family].samples
        if one.name == sample and labels.items() <= one.labels.items()
    )


def served(found: dict[str, Any], route: str) -> float:
    return value(found, "dpfda_request_seconds", "dpfda_request_seconds_count", route=route)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_scrape_is_true_for_all_workers(database: str, make_plan: Any) -> None:
    with CollectorProcess(database, options=["--workers", "2"]) as collector:
        study = collector.create(make_plan(40))["id"]
        for token in collector.invite(study, 24):
            collector.read("GET", f"/api/studies/{study}/task", token=token)
        route, counts = "/api/studies/{study}/task", []
        for _ in range(12):
            found = scrape(collector)
            counts.append(served(found, "/metrics"))
            assert served(found, route) == 24
            stored = ("dpfda_committed", "dpfda_committed_total")
            assert value(found, *stored, kind="tickets") == 24
            assert value(found, *stored, kind="enrolments") == 24
        assert counts == sorted(counts)
        assert counts[-1] == 11
        memory = value(found, "dpfda_memory_bytes", "dpfda_memory_bytes")
        before = set(_workers(collector.pid))
        os.kill(before.pop(), signal.SIGKILL)
        deadline = time.monotonic() + 60
        while len(now := set(_workers(collector.pid))) < 2 or now == before:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        found = scrape(collector)
        assert served(found, route) == 24, "what a dead worker counted stays"
        assert 0 < value(found, "dpfda_memory_bytes", "dpfda_memory_bytes") < 1.2 * memory


def _workers(parent: int) -> list[int]:
    """Child processes that serve; not the one that tracks resources."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(c) for c in listed if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


def test_every_number_is_explained(tmp_path: Path, make_plan: Any) -> None:
    with QuickCollector(f"sqlite:///{tmp_path / 'x.db'}") as collector:
        study = collector.create(make_plan(40))["id"]
        collector.invite(study, 3)
        found = scrape(collector)
    assert all(one.documentation for one in found.values())
    assert {one.type for one in found.values()} == {"counter", "gauge", "histogram"}
    assert found["dpfda_committed"].type == "counter"
    (built,) = found["dpfda_build_info"].samples
    assert set(built.labels) == {"version", "python"}
    bounds = {one.labels.get("le") for one in found["dpfda_request_seconds"].samples}
    assert {"0.001", "30.0", "+Inf"} <= bounds
    assert {"dpfda_writes_waiting", "dpfda_oldest_write_seconds"} <= set(found)
    assert study not in str(found), "no study is named to strangers"
    assert value(found, "dpfda_studies", "dpfda_studies") == 1


def status(url: str, method: str = "GET", key: str = "") -> int:
    asked = urllib.request.Request(url, method=method)
    if key:
        asked.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(asked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_administrators_have_a_listener(tmp_path: Path, make_plan: Any) -> None:
    database = f"sqlite:///{tmp_path / 'x.db'}"
    port = _free()
    options = ["--admin-listen", f"127.0.0.1:{port}"]
    with QuickCollector(database, options=options) as collector:
        public, admin, key = collector.url, f"http://127.0.0.1:{port}", collector.admin_key
        collector.url = admin
        made = collector.create(make_plan(4), open=True)
        study = made["id"]
        (token,) = collector.invite(study, 1)
        for path in ("/metrics", "/login", "/live", "/ready", "/health"):
            assert status(admin + path) == 200, path
        for path in ("/health", "/api/studies", f"/api/studies/{study}", "/openapi/openapi.json"):
            assert status(public + path) == 200, path
        assert status(f"{public}/api/studies/{study}/task", key=token) == 200
        assert status(f"{public}/take-part/{made['hash']}") == 200
        for method, path in (
            *(("GET", path) for path in ("/metrics", "/live", "/login", "/", "/new", "/nothing")),
            ("POST", "/api/studies"),
            ("POST", "/api/exchanges"),
            ("POST", f"/api/studies/{study}/tokens"),
            ("GET", f"/api/studies/{study}/phases/0/replies"),
            ("DELETE", f"/api/studies/{study}"),
            ("DELETE", f"/api/studies/{study}/replies"),
            ("POST", "/api/clock"),
        ):
            assert status(public + path, method, key) == 404, (method, path)
        assert status(f"{admin}/api/studies/{study}", "DELETE", key) in (200, 202)


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Spans(BaseHTTPRequestHandler):
    """Takes what a collector sends to OpenTelemetry."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.bodies.append(body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def test_traces_are_not_of_participants(
    tmp_path: Path, make_plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    taking = ThreadingHTTPServer(("127.0.0.1", 0), Spans)
    taking.bodies = []  # type: ignore[attr-defined]
    threading.Thread(target=taking.serve_forever, daemon=True).start()
    monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{taking.server_address[1]}")
    with CollectorProcess(f"sqlite:///{tmp_path / 'x.db'}") as collector:
        study = collector.create(make_plan(4))["id"]
        (token,) = collector.invite(study, 1)
        collector.read("GET", f"/api/studies/{study}/task", token=token)
        collector.request("POST", f"/api/studies/{study}/phases/0/close")
        collector.wait_until(study)
    taking.shutdown()
    taking.server_close()
    sent = b"".join(taking.bodies)  # type: ignore[attr-defined]
    for name in (b"conclude", b"forget", b"POST /api/studies", study.encode()):
        assert name in sent
    for name in (b"/task", b"/enrol", b"/reply", token.encode(), collector.admin_key.encode()):
        assert name not in sent
