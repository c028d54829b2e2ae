"""Processes of Flower, which this package starts, monitors and ends."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from queue import Queue

from dpfda.errors import ProtocolError
from dpfda.privacy import durable
from dpfda.sites.app import SOCKET, SOCKET_KEY

_GRACE = 4.0  # seconds in which a process may leave the network before it is killed
_LOOK = 0.2  # seconds between checks of a process
_LONGEST_PAUSE = 10.0  # seconds before a process that keeps ending is started again


class Process:
    """A program of Flower, which is restarted whenever it ends.

    If the process that started the program is killed, the program keeps running. The next start in
    this folder ends it first.

    Args:
        folder: the folder of its log and its process number. The path must be among the arguments,
            so that the program can be identified.
        arguments: program and arguments.
        environment: environment of the program.
        ended: called each time the program ended by itself, before it is restarted.
    """

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._program, self._arguments = arguments[0], arguments[1:]
        self._folder, self._environment, self._ended = folder, environment, ended
        self._process: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self.log = folder / f"{self._program}.log"

    def __enter__(self) -> Process:
        self._end_orphan()
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

    @property
    def said(self) -> str:
        """The log since the last start."""
        with open(self.log, "rb") as log:
            log.seek(self._logged)
            return log.read().decode("utf-8", "replace")

    def _start(self) -> None:
        program = shutil.which(self._program, path=self._environment["PATH"])
        if program is None:
            raise ProtocolError(f"Flower's program {self._program} is not installed")
        with open(self.log, "ab") as log:
            self._logged = log.tell()
            self._process = subprocess.Popen(
                [program, *self._arguments], env=self._environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        durable.keep(self._pid_file, str(self._process.pid).encode())

    def _watch(self) -> None:
        pause = _LOOK
        while not self._over.wait(_LOOK):
            if self._process is not None and self._process.poll() is not None:
                self._ended()
                if self._over.wait(pause):
                    return
                pause = min(2 * pause, _LONGEST_PAUSE)
                self._start()

    @property
    def _pid_file(self) -> Path:
        return self._folder / f"{self._program}.pid"

    def _end_orphan(self) -> None:
        try:
            pid = int(self._pid_file.read_text())
        except (OSError, ValueError):
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + _GRACE
            while self._is_ours(pid) and time.monotonic() < end:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
                time.sleep(_LOOK)

    def _is_ours(self, pid: int) -> bool:
        """Whether this process runs the program for this folder; False if unknown."""
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
        return self._program.encode() in command and str(self._folder).encode() in command


class Channel:
    """The address at which components of the Flower app reach the process that started Flower.

    It is a local socket in a private folder, with a key that is passed to Flower's processes in
    their environment.

    Attributes:
        connections: connections of components that proved to know the key, in order of arrival.
        environment: the environment variables that a component needs to connect.
    """

    def __init__(self) -> None:
        key = secrets.token_bytes(32)
        self._listener = Listener(authkey=key)
        self.connections: Queue[Connection] = Queue()
        self.environment = {SOCKET: str(self._listener.address), SOCKET_KEY: key.hex()}
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self.connections.put(self._listener.accept())
            except AuthenticationError:
                continue
            except OSError:
                return

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that this process ends the processes that it started."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def free_port() -> int:
    """An unused port of the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
