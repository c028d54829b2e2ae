"""Flaws in what a mechanism draws: weights, coins and noise that is too small or shared."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np

from dpfda.checks import attacks, expect, mechanisms
from dpfda.mechanisms import Mechanism
from dpfda.noise import SimulationSource, uniform
from planted_flaws.planting import ContractStep, plant


@cache
def _attacked(*names: str) -> Callable[[], None]:
    """An audit of every example of some mechanisms."""

    def run() -> None:
        for name in names:
            for example in Mechanism.named(name).examples():
                result = attacks.attacked(example, name, draws=100_000, source=SimulationSource(0))
                expect(result.passed, f"{name} fails its audit")

    return run


def _contract(*names: str) -> ContractStep:
    return ContractStep(mechanisms.check, _examples, names)


def _examples(name: str) -> list[Any]:
    return [(example,) for example in Mechanism.named(name).examples()]


def _too_sharp(module: str) -> list[Any]:
    """Likely reports weigh 1.2 e^ε."""

    def sharp(*args: Any, **sizes: Any) -> tuple[int, int]:
        high, low = uniform.weights(*args, **sizes)
        return int(1.2 * high), low

    return [patch(f"dpfda.mechanisms.{module}.weights", sharp)]


plant(
    "cap_index_too_sharp",
    "codewords in the cap weigh 1.2 e^ε",
    lambda: _too_sharp("cap_index"),
    _attacked("cap_index"),
)
plant(
    "class_index_too_sharp",
    "codewords in the cap of the own bucket weigh 1.2 e^ε",
    lambda: _too_sharp("cap_index"),
    _attacked("class_index"),
)


def _honest_bucket() -> list[Any]:
    """The draw of a codeword alone, in the bucket of the own class always."""
    kind: Any = Mechanism.named("class_index")
    honest = kind.randomize

    def randomize(it: Any, values: Any, source: Any, *, clip: bool = False) -> Any:
        reports = honest(it, values, source, clip=clip)
        own, _ = it._split(values, clip=clip)
        buckets, _ = it._own_place(own, reports[:, 0].astype(np.uint64))
        reports[:, 1] = buckets * it.codewords + reports[:, 1] % it.codewords
        return reports

    return [patch.object(kind, "randomize", randomize)]


def _shared_words() -> list[Any]:
    """The coins of every second person are those of the one before."""

    def twice(bound: int, size: int, source: Any) -> Any:
        return uniform.below(bound, size, source)[np.arange(size) // 2 * 2]

    return [patch("dpfda.mechanisms.cap_index.below", twice)]


plant(
    "class_in_the_clear",
    "codewords are drawn with weights, but always from the bucket of the own class",
    _honest_bucket,
    _attacked("class_index"),
)
for _name in ("cap_index", "class_index"):
    plant(
        f"coins_shared_by_people: {_name}",
        "every second person uses the codebook and the coins of another",
        _shared_words,
        _contract(_name),
    )
plant(
    "question_response_too_sharp",
    "the true pattern weighs 1.2 times as much as it may",
    lambda: _too_sharp("randomized_response"),
    _attacked("question_response"),
)


def _drawn(name: str, change: Callable[[Any], Any]) -> list[Any]:
    """Integer noise of an additive mechanism, changed."""
    kind: Any = Mechanism.named(name)
    honest = kind._integers
    return [
        patch.object(kind, "_integers", lambda it, rows, source: change(honest(it, rows, source)))
    ]


for _name in ("additive_laplace", "ellipsoid_laplace", "gaussian"):
    plant(
        f"noise_too_small: {_name}",
        "noise is a tenth smaller than stated",
        partial(_drawn, _name, lambda noise: (noise * 0.9).astype(np.int64)),
        _attacked(_name),
    )
    plant(
        f"noise_shared_by_coordinates: {_name}",
        "two coordinates get the same noise",
        partial(_drawn, _name, lambda noise: np.repeat(noise[:, :1], noise.shape[1], axis=1)),
        _contract(_name),
    )
    plant(
        f"noise_shared_by_people: {_name}",
        "every second row gets its neighbor's noise",
        partial(_drawn, _name, lambda noise: noise[np.arange(len(noise)) // 2 * 2]),
        _contract(_name),
    )


def _shared_by_two(noise: Any) -> Any:
    """Of three coordinates, the last two share their noise."""
    return noise[:, [0, 1, 1]] if noise.shape[1] == 3 else noise


def _shared_by_neighbors(noise: Any) -> Any:
    return noise[np.arange(len(noise)) // 2 * 2]


for _title, _change in (("coordinates", _shared_by_two), ("people", _shared_by_neighbors)):
    plant(
        f"noise_shared_by_two_{_title}",
        f"two {_title} of several get the same noise, seen by an audit of reports",
        partial(_drawn, "gaussian", _change),
        _attacked("gaussian"),
    )
plant(
    "coordinates_with_replacement",
    "a person's coordinates are drawn with replacement",
    lambda: [
        patch(
            "dpfda.mechanisms.piecewise.subsets",
            lambda count, *, choose, among, source: (
                uniform.below(among, count * choose, source).astype(np.int64).reshape(count, choose)
            ),
        )
    ],
    _contract("piecewise"),
)
_exponential: Any = Mechanism.named("exponential")
_rate = _exponential.__dict__["_rate"].func
plant(
    "exponential_at_epsilon",
    "scores are weighed with ε instead of ε/2",
    lambda: [patch.object(_exponential, "_rate", property(lambda it: 2 * _rate(it)))],
    _contract("exponential"),
)
plant(
    "exponential_at_three_epsilon",
    "scores are weighed with 3ε/2: rare candidates vanish, seen where they are common",
    lambda: [patch.object(_exponential, "_rate", property(lambda it: 3 * _rate(it)))],
    _attacked("exponential"),
)
