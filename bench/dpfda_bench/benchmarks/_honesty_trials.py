"""One private release from a random problem: its error, its band, and whether it warned.

A kind of release makes a problem once; every (ε, δ) then is a `Trial`.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dpfda_bench.benchmarks._honesty_kinds import OTHERS
from dpfda_bench.benchmarks._honesty_means import MEANS
from dpfda_bench.benchmarks._honesty_task import Judged, Kind
from dpfda_bench.random_curves import HOLDING, SHAPES, WRONG, Shape, Slack

KINDS: dict[str, Kind] = {**MEANS, **OTHERS}
CYCLE = len(SHAPES) * len(HOLDING)  # seeds until all combinations have come
_ENDLESS = 1e12  # error of a release that is not a number
_TOO_SMALL = re.compile("probably (far )?too small")  # in warnings about ranges

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
        offered: the same of other mechanisms for this (ε, δ), by name; empty if not tried.
        holds: whether the band holds all it should; None without a band.
        width: mean width of the band, over the width of the public range.
        warned: whether there was a warning.
        called_small: whether a warning said that a range is too small.
        others: errors of what else was released, over those of zero.
        vague: whether the band is as wide as what is possible without data.
        default: whether this is what the package does if nobody chooses a mechanism.
        crash: the error with which it ended, if any; the rest then says nothing.
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
    others: tuple[float, ...] = ()
    vague: bool = False
    default: bool = True
    crash: str = ""


def trials(
    kind: str,
    n: int,
    seeds: Iterable[int],
    prices: Iterable[Price],
    *,
    wrong: bool = False,
    compare: bool = True,
) -> list[Trial]:
    """Trials of one kind and number of people.

    Args:
        kind: of `KINDS`.
        n: people.
        seeds: of the problems.
        prices: every ε and δ.
        wrong: whether ranges are some that do not hold the values.
        compare: whether every second cycle of shapes and ranges tries other mechanisms, too.
    """
    settings = {"wrong": wrong, "compare": compare}
    return [trial for seed in seeds for trial in _of_one(kind, n, seed, prices, **settings)]


def hidden(seed: int, *, wrong: bool = False) -> tuple[Shape, Slack]:
    """Shape and slack of a seed: all combinations equally often."""
    slacks = WRONG if wrong else HOLDING
    place = seed // len(SHAPES)
    return SHAPES[seed % len(SHAPES)], slacks[place % len(slacks)]


def _of_one(
    kind: str, n: int, seed: int, prices: Iterable[Price], *, wrong: bool, compare: bool
) -> Iterator[Trial]:
    shape, slack = hidden(seed, wrong=wrong)
    task = KINDS[kind](seed, shape, slack, n)
    compares = compare and not wrong and seed // CYCLE % 2 == 0
    for epsilon, delta in prices:
        crash, judged, offered = "", None, {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                judged = task.release(epsilon, delta)
            except Exception as error:  # one crash among many trials is a finding, not an end
                crash, judged = f"{type(error).__name__}: {error}", Judged(math.inf)
        if judged is None:
            continue
        if compares and not crash:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                offered = task.offered(epsilon, delta)
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
            error=judged.error if math.isfinite(judged.error) else _ENDLESS,
            public=task.public,
            offered=offered,
            holds=judged.holds,
            width=judged.width,
            warned=bool(said),
            called_small=any(map(_TOO_SMALL.search, said)),
            others=judged.others,
            vague=judged.vague,
            default=task.default,
            crash=crash,
        )
