"""What a site is told about its network, what the coordinator's front lets through, slow links."""

from __future__ import annotations

import http.client
import io
import os
import re
import shutil
import socket
import ssl
import threading
import time
import zipfile
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.sites import app, identity, link, node
from dpfda.sites.identity import Certificates
from dpfda.sites.processes import Channel, Process, free_port
from dpfda_bench.relay import Relay


class Echo(BaseHTTPRequestHandler):
    """Answers what it was asked, at a time of its own."""

    protocol_version, ahead = "HTTP/1.1", 0.0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        content = b"%s %s %s" % (
            self.path.encode(), self.headers.get("Signature", "none").encode(), body,
        )  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        self.send_error(404)

    def date_time_string(self, timestamp=None):
        return formatdate(time.time() - self.ahead, usegmt=True)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def certificates():
    return Certificates.made_for("127.0.0.1")


@pytest.fixture
def serve(tmp_path):
    """A TLS server with these certificates; its port."""
    servers = []

    def begin(made, handler=Echo):
        (tmp_path / "server.pem").write_bytes(made.server)
        (tmp_path / "server.key").write_bytes(made.key)
        server = link._Server(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        server.begin()
        servers.append(server)
        return server.server_address[1]

    yield begin
    for server in servers:
        server.end(True)


# -- words about the network -------------------------------------------------------------------


def trouble(port, made, host="127.0.0.1"):
    return node.network_trouble(f"{host}:{port}", made.authority.decode())


def test_a_network_without_trouble_has_no_words(certificates, serve):
    assert trouble(serve(certificates), certificates) == ""


def test_each_trouble_of_a_network_has_its_own_words(certificates, serve, monkeypatch):
    other = Certificates.made_for("127.0.0.1")
    named = Certificates.made_for("registry.example")
    monkeypatch.setattr(identity, "_DAYS", -0.5)
    expired = Certificates.made_for("127.0.0.1")
    port = serve(certificates)
    plain = link._Server(("127.0.0.1", 0), Echo)
    plain.begin()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(node, "_CONNECT", 0.3)
        said = {
            "unknown here: ask": trouble(port, certificates, "no-such-host.invalid"),
            "nothing listens at port": trouble(free_port(), certificates),
            "may be starting": trouble(silent.getsockname()[1], certificates),
            "does not speak TLS": trouble(plain.server_address[1], certificates),
            "is not the plan's": trouble(port, other),
            "expired by the clock here": trouble(serve(expired), expired),
            "for another host name": trouble(serve(named), named, "localhost"),
        }
    plain.end(True)
    assert [words for words, found in said.items() if words not in found] == [], said


@pytest.mark.parametrize(("ahead", "words"), [
    (180, r"18\d s ahead of"), (-2 * 86400, r"172\d\d\d s behind"), (2, ""), (-200, ""),
])  # fmt: skip
def test_a_clock_that_the_network_refuses_is_named(certificates, serve, ahead, words):
    handler = type("Late", (Echo,), {"ahead": ahead})
    found = trouble(serve(certificates, handler), certificates)
    assert re.search(words, found) if words else found == ""


def test_a_refused_key_is_not_called_a_network_trouble():
    assert "refuses this site's key" in node._refusal("Failed\n[code: 12] not found")
    assert "still starting" in node._refusal("a\nUvicorn running")


# -- the coordinator's front -------------------------------------------------------------------


@pytest.fixture
def begin(certificates, serve, tmp_path):
    """Makes a front of a SuperLink at a port."""
    serve(certificates)  # writes the files

    def made(port, upstream):
        authority = certificates.authority.decode()
        return link._Front(f"127.0.0.1:{port}", upstream, private=tmp_path, authority=authority)

    return made


@pytest.fixture
def front(certificates, serve, begin, tmp_path):
    """The port of a front whose SuperLink is an echo."""
    port = free_port()
    with begin(port, serve(certificates)) as found:
        found.await_link(5, log=tmp_path)
        found.open()
        yield port


def post(port, made, path, *, headers=(), body=b"x"):
    context = ssl.create_default_context(cadata=made.authority.decode())
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
    try:
        connection.request("POST", path, body, dict(headers))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_the_front_passes_requests_of_nodes_on_as_they_are(certificates, front):
    found = post(front, certificates, "/v1/fleet/pull-messages", headers={"Signature": "abc"})
    assert found == (200, b"/v1/fleet/pull-messages abc x")


@pytest.mark.parametrize("path", [
    "/v1/control/start-run", "/v1/runtime/acquire-task", "/docs", "/v1/fleet/../control/start-run",
    "/v1/fleet/%2e%2e/control/start-run", "//v1/control/start-run", "/v1/fleet/x?y", "/v1/fleet/",
    "https://127.0.0.1/v1/control/start-run",
])  # fmt: skip
def test_the_front_passes_nothing_else(certificates, front, path):
    assert post(front, certificates, path)[0] == 403


@pytest.mark.parametrize("headers", [
    {"Transfer-Encoding": "chunked"}, {"Content-Length": "-1"}, {"Content-Length": str(1 << 40)},
])  # fmt: skip
def test_the_front_reads_bodies_of_one_stated_length_only(certificates, front, headers):
    assert post(front, certificates, "/v1/fleet/x", headers=headers)[0] == 403


def test_a_front_whose_superlink_is_away_asks_for_patience(certificates, front, begin, tmp_path):
    port = free_port()
    with begin(port, free_port()) as found:
        with pytest.raises(ProtocolError, match=r"did not start within 0\.1 s.*--start"):
            found.await_link(0.1, log=tmp_path)
        found.open()
        assert post(port, certificates, "/v1/fleet/x")[0] == 503
    with pytest.raises(InvalidParameter, match="address must be free"):
        begin(front, front)


# -- the app, the channel, processes -----------------------------------------------------------


def test_the_app_is_two_files_without_code_and_always_the_same_bytes():
    packed = zipfile.ZipFile(io.BytesIO(app.bundle()))
    assert packed.namelist() == ["pyproject.toml", "LICENSE", ".info/CONTENT"]
    assert app.bundle() == app.bundle()


def test_a_sites_approval_is_of_the_app_and_by_its_key():
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    written = msgspec.json.decode(app.trusted(public))
    assert list(written) == [app.verification(public, b"s")["public_key_id"]]
    assert written[app.key_id(public)].startswith("ssh-ed25519 ")
    assert len(app.approved_content()) == 8 + 32


def test_a_channel_is_for_those_who_know_its_key():
    with Channel() as channel:
        address, key = channel.environment[app.SOCKET], channel.environment[app.SOCKET_KEY]
        with pytest.raises((AuthenticationError, OSError, EOFError)):
            Client(address, authkey=b"another").recv_bytes()
        with Client(address, authkey=bytes.fromhex(key)) as client:
            client.send_bytes(b"hello")
            assert channel.connections.get(timeout=5).recv_bytes() == b"hello"
        assert channel.connections.empty()


def test_a_process_is_started_again_and_its_orphan_ended(tmp_path):
    program = tmp_path / "bin" / "sleeper"
    program.parent.mkdir()
    shutil.copy(shutil.which("sleep"), program)
    ended = threading.Event()

    def sleeper():
        path = {"PATH": str(program.parent)}
        return Process(tmp_path, ["sleeper", "600"], environment=path, ended=ended.set)

    def pid():
        return int((tmp_path / "sleeper.pid").read_text())

    with sleeper() as killed:
        first = pid()
        os.kill(first, 9)
        assert ended.wait(5)
        wait_for(lambda: pid() != first)
        second = pid()
        killed._over.set()  # nobody watches it any more, as if this process had died
        with sleeper():
            wait_for(lambda: not running(second))
            assert running(pid())
    wait_for(lambda: not running(pid()))


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def wait_for(happened, seconds=10):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


# -- slow links --------------------------------------------------------------------------------


@pytest.mark.timed
def test_a_relay_delays_stalls_and_resets(certificates, serve):
    with Relay(serve(certificates), 0.2) as relay:
        began = time.monotonic()
        assert post(relay.port, certificates, "/v1/fleet/x")[0] == 200
        assert 0.5 < time.monotonic() - began < 3  # TCP, TLS and the request: three round trips
        relay.stall(1)
        began = time.monotonic()
        assert post(relay.port, certificates, "/v1/fleet/x")[0] == 200
        assert time.monotonic() - began > 1
        threading.Timer(0.3, relay.reset).start()
        with pytest.raises((OSError, http.client.HTTPException)):
            post(relay.port, certificates, "/v1/fleet/x")
