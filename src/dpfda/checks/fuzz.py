"""The contract of every query against hostile parameters and hostile records.

A malformed query is refused as a whole, before anything is computed, spent or stored. For a
well-formed query with any numbers, the outcome (an answer of the stated shape, or a refusal) must
not depend on the records, the sensitivity must not be exceeded, and the time must not depend
strongly on the records.

Queries may be written by attackers, so all their fields are tested: `hostile_queries` yields JSON
that breaks a declared rule or lies at its limits. `hostile_records` yields records with unusual
contents.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpfda._validate import AnyArray
from dpfda.checks import expect
from dpfda.checks.queries import search
from dpfda.errors import DpfdaError
from dpfda.mechanisms.additive import Additive
from dpfda.noise import SimulationSource
from dpfda.protocol.fields import Array, Choice, Flag, Number, Part, Parts, Rule, Whole, rule_of
from dpfda.protocol.query import Query, Records
from dpfda.protocol.task import Task

_NO_NUMBERS: tuple[Any, ...] = (None, "1", [1.0], {}, True, float("nan"), float("inf"), -1e400)
_NUMBERS = (1.7e308, -1.7e308, 1e-30, 1e-320, 0, -0.0, 10**400, 1e101, 1e99)
_WHOLES = (0, -1, 1.5, 2, 7, 30, 31, 2000, 1 << 16, 1 << 31, 1 << 40, 1 << 63, 10**30)
_WORDS = ("", " ", "no such word", "x" * 300, "laplace", "cap_index", "../ledger", 3, None, ["a"])
_HELD = (0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e-320)


def hostile_queries(query: Query) -> Iterator[tuple[str, dict[str, Any]]]:
    """Modified versions of a query's JSON, each with a description of the change."""
    good = query.to_dict()
    yield "a key more", good | {"backdoor": 1}
    yield "another name", good | {"name": "no such query"}
    yield "no name", {key: value for key, value in good.items() if key != "name"}
    for field in dataclasses.fields(query):
        if not field.init:
            continue
        if field.default is dataclasses.MISSING:
            yield f"no {field.name}", {key: good[key] for key in good if key != field.name}
        for spoiled in _spoiled(rule_of(field), good[field.name]):
            text = f"{field.name} = {str(spoiled)[:60]}"
            yield text, copy.deepcopy(good) | {field.name: spoiled}


def _spoiled(rule: Rule, good: Any) -> Iterator[object]:
    match rule:
        case Number():
            yield from (*_NO_NUMBERS, *_NUMBERS, rule.least, rule.most, 2 * rule.most)
        case Whole():
            yield from (*_NO_NUMBERS, *_WHOLES, rule.least, rule.least - 1, rule.most + 1)
        case Flag():
            yield from (0, 1, "true", None, [], True, False)
        case Choice():
            yield from (*_WORDS, *rule.options)
        case Array():
            yield from _spoiled_arrays(rule, np.array(good))
        case Parts():
            yield from (None, "x", 3, [], {}, [*good, None], [*good, {}], [*good, [*good]])
            for one in _spoiled(Part(rule.kind), good[0]):
                yield [one, *good[1:]]
        case Part():
            yield from (None, "x", 3, [], {}, good | {"more": 1})
            for key in good:
                for value in (*_NO_NUMBERS, *_NUMBERS, "x" * 300, "1/0", "-1", "9999999/7"):
                    yield good | {key: value}
        case _:
            yield from (*_NO_NUMBERS, *_NUMBERS, *_WORDS)


def _spoiled_arrays(rule: Array, good: AnyArray) -> Iterator[object]:
    yield from (None, "1", 3, {}, [], [[]], [[[]]], [["a"]], [[1], [1, 2]], [None], [True])
    yield [good.tolist()]
    yield np.ravel(good).tolist()
    yield np.transpose(good).tolist()
    for axis in range(good.ndim):
        yield np.repeat(good, 2000, axis=axis).tolist()
        yield np.concatenate([good, good], axis=axis).tolist()
        yield np.take(good, [], axis=axis).tolist()
    yield np.repeat(good[..., None], 2000, axis=-1).tolist()
    for value in (*_NUMBERS, np.nan, np.inf, rule.least, rule.most, 1 << 20, 1 << 62):
        if rule.kind == "real" or isinstance(value, int):
            yield np.full(good.shape, value).tolist() if good.size else [value]
            mixed = good.astype(object).copy()
            mixed.flat[:1] = value
            yield mixed.tolist()


def hostile_records(records: Records) -> Iterator[tuple[str, Records]]:
    """Records of the same shapes with other numbers for all or for the first, without repeats."""
    seen = {_bytes(records)}
    for sentence, held in _spoiled_records(records):
        if _bytes(held) not in seen:
            seen.add(_bytes(held))
            yield sentence, held


def _bytes(records: Records) -> tuple[Any, ...]:
    return tuple((column.dtype, column.tobytes()) for column in records)


def _spoiled_records(records: Records) -> Iterator[tuple[str, Records]]:
    for value in _HELD:
        for name, place in (("everybody", slice(None)), ("one", slice(0, 1))):
            held = tuple(column.copy() for column in records)
            for column in held:
                if column.dtype.kind == "f":
                    column[place] = value
            yield f"{name} {value}", held
    for number in (-1, 0, 1, 2, 1 << 40):
        held = tuple(column.copy() for column in records)
        for column in held:
            if column.dtype.kind in "iu":
                column[:] = number
        yield f"labels {number}", held
    for label in (np.nan, np.inf, 1e300):
        yield (
            f"labels {label}",
            tuple(
                np.full(column.shape, label) if column.dtype.kind in "iu" else column
                for column in records
            ),
        )


FAMILY = Query
_MOST_TRIED = 1000  # largest size of a query whose sensitivity is searched
_LARGE = 20.0  # ε above which probabilities of a response underflow
_QUICK = 0.01  # seconds below which times are not compared
_SLOWER = 20


def check_fuzz(query: Query) -> None:
    """Run all hostile inputs on one query.

    Examples:
        >>> from dpfda.protocol.tasks.questions import StumpTask
        >>> check_fuzz(StumpTask.examples()[0])
    """
    records = query.trial(np.random.default_rng(0))
    refused, tried = 0, set()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sentence, data in hostile_queries(query):
            made = made_from(data)
            if made is None:
                refused += 1
                continue
            if made.digest in tried:  # the modified query equals an earlier one
                continue
            tried.add(made.digest)
            check_outcomes(made, records, sentence)
            check_reach(made, sentence)
        check_time(query, records)
    expect(bool(refused and tried), "some spoiled queries must be malformed, some well-formed")


check = check_fuzz


def made_from(data: dict[str, Any]) -> Query | None:
    """The query that this JSON describes; None if it is refused."""
    try:
        return Query.from_dict(json.loads(json.dumps(data)))
    except DpfdaError:
        return None


def outcome(query: Query, records: Records) -> tuple[Any, ...]:
    """The observable outcome: the shape of an answer, or the message of a refusal."""
    try:
        answer = query.answer(records, SimulationSource(0))
    except DpfdaError as refusal:
        return type(refusal).__name__, str(refusal)
    expect(bool(np.isfinite(answer.values).all()), "answers must be finite")
    return "answer", answer.values.shape


def check_outcomes(query: Query, records: Records, context: str) -> None:
    """The outcome is the same for all records, and an answer has the stated shape."""
    usual = outcome(query, records)
    if usual[0] == "answer":
        stated = stated_shape(query)
        expect(usual[1] == stated, f"{context}: an answer of shape {usual[1]}, not {stated}")
    for held, hostile in hostile_records(records):
        other = outcome(query, hostile)
        expect(other == usual, f"{context}: {usual} becomes {other} for records of {held}")


def stated_shape(query: Query) -> tuple[int, ...]:
    """The shape that an answer must have."""
    if isinstance(query, Task):
        return query.people, query.width
    mechanism = query.mechanism
    return (len(mechanism.axes),) if isinstance(mechanism, Additive) else (1,)


def check_reach(query: Query, context: str) -> None:
    """For all accepted numbers, neighbors are within the stated sensitivity."""
    if query.inside:
        return
    numbers = (*stated_shape(query), query.columns if isinstance(query, Task) else 1)
    if 0 < np.prod(numbers) <= _MOST_TRIED and query.mechanism.epsilon <= _LARGE:
        found = search(query, starts=6, steps=12)
        expect(found.ratio <= 1 + 1e-9, f"{context}: neighbors are {found.ratio:.6f} apart")


def check_time(query: Query, records: Records) -> None:
    """No record makes an answer take many times as long as others."""
    usual = _seconds(query, records)
    for held, hostile in hostile_records(records):
        taken = _seconds(query, hostile)
        fine = taken <= max(_QUICK, _SLOWER * usual)
        expect(fine, f"records of {held} take {taken:.3f} s, others {usual:.3f} s")


def _seconds(query: Query, records: Records) -> float:
    """The minimum of three processor times, which exclude waiting."""
    times = []
    for _ in range(3):
        start = time.process_time()
        query.answer(records, SimulationSource(0))
        times.append(time.process_time() - start)
    return min(times)
