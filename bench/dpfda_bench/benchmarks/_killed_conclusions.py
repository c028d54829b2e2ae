"""kill -9 while conclusions are drawn: of the process that draws them, or of the collector."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.client.crowd import reply_body
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.noise import SimulationSource
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server

_PEOPLE = 16  # of a study in two phases
_LATEST = 0.15  # seconds after a phase's last reply


@dataclass
class Killed:
    """What happened to studies whose phases ended under fire.

    Attributes:
        workers: kills of the process that draws conclusions.
        collectors: kills of the collector, and of that process with it.
        acknowledged: replies with a receipt.
        lost: replies with a receipt that no conclusion counts, or phases that ended otherwise than
            in an undisturbed study with the same replies.
        counted_twice: replies that were counted although they should not, or twice.
    """

    workers: int = 0
    collectors: int = 0
    acknowledged: int = 0
    lost: int = 0
    counted_twice: int = 0


def kill_conclusions(collector: CollectorProcess, *, kills: int) -> Killed:
    """Run small studies, and kill something at the end of each phase, `kills` times in all.

    Args:
        collector: a new one; it is started here.
        kills: how often; by turns the process that concludes and the collector.
    """
    found = Killed()
    moments = np.random.default_rng(1).uniform(0, _LATEST, kills)
    collector.start()
    try:
        while found.workers + found.collectors < kills:
            _study(collector, found, moments)
    finally:
        collector.stop()
    return found


def _study(collector: CollectorProcess, found: Killed, moments: Any) -> None:
    plan = StudyPlan(
        epsilon=4.0,
        n_people=_PEOPLE,
        encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        classes=(0, 1),
        design={"name": "answers", "center_known": True, "evaluation_share": 0.5},
        seed=found.acknowledged,
    )
    study = collector.create(plan)
    undisturbed = Server(plan)
    source = SimulationSource(plan.seed)
    wanted = []
    while study["status"] != "finished":
        wanted.append((study["phase"], study["wanted"]))
        replies = _answer(collector, plan, study["wanted"], source)
        found.acknowledged += len(replies)
        undisturbed.issue(len(replies))
        undisturbed.receive(replies, start=0)
        done = found.workers + found.collectors
        if done < len(moments):
            time.sleep(moments[done])
            _kill(collector, found)
        study = collector.wait_until(plan.hash[:16], phase=study["phase"] + 1)
    history = collector.request("GET", f"/api/studies/{plan.hash[:16]}/models")
    counted = [(entry["phase"], entry["people"]) for entry in history if entry["phase"] >= 0]
    found.counted_twice += len(counted) - len(dict(counted))
    for phase, people in wanted:
        found.lost += max(0, people - dict(counted).get(phase, 0))
        found.counted_twice += max(0, dict(counted).get(phase, 0) - people)
    if CurveModel.from_dict(history[-1]["model"]).to_json() != undisturbed.model.to_json():
        found.lost += 1


def _answer(
    collector: CollectorProcess, plan: StudyPlan, people: int, source: SimulationSource
) -> list[list[float]]:
    """Everybody whom a phase wants, brought by a gateway; values in the order of tickets."""
    path = f"/api/studies/{plan.hash[:16]}"
    deliveries, values = [], {}
    for token in collector.invite(plan.hash, people):
        task = collector.read("GET", path + "/task", token=token)
        body = reply_body(plan, task, np.array([[0.5, -0.5]]), np.ones(1, dtype=np.int64), source)
        reply = json.loads(body)
        values[reply["ticket"]] = reply["values"]
        deliveries.append({"token": token, "reply": reply})
    batch = {"replies": deliveries}
    told = json.loads(
        collector.read("POST", path + "/replies", batch, token=deliveries[0]["token"])
    )
    assert all("receipt" in verdict for verdict in told["verdicts"])
    return [values[ticket] for ticket in sorted(values)]


def _kill(collector: CollectorProcess, found: Killed) -> None:
    if (found.workers + found.collectors) % 2:
        collector.kill()
        collector.start()
        found.collectors += 1
        return
    for worker in workers(collector.pid):
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    found.workers += 1


def workers(parent: int) -> list[int]:
    """Processes that draw a collector's conclusions."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
