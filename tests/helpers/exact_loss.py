"""Exact composition of releases fixed in advance: the distribution of their total privacy loss.

Losses are rounded to a grid, all up or all down, and convolved: the two answers enclose the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import norm

from dpfda.privacy.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)

_FAR = 9.0  # standard deviations of Gaussian noise; beyond, counted as the end or as certainty


class Loss:
    """The total privacy loss of releases at their worst neighbors.

    Args:
        events: the releases.
        up: whether losses are rounded up, so that δ is never too small, or down.
        points: of the grid.
    """

    def __init__(self, events: Iterable[Event], *, up: bool, points: int = 1 << 15) -> None:
        events = list(events)
        reach = [_reach(event) for event in events]
        self.step = 2 * sum(reach) / points
        self._up = up
        laws = [self._law(event, far) for event, far in zip(events, reach, strict=True)]
        size = next_fast_len(sum(len(law) - 1 for law in laws) + 1, real=True)
        product = np.ones(size // 2 + 1, dtype=complex)
        for law in laws:
            product *= rfft(law, size)
        self.mass = np.clip(irfft(product, size), 0, None)
        self.losses = (np.arange(size) - sum(len(law) // 2 for law in laws)) * self.step
        kept = [1 - event.delta for event in events if isinstance(event, ApproximateEvent)]
        self.failure = 1 - math.prod(kept)

    def delta(self, epsilon: float) -> float:
        """The smallest δ at ε."""
        above = self.losses > epsilon
        told = float(self.mass[above] @ -np.expm1(epsilon - self.losses[above]))
        return self.failure + (1 - self.failure) * told

    def epsilon(self, delta: float) -> float:
        """The smallest ε at δ."""
        low, high = 0.0, float(self.losses.max())
        if self.delta(low) <= delta:
            return 0.0
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def _law(self, event: Event, far: float) -> npt.NDArray[np.float64]:
        """Masses on -k, ..., k steps."""
        k = math.ceil(far / self.step) + 1
        law = np.zeros(2 * k + 1)
        match event:
            case GaussianEvent(multiplier=multiplier):
                mu = 1 / multiplier
                below = norm.cdf((np.arange(-k, k + 1) * self.step - mu * mu / 2) / mu)
            case LaplaceEvent(ratio=r):
                at = np.arange(-k, k + 1) * self.step
                inside = np.exp(-(r - np.clip(at, -r, r)) / 2) / 2
                below = np.where(at >= r, 1.0, np.where(at >= -r, inside, 0.0))
            case _:
                for loss, probability in _atoms(event):
                    law[k + (math.ceil if self._up else math.floor)(loss / self.step)] += (
                        probability
                    )
                return law
        cells = np.diff(below, prepend=0.0)
        cells[-1] += 1 - below[-1]
        return cells if self._up else np.append(cells[1:], 0.0)


def _reach(event: Event) -> float:
    match event:
        case GaussianEvent(multiplier=multiplier):
            return 1 / (2 * multiplier**2) + _FAR / multiplier
        case LaplaceEvent(ratio=ratio):
            return ratio
    return event.epsilon


def _atoms(event: Event) -> list[tuple[float, float]]:
    """Losses and probabilities; of plain releases when they do not fail."""
    assert isinstance(event, (PureEvent, ApproximateEvent, RandomizedResponseEvent))
    categories = getattr(event, "categories", 2)
    other = 1 / (math.exp(event.epsilon) + categories - 1)
    found = [(event.epsilon, math.exp(event.epsilon) * other), (-event.epsilon, other)]
    return found + [(0.0, (categories - 2) * other)] * (categories > 2)
