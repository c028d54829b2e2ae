"""What the best of all analysts learns: every policy that a rule admits, by dynamic programming.

A menu of releases is asked in any order and number, as the answers suggest, as long as the rule
admits what was asked so far. Losses are multiples of one unit, so that the smallest δ at which the
conversation is (ε, δ)-DP is computed exactly: no policy is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpfda.privacy.calibration import gaussian_delta
from dpfda.privacy.events import ApproximateEvent, Event, GaussianEvent, RandomizedResponseEvent

Law = dict[int, float]
"""Probability of each loss, in units, at the worse of two neighbors."""


@dataclass(frozen=True)
class Item:
    """One release on a menu: what a ledger is told, and what it really tells.

    Attributes:
        event: as a ledger sees it.
        law: of the privacy loss.
        failure: the probability of telling everything.
    """

    event: Event
    law: Law
    failure: float = 0.0


def response(size: int, unit: float, categories: int = 2) -> Item:
    """Randomized response."""
    epsilon = size * unit
    other = 1 / (math.exp(epsilon) + categories - 1)
    law = {size: math.exp(epsilon) * other, -size: other}
    if categories > 2:
        law[0] = (categories - 2) * other
    return Item(RandomizedResponseEvent(epsilon=epsilon, categories=categories), law)


def plain(size: int, unit: float, delta: float) -> Item:
    """The worst release of which only ε and δ are known (Kairouz, Oh & Viswanath 2015)."""
    event = ApproximateEvent(epsilon=size * unit, delta=delta)
    return Item(event, response(size, unit).law, failure=delta)


def gaussian(size: int, unit: float) -> Item:
    """Integer noise with one step between neighbors: losses are odd multiples of size·unit.

    The event is the smallest Gaussian one that is no better protected at any level.
    """
    variance = 1 / (2 * size * unit)
    steps = np.arange(-int(9 * math.sqrt(variance)) - 2, int(9 * math.sqrt(variance)) + 3)
    mass = np.exp(-(steps**2) / (2 * variance))
    mass /= mass.sum()
    losses = (1 - 2 * steps) * size
    levels = np.linspace(0, losses.max() * unit, 400)[:-1]
    gaps = -np.expm1(np.minimum(levels[:, None] - losses * unit, 0))
    found = gaps @ mass
    mu = 1 / math.sqrt(variance)
    while any(
        gaussian_delta(epsilon=float(level), multiplier=1 / mu) < delta
        for level, delta in zip(levels, found, strict=True)
        if delta > 1e-9
    ):
        mu *= 1.002
    law = {int(k): float(p) for k, p in zip(losses, mass, strict=True) if p > 1e-13}
    return Item(GaussianEvent(multiplier=1 / mu), law)


def best_analyst(
    menu: list[Item],
    admits: Callable[[tuple[int, ...]], bool],
    *,
    epsilon: float,
    unit: float,
    longest: int = 60,
) -> float:
    """The smallest δ at ε that holds for every analyst who asks only what is admitted.

    Args:
        menu: the releases.
        admits: whether so many of each are admitted; fewer then are, too.
        epsilon: ε.
        unit: of losses.
        longest: the most releases that are looked at.
    """
    reach = [max(map(abs, item.law)) for item in menu]
    counts = _admitted(len(menu), admits, longest)
    width = max(sum(n * r for n, r in zip(count, reach, strict=True)) for count in counts)
    losses = np.arange(-width, width + 1) * unit
    stopped = -np.expm1(np.minimum(epsilon - losses, 0))
    values: dict[tuple[int, ...], npt.NDArray[np.float64]] = {}
    for count in sorted(counts, key=sum, reverse=True):
        best = stopped
        for place, item in enumerate(menu):
            after = values.get((*count[:place], count[place] + 1, *count[place + 1 :]))
            if after is None:
                continue
            told = sum(p * _moved(after, loss) for loss, p in item.law.items())
            best = np.maximum(best, item.failure + (1 - item.failure) * told)
        values[count] = best
    return float(values[(0,) * len(menu)][width])


def _admitted(
    kinds: int, admits: Callable[[tuple[int, ...]], bool], longest: int
) -> set[tuple[int, ...]]:
    found = {(0,) * kinds}
    edge = set(found)
    while edge:
        edge = {
            more
            for count in edge
            for place in range(kinds)
            if (more := (*count[:place], count[place] + 1, *count[place + 1 :])) not in found
            and sum(more) <= longest
            and admits(more)
        }
        found |= edge
    return found


def _moved(values: npt.NDArray[np.float64], steps: int) -> npt.NDArray[np.float64]:
    """values(loss + steps); beyond the ends, which no policy reaches, the end."""
    size = len(values)
    return values[np.clip(np.arange(size) + steps, 0, size - 1)]
