"""How a two-stage regression divides what it may spend: the plan of least expected error.

Everything here is public: how many rows and features, what may be spent. What is hidden is believed
to be like this, in units of the public bounds: the mean of rows and that of targets are anywhere,
both fill all of their range, a third of it or a tenth, and half of what targets vary by depends on
the rows. Where no slope can be learned from so few, the mean of the targets still can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np

from dpfda.central.regression.problem import joint_l1, joint_l2, location_l1
from dpfda.privacy.cost import Cost

_LEVEL = 0.18  # squared: of a mean that is uniform over three quarters of its range
TARGET_WEIGHT = 0.5  # of the mean target beside the mean row, where nothing speaks for another
_SHARES = tuple(
    Fraction(k, 20) for k in (4, 8, 12, 16, 19)
)  # of the first question, that are tried
_WEIGHTS = (TARGET_WEIGHT, 1.0, 2.0, 4.0, 8.0)
_FILLINGS = (1.0, 1 / 3, 1 / 10)  # how much of a range rows may fill
_SCATTER = 0.35  # how far a row that fills its ball lies from the mean
_TARGET_SCATTER = 1 / 3  # of targets that fill their range
_SIGNAL = 0.5  # of their variance that a line explains
_CLIPPED = 0.1  # of what a line explains: lost where rows are shortened, whatever the noise
_LEAST_SPREAD = 0.01  # of mean squared distances, below which balls do not shrink
NEARLY = 1.1
"""Of the least error: what is usual for many rows is then preferred, since the belief is rough."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the first of two questions spends, and how much of it is about targets.

    Attributes:
        cost: what may be spent: pure, or Gaussian.
        share: of the first question.
        target_weight: of the mean target beside the mean row.
        error: expected squared error of predictions, over the square of the targets' half range.

    Examples:
        >>> cost, usual = Cost(epsilon=1.0), Fraction(1, 4)
        >>> few = Plan.of(cost, usual=usual, rows=40, features=8)
        >>> many = Plan.of(cost, usual=usual, rows=10**5, features=8)
        >>> few.share > usual, many.share == usual, few.target_weight > many.target_weight
        (True, True, True)
    """

    cost: Cost
    share: Fraction
    target_weight: float = TARGET_WEIGHT
    error: float

    @classmethod
    def of(cls, cost: Cost, *, usual: Fraction, rows: int, features: int) -> Plan:
        """The usual one, unless another is expected to be clearly better.

        Args:
            cost: what may be spent.
            usual: share of the first question for many rows.
            rows: how many.
            features: how many.
        """
        return _best(cost, usual, rows, features)


@lru_cache(maxsize=256)
def _best(cost: Cost, usual: Fraction, rows: int, features: int) -> Plan:
    def plan(share: Fraction, weight: float) -> Plan:
        error = _error(cost, share, weight, rows, features)
        return Plan(cost=cost, share=share, target_weight=weight, error=error)

    tried = [plan(*one) for one in product((usual, *_SHARES), _WEIGHTS)]
    best = min(tried, key=lambda plan: plan.error)
    return tried[0] if tried[0].error <= NEARLY * best.error else best


def _error(cost: Cost, share: Fraction, weight: float, rows: int, features: int) -> float:
    """Expected squared error, averaged over what is believed."""
    first, second = cost.part(share), cost.part(1 - share)
    row_noise = _location_noise(first, weight, rows, features)
    target_noise = row_noise / weight**2
    moment_noise = _moment_noise(second, rows, features)
    # Means are shrunk to the public middle by their noise.
    off = _LEVEL * target_noise / (_LEVEL + target_noise)
    each = _LEVEL / features
    away = features * each * row_noise / (each + row_noise)
    found = []
    for fills, target_fills in product(_FILLINGS, _FILLINGS):
        scatter, variance = (_SCATTER * fills) ** 2, (_TARGET_SCATTER * target_fills) ** 2
        # Squares are released with noise: it counts where it is larger than what they are of.
        ball = max(math.hypot(scatter + away, math.sqrt(row_noise)), _LEAST_SPREAD)
        targets = min(math.hypot(variance + off, math.sqrt(target_noise)), 1.0)
        signal = _SIGNAL * variance / features  # along each direction
        spread = scatter / ball / np.arange(1, features + 1)
        spread *= scatter / ball / spread.sum()
        known = spread * signal / targets
        left = signal * moment_noise / (known + moment_noise)
        always = variance * (features + 1) / rows + _CLIPPED * _SIGNAL * variance
        found.append(off + float(left.sum()) + always)
    return float(np.mean(found))


def _location_noise(cost: Cost, weight: float, rows: int, features: int) -> float:
    """Variance of the noise on the mean of rows in the unit ball."""
    if cost.pure:
        reach = location_l1(features) + weight * location_l1(1)
        return 2 * (reach / (rows * cost.epsilon_spent)) ** 2
    return 4 * (1 + weight**2) / (rows * cost.mu) ** 2


def _moment_noise(cost: Cost, rows: int, features: int) -> float:
    """Variance of the noise on mean products of rows and targets in their balls."""
    if cost.pure:
        return 2 * (joint_l1(1.0, 1.0, dimension=features) / (rows * cost.epsilon_spent)) ** 2
    return (joint_l2(1.0, 1.0) / (rows * cost.mu)) ** 2
