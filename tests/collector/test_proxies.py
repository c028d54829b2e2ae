"""The examples of proxies in deploy/, run by the real programs."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_collector import QuickCollector

from dpfda.collector.people import MOST_BYTES

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def nginx(folder: Path, port: int, upstream: int, certificate: Path, key: Path) -> list[str]:
    text = (DEPLOY / "nginx.conf").read_text()
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/collector.example.pem", str(certificate)),
        ("/etc/ssl/private/collector.example.key", str(key)),
        ("/var/log/nginx/dpfda.log", str(folder / "log")),
        ("127.0.0.1:8000", f"127.0.0.1:{upstream}"),
    ):
        assert old in text
        text = text.replace(old, new)
    main = folder / "main.conf"
    temporary = "".join(
        f"{kind}_temp_path {folder / kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main.write_text(
        f"pid {folder / 'pid'};\ndaemon off;\nevents {{}}\nhttp {{\n{temporary}{text}\n}}\n"
    )
    return ["nginx", "-e", str(folder / "log"), "-c", str(main)]


def caddy(folder: Path, port: int, upstream: int, certificate: Path, key: Path) -> list[str]:
    text = (DEPLOY / "Caddyfile").read_text()
    site = "collector.example {\n"
    assert site in text
    text = text.replace(
        site, f"https://127.0.0.1:{port} {{\n\tbind 127.0.0.1\n\ttls {certificate} {key}\n"
    )
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
    assert text.count("{\n\tgrace_period ") == 1
    text = text.replace("{\n\t", "{\n\tadmin off\n\tauto_https disable_redirects\n\t", 1)
    (folder / "Caddyfile").write_text(text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


PROXIES = {"nginx": nginx, "caddy": caddy}


class Proxied:
    def __init__(self, port: int, log: Path) -> None:
        self.port, self.log = port, log

    def ask(
        self, method: str, path: str, body: Any = None, token: str = "", place: str = ""
    ) -> Any:
        context = ssl._create_unverified_context()
        wire = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        wire.source_address = (place, 0)
        head = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            wire.request(method, path, body, head | {"Content-Type": "application/json"})
            answer = wire.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        except http.client.IncompleteRead:  # the connection is closed while the body is sent
            return answer.status, b"", {}
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            return 0, b"", {}
        finally:
            wire.close()


@pytest.fixture(params=PROXIES)
def proxied(
    request: pytest.FixtureRequest, tmp_path: Path, certificate: tuple[Path, Path]
) -> Iterator[tuple[Proxied, QuickCollector]]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    options = ["--proxy", "127.0.0.1", "--enrolments", "1", "--rate", "1000"]
    port = free_port()
    with QuickCollector(f"sqlite:///{tmp_path / 'x.db'}", options=options) as collector:
        command = PROXIES[request.param](tmp_path, port, collector.port, *certificate)
        log = tmp_path / "output"
        with log.open("wb") as stream:
            running = subprocess.Popen(command, stdout=stream, stderr=stream, cwd=tmp_path)
        found = Proxied(port, log)
        try:
            deadline = time.monotonic() + 30
            while True:
                try:
                    assert found.ask("GET", "/health")[0] == 200
                    break
                except ConnectionRefusedError:
                    assert time.monotonic() < deadline, log.read_text()
                    assert running.poll() is None, log.read_text()
                    time.sleep(0.1)
            yield found, collector
        finally:
            running.terminate()
            try:
                running.wait(60)  # its period of grace, on a machine that does other things
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def test_a_study_behind_a_proxy(proxied: Any, make_plan: Any, tmp_path: Path) -> None:
    proxy, collector = proxied
    plan = make_plan(20)
    study = collector.create(plan, open=True, deadline=3600)["id"]
    status, _, headers = proxy.ask("GET", f"/api/studies/{study}")
    assert status == 200
    headers = {name.lower(): value for name, value in headers.items()}
    assert headers["strict-transport-security"] == "max-age=31536000"
    path = f"/api/studies/{study}/enrol"
    places = ("127.0.5.1", "127.0.5.1", "127.0.5.2")
    told = [proxy.ask("POST", path, place=place)[0] for place in places]
    assert told == [201, 429, 201], "each person has the limits of their own address"
    (token,) = collector.invite(study, 1)
    batch = b'{"replies":[]}'
    padded = batch + b" " * (MOST_BYTES - len(batch))
    assert proxy.ask("POST", f"/api/studies/{study}/replies", padded, token)[0] == 200
    too_large = batch + b" " * (6 << 20)
    status = proxy.ask("POST", f"/api/studies/{study}/replies", too_large, token)[0]
    assert status in (0, 413, 502), "the collector closes the connection that it does not read"
    began = time.monotonic()
    wire = socket.create_connection(("127.0.0.1", proxy.port), timeout=20)
    secure = ssl._create_unverified_context().wrap_socket(wire)
    secure.sendall(
        f"POST /api/studies/{study}/replies HTTP/1.1\r\nHost: 127.0.0.1:{proxy.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {MOST_BYTES}\r\n\r\n".encode()
        + b" " * 20_000
    )
    assert b" 401 " in secure.recv(100), "refused by its head: the body is not waited for"
    assert time.monotonic() - began < 15, "Caddy 2.6 may wait until its time for bodies is over"
    secure.close()
    written = "".join(
        file.read_text(errors="replace") for file in tmp_path.glob("*") if file.name in
        ("log", "output")
    )  # fmt: skip
    assert not re.search(r"127\.0\.5\.", written), "no address of a person in a log"
    assert json.loads(proxy.ask("GET", "/health")[1]) == {"status": "ok"}
