"""Settings of a collector from a file, the environment and the command line; keys that change."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda as command_line

pytest.importorskip("litestar")

KEY, OTHER = "0123456789abcdef012345", "another-key-of-22-chars"


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Called with arguments and environment: what would be served."""
    from dpfda.collector import run

    found: dict[str, Any] = {}
    monkeypatch.setattr(run, "serve", lambda settings, **how: found.update(how, settings=settings))
    monkeypatch.chdir(tmp_path)

    def read(*arguments: str, **environment: str) -> dict[str, Any]:
        place = {"DPFDA_ADMIN_KEY": KEY, "DPFDA_DATABASE": "memory:", "DPFDA_PORT": "0"}
        done = CliRunner().invoke(command_line, ["serve", *arguments], env=place | environment)
        return found if done.exit_code == 0 else {"error": done.stderr}

    return read


def test_a_file_counts_less_than_the_environment(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        'rate = 7.5\nburst = 3\nproxy = ["10.0.0.1", "10.0.1.0/24"]\npurge-after = 30\ngroup = 9\n'
        .replace("burst = 3\n", "")
    )  # fmt: skip
    found = settings("--config", "c.toml", "--group", "11", DPFDA_RATE="8.5", DPFDA_GROUP="10")
    told = found["settings"]
    assert (told.rate, told.group, told.purge_after) == (8.5, 11, 30.0)
    assert told.proxies == ("10.0.0.1", "10.0.1.0/24")
    assert settings(DPFDA_CONFIG="c.toml")["settings"].rate == 7.5
    assert settings(DPFDA_PROXY="10.0.0.1 10.0.0.2")["settings"].proxies == ("10.0.0.1", "10.0.0.2")


def test_all_mistakes_are_listed_at_once(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('rate = "fast"\nprot = 8000\nallow-origin = ["nowhere"]\n')
    told = settings(
        *("--config", "c.toml", "--admin-listen", "nowhere", "--proxy", "everybody"),
        *("--tls-key", "c.toml", "--enrolments", "-1"),
        DPFDA_WORKERS="2", DPFDA_ADMIN_KEY="short", DPFDA_PATIENCE="nan",
    )["error"]  # fmt: skip
    for part in (
        "'fast' is not a valid float",
        "'prot' is not an option of dpfda serve",
        "--allow-origin",
        "--admin-listen",
        "--proxy must be an IP address",
        "--tls-key must be given together",
        "-1 is not in the range",
        "DPFDA_PATIENCE: ",
        "--workers must be 1 unless",
        "DPFDA_ADMIN_KEY must be a key of 22",
    ):
        assert part in told, part
    assert "(10)" in told
    assert "(11)" not in told
    assert len(told.splitlines()) == 1


def test_a_password_in_a_file_is_for_its_owner(settings: Any, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('database = "postgresql://u:secret@127.0.0.1:1/x"\n')
    file.chmod(0o644)
    given = {"DPFDA_DATABASE": ""}
    assert (
        "--config must be closed to other users" in settings("--config", "c.toml", **given)["error"]
    )
    file.chmod(0o600)
    told = settings("--config", "c.toml", **given)["error"]
    assert "one that can be opened" in told
    assert "secret" not in told


def status(url: str, key: str) -> int:
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


class Served:
    """``dpfda serve`` with a listener that this process opened, as a service manager does."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self._folder, self._options = folder, options
        self.log = folder / "log"
        self.start()

    def start(self) -> None:
        command = ["serve", "--database", f"sqlite:///{self._folder / 'x.db'}", *self._options]
        command += ["--admin-key-file", str(self._folder / "key")]
        fd = self.listener.fileno()
        script = (  # the number of the process is known only to itself
            "import os, sys; os.dup2(int(sys.argv[1]), 3, inheritable=True); "
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); "
            "os.execv(sys.executable, [sys.executable, '-m', 'dpfda.cli', *sys.argv[2:]])"
        )
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", script, str(fd), *command],
                pass_fds=[fd], stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == self.url

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_no_connection_is_refused_while_it_is_started_again(tmp_path: Path) -> None:
    served = Served(tmp_path)
    try:
        assert status(served.url + "/health", (tmp_path / "key").read_text().strip()) == 200
        served.stop()
        waiting = socket.create_connection(served.listener.getsockname(), timeout=60)
        waiting.sendall(b"GET /live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        served.start()
        assert waiting.recv(100).startswith(b"HTTP/1.1 200")
        waiting.close()
    finally:
        served.stop()
        served.listener.close()


def test_keys_change_without_a_restart_and_workers_are_replaced_on_sighup(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    file.chmod(0o600)
    served = Served(tmp_path, "--workers", "1")
    try:
        url = served.url + "/api/studies"
        assert [status(url, key) for key in (KEY, OTHER)] == [200, 401]
        file.write_text(f"{KEY}\n{OTHER}\n")
        assert [status(url, key) for key in (KEY, OTHER)] == [200, 200]
        file.write_text(f"{OTHER}\n")
        assert [status(url, key) for key in (KEY, OTHER)] == [401, 200]
        file.write_text("")
        assert [status(url, key) for key in (KEY, OTHER)] == [401, 200], "the last that was good"
        file.write_text(f"{OTHER}\n")
        (before,) = workers(served.process.pid)
        with visited(served) as answers:
            served.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 120
            while before in (now := workers(served.process.pid)) or len(now) != 1:
                assert status(url, OTHER) == 200, "requests are served meanwhile"
                assert time.monotonic() < deadline
        assert set(answers) == {"new 200", "kept 200"}, "none was hung up on"
    finally:
        served.stop()
        served.listener.close()
    for line in (lines := served.log.read_text().splitlines()):
        assert isinstance(json.loads(line), dict)
    assert lines


def workers(parent: int) -> set[int]:
    found = set()
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.add(int(child))
    return found


@contextmanager
def visited(served: Served) -> Iterator[Counter[str]]:
    """People ask all the time, on new connections and on kept ones; how they were answered."""
    answers: Counter[str] = Counter()
    over = threading.Event()

    def ask(kind: str) -> None:
        host, port = served.listener.getsockname()
        wire = http.client.HTTPConnection(host, port, timeout=120)
        while not over.is_set():
            try:
                if wire.sock is None:
                    wire.connect()
                time.sleep(0.002)  # a new connection is silent at first
                wire.request("GET", "/live")
                answer = wire.getresponse()
                answer.read()
                answers[f"{kind} {answer.status}"] += 1
            except (OSError, http.client.HTTPException) as error:
                answers[f"{kind} {type(error).__name__}"] += 1
                wire.close()
            if kind == "new":
                wire.close()
        wire.close()

    people = [threading.Thread(target=ask, args=(kind,)) for kind in ("new", "new", "kept")]
    for one in people:
        one.start()
    try:
        yield answers
    finally:
        over.set()
        for one in people:
            one.join()


def test_the_environment_of_a_listener_is_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpfda.collector.run import inherited

    monkeypatch.setenv("LISTEN_PID", str(os.getpid() + 1))
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert inherited() == {}
