"""``dpfda bench collector``: tasks and replies a second, beside the same without storage or work.

Requests come from a load generator in a process of its own. Ratios are of figures of one round;
rounds follow each other, so that a busy moment hits all sides, and medians are taken.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpfda.collector.collector_process import CollectorProcess
from dpfda.report.contents import Outcome
from dpfda_bench.attack import KINDS, attacked
from dpfda_bench.benchmarks._collector_crowd import Crowd, plan_for
from dpfda_bench.benchmarks._concluding import concluding
from dpfda_bench.echo import echoing
from dpfda_bench.goals import Goal, at_least, at_most
from dpfda_bench.load import Load, load
from dpfda_bench.many_studies import slowdown
from dpfda_bench.measuring import processor_seconds
from dpfda_bench.postgres import NoPostgreSQL, temporary_postgresql

GOALS: dict[str, Goal] = {
    "durable_over_nodb": at_least(0.9),
    "durable_over_echo": at_least(0.6),
    "batch_over_single": at_least(10),
    "task_over_reply": at_least(1),
    "p99_concluding_over_before": at_most(1.3),
    "p99_forgetting_over_before": at_most(1.5),
    "group_over_single_commit": at_least(5),
    "p99_ms": at_most(45),
    "studies_10000_over_10": at_most(1.5),
    "attack_p99_ratio": at_most(1.5),
    "two_workers_over_one": at_least(1.8),
}

_CONNECTIONS = 256  # as many as a group commit takes: fewer would wait for the disk
_GATEWAYS = 4


@dataclass(frozen=True)
class Round:
    """One collector: tasks and replies of single people, then replies that gateways bring.

    Attributes:
        task: how tickets were handed out.
        reply: how replies were stored.
        batch: replies a second, a thousand in a request.
        requests: the replies as they were sent.
    """

    task: Load
    reply: Load
    batch: float
    requests: Sequence[bytes]


def run(quick: bool = False) -> Outcome:
    """Replies without storage, durable, one commit each, on PostgreSQL; a phase's end meanwhile."""
    single, batches, rounds = (1500, 2, 1) if quick else (6000, 12, 5)
    nodb, durable, echo = [], [], []
    with tempfile.TemporaryDirectory(prefix="dpfda-bench-") as folder:
        place = Path(folder)
        for turn in range(rounds):
            nodb.append(measure("memory:", single=single, batches=batches))
            database = f"sqlite:///{place / f'{turn}.db'}"
            durable.append(measure(database, single=single, batches=batches))
            with echoing() as (url, _):
                echo.append(load(url, durable[-1].requests, connections=_CONNECTIONS))
        database = f"sqlite:///{place / 'alone.db'}"
        alone = measure(database, single=single // 8, batches=0, options=["--group", "1"]).reply
        shares = processor_shares(place, replies=single // 12, rounds=12)
        crowded = slowdown(place)
        attacks = under_attack(place, replies=single // 2, rounds=rounds)
        ending = concluding(place, replies=20_000 if quick else 100_000, rounds=1 if quick else 3)
    figures = {
        "replies_per_s": _median(one.reply.rate for one in durable),
        "p50_ms": _median(one.reply.quantile(0.5) for one in durable),
        "p99_ms": _median(one.reply.quantile(0.99) for one in durable),
        "tasks_per_s": _median(one.task.rate for one in durable),
        "batched_per_s": _median(one.batch for one in durable),
        "nodb_per_s": _median(one.reply.rate for one in nodb),
        "echo_per_s": _median(one.rate for one in echo),
        "single_commit_per_s": alone.rate,
        "durable_over_nodb": _median(
            one.reply.rate / other.reply.rate for one, other in zip(durable, nodb, strict=True)
        ),
        "durable_over_echo": _median(
            one.reply.rate / other.rate for one, other in zip(durable, echo, strict=True)
        ),
        "batch_over_single": _median(one.batch / one.reply.rate for one in durable),
        "task_over_reply": _median(one.task.rate / one.reply.rate for one in durable),
        "group_over_single_commit": _median(one.reply.rate for one in durable) / alone.rate,
        **shares,
        **ending,
        **attacks,
        "studies_10000_over_10": crowded,
    }
    notes = [
        f"{_CONNECTIONS} connections, {_GATEWAYS} for gateways; load generator and collector on "
        "one machine; SQLite, synced.",
        "processor_us_*: microseconds of processor time for one reply, of all threads of the "
        "process or of the event loop alone. Other programs on the machine change them less than "
        "they change seconds.",
    ]
    try:
        figures |= _postgresql(single, rounds)
    except NoPostgreSQL as reason:
        notes.append(f"two workers were not measured: {reason}.")
    return Outcome(figures=figures, notes=notes)


def processor_shares(folder: Path, *, replies: int, rounds: int) -> dict[str, float]:
    """Processor time of a reply, of one without storage and of an echo; their rounds alternate."""
    found: dict[str, list[float]] = {}
    with (
        CollectorProcess(f"sqlite:///{folder / 'processor.db'}") as durable,
        CollectorProcess("memory:") as nodb,
        echoing() as (url, pid),
    ):
        servers = {"durable": (durable.url, durable.pid), "nodb": (nodb.url, nodb.pid)}
        requests = {}
        for name, collector in (("durable", durable), ("nodb", nodb)):
            crowd = Crowd(collector, plan_for(replies * rounds, seed=500))
            crowd.invite(replies * rounds)
            crowd.ask(connections=_CONNECTIONS)
            requests[name] = crowd.replies(range(replies * rounds))
        servers["echo"], requests["echo"] = (url, pid), requests["durable"]
        for first in range(0, replies * rounds, replies):
            for name, (place, process) in servers.items():
                before = processor_seconds(process)
                load(place, requests[name][first : first + replies], connections=_CONNECTIONS)
                pairs = zip(before, processor_seconds(process), strict=True)
                whole, loop = (1e6 * (b - a) / replies for a, b in pairs)
                found.setdefault(f"processor_us_{name}", []).append(whole)
                found.setdefault(f"processor_us_{name}_loop", []).append(loop)
    del found["processor_us_echo_loop"]  # an echo has one thread
    both = zip(found["processor_us_echo"], found["processor_us_durable"], strict=True)
    return {
        **{name: _median(each) for name, each in found.items()},
        "processor_echo_over_durable": _median(a / b for a, b in both),
    }


def under_attack(folder: Path, *, replies: int, rounds: int) -> dict[str, float]:
    """How much longer honest replies take while strangers send what is refused, of each kind."""
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with CollectorProcess(f"sqlite:///{folder / 'attacked.db'}") as collector:
        for turn in range(rounds):
            crowd = Crowd(collector, plan_for(replies * (len(KINDS) + 1), seed=300 + turn))
            crowd.invite(replies * (len(KINDS) + 1))
            crowd.ask(connections=_CONNECTIONS)
            some = iter(range(0, crowd.people, replies))

            def p99(first: int, crowd: Crowd = crowd) -> float:
                requests = crowd.replies(range(first, first + replies))
                return load(collector.url, requests, connections=_CONNECTIONS).quantile(0.99)

            quiet = p99(next(some))
            for kind in KINDS:
                with attacked(collector.url, kind, crowd.study):
                    time.sleep(2)  # until the address has used up what strangers have at once
                    found[kind].append(p99(next(some)) / quiet)
    ratios = {f"attack_{kind}_p99_ratio": _median(each) for kind, each in found.items()}
    return ratios | {"attack_p99_ratio": max(ratios.values())}


def _median(figures: Iterable[float]) -> float:
    return statistics.median(figures)


def _postgresql(replies: int, rounds: int) -> dict[str, float]:
    """One worker process and two, on a PostgreSQL server."""
    one, two = [], []
    with temporary_postgresql() as url:
        for turn in range(rounds):
            one.append(measure(url, single=replies, seed=2 * turn).reply.rate)
            options = ["--workers", "2"]
            two.append(measure(url, single=replies, seed=2 * turn + 1, options=options).reply.rate)
    return {
        "postgresql_per_s": _median(one),
        "two_workers_over_one": _median(b / a for a, b in zip(one, two, strict=True)),
    }


def measure(
    database: str,
    *,
    single: int,
    batches: int = 0,
    options: Sequence[str] = (),
    seed: int = 0,
) -> Round:
    """Tasks, then prepared replies, as fast as the collector takes them."""
    people = single + 1000 * batches
    with CollectorProcess(database, options=[*options]) as collector:
        crowd = Crowd(collector, plan_for(people, seed=seed))
        crowd.invite(people)
        task = crowd.ask(connections=_CONNECTIONS)
        requests = crowd.replies(range(single))
        reply = load(collector.url, requests, connections=_CONNECTIONS)
        batch = 0.0
        if batches:
            brought = crowd.batches(range(single, people))
            batch = 1000 * load(collector.url, brought, connections=_GATEWAYS).rate
    return Round(task, reply, batch, requests)
