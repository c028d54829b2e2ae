"""What a vector report tells: the noise of its entries, from dimension, ε and classes alone."""

from __future__ import annotations

from functools import cache

from dpfda.mechanisms.cap_index import CapIndex
from dpfda.mechanisms.class_index import ClassIndex

_TYPICAL = 32  # a dimension in which reports are compared


@cache
def entry_noise(dimension: int, epsilon: float, *, n_classes: int = 1) -> float:
    """Variance of an entry of one person's estimate of a vector in the unit ball.

    With classes, of an entry of the (K, D) estimate of the vector in the row of one's class.

    Examples:
        >>> round(1 / entry_noise(8, 1.0), 2), round(1 / entry_noise(16, 5.0, n_classes=26), 1)
        (0.16, 14.6)
    """
    if n_classes == 1:
        return 1 / CapIndex.best(epsilon=epsilon, dimension=dimension).gain ** 2
    joined = ClassIndex.best(epsilon=epsilon, dimension=dimension, classes=n_classes)
    return 1 / (joined.buckets * joined.gain**2)


def effective_people(n_people: int, epsilon: float) -> float:
    """N_eff: how many people who send vectors without noise their reports are worth.

    Examples:
        >>> round(effective_people(3000, 0.5))
        119
    """
    return n_people / entry_noise(_TYPICAL, epsilon)
