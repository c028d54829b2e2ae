"""``dpfda bench million``: a million people in one study, invited, asked, answering, concluded."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import msgspec

from dpfda.collector.collector_process import CollectorProcess
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._collector_crowd import Crowd, plan_for
from dpfda_bench.goals import Goal, at_least, at_most
from dpfda_bench.load import load

GOALS: dict[str, Goal] = {
    "counted": at_least(1_000_000),
    "lost": at_most(0),
    "counted_twice": at_most(0),
}

_AT_ONCE = 20_000  # people whose invitations and replies this process holds
_CONNECTIONS = 256


def run(quick: bool = False) -> Outcome:
    """Every request over HTTP: an invitation in thousands, a task and a reply for each person."""
    people = _AT_ONCE if quick else 1_000_000
    seconds = dict.fromkeys(("invite", "ask", "answer", "conclude"), 0.0)
    receipts, slowest = 0, 0.0
    with tempfile.TemporaryDirectory(prefix="dpfda-million-") as folder:
        file = Path(folder) / "million.db"
        with CollectorProcess(f"sqlite:///{file}") as collector:
            crowd = Crowd(collector, plan_for(people))
            for _ in range(0, people, _AT_ONCE):
                began = time.perf_counter()
                crowd.invite(_AT_ONCE)
                seconds["invite"] += time.perf_counter() - began
                seconds["ask"] += crowd.ask(connections=_CONNECTIONS).elapsed
                requests = crowd.replies(range(_AT_ONCE))
                told = load(collector.url, requests, connections=_CONNECTIONS, keep=True)
                seconds["answer"] += told.elapsed
                slowest = max(slowest, told.quantile(0.99))
                receipts += sum("receipt" in msgspec.json.decode(body) for body in told.bodies)
                crowd.leave()
            began = time.perf_counter()
            collector.request("POST", f"{crowd.path}/phases/0/close")
            while collector.request("GET", crowd.path)["status"] != "finished":
                time.sleep(0.1)
            seconds["conclude"] = time.perf_counter() - began
            counted = int(collector.request("GET", f"{crowd.path}/models")[-1]["people"])
            status = Path(f"/proc/{collector.pid}/status").read_text(encoding="utf-8")
        megabytes = file.stat().st_size / 2**20
    figures = {
        "counted": float(counted),
        "lost": float(max(0, receipts - counted)),
        "counted_twice": float(max(0, counted - receipts)),
        "invited_per_s": people / seconds["invite"],
        "tasks_per_s": people / seconds["ask"],
        "replies_per_s": people / seconds["answer"],
        "worst_p99_ms": slowest,
        "conclude_s": seconds["conclude"],
        "minutes": sum(seconds.values()) / 60,
        "database_megabytes": megabytes,
        "most_megabytes": int(status.partition("VmHWM:")[2].split()[0]) / 1024,
    }
    notes = [
        f"{_CONNECTIONS} connections, SQLite, synced; load generator and collector on one machine."
        f" worst_p99_ms is of {_AT_ONCE} replies in a row; most_megabytes is of the collector."
    ]
    return Outcome(figures=figures, notes=notes)
