"""What is asked to release a mean: the plan of least expected error.

Everything here is public: how many curves, what may be spent, how many coefficients there are. What
is hidden is believed to be like this, in units of the public bound: the level of the curves is
anywhere, their waves fall along the coefficients, and curves fill all of their range, a third of it
or a tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.stats import norm

from dpfda._validate import FloatArray
from dpfda.privacy.cost import Cost

_LEVEL = 0.18  # squared: of a level that is uniform over three quarters of the range
_WAVE = 0.03  # squared: the first wave of a mean curve that fills its range
_FALL = 2.4  # its waves fall like j^-2.4, squared
_FILLED = np.array([[1.0], [1 / 3], [1 / 10]])  # how much of a range curves may fill
_SCATTER = 0.35  # how far a curve that fills its range lies from the mean, along tilted axes
_FIRST, _SEARCH = (0.1, 0.2, 0.3), (0.05, 0.1, 0.15)  # shares that are tried
TILT = 0.5  # a_j = j^-tilt: the shape of the clipping region
_TOLD = 0.5  # of the bound: noise that hides how much is left out
FOLDED = 8  # coefficients for each sum of further ones


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One query of the whole ball, or a first one, a radius about it and a second one.

    Attributes:
        cost: what may be spent: pure, or Gaussian.
        size: coefficients that are released.
        first: share of the first of two queries; 0 where there is one query.
        search: share of the search for a radius.
        coarse: coefficients of the first query.
        error: expected squared error, in units of the squared bound.

    Examples:
        >>> few = Plan.of((Cost(epsilon=1.0),), n=20, most=60)
        >>> many = Plan.of((Cost(epsilon=1.0),), n=2000, most=60)
        >>> few.first, many.first > 0, few.size < many.size
        (0.0, True, True)
    """

    cost: Cost
    size: int
    first: float = 0.0
    search: float = 0.0
    coarse: int = 0
    error: float

    @property
    def folds(self) -> int:
        """Sums of further coefficients that are asked for besides."""
        return self.size // FOLDED if self.first else 0

    def rest(self, n: int) -> bool:
        """Whether the norm of all others is asked for: if it can be told from nothing."""
        return bool(self.first) or _noise(self.cost, n, self.size + 1) < _TOLD**2

    @classmethod
    def of(cls, costs: tuple[Cost, ...], *, n: int, most: int, single: bool = True) -> Plan:
        """The best for any of the costs.

        Args:
            costs: which may be spent, each by itself.
            n: curves.
            most: coefficients there are.
            single: whether one query may be all; without a public bound it may not.
        """
        return min(_plans(costs, n, most, single), key=lambda plan: plan.error)


@lru_cache(maxsize=256)
def _plans(costs: tuple[Cost, ...], n: int, most: int, single: bool) -> tuple[Plan, ...]:
    """The best of each kind and cost."""
    found = []
    for cost in costs:
        if single:
            found.append(_one_query(cost, n, most))
        found.append(_two_queries(cost, n, most))
    return tuple(found)


def _one_query(cost: Cost, n: int, most: int) -> Plan:
    prior = _prior(most)
    plans = []
    for size in _sizes(most):
        noise = _noise(cost, n, size + (size < most))
        error = _error(prior[:, :size], noise) + _beyond(prior, size)
        plans.append(Plan(cost=cost, size=size, error=error))
    return min(plans, key=lambda plan: plan.error)


def _two_queries(cost: Cost, n: int, most: int) -> Plan:
    prior, index, best = _prior(most), np.arange(1, most + 1), None
    for first, search, coarse in product(_FIRST, _SEARCH, _sizes(most)):
        before = _noise(cost.part(first), n, coarse)
        after = prior.copy()
        after[:, :coarse] = 1 / (1 / prior[:, :coarse] + 1 / before)
        lost = _lost(cost.part(search), n)
        last = cost.part(1 - first - search)
        for size in (size for size in _sizes(most) if size >= coarse):
            radius2 = (_SCATTER * _FILLED) ** 2 + (after * index)[:, :size].sum(1, keepdims=True)
            dimensions = size + (size // FOLDED + 1) * (size < most)
            noise = radius2 * _noise(last, n, dimensions) / index[:size]
            error = _error(after[:, :size], noise) + _beyond(prior, size)
            error = (1 - lost) * error + lost * float(after.sum(axis=1).mean())
            if best is None or error < best.error:
                best = Plan(
                    cost=cost, size=size, first=first, search=search, coarse=coarse, error=error
                )
    assert best is not None
    return best


def _prior(most: int) -> FloatArray:
    """Squares of coefficients, (fillings, most)."""
    waves = _WAVE * _FILLED**2 * np.arange(1, most, dtype=np.float64) ** -_FALL
    return np.hstack([np.full((len(_FILLED), 1), _LEVEL), waves])


def _sizes(most: int) -> list[int]:
    """Numbers of coefficients that are tried."""
    powers = (1 << k for k in range(most.bit_length()))
    return sorted({1, most, *(size for size in powers if size < most)})


def _noise(cost: Cost, n: int, size: int) -> float:
    """Variance of the noise on each of so many coefficients, of vectors in a ball of radius 1."""
    if cost.pure:
        return (size + 1) * (2 / (n * cost.epsilon_spent)) ** 2
    return (2 / (n * cost.mu)) ** 2


def _lost(search: Cost, n: int) -> float:
    """Probability that a search for a radius is misled, so that the first query is all there is."""
    if search.pure:
        return math.exp(-n * search.epsilon_spent / 15)
    return float(min(1.0, 12 * norm.sf(0.5 * n * search.mu / math.sqrt(6))))


def _error(prior: FloatArray, noise: FloatArray | float) -> float:
    return float((prior * noise / (prior + noise)).sum(axis=1).mean())


def _beyond(prior: FloatArray, size: int) -> float:
    return float(prior[:, size:].sum(axis=1).mean())
