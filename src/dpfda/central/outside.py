"""Whether a public range is too small: a noisy count of records that lie outside it."""

from __future__ import annotations

import math

from scipy.stats import norm

from dpfda.noise.law import NoiseLaw
from dpfda.privacy.cost import Cost

_TOLD = 0.1  # of the records: what the noise of the count may be
_SHARES = 0.01, 0.05  # of a budget, for the count
_FEW = 0.05  # of the records: so many may lie outside
_BY_CHANCE = 0.002  # probability of a warning that noise alone makes


def price_of_a_count(budget: Cost, n: int) -> Cost:
    """What a count of those outside a public range costs: a small part of a budget.

    Examples:
        >>> price_of_a_count(Cost(epsilon=1.0), 10**6).epsilon_spent
        0.01
    """
    least, most = _SHARES
    needed = _TOLD * n * (budget.epsilon_spent / math.sqrt(2) if budget.pure else budget.mu)
    return budget.part(min(most, max(least, 1 / needed if budget.pure else 1 / needed**2)))


def more_than_a_few(outside: float, n: int, law: NoiseLaw) -> bool:
    """Whether a noisy count shows that more than a few of n records lie outside.

    Examples:
        >>> import numpy as np
        >>> law = NoiseLaw(law="gaussian", scales=np.array([10.0]))
        >>> more_than_a_few(75.0, 1000, law), more_than_a_few(85.0, 1000, law)
        (False, True)
    """
    scale = float(law.scales[0])
    # Of one number, spherical noise is Laplace noise.
    tail = norm.isf(_BY_CHANCE) if law.law == "gaussian" else math.log(1 / (2 * _BY_CHANCE))
    return outside > _FEW * n + float(tail) * scale
