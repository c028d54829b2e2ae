"""What 10^8 people cost: a reply, a row, a secure sum of up to 1000 sites; then arithmetic.

Replies and rows are measured and multiplied; a secure sum is run with all of its sites. The figures
are of one core of the machine that runs it; docs/guides/beyond-one-machine.md reads them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.protocol.secure_sum import Aggregator, Identity, Member, Terms
from dpfda.protocol.secure_sum.aggregator import one_round
from dpfda.protocol.secure_sum.messages import RoundId
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks.collector import measure
from dpfda_bench.benchmarks.scale import COLUMNS, Made
from dpfda_bench.goals import Goal, at_most

GOALS: dict[str, Goal] = {
    "most_received_kb_of_256": at_most(40),
    "most_received_kb_of_1000": at_most(120),
    "coordinator_s_of_1000": at_most(2),
}
PEOPLE, PLACES = 10**8, 10**3
_NUMBERS = COLUMNS * (COLUMNS + 3) // 2  # of the largest question of a regression
_PASSES = 3  # a pass that counts, and two questions
_HOUR = 3600.0


def run(quick: bool = False) -> Outcome:
    """Replies to a collector, rows of a curator, sites of a secure sum."""
    figures = _people(1000 if quick else 4000) | _rows(2 if quick else 8)
    rounds = [_round(sites) for sites in ((8, 64) if quick else (20, 100, 256, PLACES))]
    figures |= {
        f"{name}_of_{row['sites']:g}": row[name]
        for row in rounds
        for name in ("sent_kb", "received_kb", "most_received_kb", "site_s", "coordinator_s")
    }
    share = PEOPLE / PLACES
    figures |= {
        "one_collector_hours": PEOPLE / figures["replies_per_s"] / _HOUR,
        "each_of_1000_collectors_minutes": share / figures["replies_per_s"] / 60,
        "database_gb": PEOPLE * figures["stored_bytes"] / 1e9,
        "each_database_mb": share * figures["stored_bytes"] / 1e6,
        "network_gb": PEOPLE * figures["reply_bytes"] / 1e9,
        "curator_core_hours": PEOPLE * _PASSES * figures["row_pass_ns"] / 1e9 / _HOUR,
        "site_core_seconds": share * _PASSES * figures["row_pass_ns"] / 1e9,
    }
    notes = [
        f"{PEOPLE:.0e} people, {PLACES} collectors or sites; replies of 4 numbers, SQLite, synced;"
        f" regression of {COLUMNS} columns, {_PASSES} passes, {_NUMBERS} sums in a question",
        "rates are of one process on this machine; a secure sum among S sites of which S/10 may "
        "collude with the coordinator and S/20 may fall silent, and all are there; of what a site "
        "receives, the mean and the most of any site",
    ]
    return Outcome(rows=rounds, figures=figures, notes=notes)


def _people(count: int) -> dict[str, float]:
    """Replies of single people over HTTP, each one durable."""
    with tempfile.TemporaryDirectory(prefix="dpfda-capacity-") as folder:
        path = Path(folder, "studies.db")
        found = measure(f"sqlite:///{path}", single=count)
        size = sum(one.stat().st_size for one in Path(folder).glob("studies.db*"))
    sent = sum(map(len, found.requests)) / count
    return {
        "replies_per_s": found.reply.rate,
        "reply_bytes": sent,
        "stored_bytes": size / count,
    }


def _rows(blocks: int) -> dict[str, float]:
    """Processor time that a row takes in a pass, made while it is read."""
    model = PrivateLinearRegression(feature_ranges=(0, 1), target_range=(-1, 1), random_state=0)
    began, rows = time.process_time(), 100_000
    model.fit_stream([Made(number, rows) for number in range(blocks)])
    taken = time.process_time() - began
    return {"row_pass_ns": 1e9 * taken / (blocks * rows * _PASSES)}


def _round(sites: int) -> dict[str, float]:
    """One secure sum among so many sites: bytes of their messages, processor time."""
    coordinator, keys = Identity(), {f"site {k}": Identity() for k in range(sites)}
    terms = Terms(
        study="capacity",
        coordinator=coordinator.public,
        roster=tuple((name, key.public) for name, key in keys.items()),
        colluders=sites // 10,
        dropouts=sites // 20,
    )
    degree, question = terms.neighbors.degree, "0" * 64
    members = {name: Member(name, key, terms) for name, key in keys.items()}
    for member in members.values():
        member.contribute(0, np.zeros(_NUMBERS, dtype=np.int64), question=question)
    round_id = RoundId(stage=0, attempt=1, question=question)
    sent, received, elsewhere = 0, dict.fromkeys(keys, 0), [0.0, 0.0]

    def carry(step: str, messages: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal sent
        entered, found = time.process_time(), {}
        for name, message in messages.items():
            received[name] += len(msgspec.msgpack.encode(message))
            began = time.process_time()
            found[name] = getattr(members[name], step)(message)
            elsewhere[0] += time.process_time() - began
            sent += len(msgspec.msgpack.encode(found[name]))
        elsewhere[1] += time.process_time() - entered
        return found

    began = time.process_time()
    one_round(Aggregator(terms, coordinator, round_id, size=_NUMBERS), terms.names, carry)
    taken = time.process_time() - began
    return {
        "sites": sites,
        "neighbors": degree,
        "sent_kb": sent / sites / 1e3,
        "received_kb": sum(received.values()) / sites / 1e3,
        "most_received_kb": max(received.values()) / 1e3,
        "site_s": elsewhere[0] / sites,
        "coordinator_s": taken - elsewhere[1],
    }
