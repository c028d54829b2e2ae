"""The ClientApp and the ServerApp that Flower runs: both only forward messages.

The ClientApp forwards a message to the guard in the process of ``dpfda site serve``. The ServerApp
delivers messages of the coordinator in the process of ``dpfda consortium run``. They do not decode
messages, so no Flower process has access to dpfda's keys or to records.
"""

from __future__ import annotations

import os
import threading
import time
from multiprocessing.connection import Client, Connection

import msgspec

from dpfda.sites.app import ENTRY, RECORD, SOCKET, SOCKET_KEY, Arrival, Delivery

_POLL = 0.3  # seconds between checks for a reply
_AGAIN = 4.0  # seconds before a message is sent again to a node that could not be reached
_PER_REPLY = 0.02  # seconds that one check costs the SuperLink, per reply


def _channel() -> Connection:
    """The connection to the process that started Flower."""
    return Client(os.environ[SOCKET], authkey=bytes.fromhex(os.environ[SOCKET_KEY]))


try:
    from flwr.app import ConfigRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
except ModuleNotFoundError:  # the package can be read without Flower
    client = server = None
else:
    client, server = ClientApp(), ServerApp()

    @client.query()  # type: ignore[untyped-decorator]
    def answer(message: Message, context: Context) -> Message:
        """The reply of a site's guard to a message."""
        with _channel() as guard:
            guard.send_bytes(message.content[RECORD][ENTRY])
            reply = guard.recv_bytes()
        return Message(RecordDict({RECORD: ConfigRecord({ENTRY: reply})}), reply_to=message)

    @server.main()  # type: ignore[untyped-decorator]
    def deliver(grid: Grid, context: Context) -> None:
        """Deliver messages until the coordinator closes the channel."""
        with _channel() as coordinator:
            while True:
                try:
                    order = msgspec.msgpack.decode(coordinator.recv_bytes(), type=Delivery)
                except (EOFError, OSError):
                    return
                if order.messages:
                    _Batch(grid, coordinator, order).run()
                else:
                    online = Arrival(online=tuple(grid.get_node_ids()))
                    coordinator.send_bytes(msgspec.msgpack.encode(online))

    class _Batch:
        """One message to each node. Each reply is awaited by a separate thread.

        `Grid.pull_messages` returns once an announced reply is uploaded completely. A node that is
        slow, or that never uploads, therefore blocks only its own thread.
        """

        def __init__(self, grid: Grid, coordinator: Connection, order: Delivery) -> None:
            self._grid, self._coordinator, self._order = grid, coordinator, order
            self._over, self._lock = threading.Event(), threading.Lock()

        def run(self) -> None:
            """Send, wait, and report each reply as it arrives, and finally the end of the batch."""
            end = time.monotonic() + self._order.wait
            marks = self._send(list(self._order.messages))
            threads = [
                threading.Thread(target=self._await, args=(node, mark), daemon=True)
                for node, mark in zip(self._order.messages, marks, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(max(0.0, end - time.monotonic()))
            self._over.set()
            self._report(Arrival())

        def _send(self, nodes: list[int]) -> list[str | None]:
            """Send the nodes' messages; return Flower's identifiers, None for failures."""
            wait, messages = self._order.wait, self._order.messages
            made = [
                Message(
                    RecordDict({RECORD: ConfigRecord({ENTRY: messages[node]})}),
                    node,
                    "query",
                    ttl=2 * wait,
                )
                for node in nodes
            ]
            with self._lock:
                return list(self._grid.push_messages(made))

        def _await(self, node: int, mark: str | None) -> None:
            """Wait for the reply of a node; send the message again if the node was unavailable."""
            pause = max(_POLL, _PER_REPLY * len(self._order.messages))
            while not self._over.wait(pause):
                for reply in self._grid.pull_messages([mark]) if mark else ():
                    arrival = _arrival(node, reply)
                    if not self._over.is_set():
                        self._report(arrival)
                    if arrival.content is not None:
                        return
                    mark = None
                if mark is None and not self._over.wait(_AGAIN):
                    (mark,) = self._send([node])

        def _report(self, arrival: Arrival) -> None:
            with self._lock:
                self._coordinator.send_bytes(msgspec.msgpack.encode(arrival))

    def _arrival(node: int, reply: Message) -> Arrival:
        if reply.has_error():
            return Arrival(node=node, trouble=reply.error.reason)
        try:
            content = reply.content[RECORD][ENTRY]
        except (KeyError, ValueError):
            content = None
        if not isinstance(content, bytes):
            return Arrival(node=node, trouble="a reply without content")
        return Arrival(node=node, content=content)
