"""What 10^8 people cost: a reply, a row, a site's part of a secure sum, measured; then arithmetic.

Three small measurements, and what they come to for 10^8 people with 10^3 collectors or sites. The
figures are of one core of the machine that runs it; docs/guides/beyond-one-machine.md reads them.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.protocol.secure_sum import Aggregator, Identity, Member, Terms
from dpfda.protocol.secure_sum.messages import RoundId
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks.collector import measure
from dpfda_bench.benchmarks.scale import COLUMNS, Made
from dpfda_bench.goals import Goal

GOALS: dict[str, Goal] = {}
PEOPLE, PLACES = 10**8, 10**3
_NUMBERS = COLUMNS * (COLUMNS + 3) // 2  # of the largest question of a regression
_PASSES = 3  # a pass that counts, and two questions
_HOUR = 3600.0


def run(quick: bool = False) -> Outcome:
    """Replies to a collector, rows of a curator, sites of a secure sum."""
    figures = _people(1000 if quick else 4000) | _rows(2 if quick else 8)
    rounds = [_round(sites) for sites in ((8, 32) if quick else (16, 64, 128))]
    figures |= _sites(rounds)
    share = PEOPLE / PLACES
    figures |= {
        "one_collector_hours": PEOPLE / figures["replies_per_s"] / _HOUR,
        "each_of_1000_collectors_minutes": share / figures["replies_per_s"] / 60,
        "database_gb": PEOPLE * figures["stored_bytes"] / 1e9,
        "each_database_mb": share * figures["stored_bytes"] / 1e6,
        "network_gb": PEOPLE * figures["reply_bytes"] / 1e9,
        "curator_core_hours": PEOPLE * _PASSES * figures["row_pass_ns"] / 1e9 / _HOUR,
        "site_core_seconds": share * _PASSES * figures["row_pass_ns"] / 1e9,
        "coordinator_gb_a_question": PLACES * _line(rounds, "site_bytes") / 1e9,
        "site_mb_a_question": _line(rounds, "site_bytes") / 1e6,
        "site_seconds_a_question": _power(rounds, "site_ms") / 1e3,
        "coordinator_minutes_a_question": PLACES * _power(rounds, "coordinator_ms") / 6e4,
    }
    notes = [
        f"{PEOPLE:.0e} people, {PLACES} collectors or sites; replies of 4 numbers, SQLite, synced;"
        f" regression of {COLUMNS} columns, {_PASSES} passes, {_NUMBERS} sums in a question",
        "rates are of one process on this machine; of 1000 sites, bytes follow a line and times a "
        "power of the number of sites through the two largest rounds",
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
    """One secure sum among so many sites: bytes that one of them sends, processor time."""
    coordinator, keys = Identity(), [Identity() for _ in range(sites)]
    roster = tuple((f"site {k}", key.public) for k, key in enumerate(keys))
    terms = Terms(study="capacity", coordinator=coordinator.public, roster=roster)
    members = [Member(name, key, terms) for (name, _), key in zip(roster, keys, strict=True)]
    for member in members:
        member.contribute(0, np.zeros(_NUMBERS, dtype=np.int64))
    aggregator = Aggregator(terms, coordinator, RoundId(stage=0, attempt=1), size=_NUMBERS)
    sent, spent = [0.0], [0.0, 0.0]

    def timed(who: int, work: Any, *given: Any) -> Any:
        began = time.process_time()
        found = work(*given)
        spent[who] += time.process_time() - began
        return found

    def all_send(step: str, given: Any) -> list[Any]:
        found = [timed(0, getattr(one, step), given(one)) for one in members]
        sent[0] += sum(len(msgspec.msgpack.encode(message)) for message in found)
        return found

    offers = timed(1, aggregator.offers, all_send("advertise", lambda _: aggregator.round))
    routed = timed(1, aggregator.route, all_send("share", lambda _: offers))
    survivors = timed(1, aggregator.collect, all_send("mask", lambda one: routed[one.name]))
    confirmed = timed(1, aggregator.confirmations, all_send("confirm", lambda _: survivors))
    timed(1, aggregator.open, all_send("unmask", lambda _: confirmed))
    return {
        "sites": sites,
        "site_bytes": sent[0] / sites,
        "site_ms": 1e3 * spent[0] / sites,
        "coordinator_ms": 1e3 * spent[1] / sites,  # for each site
    }


def _sites(rounds: list[dict[str, float]]) -> dict[str, float]:
    last = {name: value for name, value in rounds[-1].items() if name != "sites"}
    return {f"{name}_of_{rounds[-1]['sites']:g}": value for name, value in last.items()}


def _line(rounds: list[dict[str, float]], name: str) -> float:
    """What it is for all places: a share for each other site, and something of one's own."""
    one, other = rounds[-2:]
    slope = (other[name] - one[name]) / (other["sites"] - one["sites"])
    return other[name] + slope * (PLACES - other["sites"])


def _power(rounds: list[dict[str, float]], name: str) -> float:
    """The same of what grows faster: shares are points of polynomials as long as the roster."""
    one, other = rounds[-2:]
    power = math.log(other[name] / one[name]) / math.log(other["sites"] / one["sites"])
    return float(other[name] * (PLACES / other["sites"]) ** power)
