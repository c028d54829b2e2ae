"""``dpfda bench faults``: what people notice of each fault, and whether a reply is lost or doubled.

Eight people at a time take part, and repeat whatever was not answered. Meanwhile something breaks
for some seconds and is mended. In the end every receipt is compared with the database.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.collector.collector_process import CollectorProcess
from dpfda.errors import DpfdaError
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._killed_conclusions import workers
from dpfda_bench.benchmarks.crash import Crash, Person, plan_of_many
from dpfda_bench.faulty import PLACE, FaultyCollector, set_faults
from dpfda_bench.goals import Goal, at_least, at_most
from dpfda_bench.postgres import NoPostgreSQL, temporary_postgresql
from dpfda_bench.relay import Relay

GOALS: dict[str, Goal] = {
    "faults": at_least(17),
    "acknowledged": at_least(1),
    "lost": at_most(0),
    "counted_twice": at_most(0),
}

_PEOPLE, _INVITED = 8, 5000
_PAUSE = 0.02  # seconds in which somebody makes up their mind
_DISK = 12 << 20  # bytes of a disk that becomes full
_DAY = 86400.0


@dataclass
class Scene:
    """What a fault finds.

    Attributes:
        seconds: how long it lasts.
        folder: of the database, for files.
        database: its URL.
        collector: the one that people use.
        relay: what is between the collector and its database, or in front of a collector on SQLite.
        neighbor: another collector on the same database, with people of its own.
    """

    seconds: float
    folder: Path
    database: str
    collector: CollectorProcess = field(init=False)
    relay: Relay | None = None
    neighbor: CollectorProcess | None = None


def run(quick: bool = False) -> Outcome:
    """Every fault on SQLite and PostgreSQL; the first one on SQLite, shortly, if `quick`."""
    rows: list[dict[str, Any]] = []
    notes = [
        f"{_PEOPLE} people at a time, one request each, {_PAUSE * 1000:.0f} ms between two. Times "
        "are from the first attempt to the receipt, in milliseconds.",
        "freeze a neighbor: one of two processes on a database stops inside a transaction. Cut the "
        "network: between the collector and PostgreSQL, or between people and one on SQLite.",
    ]
    seconds = 1.0 if quick else 8.0
    for fault in FAULTS[:1] if quick else FAULTS:
        with tempfile.TemporaryDirectory(prefix="dpfda-faults-") as folder:
            rows += _tried(fault, Path(folder), "sqlite", seconds)
    if not quick:
        try:
            with temporary_postgresql() as url:
                for fault in FAULTS:
                    with tempfile.TemporaryDirectory(prefix="dpfda-faults-") as folder:
                        rows += _tried(fault, Path(folder), url, seconds)
        except NoPostgreSQL as reason:
            notes.append(f"nothing broke on PostgreSQL: {reason}.")
    figures = {name: float(sum(row[name] for row in rows)) for name in list(GOALS)[1:]}
    return Outcome(rows=rows, figures={"faults": float(len(rows)), **figures}, notes=notes)


def _tried(
    fault: Callable[[Scene], None], folder: Path, server: str, seconds: float
) -> list[dict[str, Any]]:
    """What became of one fault; nothing where it cannot be made."""
    with ExitStack() as stack:
        database = server
        if server == "sqlite":
            if fault is fill_the_disk and not stack.enter_context(_small_disk(folder)):
                return []
            database = f"sqlite:///{folder / 'study.db'}"
        elif fault is fill_the_disk:
            return []
        scene = Scene(seconds, folder, database)
        found = asyncio.run(_broken(fault, scene, stack))
    storage = "SQLite" if server == "sqlite" else "PostgreSQL"
    return [{"fault": fault.__name__.replace("_", " "), "storage": storage, **found}]


async def _broken(
    fault: Callable[[Scene], None], scene: Scene, stack: ExitStack
) -> dict[str, float]:
    url = _start(fault, scene, stack)
    plan = plan_of_many(time.time_ns() % 2**31)
    study: str = scene.collector.create(plan, deadline=3600.0)["id"]
    tokens = scene.collector.invite(study, _INVITED)
    here, there, stop = Crash(), Crash(), asyncio.Event()

    def person() -> Person:
        return Person(plan, tokens, pause=_PAUSE, patient=True)

    people = [person().go_on(url, here, stop) for _ in range(_PEOPLE)]
    if scene.neighbor is not None:
        people += [person().go_on(scene.neighbor.url, there, stop) for _ in range(_PEOPLE)]
    busy = [asyncio.create_task(one) for one in people]
    quiet = scene.seconds / 4
    await asyncio.sleep(quiet)
    began = time.monotonic()
    await asyncio.to_thread(fault, scene)
    ended = time.monotonic()
    await asyncio.sleep(quiet)
    stop.set()
    await asyncio.gather(*busy)
    for found in (here, there):
        await asyncio.to_thread(found.count, scene.collector, study)
    times = np.array(here.answered)
    took = 1000 * (times[:, 1] - times[:, 0])
    before, during = times[:, 1] < began, (times[:, 1] >= began) & (times[:, 0] < ended)
    return {
        "acknowledged": len(here.acknowledged) + len(there.acknowledged),
        "sent_again": here.repeated + there.repeated,
        "lost": here.lost + there.lost,
        "counted_twice": here.counted_twice + len(here.acknowledged.keys() & there.acknowledged),
        "p99_before": float(np.quantile(took[before], 0.99)),
        "p99_during": float(np.quantile(took[during], 0.99)),
        "longest": float(took.max()),
    }


def _start(fault: Callable[[Scene], None], scene: Scene, stack: ExitStack) -> str:
    """Start what the fault needs; the URL for people."""
    options = ["--rate", "1000"]
    database = scene.database
    kind = FaultyCollector if fault in (turn_the_clock, slow_the_disk) else CollectorProcess
    os.environ[PLACE] = str(scene.folder / "faults")
    set_faults(scene.folder / "faults")
    if fault is replace_the_worker:
        options += ["--workers", "1"]
    cut = fault is cut_the_network
    if cut and not database.startswith("sqlite"):
        head, _, tail = database.rpartition(":")
        port, _, name = tail.partition("/")
        scene.relay = stack.enter_context(Relay(int(port), 0.0))
        database = f"{head}:{scene.relay.port}/{name}"
    scene.collector = stack.enter_context(kind(database, options=options))
    if fault is freeze_a_neighbor:
        scene.neighbor = stack.enter_context(FaultyCollector(database, options=options))
    if cut and scene.relay is None:
        scene.relay = stack.enter_context(Relay(scene.collector.port, 0.0))
        return f"http://127.0.0.1:{scene.relay.port}"
    return scene.collector.url


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """Whether the folder is on a disk of its own, of a few megabytes."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=700", "tmpfs", str(folder)]
    made = shutil.which("mount") is not None and subprocess.run(mount, check=False).returncode == 0
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


# -- faults: each lasts for `scene.seconds`, and is mended in the end ---------------------------


def kill(scene: Scene) -> None:
    """kill -9, and a start soon after it."""
    scene.collector.kill()
    scene.collector.start()


def freeze_a_neighbor(scene: Scene) -> None:
    """Another process on the same database stops, almost certainly inside a transaction."""
    assert scene.neighbor is not None
    set_faults(scene.folder / "faults", slower=0.2)
    time.sleep(1.0)
    os.kill(scene.neighbor.pid, signal.SIGSTOP)
    time.sleep(scene.seconds)
    set_faults(scene.folder / "faults")
    os.kill(scene.neighbor.pid, signal.SIGCONT)


def cut_the_network(scene: Scene) -> None:
    """Nothing gets through, and nobody is told."""
    assert scene.relay is not None
    scene.relay.stall(scene.seconds)
    time.sleep(scene.seconds)


def fill_the_disk(scene: Scene) -> None:
    """Another program takes all the room there is."""
    filler = scene.folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    time.sleep(scene.seconds)
    filler.unlink()


def turn_the_clock(scene: Scene) -> None:
    """The system's clock is a day ahead."""
    set_faults(scene.folder / "faults", ahead=_DAY)
    time.sleep(scene.seconds)
    set_faults(scene.folder / "faults")


def slow_the_disk(scene: Scene) -> None:
    """Each commit takes a fifth of a second longer."""
    set_faults(scene.folder / "faults", slower=0.2)
    time.sleep(scene.seconds)
    set_faults(scene.folder / "faults")


def send_slowly(scene: Scene) -> None:
    """Two hundred connections send a request byte by byte."""
    end = time.monotonic() + scene.seconds
    place = ("127.0.0.1", scene.collector.port)
    slow = [socket.create_connection(place) for _ in range(200)]
    request = b"GET /api/studies HTTP/1.1\r\nX: " + b"x" * 4000
    for byte in request:
        for one in slow:
            with suppress(OSError):  # it was hung up on
                one.send(bytes([byte]))
        time.sleep(0.1)
        if time.monotonic() > end:
            break
    for one in slow:
        one.close()


def send_bad_plans(scene: Scene) -> None:
    """Plans that are wrong, absurd or too large, one after the other."""
    end = time.monotonic() + scene.seconds
    good = plan_of_many(1).to_dict()
    bad: list[dict[str, Any]] = [
        {"n_people": 10**9}, {"n_people": -1}, {"epsilon": 1e308}, {"epsilon": "1"},
        {"classes": list(range(5000))}, {"design": {"name": "no such design"}},
        {"design": {"name": "answers", "evaluation_share": 2.0}}, {"encoder": {}},
        {"title": "x" * 10**6}, {"more": [[[[]]]]},
    ]  # fmt: skip
    while time.monotonic() < end:
        for change in bad:
            try:
                scene.collector.request("POST", "/api/studies", {"plan": good | change})
            except urllib.error.HTTPError as error:
                error.close()
                if error.code >= 500:
                    raise DpfdaError(f"a bad plan was answered with {error.code}") from error


def start_again(scene: Scene) -> None:
    """The collector is stopped as for an update, and started again."""
    scene.collector.stop()
    scene.collector.start()


def replace_the_worker(scene: Scene) -> None:
    """SIGHUP: a new process serves before the old one ends."""
    (before,) = workers(scene.collector.pid)
    os.kill(scene.collector.pid, signal.SIGHUP)
    while before in workers(scene.collector.pid):
        time.sleep(0.1)


FAULTS: tuple[Callable[[Scene], None], ...] = (
    *(kill, freeze_a_neighbor, cut_the_network, fill_the_disk, turn_the_clock),
    *(slow_the_disk, send_slowly, send_bad_plans, start_again, replace_the_worker),
)
