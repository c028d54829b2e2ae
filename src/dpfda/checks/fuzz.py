"""The contract of every query against whoever wrote it: hostile parameters, hostile records.

A malformed query is refused as a whole, before anything is computed, spent or stored. For a
well-formed one, whatever its numbers, the outcome (an answer of the stated shape, or a refusal)
never depends on what records hold, its sensitivity is never exceeded, and the time it takes stays
of one kind.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import numpy as np

from dpfda.checks import expect
from dpfda.checks.hostile import hostile_queries, hostile_records
from dpfda.checks.neighbors import search
from dpfda.errors import DpfdaError
from dpfda.mechanisms.additive import Additive
from dpfda.noise import SimulationSource
from dpfda.protocol.query import Query, Records
from dpfda.protocol.task import Task

FAMILY = Query
_MOST_TRIED = 1000  # numbers in and out of a query that is still searched for its sensitivity
_LARGE = 20.0  # ε beyond which probabilities of a response underflow
_QUICK = 0.01  # seconds: below, times tell nothing apart
_SLOWER = 20


def check_fuzz(query: Query) -> None:
    """Try everything on one query.

    Examples:
        >>> from dpfda.protocol.tasks.stump import StumpTask
        >>> check_fuzz(StumpTask.examples()[0])
    """
    records = query.trial(np.random.default_rng(0))
    refused, tried = 0, set()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for told, data in hostile_queries(query):
            made = made_from(data)
            if made is None:
                refused += 1
                continue
            if made.digest in tried:  # what was spoiled was the same before
                continue
            tried.add(made.digest)
            check_outcomes(made, records, told)
            check_reach(made, told)
        check_time(query, records)
    expect(bool(refused and tried), "some spoiled queries must be malformed, some well-formed")


check = check_fuzz


def made_from(data: dict[str, Any]) -> Query | None:
    """The query that this JSON describes; None where it is refused, as it should be."""
    try:
        return Query.from_dict(json.loads(json.dumps(data)))
    except DpfdaError:
        return None


def outcome(query: Query, records: Records) -> tuple[Any, ...]:
    """What is seen from outside: the shape of an answer, or the words of a refusal."""
    try:
        answer = query.answer(records, SimulationSource(0))
    except DpfdaError as refusal:
        return type(refusal).__name__, str(refusal)
    expect(bool(np.isfinite(answer.values).all()), "answers must be finite")
    return "answer", answer.values.shape


def check_outcomes(query: Query, records: Records, told: str) -> None:
    """One outcome, whatever the records hold; an answer has the shape that the query states."""
    usual = outcome(query, records)
    if usual[0] == "answer":
        stated = stated_shape(query)
        expect(usual[1] == stated, f"{told}: an answer of shape {usual[1]}, not {stated}")
    for held, hostile in hostile_records(records):
        other = outcome(query, hostile)
        expect(other == usual, f"{told}: {usual} becomes {other} for records of {held}")


def stated_shape(query: Query) -> tuple[int, ...]:
    """The shape that an answer must have."""
    if isinstance(query, Task):
        return query.people, query.width
    mechanism = query.mechanism
    return (len(mechanism.axes),) if isinstance(mechanism, Additive) else (1,)


def check_reach(query: Query, told: str) -> None:
    """Whatever numbers were accepted: no neighbors are further apart than is paid for."""
    if query.inside:
        return
    numbers = (*stated_shape(query), query.columns if isinstance(query, Task) else 1)
    if 0 < np.prod(numbers) <= _MOST_TRIED and query.mechanism.epsilon <= _LARGE:
        found = search(query, starts=6, steps=12)
        expect(found.ratio <= 1 + 1e-9, f"{told}: neighbors are {found.ratio:.6f} apart")


def check_time(query: Query, records: Records) -> None:
    """No record makes an answer take many times as long as others."""
    usual = _seconds(query, records)
    for held, hostile in hostile_records(records):
        taken = _seconds(query, hostile)
        fine = taken <= max(_QUICK, _SLOWER * usual)
        expect(fine, f"records of {held} take {taken:.3f} s, others {usual:.3f} s")


def _seconds(query: Query, records: Records) -> float:
    """The least of three times of the processor: waiting for others does not count."""
    times = []
    for _ in range(3):
        start = time.process_time()
        query.answer(records, SimulationSource(0))
        times.append(time.process_time() - start)
    return min(times)
