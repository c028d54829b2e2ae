"""Neighboring records that a query tells apart best, found by climbing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.exponential import Exponential
from dpfda.noise import SimulationSource
from dpfda.noise.source import Sampler, Words
from dpfda.protocol.query import Query, Records
from dpfda.protocol.task import Task

_SIZES = (0.3, 1.0, 3.0, 1e3)
_PROBES = 64
_MOVES = ((True, True), (True, False), (False, True))  # which of the two sides
_ROUNDED = 1e-13  # what the logarithm of a small probability is rounded by


@dataclass(frozen=True, eq=False)
class Found:
    """The worst neighbors that a search came upon.

    Attributes:
        ratio: how far apart their exact answers are, in units of what the mechanism is made for.
        neighbors: the two data sets; they differ in record 0.
        exact: what goes into the mechanism about either.
        score: what the search climbs by: the ratio or, where any input is allowed, the mean loss.
    """

    ratio: float
    neighbors: tuple[Records, Records]
    exact: tuple[FloatArray, FloatArray]
    score: float = 0.0


@lru_cache(maxsize=256)
def search(query: Query, *, seed: int = 0, starts: int = 60, steps: int = 500) -> Found:
    """Climb from the best of many random pairs, tiny and huge ones among them."""
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
    """Small moves of the replaced record, on either side, kept if they help."""
    for step in range(steps):
        moving, reach = _MOVES[step % 3], 0.98 ** (step % 250)
        pair = [
            _moved(side, reach, rng) if moves else side
            for side, moves in zip(best.neighbors, moving, strict=True)
        ]
        exact = [
            exact_answer(query, side) if moves else known  # most of the work
            for side, moves, known in zip(pair, moving, best.exact, strict=True)
        ]
        found = _compared(query, (pair[0], pair[1]), (exact[0], exact[1]))
        best = max(best, found, key=lambda found: found.score)
    return best


def _moved(side: Records, reach: float, rng: np.random.Generator) -> Records:
    """Records with another one at place 0; labels stay."""
    moved = tuple(column.copy() for column in side)
    for column in moved:
        if column.dtype.kind == "f":
            scale = max(float(np.abs(column[0]).max()), 0.1)
            column[0] += reach * scale * rng.normal(size=column[0].shape)
    return moved


def measured(query: Query, pair: tuple[Records, Records]) -> Found:
    """A pair, and how far apart its exact answers are."""
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
    """What goes into the mechanism about record 0, as one of its rows."""
    fitting, source = query.fitting(records), _Same()
    if isinstance(query, Task):
        exact = query._computed(fitting, source)[:1]
    else:
        exact = query.exact(fitting, source)
    return np.reshape(exact, -1 if _single(query) else (1, -1))


class _Same:
    """A source of the same words each time; they are made for those few queries that draw."""

    sampler: Sampler = "simulation"

    @cached_property
    def _source(self) -> SimulationSource:
        return SimulationSource(0)

    def words(self, count: int) -> Words:
        """The next ones."""
        return self._source.words(count)


@lru_cache(maxsize=256)
def _single(query: Query) -> bool:
    """Whether the mechanism takes a number for each record."""
    return np.ndim(query.mechanism.worst_cases()[0][0]) == 1


def distance(mechanism: Mechanism, one: FloatArray, other: FloatArray) -> float:
    """1 where two inputs are as far apart as the mechanism allows neighbors to be."""
    if isinstance(mechanism, Additive):
        return mechanism.reach(np.ravel(one - other)) / mechanism.sensitivity
    if isinstance(mechanism, Exponential):
        return float(np.abs(one - other).max())
    # A local mechanism takes any input: what counts is the loss itself.
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
    """Log-likelihood of each report from `one`, less that from `other`."""
    here, there = (np.repeat(value, len(reports), axis=0) for value in (one, other))
    return np.asarray(
        mechanism.log_likelihood(reports, here) - mechanism.log_likelihood(reports, there)
    )
