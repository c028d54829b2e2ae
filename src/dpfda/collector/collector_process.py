"""A collector in a separate process, for the demo, tests and benchmarks."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from dpfda.errors import DpfdaError
from dpfda.protocol.plan import StudyPlan

_PATIENCE = 60.0  # seconds


class CollectorProcess:
    """Runs ``dpfda serve`` on a free loopback port until the block ends.

    Args:
        database: URL of the storage.
        log: file for its log; dropped by default.
        options: further options of ``dpfda serve``.

    Attributes:
        program: the module that is run.
    """

    program = "dpfda.cli"

    def __init__(
        self, database: str, *, log: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        self.database = database
        self.admin_key = secrets.token_urlsafe(24)
        self.log = log
        self.options = list(options)
        self.port = 0
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Start the process and wait until it answers; after a kill, on the same port as before."""
        told = {"DPFDA_ADMIN_KEY": self.admin_key, "DPFDA_DATABASE": self.database}
        arguments = ["serve", "--port", str(self.port), *self.options]
        with open(self.log or os.devnull, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.program, *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | told,
                text=True,
            )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise DpfdaError("the collector did not start")
        self.port = int(self.url.rpartition(":")[2])
        if self.url.startswith("http:"):
            self._wait()
        return self

    def kill(self) -> None:
        """Kill the process (kill -9)."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._close_pipe()

    def stop(self) -> None:
        """Terminate the process; kill it after 20 seconds."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close_pipe()

    @property
    def pid(self) -> int:
        """Number of the process."""
        assert self._process is not None
        return self._process.pid

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Send a request with the administrator's key; return the answer as plain values."""
        return json.loads(self.read(method, path, body))

    def read(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> bytes:
        """Send a request with the administrator's key or a token; return the body as bytes."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token or self.admin_key}"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        asked = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return bytes(answer.read())

    def create(self, plan: StudyPlan, **settings: object) -> dict[str, Any]:
        """Create a study."""
        body = {"plan": plan.to_dict(), "settings": settings}
        found: dict[str, Any] = self.request("POST", "/api/studies", body)
        return found

    def invite(self, study: str, people: int) -> list[str]:
        """Invitations to a study: tokens, one for each person."""
        path = f"/api/studies/{study[:16]}/tokens"
        found: list[str] = self.request("POST", path, {"count": people})["tokens"]
        return found

    def wait_until(self, study: str, *, phase: int | None = None) -> dict[str, Any]:
        """The status of a study once it has reached a phase, or is finished."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            status: dict[str, Any] = self.request("GET", f"/api/studies/{study}")
            reached = phase is not None and status["phase"] >= phase and status["status"] == "open"
            if status["status"] == "finished" or reached:
                return status
            if time.monotonic() > deadline:
                raise DpfdaError("the study makes no progress")
            time.sleep(0.1)

    def _wait(self) -> None:
        """Wait for the first answer; the process listens before it prints its address."""
        try:
            urllib.request.urlopen(self.url + "/health", timeout=60).close()
        except OSError:  # refused, hung up, or too late
            raise DpfdaError("the collector does not answer") from None

    def _close_pipe(self) -> None:
        assert self._process is not None
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
