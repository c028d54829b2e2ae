"""Means of curves, as `dpfda bench honesty` measures them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import numpy as np

from dpfda._validate import FloatArray
from dpfda.estimators.private_mean import PrivateMean
from dpfda_bench.benchmarks._honesty_task import LEVEL, Judged, Kind, Task, held
from dpfda_bench.random_curves import Shape, Slack, problem

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
                vague=bool(np.median(high - low) >= 2 * scale),
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


MEANS: dict[str, Kind] = {
    "mean": _mean("range"),
    "mean by norm bound": _mean("norm"),
    "mean with inference": _mean("range", inference=True),
}
