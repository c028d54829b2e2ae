"""A full disk and a locked database are told within two seconds, and so is their end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_collector import ForkedCollector
from sqlalchemy.exc import OperationalError

from dpfda.collector import watcher
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.replies import GroupCommit
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import ClockMark, Unavailable
from dpfda.collector.storage.database import FULL, LOCKED, reason
from dpfda.collector.watcher import Pulse

pytestmark = pytest.mark.timed
NOW = ClockMark(boot="b", at=1.0)


class Alone(ForkedCollector):
    """Plans are read in the server's own process."""

    alone = True


def asked(collector: CollectorProcess, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and answer, within two seconds."""
    began = time.monotonic()
    try:
        answer = collector.read("GET" if body is None else "POST", path, body)
        found = 200, answer.decode()
    except urllib.error.HTTPError as error:
        found = error.code, error.read().decode()
    assert time.monotonic() - began < 2, path
    return found


def health(collector: CollectorProcess) -> tuple[int, Any]:
    status, text = asked(collector, "/health")
    return status, json.loads(text)


def recovered(collector: CollectorProcess) -> None:
    deadline = time.monotonic() + 5
    while health(collector) != (200, {"status": "ok"}):
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.call(mount, stderr=subprocess.DEVNULL):
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_is_told_and_recovered_from(small_disk: Path, make_plan: Any) -> None:
    database = f"sqlite:///{small_disk / 'study.db'}"
    with Alone(database) as collector:
        study = collector.create(make_plan(200))["id"]
        invited = {"count": 3}
        assert asked(collector, f"/api/studies/{study}/tokens", invited)[0] == 200
        recovered(collector)
        filler = small_disk / "filler"
        fill(filler)
        time.sleep(1)  # what was asked just now is not asked again
        assert health(collector) == (503, {"status": "failing", "reason": FULL})
        assert "\ndpfda_storage_up 0.0\n" in asked(collector, "/metrics")[1]
        # The log has room for a little while; then requests are refused, not broken.
        tokens = f"/api/studies/{study}/tokens"
        while (answer := asked(collector, tokens, {"count": 500}))[0] == 200:
            invited["count"] += 500
        assert answer[0] == 503
        assert json.loads(answer[1])["error"]["code"] == "storage"
        assert FULL in answer[1]
        assert asked(collector, f"/api/studies/{study}")[0] == 200  # reading needs no room

        filler.unlink()
        recovered(collector)
        assert asked(collector, f"/api/studies/{study}/tokens", {"count": 2})[0] == 200
        assert "\ndpfda_storage_up 1.0\n" in asked(collector, "/metrics")[1]
        (line,) = collector.request("GET", "/api/studies")["studies"]
        assert line["enrolled"] >= invited["count"] + 2  # nothing that was granted is lost


def fill(path: Path) -> None:
    """Take all the room there is."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(file, b"x" * 4096):
            pass
    os.close(file)
    assert os.statvfs(path).f_bavail == 0


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_a_locked_database_is_told_and_recovered_from(database: str, make_plan: Any) -> None:
    with Alone(database) as collector:
        study = collector.create(make_plan(200))["id"]
        recovered(collector)
        with locked(database):
            time.sleep(1)
            waiting = threading.Thread(target=lambda: collector.read("GET", "/api/studies"))
            waiting.start()  # whoever waits for the lock holds up nobody who asks about it
            assert health(collector) == (503, {"status": "failing", "reason": LOCKED})
            assert "\ndpfda_storage_up 0.0\n" in asked(collector, "/metrics")[1]
        recovered(collector)
        waiting.join()
        assert asked(collector, f"/api/studies/{study}/tokens", {"count": 2})[0] == 200


def locked(database: str) -> Any:
    """Another process, which this one is for the collector, keeps everything to itself."""
    if database.startswith("sqlite"):
        return _locked_file(database.removeprefix("sqlite:///"))
    return _locked_tables(database)


class _locked_file:
    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> None:
        self._connection.execute("BEGIN EXCLUSIVE")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("ROLLBACK")
        self._connection.close()


class _locked_tables:
    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url)

    def __enter__(self) -> None:
        self._connection.execute("LOCK TABLE study IN ACCESS EXCLUSIVE MODE")

    def __exit__(self, *_: object) -> None:
        self._connection.rollback()
        self._connection.close()


def test_a_file_that_was_moved_away_is_told(tmp_path: Path) -> None:
    """What is written then goes where nobody will look for it."""
    path, aside = tmp_path / "study.db", tmp_path / "aside.db"
    storage = open_storage(f"sqlite:///{path}")
    storage.probe(NOW)
    path.rename(aside)
    with pytest.raises(Unavailable, match="moved or deleted"):
        storage.probe(NOW)
    path.touch()
    with pytest.raises(Unavailable, match="moved or deleted"):
        storage.probe(NOW)
    aside.rename(path)
    storage.probe(NOW)
    storage.close()


@pytest.mark.parametrize("database", ["memory", "sqlite", "postgresql"], indirect=True)
def test_what_is_well_is_silent(database: str) -> None:
    storage = open_storage(database)
    for _ in range(2):
        storage.probe(NOW)
    storage.close()


def test_many_who_ask_are_one_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    trials: list[float] = []

    def probe() -> None:
        trials.append(time.monotonic())
        time.sleep(0.05)

    async def run() -> None:
        heart = Pulse(probe)
        assert await asyncio.gather(*(heart.trouble() for _ in range(50))) == [""] * 50
        assert await heart.trouble() == ""
        assert len(trials) == 1
        monkeypatch.setattr(watcher, "_FRESH", 0.0)
        heart._until = 0.0
        assert await heart.trouble() == ""
        assert len(trials) == 2
        heart.stop()

    asyncio.run(run())


def test_a_storage_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "PATIENCE", 0.05)
    go = threading.Event()

    async def run() -> None:
        heart = Pulse(lambda: go.wait(30) and None)
        for _ in range(3):
            assert await heart.trouble() == "the database does not answer"
        go.set()
        await asyncio.sleep(0.05)
        assert await heart.trouble() == ""
        heart.stop()

    asyncio.run(run())


def test_a_group_that_cannot_be_stored_is_tried_once() -> None:
    """Each alone would wait for the lock again, one after the other."""
    tries: list[int] = []

    def write(items: Any) -> list[int]:
        tries.append(len(items))
        raise Unavailable(LOCKED)

    async def run() -> list[Any]:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:
            commit: GroupCommit[int, int] = GroupCommit(write, thread, most=64)
            return await asyncio.gather(*map(commit.add, range(64)), return_exceptions=True)

    results = asyncio.run(run())
    assert {type(result) for result in results} == {Unavailable}
    assert tries == [64]


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("SQLITE_FULL", None, FULL),
        ("SQLITE_BUSY_SNAPSHOT", None, LOCKED),
        ("SQLITE_IOERR_WRITE", None, "the disk cannot be read or written"),
        ("SQLITE_READONLY_DBMOVED", None, "the database cannot be written to"),
        ("SQLITE_CANTOPEN", None, "the database cannot be opened"),
        (None, "53100", FULL),
        (None, "55P03", LOCKED),
        (None, "25006", "the database cannot be written to"),
        (None, "08006", "the database does not answer"),
        (None, None, "the database does not answer"),
    ],
)
def test_reasons_quote_nothing(name: str | None, state: str | None, words: str) -> None:
    cause = Exception("INSERT of a reply")
    cause.sqlite_errorname, cause.sqlstate = name, state  # type: ignore[attr-defined]
    assert reason(OperationalError("INSERT", {}, cause)) == words
