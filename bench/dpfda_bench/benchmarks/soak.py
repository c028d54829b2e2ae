"""``dpfda bench soak``: studies that end and are deleted, one after another: how memory grows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import numpy as np

from dpfda.client.crowd import request_bytes
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.wire import ReplyMessage, TaskMessage
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._killed_conclusions import workers
from dpfda_bench.goals import Goal, at_least, at_most
from dpfda_bench.load import load

GOALS: dict[str, Goal] = {"replies": at_least(100_000), "memory_ratio": at_most(1.3)}

_PEOPLE = 4000  # of a study in two phases
_BATCH = 1000
_WARM = 2  # studies until everything was loaded and every cache was used


def run(quick: bool = False) -> Outcome:
    """A hundred thousand replies, and two studies before memory is first looked at."""
    studies = 2 if quick else 25
    replies, memory = 0, []
    with tempfile.TemporaryDirectory(prefix="dpfda-soak-") as folder:
        database = f"sqlite:///{Path(folder) / 'soak.db'}"
        with CollectorProcess(database) as collector:
            for number in range(_WARM + studies):
                replies += _study(collector, number)
                memory.append(_megabytes(collector))
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
    start = memory[_WARM - 1]
    figures = {
        "replies": float(replies),
        "studies_deleted": float(_WARM + studies),
        "memory_ratio": memory[-1] / start,
        "largest_ratio": max(memory) / start,
        "start_megabytes": start,
        "database_megabytes": size,
    }
    return Outcome(figures=figures, notes=["Collector and the process that concludes together."])


def _study(collector: CollectorProcess, number: int) -> int:
    """One study from its creation to its deletion; how many replies it had."""
    plan = StudyPlan(
        epsilon=4.0,
        n_people=_PEOPLE,
        encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 4),
        classes=(0, 1),
        design={"name": "mrma", "evaluation_share": 0.5, "n_classifiers": 8, "member_size": 50},
        seed=number,
    )
    replies = 0
    study = collector.create(plan)
    while study["status"] != "finished":
        replies += _phase(collector, plan, study["wanted"])
        study = collector.wait_until(plan.hash[:16], phase=study["phase"] + 1)
    collector.read("DELETE", f"/api/studies/{plan.hash[:16]}")
    return replies


def _phase(collector: CollectorProcess, plan: StudyPlan, people: int) -> int:
    path = f"/api/studies/{plan.hash[:16]}"
    tokens = collector.invite(plan.hash, people)
    asked = [request_bytes("GET", path + "/task", token=token) for token in tokens]
    bodies = load(collector.url, asked, keep=True).bodies
    rng = np.random.default_rng(plan.seed)
    brought = []
    for token, body in zip(tokens, bodies, strict=True):
        message = msgspec.json.decode(body, type=TaskMessage)
        width = Task.from_dict(message.task).width
        values = rng.choice([-1.0, 1.0], width).tolist()  # a possible reply to anything
        reply = ReplyMessage.saying(message.plan, message.phase, message.ticket, values)
        brought.append({"token": token, "reply": reply})
    requests = [
        request_bytes(
            "POST",
            path + "/replies",
            msgspec.json.encode({"replies": some}),
            token=str(some[0]["token"]),
        )
        for some in (brought[first : first + _BATCH] for first in range(0, people, _BATCH))
    ]
    found = load(collector.url, requests, connections=4, keep=True)
    told = [verdict for body in found.bodies for verdict in msgspec.json.decode(body)["verdicts"]]
    return sum("receipt" in verdict for verdict in told)


def _megabytes(collector: CollectorProcess) -> float:
    """Resident memory of the collector and of the process that draws its conclusions."""
    found = 0
    for process in (collector.pid, *workers(collector.pid)):
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        found += int(status.partition("VmRSS:")[2].split()[0])
    return found / 1024
