"""The contract of every query: its description, its price, and what its answers reveal.

The contract is found through the registry and run on every example, so a new query is checked
without editing a list. Neighboring records come from a search by hill climbing (`measured`). What
an attacker could learn from them is computed from the stated likelihood, which the contract of
mechanisms compares with the draws.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpfda._validate import FloatArray
from dpfda.checks import expect
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.exponential import Exponential
from dpfda.noise import SimulationSource
from dpfda.noise.source import Sampler, Words
from dpfda.privacy.events import Event, GaussianEvent
from dpfda.privacy.price import compose, exact
from dpfda.protocol.query import AdditiveQuery, Query, Records
from dpfda.protocol.task import Task

_SIZES = (0.3, 1.0, 3.0, 1e3)
_PROBES = 64
_MOVES = ((True, True), (True, False), (False, True))  # which of the two sides
_ROUNDED = 1e-13  # rounding error of the logarithm of a small probability


@dataclass(frozen=True, eq=False)
class Found:
    """The worst neighbors that a search found.

    Attributes:
        ratio: distance of their exact answers, in units of the stated sensitivity.
        neighbors: the two data sets; they differ in record 0.
        exact: the inputs of the mechanism for both data sets.
        score: the maximized quantity: the ratio or, if the mechanism accepts any input, the mean
            loss.
    """

    ratio: float
    neighbors: tuple[Records, Records]
    exact: tuple[FloatArray, FloatArray]
    score: float = 0.0


@lru_cache(maxsize=256)
def search(query: Query, *, seed: int = 0, starts: int = 60, steps: int = 500) -> Found:
    """Hill climbing from the best of many random pairs of very different sizes."""
    rng = np.random.default_rng(seed)
    first = query.trial(rng)
    best = Found(0.0, (first, first), (exact_answer(query, first),) * 2)
    for _ in range(starts):
        size = float(rng.choice(_SIZES))
        here, other = query.trial(rng, size=size), query.trial(rng, size=size)
        there = tuple(column.copy() for column in here)
        for column, new in zip(there, other, strict=True):
            column[0] = new[0]
        best = max(best, measured(query, (here, there)), key=lambda found: found.score)
    return _climb(query, best, rng, steps=steps)


def _climb(query: Query, best: Found, rng: np.random.Generator, *, steps: int) -> Found:
    """Move the replaced record by small steps on either side; keep improvements."""
    for step in range(steps):
        moving, reach = _MOVES[step % 3], 0.98 ** (step % 250)
        pair = [
            _moved(side, reach, rng) if moves else side
            for side, moves in zip(best.neighbors, moving, strict=True)
        ]
        exact = [
            exact_answer(query, side) if moves else known  # the most expensive step
            for side, moves, known in zip(pair, moving, best.exact, strict=True)
        ]
        found = _compared(query, (pair[0], pair[1]), (exact[0], exact[1]))
        best = max(best, found, key=lambda found: found.score)
    return best


def _moved(side: Records, reach: float, rng: np.random.Generator) -> Records:
    """Records with record 0 moved at random; labels are not changed."""
    moved = tuple(column.copy() for column in side)
    for column in moved:
        if column.dtype.kind == "f":
            scale = max(float(np.abs(column[0]).max()), 0.1)
            column[0] += reach * scale * rng.normal(size=column[0].shape)
    return moved


def measured(query: Query, pair: tuple[Records, Records]) -> Found:
    """A pair with the distance of its exact answers."""
    return _compared(query, pair, (exact_answer(query, pair[0]), exact_answer(query, pair[1])))


def _compared(
    query: Query, pair: tuple[Records, Records], exact: tuple[FloatArray, FloatArray]
) -> Found:
    mechanism = query.mechanism
    if isinstance(mechanism, (Additive, Exponential)):
        ratio = distance(mechanism, *exact)
        return Found(ratio, pair, exact, ratio)
    lost = losses(mechanism, _reports(mechanism, exact[0]), *exact)
    return Found(_share_lost(mechanism, lost), pair, exact, float(lost.mean()))


def exact_answer(query: Query, records: Records) -> FloatArray:
    """The input of the mechanism for record 0, as one of its rows."""
    fitting, source = query.fitting(records), _Same()
    if isinstance(query, Task):
        exact = query._computed(fitting, source)[:1]
    else:
        exact = query.exact(fitting, source)
    return np.reshape(exact, -1 if _single(query) else (1, -1))


class _Same:
    """A source of fixed random words, created only if a query draws inside its computation."""

    sampler: Sampler = "simulation"

    @cached_property
    def _source(self) -> SimulationSource:
        return SimulationSource(0)

    def words(self, count: int) -> Words:
        """The next words."""
        return self._source.words(count)


@lru_cache(maxsize=256)
def _single(query: Query) -> bool:
    """Whether the mechanism takes one number per record."""
    return np.ndim(query.mechanism.worst_cases()[0][0]) == 1


def distance(mechanism: Mechanism, one: FloatArray, other: FloatArray) -> float:
    """The distance of two inputs, relative to the largest one allowed for neighbors."""
    if isinstance(mechanism, Additive):
        return mechanism.reach(np.ravel(one - other)) / mechanism.sensitivity
    if isinstance(mechanism, Exponential):
        return float(np.abs(one - other).max())
    # A local mechanism accepts any input, so the loss itself is compared with ε.
    return _share_lost(mechanism, losses(mechanism, _reports(mechanism, one), one, other))


def _share_lost(mechanism: Mechanism, lost: FloatArray) -> float:
    """The largest loss, in units of ε."""
    return max(float(lost.max()) - _ROUNDED, 0.0) / mechanism.epsilon


def _reports(mechanism: Mechanism, value: FloatArray) -> FloatArray:
    """A few reports from one input, always from the same random words."""
    rows = np.repeat(value, _PROBES, axis=0)
    return mechanism.randomize(rows, SimulationSource(0), clip=True)


def losses(
    mechanism: Mechanism, reports: FloatArray, one: FloatArray, other: FloatArray
) -> FloatArray:
    """Log-likelihood of each report from `one`, minus that from `other`."""
    here, there = (np.repeat(value, len(reports), axis=0) for value in (one, other))
    return np.asarray(
        mechanism.log_likelihood(reports, here) - mechanism.log_likelihood(reports, there)
    )


FAMILY = Query
_DRAWS = 4000
_LITTLE = 1e-9  # relative tolerance for rounding errors
_HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e-320)


def check_query(query: Query) -> None:
    """Run the whole contract on one instance.

    Examples:
        >>> from dpfda.protocol.tasks.vector import MomentTask
        >>> check_query(MomentTask.examples()[0])
    """
    check_description(query)
    check_sensitivity(query)
    check_losses(query)
    check_answer(query)
    check_sums(query)
    check_hostile_records(query)


check = check_query


def check_description(query: Query) -> None:
    """Frozen, and the same question after JSON: same digest, same answers."""
    again = Query.from_dict(json.loads(json.dumps(query.to_dict())))
    expect(type(again) is type(query), "JSON must give a query of the same type")
    expect(again.digest == query.digest, "the digest must survive JSON")
    expect(query.event == query.mechanism.event, "the price must be the mechanism's own")
    expect(isinstance(query.event, Event), "event must be an Event")
    if isinstance(query, Task):
        cheap = compose([query.event]).epsilon <= exact(query.epsilon)
        expect(cheap, "a task must not cost more than its epsilon says")
    records = search(query).neighbors[0]
    one, other = (asked.answer(records, SimulationSource(5)).values for asked in (query, again))
    expect(np.array_equal(one, other), "the same question must get the same answer")
    try:
        query.unit = "nobody"  # type: ignore[misc]
    except AttributeError:
        return
    raise AssertionError("a query must be frozen")


def check_sensitivity(query: Query) -> None:
    """The sensitivity is never exceeded, and nearly attained by some neighbors."""
    if query.inside:  # tested by its likelihood, with whole conversations
        return
    ratio = search(query).ratio
    expect(ratio <= 1 + _LITTLE, f"neighbors are {ratio:.6f} sensitivities apart")
    reached = query.attained is None or ratio >= query.attained
    expect(reached, f"the search reaches {ratio:.4f} of the sensitivity only")


def check_losses(query: Query) -> None:
    """At the worst neighbors the privacy loss stays below the price and comes near it."""
    if query.inside:
        return
    here, there = (exact_answer(query, side) for side in search(query).neighbors)
    mechanism = query.mechanism
    sides = ((here, there), (there, here))
    if isinstance(query.event, GaussianEvent):
        # The loss is N(μ²/2, μ²), and μ²/2 where the report is the value itself.
        spent = math.sqrt(2 * max(losses(mechanism, one, one, two)[0] for one, two in sides))
        price = 1 / query.event.multiplier
    else:
        found = []
        for seed, (one, other) in enumerate(sides):
            rows = np.repeat(one, _DRAWS, axis=0)
            reports = mechanism.randomize(rows, SimulationSource(seed), clip=True)
            if isinstance(mechanism, Additive):  # also far out, where the loss is largest
                reports = np.concatenate([reports, one + 20 * (one - other)])
            found.append(losses(mechanism, reports, one, other).max())
        spent, price = max(found), float(compose([query.event]).epsilon)
    expect(spent <= price * (1 + _LITTLE), f"a loss of {spent:.6f} is above the price {price:.6f}")
    if query.attained is not None and isinstance(mechanism, Additive):
        near = spent >= price * query.attained * (1 - 1e-4)
        expect(near, f"no loss above {spent:.4f} at a price of {price:.4f}: too much noise")


class Counting:
    """A source that counts the words drawn."""

    sampler: Sampler = "simulation"

    def __init__(self, seed: int) -> None:
        self.drawn, self._source = 0, SimulationSource(seed)

    def words(self, count: int) -> Words:
        """The next words of a seeded source."""
        self.drawn += count
        return self._source.words(count)


def check_answer(query: Query) -> None:
    """An answer is the exact answer, randomized once by the mechanism."""
    records, mechanism = search(query).neighbors[0], query.mechanism
    answer = query.answer(records, SimulationSource(7))
    expect(answer.values.dtype == np.float64, "answers are numbers")
    expect(answer.n == len(records[0]), "an answer says how many records were asked")
    counting = Counting(0)
    query.exact(query.fitting(records), counting)
    if counting.drawn:  # a query that draws inside its computation is tested by its likelihood
        return
    direct = mechanism.randomize(exact_answer(query, records), SimulationSource(7), clip=True)
    expect(np.array_equal(np.ravel(direct), np.ravel(answer.values)), "more than the mechanism")
    stated = query.log_likelihood(answer, records, SimulationSource(0))
    meant = mechanism.log_likelihood(direct, exact_answer(query, records)).sum()
    expect(math.isclose(stated, meant, rel_tol=1e-12), "the likelihood must be the mechanism's")
    if isinstance(mechanism, Additive) and answer.law is not None:
        kept = np.array_equal(answer.law.variance, mechanism.law.variance)
        expect(kept, "the law that is stated must be the law that is drawn")


def check_sums(query: Query) -> None:
    """Sums of parts add up to the sums of all, in any order."""
    if not isinstance(query, AdditiveQuery):
        return
    generator = np.random.default_rng(4)
    parts = [query.trial(generator, size=size) for size in (1.0, 3.0, 0.1)]
    parts = [query.fitting(part) for part in parts]
    together = tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
    sums = [query.sums(part) for part in parts]
    expect(all(part.dtype == np.int64 for part in sums), "sums must be 64-bit integers")
    one, other = sums[0] + sums[1] + sums[2], sums[2] + sums[0] + sums[1]
    expect(np.array_equal(one, other), "sums must merge in any order")
    expect(np.array_equal(one, query.sums(together)), "sums of parts must be the sums of all")
    if query.linear:
        added = sum(query.statistic(part) for part in sums)
        near = np.allclose(added, query.statistic(one), rtol=_LITTLE, atol=_LITTLE)
        expect(near, "a linear look's statistics must add up over sites")


def check_hostile_records(query: Query) -> None:
    """Records with NaN, infinity or huge numbers get answers within the sensitivity."""
    here = search(query).neighbors[0]
    shape = query.answer(here, SimulationSource(0)).values.shape
    for value in _HOSTILE:
        there = spoiled(here, value)
        answer = query.answer(there, SimulationSource(0))
        expect(answer.values.shape == shape, f"a record of {value} changes the answer's shape")
        expect(bool(np.isfinite(answer.values).all()), f"a record of {value} is answered with it")
        if query.inside:
            continue
        moved = distance(query.mechanism, exact_answer(query, here), exact_answer(query, there))
        expect(moved <= 1 + _LITTLE, f"a record of {value} moves {moved:.3f} sensitivities")


def spoiled(records: Records, value: float) -> Records:
    """The records with every number of record 0 replaced."""
    there = tuple(column.copy() for column in records)
    for column in there:
        if column.dtype.kind == "f":
            column[0] = value
    return there
