"""A site as a node of a Flower network: fetches messages, hands them to its guard, sends replies.

It speaks to the SuperLink as a SuperNode does, and is less: it has no way to run an app. Of the app
that a message belongs to it reads the hash, and refuses all but the one it knows.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization

from dpfda.errors import ProtocolError
from dpfda.privacy import durable
from dpfda.sites.guard import Guard
from dpfda.sites.messages import Reply, encode
from dpfda.sites.plan import Plan

RECORD, ENTRY = "dpfda", "message"
_BEAT = 30.0  # seconds a node may be silent before the network gives it up
_SOON = 0.05  # before a part of a message that is on its way is asked for again
_CUT_OFF = 10.0  # after so long the rest will not come
_PAUSE = 1.0  # before a lost connection is tried again


class Node:
    """A connection to one SuperLink, over TLS, under the site's own key.

    Args:
        plan: says where the SuperLink is, and whose certificate it has.
        key: the site's private key on the network (PEM).
        memory: a file that remembers the node's number on the network, should this process end.
        app: hash of the only app whose messages are read.
        say: told in words how it goes.
    """

    def __init__(
        self, plan: Plan, key: bytes, *, memory: Path, app: str, say: Callable[[str], None]
    ) -> None:
        from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
        from flwr.supernode.fleet_http_client import FleetHttpClient
        from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

        private: Any = serialization.load_pem_private_key(key, password=None)
        self._public = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._client = FleetHttpClient.from_server_address(
            plan.body.address,
            False,
            plan.body.certificate.encode(),
            interceptors=[
                RuntimeVersionHttpInterceptor(component_name="SuperNode"),
                NodeAuthHttpInterceptor(private, private.public_key()),
            ],
        )
        self._app, self._say, self._memory = app, say, memory
        self._known: dict[int, str] = {}

    def serve(self, guard: Guard, *, every: float, until: Callable[[], bool]) -> None:
        """Answer messages until told otherwise; a lost network is waited for."""
        waiting = False
        while not until():
            try:
                with self._active() as node:
                    self._say("connected" if not waiting else "connected again")
                    waiting = False
                    while not until():
                        if not self._one(node, guard):
                            time.sleep(every)
            except Exception as error:  # whatever a network sends, it does not end a site
                if not waiting:
                    self._say(f"waiting for the network ({_reason(error)})")
                waiting = True
                time.sleep(_PAUSE)

    @contextmanager
    def _active(self) -> Iterator[Any]:
        """Known to the SuperLink, with a heartbeat."""
        from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
        from flwr.proto.node_pb2 import Node as FlowerNode

        node, over = FlowerNode(node_id=self._activated()), threading.Event()

        def beat() -> None:
            import httpx

            while not over.wait(_BEAT / 3):
                try:
                    self._client.SendNodeHeartbeat(
                        SendNodeHeartbeatRequest(node=node, heartbeat_interval=_BEAT)
                    )
                except (httpx.HTTPError, OSError):
                    continue  # the main loop notices

        threading.Thread(target=beat, daemon=True).start()
        try:
            yield node
        finally:
            over.set()

    def _activated(self) -> int:
        """The node's number, from now on active; a former process of ours may still seem to be."""
        import httpx
        from flwr.proto.fleet_pb2 import ActivateNodeRequest, DeactivateNodeRequest

        asked = ActivateNodeRequest(public_key=self._public, heartbeat_interval=_BEAT)
        try:
            number = self._client.ActivateNode(asked).node_id
        except httpx.HTTPStatusError:
            if not self._memory.exists():
                raise
            former = int(self._memory.read_text())
            self._client.DeactivateNode(DeactivateNodeRequest(node_id=former))
            number = self._client.ActivateNode(asked).node_id
        durable.keep(self._memory, str(number).encode())
        return int(number)

    def _one(self, node: Any, guard: Guard) -> bool:
        """Fetch and answer one message, if there is one."""
        from flwr.app import Message
        from flwr.proto.fleet_pb2 import PullMessagesRequest
        from flwr.supercore.inflatable.inflatable_protobuf_utils import (
            make_confirm_message_received_fn_protobuf,
            make_pull_object_fn_protobuf,
        )
        from flwr.supercore.inflatable.inflatable_utils import pull_and_inflate_object_from_tree

        found = self._client.PullMessages(PullMessagesRequest(node=node))
        if not found.messages_list:
            return False
        run = found.messages_list[0].metadata.run_id
        tree = found.message_object_trees[0]
        message = pull_and_inflate_object_from_tree(
            tree,
            make_pull_object_fn_protobuf(self._client.PullObject, node, run),
            make_confirm_message_received_fn_protobuf(
                self._client.ConfirmMessageReceived, node, run
            ),
            return_type=Message,
            initial_backoff=_SOON,
            max_time=_CUT_OFF,
        )
        message.metadata.__dict__["_message_id"] = tree.object_id
        self._send(node, message, self._reply(node, run, message, guard))
        return True

    def _reply(self, node: Any, run: int, message: Any, guard: Guard) -> bytes:
        try:
            if self._app_of(node, run) != self._app:
                raise ProtocolError("this site reads messages of one app only, and this is another")
            content = message.content[RECORD][ENTRY]
            if message.metadata.message_type != "query" or not isinstance(content, bytes):
                raise ProtocolError("this site reads queries only")
        except (ProtocolError, KeyError, ValueError, TypeError) as error:
            reason = str(error) if isinstance(error, ProtocolError) else "no message of a plan"
            guard.journal.write("refused", f"message: {reason}")
            return encode(Reply(refused=reason))
        return guard.handle(content)

    def _app_of(self, node: Any, run: int) -> str:
        """Hash of the app that a run belongs to, of its bytes and not of its claims."""
        if run in self._known:
            return self._known[run]
        from flwr.proto.fab_pb2 import GetFabRequest
        from flwr.proto.run_pb2 import GetRunRequest

        claimed = self._client.GetRun(GetRunRequest(node=node, run_id=run)).run.fab_hash
        asked = GetFabRequest(node=node, hash_str=claimed, run_id=run)
        self._known[run] = hashlib.sha256(self._client.GetFab(asked).fab.content).hexdigest()
        return self._known[run]

    def _send(self, node: Any, message: Any, content: bytes) -> None:
        from flwr.app import ConfigRecord, Message, RecordDict
        from flwr.app.message import remove_content_from_message
        from flwr.common.serde import message_to_proto
        from flwr.proto.fleet_pb2 import PushMessagesRequest
        from flwr.supercore.inflatable.inflatable_object import (
            get_all_nested_objects,
            get_object_tree,
            no_object_id_recompute,
        )
        from flwr.supercore.inflatable.inflatable_protobuf_utils import make_push_object_fn_protobuf
        from flwr.supercore.inflatable.inflatable_utils import push_objects

        reply = Message(RecordDict({RECORD: ConfigRecord({ENTRY: content})}), reply_to=message)
        reply.metadata.__dict__["_message_id"] = reply.object_id
        with no_object_id_recompute():
            tree, objects = get_object_tree(reply), get_all_nested_objects(reply)
            pushed = self._client.PushMessages(
                PushMessagesRequest(
                    node=node,
                    messages_list=[message_to_proto(remove_content_from_message(reply))],
                    message_object_trees=[tree],
                    clientapp_runtime_list=[0.0],
                )
            )
            push_objects(
                objects,
                make_push_object_fn_protobuf(
                    self._client.PushObject, node, message.metadata.run_id, pushed.session_id
                ),
                object_ids_to_push=set(pushed.objects_to_push),
            )


def _reason(error: Exception) -> str:
    """In a few words; a refusal of the SuperLink in its own."""
    response = getattr(error, "response", None)
    return type(error).__name__ if response is None else f"HTTP {response.status_code}"
