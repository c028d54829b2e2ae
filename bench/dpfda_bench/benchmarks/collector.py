"""``dpfda bench collector``: durable replies a second, beside the same endpoint without storage."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan
from dpfda.study.crowd import Wire, request_bytes
from dpfda.study.outcome import Outcome
from dpfda.study.running import CollectorProcess
from dpfda_bench.goals import Goal, at_least, at_most
from dpfda_bench.many_studies import slowdown
from dpfda_bench.postgres import NoPostgreSQL, temporary_postgresql

GOALS: dict[str, Goal] = {
    "durable_over_nodb": at_least(0.6),
    "group_over_single_commit": at_least(5),
    "p99_ms": at_most(100),
    "studies_10000_over_10": at_most(1.5),
    "two_workers_over_one": at_least(1),
}

_CONNECTIONS = 64


@dataclass(frozen=True)
class Load:
    """How a number of replies went.

    Attributes:
        rate: replies a second.
        p99: milliseconds within which 99 % were answered.
    """

    rate: float
    p99: float


def run(quick: bool = False) -> Outcome:
    """Replies on 64 connections: without storage, durable, one commit each, on PostgreSQL."""
    many, few = (1500, 300) if quick else (4000, 800)
    rounds = 1 if quick else 3
    with tempfile.TemporaryDirectory(prefix="dpfda-bench-") as folder:
        place = Path(folder)
        nodb, durable = [], []
        for turn in range(rounds):  # in turn, so that a busy moment hits both
            nodb.append(measure("memory:", replies=many))
            durable.append(measure(f"sqlite:///{place / f'{turn}.db'}", replies=many))
        alone = measure(f"sqlite:///{place / 'alone.db'}", replies=few, options=["--group", "1"])
        crowded = slowdown(place)
    figures = {
        "reports_per_s": statistics.median(load.rate for load in durable),
        "durable_over_nodb": statistics.median(
            one.rate / other.rate for one, other in zip(durable, nodb, strict=True)
        ),
        "group_over_single_commit": statistics.median(load.rate for load in durable) / alone.rate,
        "p99_ms": statistics.median(load.p99 for load in durable),
        "studies_10000_over_10": crowded,
        "nodb_per_s": statistics.median(load.rate for load in nodb),
        "single_commit_per_s": alone.rate,
    }
    notes = [f"{_CONNECTIONS} connections; client and collector on one machine; SQLite, synced."]
    try:
        figures |= _postgresql(many, rounds)
    except NoPostgreSQL as reason:
        notes.append(f"two workers were not measured: {reason}.")
    return Outcome(figures=figures, notes=notes)


def _postgresql(replies: int, rounds: int) -> dict[str, float]:
    """One worker process and two, on a PostgreSQL server."""
    one, two = [], []
    with temporary_postgresql() as url:
        for turn in range(rounds):
            one.append(measure(url, replies=replies, seed=2 * turn).rate)
            two.append(
                measure(url, replies=replies, seed=2 * turn + 1, options=["--workers", "2"]).rate
            )
    ratios = [b / a for a, b in zip(one, two, strict=True)]
    return {
        "postgresql_per_s": statistics.median(one),
        "two_workers_over_one": statistics.median(ratios),
    }


def measure(
    database: str, *, replies: int, options: list[str] | None = None, seed: int = 0
) -> Load:
    """Send prepared replies as fast as the collector takes them."""
    plan = StudyPlan(
        epsilon=1.0,
        n_people=replies + 1,  # one never answers, so that nothing is learnt meanwhile
        encoder=CurveEncoder("bspline", n_basis=4, scale=2.0),
        classes=(0, 1),
        design={"name": "moments"},
        seed=seed,
    )
    serving = ["--quiet", "--rate", "1000", *(options or [])]
    with CollectorProcess(database, options=serving) as collector:
        collector.create(plan)
        path = f"/api/studies/{plan.hash[:16]}"
        tokens = collector.invite(plan.hash, replies)
        return asyncio.run(_load(collector.url, path, plan, tokens))


async def _load(url: str, path: str, plan: StudyPlan, tokens: list[str]) -> Load:
    wires = [Wire(url) for _ in range(_CONNECTIONS)]
    asked = [request_bytes("GET", path + "/task", token=token) for token in tokens]
    _, tasks = await _send_all(wires, asked)
    rng = np.random.default_rng(0)
    requests = []
    for token, task in zip(tokens, tasks, strict=True):
        values = rng.normal(size=4).tolist()
        reply = {"plan": plan.hash, "phase": 0, "ticket": json.loads(task)["ticket"]}
        body = json.dumps(reply | {"values": values}).encode()
        requests.append(request_bytes("POST", path + "/reply", body, token=token))
    start = time.perf_counter()
    latencies, _ = await _send_all(wires, requests)
    elapsed = time.perf_counter() - start
    for wire in wires:
        wire.close()
    return Load(len(requests) / elapsed, float(np.quantile(latencies, 0.99)) * 1000)


async def _send_all(wires: list[Wire], requests: list[bytes]) -> tuple[list[float], list[bytes]]:
    """All requests over all connections; seconds and answers, in the order of requests."""
    seconds, bodies = [0.0] * len(requests), [b""] * len(requests)
    queue = iter(enumerate(requests))

    async def work(wire: Wire) -> None:
        for place, request in queue:
            start = time.perf_counter()
            status, bodies[place] = await wire.send(request)
            seconds[place] = time.perf_counter() - start
            assert status == 200, status

    await asyncio.gather(*(work(wire) for wire in wires))
    return seconds, bodies
