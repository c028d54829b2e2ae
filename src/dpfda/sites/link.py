"""A coordinator on a Flower network: the stock SuperLink, and a transport through its ServerApp.

    sites ── TLS ──> front ──> flower-superlink <── flower-superexec ── ServerApp ──> this process

Flower's SuperLink serves sites, users and executors at one port, and lets any client start an app.
It therefore listens on the loopback interface only. The front listens at the public address,
forwards the requests of SuperNodes, and refuses all others.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty

import msgspec

from dpfda.errors import InvalidParameter, ProtocolError, printable
from dpfda.privacy import durable
from dpfda.sites import app
from dpfda.sites.messages import MOST_BYTES
from dpfda.sites.plan import Plan
from dpfda.sites.processes import Channel, Process, free_port
from dpfda.sites.stored_files import kept
from dpfda.sites.study_folder import StudyFolder

_POLL = 0.5  # seconds between attempts to reach the SuperLink
_LOOK = 0.1  # seconds between checks whether a server should stop
_REPORT = 10.0  # seconds between progress messages while waiting
_MARGIN = 30.0  # seconds after the end of a step in which its ServerApp must report
_ENDS = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "host",
    "content-length",
    "server",
    "date",
}


class FlowerCarrier:
    """The transport of one study: sends messages over a dedicated SuperLink.

    Args:
        folder: the folder of the study; the network's state is in ``private/network``.
        plan: defines the sites, their keys, and the address.
        bind: local address to listen at, if it differs from the plan's.
        wait: seconds after which a site without a reply counts as silent.
        start: seconds within which the SuperLink and its app must start.
        say: reports progress in words.
    """

    def __init__(
        self,
        folder: StudyFolder,
        plan: Plan,
        *,
        bind: str | None = None,
        wait: float,
        start: float,
        say: Callable[[str], None],
    ) -> None:
        self._plan, self._wait, self._start, self._say = plan, wait, start, say
        self._address = bind or plan.body.address
        self._private = folder.private.resolve()
        self._network = self._private / "network"
        self._nodes: dict[str, int] = {}
        self._app: Connection | None = None
        self._stack = ExitStack()

    def __enter__(self) -> FlowerCarrier:
        with ExitStack() as stack:
            self._begin(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._app is not None:
            self._app.close()  # the ServerApp ends
        self._stack.close()

    def _begin(self, stack: ExitStack) -> None:
        network, port = self._network, free_port()
        network.mkdir(exist_ok=True, mode=0o700)
        front = stack.enter_context(
            _Front(
                self._address, port, private=self._private, authority=self._plan.body.certificate
            )
        )
        hub = stack.enter_context(_Hub(self._plan))
        channel = stack.enter_context(Channel())
        durable.keep(network / "authority.pem", self._plan.body.certificate.encode())
        kept(network / "executor.secret", secrets.token_bytes(32))
        authority, secret = str(network / "authority.pem"), str(network / "executor.secret")
        self._channel, self._environment = channel, app.environment(
            network / "home", FLWR_SUPERGRID_API_URL=hub.address, **channel.environment
        )  # fmt: skip
        connection = {"address": f"127.0.0.1:{port}", "root-certificates": authority}
        lines = [f"{name} = {json.dumps(value)}" for name, value in connection.items()]
        written = '[superlink]\ndefault = "study"\n\n[superlink.study]\n' + "\n".join(lines) + "\n"
        durable.keep(network / "home" / "config.toml", written.encode())
        superlink = [
            "flower-superlink", "--host", "127.0.0.1", "--port", str(port),
            "--isolation", "process", "--superexec-auth-secret-file", secret,
            "--database", str(network / "superlink.db"), "--ssl-ca-certfile", authority,
            "--ssl-certfile", str(self._private / "server.pem"),
            "--ssl-keyfile", str(self._private / "server.key"),
            "--enable-supernode-auth", "--disable-runtime-dependency-installation",
        ]  # fmt: skip
        executor = [
            "flower-superexec", "--runtime-api-address", f"127.0.0.1:{port}",
            "--root-certificates", authority, "--superexec-auth-secret-file", secret,
        ]  # fmt: skip
        say = self._say

        def ended() -> None:
            say("the SuperLink stopped: it is started again")

        environment = self._environment
        link = Process(network, superlink, environment=environment, ended=ended)
        stack.enter_context(link)
        front.await_link(self._start, log=link.log)
        self._nodes = self._registered()
        stack.enter_context(Process(network, executor, environment=environment))
        self._connect()
        front.open()

    def _registered(self) -> dict[str, int]:
        """The sites' nodes on the network; only these keys may connect."""
        path = self._network / "nodes.json"
        nodes: dict[str, int] = json.loads(path.read_bytes()) if path.exists() else {}
        for card in self._plan.body.sites:
            if card.name not in nodes:
                key = self._network / "node.pub"
                durable.keep(key, card.node.encode())
                found = self._flwr("supernode", "register", str(key), "study")
                nodes[card.name] = int(found["node-id"])
                durable.keep(path, json.dumps(nodes).encode())
        return nodes

    def _flwr(self, *arguments: str) -> dict[str, str | int]:
        """The output of a command of Flower."""
        done = subprocess.run(
            ["flwr", *arguments, "--format", "json"], env=self._environment,
            capture_output=True, text=True, timeout=self._start, check=False,
        )  # fmt: skip
        try:
            answer: dict[str, str | int] = json.loads(done.stdout[done.stdout.index("{") :])
        except ValueError:
            answer = {}
        if not answer.get("success"):
            said = printable((done.stdout + done.stderr).strip()[-500:])
            raise ProtocolError(f"`flwr {' '.join(arguments[:2])}` failed: {said}")
        return answer

    def _connect(self) -> None:
        """Start the ServerApp, and wait until it connects."""
        self._flwr("run", f"{app.NAME}=={app.VERSION}", "study")
        try:
            self._app = self._channel.connections.get(timeout=self._start)
        except Empty:
            raise ProtocolError(
                f"Flower's ServerApp did not start within {self._start:g} s: see {self._network}, "
                "or allow more with --start"
            ) from None

    def _order(self, messages: dict[int, bytes], wait: float = 0.0) -> None:
        assert self._app is not None
        self._app.send_bytes(msgspec.msgpack.encode(app.Delivery(messages, wait)))

    def _arrival(self, timeout: float) -> app.Arrival | None:
        assert self._app is not None
        if not self._app.poll(timeout):
            return None
        return msgspec.msgpack.decode(self._app.recv_bytes(), type=app.Arrival)

    def present(self) -> list[str]:
        """The sites whose nodes are connected."""
        self._order({})
        found = self._arrival(self._start)
        online = () if found is None or found.online is None else found.online
        return [name for name, node in self._nodes.items() if node in online]

    def __call__(self, messages: Mapping[str, bytes]) -> dict[str, bytes]:
        """Send messages and wait for replies; late sites are left out."""
        replies: dict[str, bytes] = {}
        try:
            self._order({self._nodes[name]: text for name, text in messages.items()}, self._wait)
            self._collect(messages, replies)
        except (EOFError, OSError):
            self._say("Flower's ServerApp stopped: it is started again")
            self._connect()
        return replies

    def _collect(self, messages: Mapping[str, bytes], replies: dict[str, bytes]) -> None:
        names = {self._nodes[name]: name for name in messages}
        began, troubles = time.monotonic(), dict[str, str]()
        while True:
            found = self._arrival(_REPORT)
            passed = time.monotonic() - began
            if found is None:
                missing = [name for name in messages if name not in replies]
                self._say(f"waiting for {', '.join(missing)} ({passed:.0f} of {self._wait:g} s)")
                if passed > self._wait + _MARGIN:
                    raise EOFError
            elif found.node == 0:
                return
            elif name := names.get(found.node):
                if found.content is not None:
                    replies[name] = found.content
                elif troubles.get(name) != found.trouble:
                    troubles[name] = found.trouble
                    self._say(f"no reply of {name!r} yet: {printable(found.trouble)}")


class _Server(ThreadingHTTPServer):
    """A server in a separate thread that survives broken connections."""

    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: object, client_address: object) -> None:
        """End a connection that breaks or does not speak TLS; the others continue."""

    def begin(self) -> None:
        """Start to answer requests."""
        threading.Thread(target=self.serve_forever, args=(_LOOK,), daemon=True).start()

    def end(self, began: bool) -> None:
        """Stop answering requests."""
        if began:
            self.shutdown()
        self.server_close()


class _Front:
    """Forwards requests of SuperNodes to the SuperLink, and refuses all others.

    Args:
        address: the address to listen at.
        port: port of the SuperLink on the loopback interface.
        private: folder of the server's certificate and key.
        authority: authority of the certificate (PEM).
    """

    def __init__(self, address: str, port: int, *, private: Path, authority: str) -> None:
        host, _, number = address.rpartition(":")
        self._upstream = ssl.create_default_context(cadata=authority)
        self._port, self._opened = port, False
        handler = type("Handler", (_FleetRequests,), {"link": self.link})
        try:
            self._server = _Server((host.strip("[]"), int(number)), handler)
        except OSError as error:
            rule = f"free, and one of this machine ({error.strerror})"
            raise InvalidParameter("address", rule, address) from None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(private / "server.pem", private / "server.key")
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )

    def link(self) -> http.client.HTTPSConnection:
        """A new connection to the SuperLink."""
        context, timeout = self._upstream, 60.0
        return http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=timeout, context=context
        )

    def await_link(self, seconds: float, *, log: Path) -> None:
        """Wait until the SuperLink answers."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            connection = self.link()
            try:
                connection.request("GET", "/")
                connection.getresponse().read()
                return
            except OSError:
                time.sleep(_POLL)
            finally:
                connection.close()
        raise ProtocolError(
            f"the SuperLink did not start within {seconds:g} s: see {log}, or allow more with "
            "--start"
        )

    def open(self) -> None:
        """Accept connections of sites."""
        self._server.begin()
        self._opened = True

    def __enter__(self) -> _Front:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.end(self._opened)


class _FleetRequests(BaseHTTPRequestHandler):
    """One connection of a SuperNode."""

    protocol_version = "HTTP/1.1"
    timeout = 120  # seconds a connection may be idle
    link: Callable[[], http.client.HTTPSConnection]

    def do_POST(self) -> None:
        """Forward a request of Flower's Fleet API unchanged."""
        lengths = self.headers.get_all("Content-Length", [])
        body_is_plain = len(lengths) == 1 and lengths[0].isdigit() and (
            "Transfer-Encoding" not in self.headers and int(lengths[0]) <= MOST_BYTES
        )  # fmt: skip
        if not re.fullmatch(r"/v1/fleet/[a-z-]+", self.path) or not body_is_plain:
            self.close_connection = True
            self.send_error(403)
            return
        body = self.rfile.read(int(lengths[0]))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _ENDS}
        connection = type(self).link()
        try:
            connection.request("POST", self.path, body, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self.send_error(503)  # SuperNodes try again
            return
        finally:
            connection.close()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _ENDS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing, because the SuperLink has its own log."""


class _Hub:
    """Serves the app with all sites' signatures to Flower, in place of Flower's own hub."""

    def __init__(self, plan: Plan) -> None:
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_HubRequests,), {"plan": plan}))
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> _Hub:
        self._server.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.end(True)


class _HubRequests(BaseHTTPRequestHandler):
    plan: Plan

    def do_POST(self) -> None:
        """Return the address of the app, and its signatures."""
        self.rfile.read(int(self.headers["Content-Length"]))
        signed = [app.verification(card.public, card.approval) for card in self.plan.body.sites]
        url = f"http://{self.headers['Host']}/app"
        self._send(json.dumps({"fab_url": url, "verifications": signed}).encode())

    def do_GET(self) -> None:
        """Return the app."""
        self._send(app.bundle())

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing, because only the SuperLink sends requests."""
