"""A site on a Flower network: the stock SuperNode, and the guard that answers its messages.

    SuperLink <── TLS ── flower-supernode ── flower-superexec ── ClientApp ──> guard (this process)

The SuperNode connects to one address with the site's own key, and accepts no connections. It runs
only the app that this site signed (`app`), which forwards each message to the guard.
"""

from __future__ import annotations

import http.client
import queue
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from multiprocessing.connection import Connection
from pathlib import Path

from dpfda.privacy import durable
from dpfda.sites import app
from dpfda.sites.guard import Guard
from dpfda.sites.messages import MOST_BYTES
from dpfda.sites.plan import Plan
from dpfda.sites.processes import Channel, Process, free_port
from dpfda.sites.stored_files import kept

_TICK = 0.5  # seconds between checks of the connection
_FIRST_CHECK = 8.0  # seconds that a SuperNode has to connect before a diagnosis
_NEXT_CHECK = 20.0  # seconds between later diagnoses
_LAST_REPLY = 30.0  # seconds in which the last reply is uploaded, on a slow link
_LEAST_CLOCK, _MOST_CLOCK = -300.0, 5.0  # seconds ahead that Flower accepts of a node's clock
_CONNECT = 10.0  # seconds in which an address that can be reached answers


class Node:
    """The SuperNode of one plan, and the loop in which the guard answers.

    Args:
        plan: the plan, which contains the certificate and the default address.
        folder: the folder of this plan at this site, with keys and logs of the network.
        key: file of the site's private key on the network.
        identity: the site's public identity, the only key whose signature permits an app to run.
        address: address of the SuperLink, if it differs from the plan's.
        say: reports progress in words.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        key: Path,
        identity: bytes,
        address: str | None = None,
        say: Callable[[str], None],
    ) -> None:
        self._address = address or plan.body.address
        self._authority, self._say, self._said = plan.body.certificate, say, ""
        self._folder, self._key = folder.resolve(), key.resolve()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        durable.keep(self._folder / "authority.pem", self._authority.encode())
        durable.keep(self._folder / "trusted.json", app.trusted(identity))
        kept(self._folder / "executor.secret", secrets.token_bytes(32))

    def serve(self, guard: Guard) -> None:
        """Answer messages until the coordinator announces the end of the study."""
        folder, port = self._folder, free_port()
        secret = ["--superexec-auth-secret-file", str(folder / "executor.secret")]
        supernode = [
            "flower-supernode", "--superlink", self._address, "--port", str(port),
            "--root-certificates", str(folder / "authority.pem"),
            "--auth-supernode-private-key", str(self._key),
            "--trusted-entities", str(folder / "trusted.json"),
            "--isolation", "process", *secret,
        ]  # fmt: skip
        executor = [
            "flower-superexec", "--runtime-api-address", f"127.0.0.1:{port}", "--insecure", *secret,
        ]  # fmt: skip
        with ExitStack() as stack:
            channel = stack.enter_context(Channel())
            environment = app.environment(folder / "home", **channel.environment)
            node = stack.enter_context(Process(folder, supernode, environment=environment))
            stack.enter_context(Process(folder, executor, environment=environment))
            check = time.monotonic() + _FIRST_CHECK
            while not guard.over:
                try:
                    answer(channel.connections.get(timeout=_TICK), guard)
                except queue.Empty:
                    check = self._report(node.said, check)
            self._await_upload(node)

    def _report(self, log: str, check: float) -> float:
        """Report once whether the site is connected; return the time of the next check."""
        if "SuperNode ID" in log:
            self._tell("connected")
        elif time.monotonic() >= check:
            reason = network_trouble(self._address, self._authority) or _refusal(log)
            self._tell(f"not connected to {self._address}: {reason}")
            return time.monotonic() + _NEXT_CHECK
        return check

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._say(text)

    def _await_upload(self, node: Process) -> None:
        """Wait until the SuperNode has sent the last reply, which the coordinator needs."""
        sent, end = node.said.count("Sent successfully"), time.monotonic() + _LAST_REPLY
        while node.said.count("Sent successfully") == sent and time.monotonic() < end:
            time.sleep(_TICK)


def answer(connection: Connection, guard: Guard) -> None:
    """Answer the message of one component by the guard."""
    with connection, suppress(EOFError, OSError):  # a component that disconnected gets no reply
        connection.send_bytes(guard.handle(connection.recv_bytes(MOST_BYTES)))


def network_trouble(address: str, authority: str) -> str:
    """Why the SuperLink at this address cannot be used from here; empty if it can.

    Checks the name, the port, the certificate and the clock, in this order.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        socket.getaddrinfo(host, int(port))
    except OSError:
        return (
            f"the name {host!r} is unknown here: ask your network's administrator, or ask the "
            "coordinator for its IP address"
        )
    context = ssl.create_default_context(cadata=authority)
    try:
        plain = socket.create_connection((host, int(port)), timeout=_CONNECT)
    except ConnectionRefusedError:
        return (
            f"nothing listens at port {port}: the coordinator has not started `dpfda consortium "
            "run`, or a firewall refuses the connection"
        )
    except TimeoutError:
        return f"no answer within {_CONNECT:g} s: a firewall may drop connections to port {port}"
    except OSError as error:
        return f"the host cannot be reached ({error.strerror})"
    connection = http.client.HTTPConnection(host, int(port))
    try:
        with plain, context.wrap_socket(plain, server_hostname=host) as connection.sock:
            connection.request("GET", "/")
            date = connection.getresponse().headers["Date"]
    except ssl.SSLCertVerificationError as error:
        return _certificate_trouble(error)
    except ssl.SSLError as error:
        return f"what answers there does not speak TLS ({error.reason}): is it a proxy?"
    except TimeoutError:
        return "the host accepts the connection and says nothing: the coordinator may be starting"
    except (OSError, http.client.HTTPException) as error:
        return f"the connection broke ({type(error).__name__})"
    return _clock_trouble(date)


def _certificate_trouble(error: ssl.SSLCertVerificationError) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    words = {
        9: f"its certificate is not valid yet by the clock here ({now}): correct the clock",
        10: f"its certificate expired by the clock here ({now}): correct the clock, or ask the "
        "coordinator for a new plan",
        62: "its certificate is for another host name than the plan's address",
        64: "its certificate is for another IP address than the plan's address",
    }
    other = (
        "its certificate is not the plan's: another server, or a proxy that reads TLS, answers "
        f"there ({error.verify_message})"
    )
    return words.get(error.verify_code, other)


def _clock_trouble(date: str | None) -> str:
    if date is None:
        return ""
    ahead = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
    if _LEAST_CLOCK <= ahead <= _MOST_CLOCK:
        return ""
    side = "ahead of" if ahead > 0 else "behind"
    return (
        f"the clock here is {abs(ahead):.0f} s {side} the coordinator's, and the network accepts "
        f"{_MOST_CLOCK:g} s ahead and {-_LEAST_CLOCK:g} s behind: correct the clock"
    )


def _refusal(log: str) -> str:
    """Why the SuperNode is not connected although the network works."""
    if "[code:" in log or "401" in log:
        return (
            "the coordinator refuses this site's key for now: another process of this site may "
            "still be connected (it is given up after a minute), or the plan is not the "
            "coordinator's"
        )
    return "the SuperNode is still starting"
