"""One private release from a random problem: its error, its band, and whether it warned.

A kind of release is a function of a seed, a shape, a slack and a number of people that makes a
problem once and yields a `Trial` for every (ε, δ).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.moments.mean_estimator import PrivateMean
from dpfda_bench.random_curves import HOLDING, SHAPES, WRONG, Shape, Slack, problem

LEVEL = 0.95
TOO_SMALL = "too small"  # in warnings about ranges

Price = tuple[float, float]
"""ε and δ."""


class Trial(NamedTuple):
    """What one release came to.

    Attributes:
        kind: of release.
        n: people.
        epsilon: ε.
        delta: δ.
        shape: of the curves, hidden.
        slack: how the public range compares with them, hidden.
        seed: of the problem.
        error: squared error of the release, over the square of what is public.
        public: the same of the center of the public range.
        offered: the same of other mechanisms for this (ε, δ), by name.
        holds: whether the band holds all it should; None without a band.
        width: mean width of the band, over the width of the public range.
        warned: whether there was a warning.
        called_small: whether a warning said that a range is too small.
    """

    kind: str
    n: int
    epsilon: float
    delta: float
    shape: str
    slack: str
    seed: int
    error: float
    public: float
    offered: dict[str, float]
    holds: bool | None
    width: float | None
    warned: bool
    called_small: bool


class Judged(NamedTuple):
    """What a fitted estimator released, beside the truth."""

    error: float
    holds: bool | None = None
    width: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Task:
    """A problem as a kind of release sees it.

    Attributes:
        release: a fitted default for (ε, δ), judged.
        offered: errors of other mechanisms for (ε, δ), by name.
        public: error of what is known without any data.
    """

    release: Callable[[float, float], Judged]
    public: float
    offered: Callable[[float, float], dict[str, float]] = lambda epsilon, delta: {}


Kind = Callable[[int, Shape, Slack, int], Task]


def trials(
    kind: str, n: int, seeds: Iterable[int], prices: Iterable[Price], *, wrong: bool
) -> list[Trial]:
    """Trials of one kind and number of people; `wrong`: with ranges that do not hold the values."""
    return [trial for seed in seeds for trial in _of_one(kind, n, seed, prices, wrong=wrong)]


def hidden(seed: int, *, wrong: bool = False) -> tuple[Shape, Slack]:
    """Shape and slack of a seed: all combinations equally often."""
    slacks = WRONG if wrong else HOLDING
    place = seed // len(SHAPES)
    return SHAPES[seed % len(SHAPES)], slacks[place % len(slacks)]


def _of_one(
    kind: str, n: int, seed: int, prices: Iterable[Price], *, wrong: bool
) -> Iterator[Trial]:
    shape, slack = hidden(seed, wrong=wrong)
    task = KINDS[kind](seed, shape, slack, n)
    for epsilon, delta in prices:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            judged = task.release(epsilon, delta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            offered = {} if wrong else task.offered(epsilon, delta)
        said = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
        said += judged.warnings
        yield Trial(
            kind=kind,
            n=n,
            epsilon=epsilon,
            delta=delta,
            shape=shape,
            slack=slack,
            seed=seed,
            error=judged.error,
            public=task.public,
            offered=offered,
            holds=judged.holds,
            width=judged.width,
            warned=bool(said),
            called_small=any(TOO_SMALL in text for text in said),
        )


def held(truth: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    """Whether a band holds the whole curve, but for rounding."""
    room = 1e-9 * float(np.max(np.abs(high - low)))
    return bool(np.all((low <= truth + room) & (truth <= high + room)))


# -- means -----------------------------------------------------------------------------------------

_PURE = ("allocation", "iclp_qr", "iclp_ar", "frl")
_SUP = ("bernstein",)  # its bound is on the largest absolute value: only for ranges
_WITH_DELTA = ("gaussian_process",)


def _mean(by: Literal["range", "norm"], inference: bool = False) -> Kind:
    """Means of curves; bands hold the sample's mean, with inference the population's."""

    def task(seed: int, shape: Shape, slack: Slack, n: int) -> Task:
        one = problem(seed, shape=shape, slack=slack, n=n)
        scale = one.half_width if by == "range" else one.norm_bound
        known: dict[str, Any] = {"value_range": one.value_range, "random_state": seed}
        if by == "norm":
            known = {"bound": scale, "center": float(one.center[0]), "random_state": seed}
        sample = one.curves.mean(0)
        target = one.population if inference else sample

        def error(curve: FloatArray) -> float:
            return float(np.mean((curve - sample) ** 2)) / scale**2

        def release(epsilon: float, delta: float) -> Judged:
            model = PrivateMean(epsilon, delta=delta, inference=inference, **known)
            release = model.fit(one.curves).release_
            low, high = release.interval(LEVEL, simultaneous=True)
            return Judged(
                error(release.values()),
                held(target, low, high),
                float(np.mean(high - low)) / (2 * scale),
                release.warnings,
            )

        def offered(epsilon: float, delta: float) -> dict[str, float]:
            if inference:
                return {}  # the others do not know the sampling error
            return {name: other(name, epsilon, price) for name, price in _mechanisms(by, delta)}

        @cache
        def other(name: str, epsilon: float, delta: float) -> float:
            model = PrivateMean(epsilon, delta=delta, mechanism=name, **known)
            return error(model.fit(one.curves).mean_)

        return Task(release=release, public=error(one.center), offered=offered)

    return task


def _mechanisms(by: str, delta: float) -> Iterator[tuple[str, float]]:
    """Mechanisms and the δ they use: pure ones are (ε, δ)-private, too."""
    yield from ((name, 0.0) for name in _PURE + _SUP * (by == "range"))
    if delta:
        yield from ((name, delta) for name in _WITH_DELTA)


KINDS: dict[str, Kind] = {
    "mean": _mean("range"),
    "mean by norm bound": _mean("norm"),
    "mean with inference": _mean("range", inference=True),
}
