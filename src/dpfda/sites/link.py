"""The coordinator's side of a Flower network: its SuperLink, and a carrier over it.

The SuperLink runs no app: what is to be done for a run is done here, and only for the run of the
code-free app that this process started itself.
"""

from __future__ import annotations

import errno
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization

from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.privacy import durable
from dpfda.sites import app
from dpfda.sites.node import ENTRY, RECORD
from dpfda.sites.plan import Plan
from dpfda.sites.stored_files import kept
from dpfda.sites.study_folder import StudyFolder

_START = 60.0  # seconds a SuperLink may take
_GRACE = 3.0  # seconds to close connections in
_POLL = 0.2


class SuperLink:
    """A `flower-superlink` of this study, restarted should it die; over TLS, for its nodes only.

    Args:
        folder: of the study; the network's own state lies under ``private/``.
        plan: says at which address.
        bind: at which address of this machine, where that is another than the sites know.
        say: told in words how it goes.
    """

    def __init__(
        self,
        folder: StudyFolder,
        plan: Plan,
        *,
        bind: str | None = None,
        say: Callable[[str], None],
    ) -> None:
        self._address = bind or plan.body.address
        self._plan, self._private, self._say = plan, folder.private.resolve(), say
        self._process: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self.secret = kept(self._private / "executor.secret", secrets.token_bytes(32))

    def __enter__(self) -> SuperLink:
        self._require_port(patience=_GRACE if self._ended_orphan() else 0.0)
        self._start()
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def _ended_orphan(self) -> bool:
        """A SuperLink of this folder whose coordinator was killed still has the port."""
        try:
            pid = int((self._private / "superlink.pid").read_text())
        except (OSError, ValueError):
            return False
        command = _command(pid)
        if b"flower-superlink" in command and str(self._private).encode() in command:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # its database is made for that
            return True
        return not command  # it may have ended a moment ago, and have its port still

    def _require_port(self, *, patience: float) -> None:
        """Refuse an address that another program has, or that is none of this machine's."""
        host, _, port = self._address.rpartition(":")
        end = time.monotonic() + patience
        while True:
            try:
                with socket.create_server((host.strip("[]"), int(port))):
                    return
            except OSError as error:
                if error.errno == errno.EADDRINUSE and time.monotonic() < end:
                    time.sleep(_POLL)
                    continue
                reason = error.strerror
            rule = f"free, and one of this machine ({reason})"
            raise InvalidParameter("address", rule, self._address) from None

    def _start(self) -> None:
        private = self._private
        host, _, port = self._address.rpartition(":")
        durable.keep(private / "authority.pem", self._plan.body.certificate.encode())
        command = [
            str(Path(sys.executable).with_name("flower-superlink")),
            "--host", host, "--port", port, "--isolation", "process",
            "--superexec-auth-secret-file", str(private / "executor.secret"),
            "--database", str(private / "superlink.db"),
            "--ssl-ca-certfile", str(private / "authority.pem"),
            "--ssl-certfile", str(private / "server.pem"),
            "--ssl-keyfile", str(private / "server.key"),
            "--enable-supernode-auth", "--disable-runtime-dependency-installation",
        ]  # fmt: skip
        with open(private / "superlink.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        durable.keep(private / "superlink.pid", str(self._process.pid).encode())

    def _watch(self) -> None:
        while not self._over.wait(_POLL):
            assert self._process is not None
            if self._process.poll() is not None and not self._over.is_set():
                self._say("the SuperLink stopped: it is started again")
                self._start()

    def control(self) -> Any:
        """A client of its Control API, once it answers."""
        import httpx
        from flwr.proto.control_pb2 import ListNodesRequest
        from flwr.supercore.control.control_http_client import ControlHttpClient
        from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

        client = ControlHttpClient.from_server_address(
            self._plan.body.address,
            False,
            self._plan.body.certificate.encode(),
            interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr CLI")],
        )
        for _ in range(int(_START / _POLL)):
            try:
                client.ListNodes(ListNodesRequest())
                return client
            except httpx.TransportError:
                time.sleep(_POLL)
        log = self._private / "superlink.log"
        raise ProtocolError(f"the SuperLink did not start within {_START:g} s: see {log}")


class FlowerCarrier:
    """Carries messages of one study over its SuperLink.

    Args:
        link: the study's SuperLink.
        plan: names the sites and their keys on the network.
        wait: seconds after which a site that did not reply is silent.
        say: told in words how it goes.
    """

    def __init__(
        self, link: SuperLink, plan: Plan, *, wait: float, say: Callable[[str], None]
    ) -> None:
        self._link, self._plan, self._wait, self._say = link, plan, wait, say
        control = link.control()
        self._nodes = _registered(control, plan)
        self._run = _started(control)
        self._grid: Any = None
        self._begun: dict[str, Any] = {}  # replies of which a part is here

    def __enter__(self) -> FlowerCarrier:
        from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http

        self._grid = self._own_task()
        self._beat = HeartbeatSender(make_task_heartbeat_fn_http(self._grid._runtime_client))
        self._beat.start()
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        import httpx
        from flwr.common.constant import SubStatus
        from flwr.proto.runtime_pb2 import PushTaskOutputRequest

        self._grid._retry_invoker.max_tries = 1
        self._beat.stop()  # first: a heartbeat of a task that has ended interrupts the process
        ended = SubStatus.COMPLETED if kind is None else SubStatus.FAILED
        with suppress(httpx.HTTPError):  # nobody waits for it
            self._grid._runtime_client.PushTaskOutput(
                PushTaskOutputRequest(sub_status=ended, details="")
            )
        self._grid.close()

    def present(self) -> list[str]:
        """The sites whose nodes are connected."""
        online = set(self._grid.get_node_ids())
        return [name for name, node in self._nodes.items() if node in online]

    def __call__(self, messages: Mapping[str, bytes]) -> dict[str, bytes]:
        """Send, and wait for replies; whoever is late is left out."""
        import httpx
        from flwr.app import ConfigRecord, Message, RecordDict

        sent = {
            name: Message(
                RecordDict({RECORD: ConfigRecord({ENTRY: content})}),
                self._nodes[name],
                "query",
                ttl=self._wait + _START,  # who is late is known here; a SuperLink may restart
            )
            for name, content in messages.items()
        }
        found: dict[str, bytes] = {}
        self._begun.clear()
        try:
            marks = self._grid.push_messages(list(sent.values()))
            open_ = {mark: name for mark, name in zip(marks, sent, strict=True) if mark}
            end = time.monotonic() + self._wait
            while open_ and time.monotonic() < end:
                for mark, content in self._arrived(set(open_)):
                    name = open_.pop(mark, None)
                    if name is not None and content is not None:
                        found[name] = content
                if open_:
                    time.sleep(_POLL)
        except httpx.HTTPError as error:
            self._say(f"the network failed: {type(error).__name__}")
        return found

    def _arrived(self, marks: set[str]) -> list[tuple[str, bytes | None]]:
        """Whole replies: to what, and what they say; Flower's grid waits hours for one cut off."""
        from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
        from flwr.proto.runtime_pb2 import PullAppMessagesRequest
        from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
        from flwr.supercore.inflatable.inflatable_protobuf_utils import make_pull_object_fn_protobuf
        from flwr.supercore.inflatable.inflatable_utils import (
            ObjectPullError,
            inflate_object_from_contents,
            pull_objects,
        )

        client, node = self._grid._runtime_client, self._grid.node
        told = client.PullMessages(PullAppMessagesRequest(message_ids=marks))
        for message, tree in zip(told.messages_list, told.message_object_trees, strict=True):
            self._begun[message.metadata.message_id] = tree
        whole = []
        for mark, tree in list(self._begun.items()):
            objects = [part.object_id for part in iterate_object_tree(tree)]
            fetch = make_pull_object_fn_protobuf(client.PullObject, node, self._run)
            try:
                contents = pull_objects(objects, fetch, max_tries_per_object=1)
            except ObjectPullError:
                continue
            client.ConfirmMessageReceived(
                ConfirmMessageReceivedRequest(node=node, run_id=self._run, message_object_id=mark)
            )
            del self._begun[mark]
            with suppress(Exception):  # a site may send what is no message at all: it is silent
                reply: Any = inflate_object_from_contents(mark, contents)
                whole.append((reply.metadata.reply_to_message_id, _content(reply)))
        return whole

    def _own_task(self) -> Any:
        """The grid of the run that this process started; a task of any other run is refused."""
        from flwr.common.serde import run_from_proto
        from flwr.proto.runtime_pb2 import AcquireTaskRequest, PullTaskInputRequest
        from flwr.supercore.constant import TaskType
        from flwr.supercore.interceptors import (
            RuntimeVersionHttpInterceptor,
            SuperExecAuthHttpInterceptor,
        )
        from flwr.supercore.runtime import RuntimeHttpClient
        from flwr.supercore.task_identity import TaskIdentity
        from flwr.superlink.grid import HttpGrid

        address, authority = self._plan.body.address, self._plan.body.certificate.encode()
        executor = RuntimeHttpClient.from_server_address(
            server_address=address,
            insecure=False,
            root_certificates=authority,
            interceptors=[
                RuntimeVersionHttpInterceptor(component_name="SuperExec"),
                SuperExecAuthHttpInterceptor(
                    master_secret=self._link.secret,
                    protected_methods={"/flwr.proto.Runtime/AcquireTask"},
                ),
            ],
        )
        for _ in range(int(_START / _POLL)):
            wanted = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
            found = executor.AcquireTask(wanted)
            if not found.token:
                time.sleep(_POLL)
                continue
            if found.task.run_id != self._run:
                continue  # of an earlier process, or of somebody else: claimed here, and never run
            grid = HttpGrid(address, False, authority, token=found.token)
            task = grid._runtime_client.PullTaskInput(PullTaskInputRequest())
            TaskIdentity.task_id, TaskIdentity.run_id = task.task_id, task.run.run_id
            TaskIdentity.node_id = task.context.node_id  # messages are sent in their names
            grid.set_run(run_from_proto(task.run))
            return grid
        raise ProtocolError("the SuperLink gave this study nothing to do")


def _command(pid: int) -> bytes:
    """What a process runs; nothing if it ended, or where it cannot be known."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _registered(control: Any, plan: Plan) -> dict[str, int]:
    """The sites' nodes; only these keys may connect."""
    from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest

    known = {_key(one.public_key): one.node_id for one in _listed(control, ListNodesRequest())}
    nodes = {}
    for card in plan.body.sites:
        key = _key(card.node.encode())
        if key not in known:
            asked = RegisterNodeRequest(public_key=key, name=card.name)
            known[key] = control.RegisterNode(asked).node_id
        nodes[card.name] = known[key]
    return nodes


def _listed(control: Any, request: Any) -> list[Any]:
    return list(control.ListNodes(request).nodes_info)


def _key(pem: bytes) -> bytes:
    """A public key in the one form that it is compared in."""
    key = serialization.load_pem_public_key(pem)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form)


def _started(control: Any) -> int:
    """A run of the code-free app."""
    from flwr.common.serde import fab_to_proto
    from flwr.proto.control_pb2 import StartRunRequest
    from flwr.supercore.fab import Fab

    content = app.built()
    fab = Fab(app.app_hash(), content, {})
    return int(control.StartRun(StartRunRequest(fab=fab_to_proto(fab))).run_id)


def _content(reply: Any) -> bytes | None:
    """What a site replied; None for what the network says in its place."""
    if reply.has_error():
        return None
    try:
        content = reply.content[RECORD][ENTRY]
    except (KeyError, ValueError):
        return None
    return content if isinstance(content, bytes) else None
