"""A collector that loses the network to its database answers in time, and stops nobody else.

Its process runs in a network of its own (a namespace), with two links to this machine: people reach
it through one, the database through the other. The second is cut silently: packets go to a hardware
address that nobody has.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_collector import QuickCollector

from dpfda.client.http import Connection, Unreachable
from dpfda.collector import replies
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.replies import GroupCommit, PendingWrites
from dpfda.collector.storage.base import Unavailable
from dpfda_bench.postgres import NoPostgreSQL, temporary_postgresql

NOBODY = "02:00:00:00:00:99"
PEOPLE, DATABASE = "10.213.91", "10.213.92"


def ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
    return done.stdout


class Island:
    """A network namespace with two links: `here` on this machine is .1, `there` is .2."""

    def __init__(self) -> None:
        self.name = f"dpfda{secrets.token_hex(3)}"
        ip("netns", "add", self.name)
        for link, network in (("p", PEOPLE), ("d", DATABASE)):
            here, there = f"{self.name}{link}", f"{link}0"
            ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", self.name)
            ip("addr", "add", f"{network}.1/30", "dev", here)
            ip("link", "set", here, "up")
            ip("-n", self.name, "addr", "add", f"{network}.2/30", "dev", there)
            ip("-n", self.name, "link", "set", there, "up")

    def cut(self) -> None:
        """Nothing gets through between the process and the database, and nothing says so."""
        for where, to, link in (([], ".2", f"{self.name}d"), (["-n", self.name], ".1", "d0")):
            address = (DATABASE + to, "lladdr", NOBODY, "dev", link, "nud", "permanent")
            ip(*where, "neigh", "replace", *address)

    def mend(self) -> None:
        for where, to, link in (([], ".2", f"{self.name}d"), (["-n", self.name], ".1", "d0")):
            ip(*where, "neigh", "del", DATABASE + to, "dev", link)

    def remove(self) -> None:
        ip("netns", "del", self.name)


@pytest.fixture
def island() -> Iterator[Island]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("networks can be made by root only, with the program ip")
    try:
        made = Island()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"networks cannot be made here: {error.stderr.strip()}")
    yield made
    made.remove()


class Islander(CollectorProcess):
    """A collector on an island."""

    def __init__(self, database: str, island: Island) -> None:
        super().__init__(database, options=["--rate", "1000"])
        self._island = island

    def start(self) -> Any:
        command = ["ip", "netns", "exec", self._island.name, sys.executable, "-m", "dpfda.cli"]
        command += ["serve", "--host", f"{PEOPLE}.2", "--port", "8000", *self.options]
        given = {"DPFDA_ADMIN_KEY": self.admin_key, "DPFDA_DATABASE": self.database}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | given,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self._wait()
        return self


def task(collector: CollectorProcess, study: str, token: str) -> tuple[int, float]:
    """The status, and after how long it came."""
    began = time.monotonic()
    with Connection(collector.url, timeout=40, insecure=True) as connection:
        path, head = f"/api/studies/{study}/task", {"Authorization": f"Bearer {token}"}
        try:
            status = connection.ask("GET", path, headers=head).status
        except Unreachable:
            status = 0
    return status, time.monotonic() - began


@pytest.mark.timed
def test_a_network_that_is_cut(island: Island, make_plan: Any, tmp_path: Path) -> None:
    try:
        server = temporary_postgresql(network=f"{DATABASE}.0/30")
        local = server.__enter__()
    except NoPostgreSQL as reason:
        pytest.skip(str(reason))
    try:
        remote = local.replace("127.0.0.1", f"{DATABASE}.1")
        with QuickCollector(local) as neighbor, Islander(remote, island) as cut_off:
            study = neighbor.create(make_plan(60))["id"]
            tokens = neighbor.invite(study, 40)
            assert task(cut_off, study, tokens.pop())[0] == 200
            answers: list[tuple[int, float]] = []

            def ask() -> None:
                answers.append(task(cut_off, study, tokens.pop()))

            busy = [threading.Thread(target=ask) for _ in range(8)]
            island.cut()
            for one in busy:
                one.start()
            time.sleep(1.1)  # what was found just now is not tried again
            with Connection(cut_off.url, timeout=5, insecure=True) as connection:
                assert connection.ask("GET", "/health").status == 503
            told = [task(neighbor, study, tokens.pop()) for _ in range(10)]
            assert [status for status, _ in told] == [200] * 10
            assert max(took for _, took in told) < 8, "one wait at most, until the server undoes it"
            for one in busy:
                one.join()
            assert {status for status, _ in answers} == {503}
            assert max(took for _, took in answers) < replies.LONGEST + 3
            island.mend()
            deadline = time.monotonic() + 30
            while task(cut_off, study, tokens[-1])[0] != 200:
                assert time.monotonic() < deadline, "it goes on by itself"
    finally:
        server.__exit__(None, None, None)


def test_requests_do_not_wait_for_ever() -> None:
    """Those whose commit has begun are undecided; those behind them are not begun any more."""
    stuck, written = threading.Event(), []

    def write(items: Any) -> list[int]:
        if not written:
            stuck.wait(30)
        written.extend(items)
        return list(items)

    async def run() -> None:
        from concurrent.futures import ThreadPoolExecutor

        pending = PendingWrites()
        with ThreadPoolExecutor(1) as thread:
            commit: GroupCommit[int, int] = GroupCommit(
                write, thread, most=4, pending=pending, longest=0.3
            )
            began = time.monotonic()
            first = [asyncio.create_task(commit.add(i)) for i in range(4)]
            await asyncio.sleep(0.15)
            second = [asyncio.create_task(commit.add(i)) for i in range(4, 8)]
            outcomes = await asyncio.gather(*first, return_exceptions=True)
            assert {type(one) for one in outcomes} == {Unavailable}
            assert not any(one.done() for one in second), "each has its own time"
            outcomes = await asyncio.gather(*second, return_exceptions=True)
            assert {type(one) for one in outcomes} == {Unavailable}
            assert 0.45 <= time.monotonic() - began < 5
            assert pending.depth == 0
            stuck.set()
            assert await commit.add(8) == 8
            assert written == [0, 1, 2, 3, 8], "its commit goes on; the others were not begun"

    asyncio.run(run())
