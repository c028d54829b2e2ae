"""How long replies take while conclusions are drawn from a hundred thousand others."""

from __future__ import annotations

import hashlib
import math
import statistics
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np

from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import NewReply
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import Reply
from dpfda_bench.benchmarks._collector_crowd import FEATURES, Crowd, plan_for
from dpfda_bench.load import load

_CONNECTIONS = 16
_CHUNK = 2000
_QUIET = 1.5  # seconds of load before the phase ends


def concluding(folder: Path, *, replies: int, rounds: int = 3) -> dict[str, float]:
    """Milliseconds within which 99 % of replies are answered; how much longer while a phase ends.

    After its end the collector forgets who answered in it, which takes time as well.
    """
    database = f"sqlite:///{folder / 'concluding.db'}"
    found = []
    with CollectorProcess(database) as collector:
        for turn in range(rounds):
            large = plan_for(replies, seed=100 + turn)
            collector.create(large)
            _fill(database, large)
            crowd = Crowd(collector, plan_for(replies // 4, seed=200 + turn))
            crowd.invite(replies // 4)
            crowd.ask()
            found.append(_one_round(collector, crowd, large.hash[:16]))
    return {
        "p99_before_ms": _middle(before for before, *_ in found),
        "p99_concluding_over_before": _middle(b / a for a, b, _ in found),
        "p99_forgetting_over_before": _middle(c / a for a, _, c in found),
    }


def _middle(ratios: Iterable[float]) -> float:
    """The median of those that there are."""
    there = [ratio for ratio in ratios if not math.isnan(ratio)]
    return statistics.median(there) if there else math.nan


def _one_round(collector: CollectorProcess, crowd: Crowd, study: str) -> tuple[float, ...]:
    requests = crowd.replies(range(crowd.people))
    ended: list[float] = []

    def end_the_phase() -> None:
        time.sleep(_QUIET)
        ended.append(time.perf_counter())
        collector.request("POST", f"/api/studies/{study}/phases/0/close")
        while collector.request("GET", f"/api/studies/{study}")["status"] != "finished":
            time.sleep(0.05)
        ended.append(time.perf_counter())

    ending = threading.Thread(target=end_the_phase)
    ending.start()
    found = load(collector.url, requests, connections=_CONNECTIONS)
    ending.join()
    began, took = np.array(found.began), np.array(found.seconds) * 1000
    during = (began + took / 1000 > ended[0]) & (began < ended[1])
    before = began + took / 1000 <= ended[0]
    after = began >= ended[1]  # who answered in that phase is being forgotten
    # A small load may be over before conclusions are drawn: then there is nothing to compare.
    return tuple(
        float(np.quantile(took[when], 0.99)) if when.any() else math.nan
        for when in (before, during, after)
    )


def _fill(database: str, plan: StudyPlan) -> None:
    """Replies of everybody but one, straight into the database."""
    study = plan.hash[:16]
    rng = np.random.default_rng(0)
    storage = open_storage(database)
    for first in range(0, plan.n_people - 1, _CHUNK):
        numbers = range(first, min(first + _CHUNK, plan.n_people - 1))
        tokens = [hashlib.sha256(f"{study}/{number}".encode()).digest() for number in numbers]
        people = [(study, token) for token in tokens]
        storage.enrol(people)
        storage.issue(people, now=time.time())
        replies = []
        for number, token in zip(numbers, tokens, strict=True):
            values = rng.normal(size=FEATURES).tolist()
            body = msgspec.json.encode(Reply(plan.hash, 0, number, values))
            digest = hashlib.sha256(body).digest()
            replies.append(NewReply(token, study, 0, number, digest, body))
        assert set(storage.add_replies(replies)) == {"stored"}
        time.sleep(0.005)  # the collector may write too
    storage.close()
