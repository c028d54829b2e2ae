"""Public rules: how big a study's groups and models are, from N, ε and public ranges alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray

_FEATURES_FROM = (0, 20, 40, 60, 300, 1000, 2000, 3500)
"""The j-th ordered feature is used from this many effective people on. More from the start than
the ½ N_eff^{1/3} of methods 8.2: late features are asked about less often and believed less."""


def number_of_features(effective: float, *, most: int) -> int:
    """How many ordered features to use.

    Examples:
        >>> [number_of_features(n, most=8) for n in (8, 64, 640, 10_000)]
        [1, 4, 5, 8]
    """
    return max(1, min(most, sum(effective >= least for least in _FEATURES_FROM)))


def asking_weights(d: int, *, ordered: bool) -> FloatArray:
    """How often each feature is asked about, relative to the others: (j + 1)^{-1/2} if ordered."""
    return np.asarray((1.0 + np.arange(d)) ** (-0.5 if ordered else 0.0))


_CALIBRATED_FROM = 300
"""Below, the constant stump says four times as much about an intercept."""


def constant_shares(effective: float) -> tuple[float, float]:
    """Of the people asked about directions, who are asked about the constant stump (their label).

    Of few people many; nobody where too few would answer, or enough will help with the intercept.

    Returns:
        The share while the classes look balanced, and where they certainly are not.

    Examples:
        >>> constant_shares(100), constant_shares(2000)
        ((0.08, 0.5), (0.0, 0.0))
    """
    if not 15 <= effective < 1000:
        return 0.0, 0.0
    return min(max(60 / effective**1.5, 0.08), 0.4), min(max(60 / effective, 0.1), 0.5)


class Caution(NamedTuple):
    """How much is made of features that may say nothing, where people are few.

    Attributes:
        shown: how likely a signal may be at most for all of the last to be asked for labels, and
            from where on nobody is.
        leaning: what the odds of a signal are taken times before a rule goes by it.
    """

    shown: tuple[float, float]
    leaning: float


_LABELS, _MOST_LATE = 3.6, 0.95
_LATE_FROM = 30  # with fewer, neither features nor labels say much
_LATE_BELOW = 75  # from so many on, ordered features show themselves or say nothing

CAUTION = {True: Caution((0.45, 0.65), 0.25), False: Caution((0.5, 0.62), 0.5)}
"""By whether features are ordered."""

LATE = 0.4
"""Of the batches of people asked about directions, the last so many may be asked for labels."""


def labels_wanted(effective: float, *, ordered: bool) -> float:
    """How many clear answers about the label it takes to name the larger class, if nothing else.

    Of few people most of what they can say; none where features will most often show more than
    labels, sooner where they are ordered.

    Examples:
        >>> [round(labels_wanted(n, ordered=False)) for n in (29, 30, 120, 400)]
        [0, 20, 39, 0]
        >>> [round(labels_wanted(n, ordered=True)) for n in (30, 120)]
        [20, 0]
    """
    below = _LATE_BELOW if ordered else _CALIBRATED_FROM
    return _LABELS * math.sqrt(effective) if _LATE_FROM <= effective < below else 0.0


def late_share(missing: float, left: float, *, shown: float, caution: Caution) -> float:
    """Of the last people asked about directions, who are asked for their label instead.

    As many as are missing where no stump seems right by then; nobody where one does.

    Args:
        missing: clear answers about the label.
        left: those that all people who are left can give.
        shown: how likely it is that any stump is right, if it was as likely as not.
        caution: how likely it must be.

    Examples:
        >>> few = CAUTION[True]
        >>> [round(late_share(8, 20, shown=w, caution=few), 2) for w in (0.3, 0.5, 0.7)]
        [0.4, 0.3, 0.0]
    """
    low, high = caution.shown
    unseen = min(max((high - shown) / (high - low), 0.0), 1.0)
    return unseen * min(max(missing / max(left, 1e-9), 0.0), _MOST_LATE)


def range_share(
    effective: float, *, channels: int = 1, answers: float = 100.0, most: float = 0.45
) -> float:
    """Of all people, who say where curves lie in a range that is said to be loose.

    Args:
        effective: how many clear answers everybody's are worth.
        channels: of a curve, each with a place of its own.
        answers: clear ones for each channel.
        most: of all people, however few they are.

    Examples:
        >>> range_share(180), range_share(10_000)
        (0.45, 0.08)
    """
    return min(max(answers * channels / max(effective, 1e-9), 0.08), most)


def width_share(effective: float) -> float:
    """Of all people, who say how far they are from the middle of a feature.

    Examples:
        >>> width_share(150), width_share(10_000)
        (0.1, 0.04)
    """
    return min(max(15 / max(effective, 1e-9), 0.04), 0.1)


def groups(
    n_people: int,
    effective: float,
    *,
    center_known: bool,
    evaluation_share: float,
) -> tuple[int, int, int, int]:
    """How many of N people help with centers, directions, intercepts, and the error.

    Centers and intercepts are only sought where there are enough answers to find them.
    """
    evaluation = math.floor(evaluation_share * n_people)
    left = n_people - evaluation
    center = 0 if center_known or effective < 60 else math.floor(0.2 * left)
    wanted = effective / 500 if effective >= _CALIBRATED_FROM else 0.0
    intercept = math.floor(0.2 * left * min(1.0, wanted))
    return center, left - center - intercept, intercept, evaluation


def split_evenly(people: int, parts: int) -> list[int]:
    """Sizes of `parts` groups that differ by at most one."""
    return [people // parts + (part < people % parts) for part in range(parts)]
