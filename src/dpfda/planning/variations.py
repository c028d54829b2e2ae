"""Studies beside the one that is planned: what it takes, what more or less of it would do.

Where a falling curve of simulated errors meets the error that is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import isotonic_regression

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.planning.trials import Expected, Trials
from dpfda.protocol.plan import MOST_PEOPLE

_RESAMPLES = 200


def falling(errors: FloatArray) -> FloatArray:
    """The nearest curve that never rises: more people, or a larger ε, cannot hurt.

    Examples:
        >>> falling(np.array([0.5, 0.3, 0.4, 0.1])).round(2).tolist()
        [0.5, 0.35, 0.35, 0.1]
    """
    return np.asarray(isotonic_regression(errors, increasing=False).x)


def crossing(levels: Sequence[float], errors: FloatArray, wanted: float) -> float:
    """The level at which the mean error comes down to `wanted`; infinite if it does not.

    Args:
        levels: people or ε, rising.
        errors: of the same studies at every level, (levels, studies).
        wanted: the error to reach.
    """
    curve = falling(errors.mean(axis=1))
    if curve[-1] > wanted:
        return float("inf")
    place = int(np.argmax(curve <= wanted))
    if place == 0:
        return float(levels[0])
    above, below = curve[place - 1], curve[place]
    share = (above - wanted) / (above - below)
    low, high = np.log(levels[place - 1]), np.log(levels[place])
    return float(np.exp(low + share * (high - low)))


def crossing_interval(
    levels: Sequence[float], errors: FloatArray, wanted: float, *, level: float = 0.9
) -> tuple[float, float]:
    """Where the crossing lies when other studies had been simulated: studies drawn again."""
    rng = np.random.default_rng(0)
    studies = errors.shape[1]
    found = [
        crossing(levels, errors[:, rng.integers(0, studies, studies)], wanted)
        for _ in range(_RESAMPLES)
    ]
    tail = (1 - level) / 2
    low, high = np.quantile(found, [tail, 1 - tail], method="nearest")
    return float(low), float(high)


PEOPLE = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
_AROUND = (0.1, 0.2, 0.5, 1, 2, 5)
_STRENGTHS = (0.9, 0.7, 0.5, 0.35, 0.2, 0.1)  # of what there is to gain without privacy
_SURE = 0.8


def reached(
    trials: Trials, people: int | None, epsilon: float | None, error: float
) -> tuple[int, float, tuple[float, float]]:
    """People and ε at which the mean error is reached, and the interval of the one sought."""
    place, wanted = trials.place, _validate.fraction("error", error)
    if not place.limit < wanted < place.guessing:
        guess = "the mean" if place.numbers else "guessing"
        rule = f"above {place.limit:.3g} (no privacy) and below {place.guessing:.3g} ({guess})"
        raise InvalidParameter("error", rule, wanted)
    levels: Sequence[float] = PEOPLE if people is None else EPSILONS
    pairs = [(int(n), epsilon) if people is None else (people, n) for n in levels]
    errors = np.stack([trials.errors(size, price) for size, price in pairs])  # type: ignore[arg-type]
    found = crossing(levels, errors, wanted)
    interval = crossing_interval(levels, errors, wanted)
    if np.isinf(found):
        left = falling(errors.mean(axis=1))[-1]
        most = f"{levels[-1]:,} people" if people is None else f"ε = {levels[-1]:g}"
        raise InvalidParameter("error", f"within reach: {most} would leave {left:.3g}", wanted)
    if people is None:
        assert epsilon is not None
        return _round_up(found), epsilon, interval
    return people, float(f"{found:.2g}"), interval


def by_epsilon(trials: Trials, people: int, epsilon: float) -> tuple[Expected, ...]:
    """The same people at other ε."""
    levels = sorted({*EPSILONS[1:-1], epsilon})
    return tuple(trials.expected(people, level) for level in levels)


def by_people(trials: Trials, people: int, epsilon: float) -> tuple[Expected, ...]:
    """A tenth to five times as many people."""
    sizes = sorted({min(max(10, round(people * by)), MOST_PEOPLE) for by in _AROUND})
    return tuple(trials.expected(size, epsilon) for size in sizes)


def second(trials: Trials, people: int, epsilon: float) -> tuple[tuple[str, Expected], ...]:
    """Twice as many people, or the same at twice the ε: two studies that are planned as one."""
    return (
        ("as many other people", trials.expected(min(2 * people, MOST_PEOPLE), epsilon)),
        ("the same people again", trials.expected(people, 2 * epsilon)),
    )


def detectable(trials: Trials, people: int, epsilon: float) -> tuple[float, float] | None:
    """The weakest signal that four of five studies find, between those that were tried.

    Returns:
        Its error without privacy, and how many standard deviations apart normal classes of that
        error are, or the correlation of a number with its prediction; None if none is found so
        often.
    """
    place = trials.place
    limits = [place.guessing * (1 - strength) for strength in _STRENGTHS]
    found = [trials.apart(limit).expected(people, epsilon).better for limit in limits]
    rates = falling(np.array(found))
    if rates[0] < _SURE:
        return None
    weakest = float(np.interp(-_SURE, -rates, limits)) if rates[-1] < _SURE else limits[-1]
    return weakest, place.distance(weakest)


def _round_up(people: float) -> int:
    """Two digits, upwards."""
    unit = 10 ** max(0, len(str(int(people))) - 2)
    return int(-(-people // unit) * unit)
