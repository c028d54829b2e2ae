"""``dpfda bench crash``: kill -9 the collector under load or while it learns; count replies."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from dpfda.client.crowd import Wire, reply_body
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import ReplyMessage
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._killed_conclusions import kill_conclusions
from dpfda_bench.goals import Goal, at_least, at_most
from dpfda_bench.postgres import NoPostgreSQL, temporary_postgresql

GOALS: dict[str, Goal] = {
    "kills": at_least(100),
    "acknowledged": at_least(1),
    "lost": at_most(0),
    "counted_twice": at_most(0),
}

_CONNECTIONS = 8
_PLENTY = 100_000  # people that the study wants: more than will ever answer
_AGAIN = 0.1  # seconds until a patient person tries again
_FEW, _MORE = 1000, 2000  # invitations: if only few are left, more are made


def run(quick: bool = False) -> Outcome:
    """One hundred kills (ten if `quick`), half on PostgreSQL, every fifth at the end of a phase."""
    under_load, concluding = (4, 1) if quick else (40, 10)
    figures = dict.fromkeys(GOALS, 0.0)
    notes = []

    def kill(name: str, database: str) -> None:
        options = ["--rate", "1000"]
        loaded = crash(CollectorProcess(database, options=options), kills=under_load)
        ended = kill_conclusions(CollectorProcess(database, options=options), kills=concluding)
        told = {
            "kills": loaded.kills + ended.workers + ended.collectors,
            "acknowledged": len(loaded.acknowledged) + ended.acknowledged,
            "lost": loaded.lost + ended.lost,
            "counted_twice": loaded.counted_twice + ended.counted_twice,
        }
        for key, number in told.items():
            figures[key] += number
            figures[f"{name}_{key}"] = float(number)
        notes.append(
            f"{name}: {loaded.kills} kills under load, after which {loaded.repeated} replies were "
            f"in doubt and sent again; at the end of a phase {ended.workers} kills of the process "
            f"that concludes and {ended.collectors} of the collector."
        )

    with tempfile.TemporaryDirectory(prefix="dpfda-crash-") as folder:
        kill("sqlite", f"sqlite:///{Path(folder) / 'crash.db'}")
    try:
        with temporary_postgresql() as url:
            kill("postgresql", url)
    except NoPostgreSQL as reason:
        notes.append(f"nothing was killed on PostgreSQL: {reason}.")
    return Outcome(figures=figures, notes=notes)


@dataclass
class Crash:
    """What happened in all rounds.

    Attributes:
        acknowledged: receipt of each ticket that the collector acknowledged.
        sent: what was sent last with each ticket, as it is kept: without its nonce.
        kills: how often it was killed.
        repeated: replies that were sent again.
        answered: when each acknowledged reply was sent first, and when its answer came.
        lost: acknowledged replies that are not in the database, or are different there.
        counted_twice: tickets with more than one reply, or people with more than one ticket.
    """

    acknowledged: dict[int, str] = field(default_factory=dict)
    sent: dict[int, bytes] = field(default_factory=dict)
    kills: int = 0
    repeated: int = 0
    answered: list[tuple[float, float]] = field(default_factory=list)
    lost: int = 0
    counted_twice: int = 0

    def count(self, collector: CollectorProcess, study: str) -> None:
        """Compare with what the collector has, as the administrator sees it."""
        lines = collector.read("GET", f"/api/studies/{study}/phases/0/replies").splitlines()
        stored = [(json.loads(line)["ticket"], line) for line in lines]
        kept = dict(stored)
        self.counted_twice += len(stored) - len(kept)
        self.lost = sum(kept.get(ticket) != self.sent[ticket] for ticket in self.acknowledged)


def plan_of_many(seed: int = 0) -> StudyPlan:
    """A study that never has enough people."""
    plan = StudyPlan(
        epsilon=1.0,
        n_people=_PLENTY,
        encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        classes=(0, 1),
        design={"name": "moments"},
        seed=seed,
    )
    assert plan.asks  # the design is loaded before anybody takes part
    return plan


def crash(collector: CollectorProcess, *, kills: int, load: float = 0.6) -> Crash:
    """Run people against a collector that is killed `kills` times.

    Args:
        collector: a new one; it is started here.
        kills: how often.
        load: most seconds between start and kill; the moment is drawn anew each time.
    """
    found = Crash()
    plan = plan_of_many()
    moments = np.random.default_rng(0).uniform(0.02, load, kills)
    tokens: list[str] = []
    people = [Person(plan, tokens) for _ in range(_CONNECTIONS)]
    collector.start()
    try:
        collector.create(plan)
        for moment in moments:
            if len(tokens) < _FEW:
                tokens += collector.invite(plan.hash, _MORE)
            asyncio.run(_under_load(collector, people, found, float(moment)))
            found.kills += 1
            collector.start()
        asyncio.run(_under_load(collector, people, found, None))
        found.count(collector, plan.hash[:16])
    finally:
        collector.stop()
    return found


async def _under_load(
    collector: CollectorProcess, people: list[Person], found: Crash, moment: float | None
) -> None:
    """People answer until the collector is killed; without a moment, until nothing is in doubt."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(person.go_on(collector.url, found, stop)) for person in people]
    if moment is not None:
        await asyncio.sleep(moment)
        await asyncio.to_thread(collector.kill)
    stop.set()
    await asyncio.gather(*tasks)


class _Unavailable(OSError):
    """The collector cannot answer now."""


class Person:
    """Answers again and again, each time as somebody new, and repeats what was in doubt.

    Args:
        plan: the study.
        tokens: invitations, of which each answer takes one.
        pause: seconds between two answers.
        patient: goes on after a failure, until nothing is in doubt. Otherwise a failure ends the
            present round.
    """

    def __init__(
        self, plan: StudyPlan, tokens: list[str], *, pause: float = 0.0, patient: bool = False
    ) -> None:
        self._plan, self._tokens = plan, tokens
        self._path = f"/api/studies/{plan.hash[:16]}"
        self._pause, self._patient = pause, patient
        self._token: str | None = None
        self._body: bytes | None = None
        self._since = 0.0
        self._source = SimulationSource(0)

    async def go_on(self, url: str, found: Crash, stop: asyncio.Event) -> None:
        """Take part until `stop`, or until a failure."""
        wire = Wire(url)
        while True:
            try:
                if self._body is not None:
                    found.repeated += 1
                    await self._send(wire, found)
                while not stop.is_set() and (self._token or self._tokens):
                    await self._answer(wire, found)
                    await asyncio.sleep(self._pause)
                break
            except OSError:  # what is in doubt is sent again
                wire.close()
                if not self._patient:
                    break
                await asyncio.sleep(_AGAIN)
        wire.close()

    async def _answer(self, wire: Wire, found: Crash) -> None:
        if self._token is None:
            self._token, self._since = self._tokens.pop(), time.monotonic()
        body = await self._ask(wire, "GET", "/task")
        features, labels = np.zeros((1, 2)), np.ones(1, dtype=np.int64)
        self._body = reply_body(self._plan, body, features, labels, self._source)
        await self._send(wire, found)

    async def _send(self, wire: Wire, found: Crash) -> None:
        assert self._body is not None
        message = msgspec.json.decode(self._body, type=ReplyMessage)
        ticket = message.ticket
        found.sent[ticket] = msgspec.json.encode(message.kept())
        body = await self._ask(wire, "POST", "/reply", self._body)
        if ticket in found.acknowledged:
            found.counted_twice += 1  # two people with one ticket
        found.acknowledged[ticket] = json.loads(body)["receipt"]
        found.answered.append((self._since, time.monotonic()))
        self._token = self._body = None

    async def _ask(self, wire: Wire, method: str, path: str, body: bytes | None = None) -> bytes:
        status, told = await wire.ask(method, self._path + path, body, token=self._token)
        if status in (429, 503):
            raise _Unavailable
        assert status == 200, status
        return told
