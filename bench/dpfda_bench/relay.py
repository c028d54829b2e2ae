"""A slow link in userspace: a TCP relay on loopback that delays, stalls and resets."""

from __future__ import annotations

import asyncio
import threading


class Relay:
    """Passes bytes to a port of this machine, each later by half of the round-trip time.

    Args:
        target: port to pass bytes to.
        round_trip: seconds from a request to its reply, if the reply itself took none.
    """

    def __init__(self, target: int, round_trip: float) -> None:
        self._target, self._delay, self._stalled_until = target, round_trip / 2, 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._ready, self.port, self.passed = threading.Event(), 0, 0

    def __enter__(self) -> Relay:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def reset(self) -> None:
        """Cut every connection, as a router that restarts does."""

        def cut() -> None:
            for writer in self._writers:
                writer.transport.abort()

        self._loop.call_soon_threadsafe(cut)

    def stall(self, seconds: float) -> None:
        """Pass nothing for so long; nothing is lost."""

        def stop() -> None:
            self._stalled_until = self._loop.time() + seconds

        self._loop.call_soon_threadsafe(stop)

    async def _main(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(2 * self._delay)  # the handshake of TCP
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._writers |= both
        passing = (self._pass(reader, far_writer), self._pass(far_reader, writer))
        await asyncio.gather(*passing, return_exceptions=True)
        for one in both:
            one.transport.abort()
        self._writers -= both

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def send() -> None:
            while True:
                due, content = await waiting.get()
                await asyncio.sleep(max(due, self._stalled_until) - self._loop.time())
                if not content:
                    return
                writer.write(content)
                await writer.drain()
                self.passed += len(content)

        sending = asyncio.ensure_future(send())
        content = b"-"
        while content:
            try:
                content = await reader.read(1 << 16)
            except OSError:
                content = b""
            waiting.put_nowait((self._loop.time() + self._delay, content))
        await sending
