"""The part of the contract that concerns bad input: refuse, and never repeat a private value.

Also parameters of any size: what is accepted has noise of a normal size, which scales with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpfda.checks import expect
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import LEAST_STEP, MOST_STEP, Additive
from dpfda.noise import SimulationSource

_SECRET = 7654.321
_TRACE = "7654"
_BUDGETS = (1e-300, 1e-6, 1e-3, 40.0, 700.0, 1e6, 1e300)
_POWERS = range(-1070, 1021, 10)


def check_bad_input(mechanism: Mechanism) -> None:
    """NaN, infinity, wrong shapes, nothing, text and out-of-bounds values raise `InvalidData`."""
    for what, values in _bad_batches(mechanism):
        try:
            mechanism.randomize(values, SimulationSource(0))
        except InvalidData as error:
            _expect_silence(error, what)
        else:
            raise AssertionError(f"values with {what} must be refused")


def check_bad_parameters(mechanism: Mechanism) -> None:
    """An impossible ε raises `InvalidParameter`, which shows the public value."""
    for epsilon in (0, -1.0, math.nan, math.inf, "1", None, True):
        try:
            Mechanism.from_dict(mechanism.to_dict() | {"epsilon": epsilon})
        except InvalidParameter as error:
            expect("epsilon" in str(error), "the error must name the parameter")
            expect(repr(epsilon) in str(error), "the error must show the public value")
        else:
            raise AssertionError(f"epsilon = {epsilon!r} must be refused")


def check_magnitudes(mechanism: Mechanism) -> None:
    """A budget, sensitivity or axes of any size are refused, or give noise of a normal size."""
    own = mechanism.to_dict()
    budget = "mu" if "mu" in own else "epsilon"
    value = mechanism.worst_cases()[0][0]
    with np.errstate(all="ignore"):
        for size in _BUDGETS if budget in own else ():
            made = _made(own | {budget: size})
            if made is not None:
                told = f"{budget} = {size:g}"
                reports = made.randomize(np.repeat(value, 4, axis=0), SimulationSource(0))
                expect(bool(np.isfinite(reports).all()), f"{told}: reports must be finite")
                expect(bool(np.isfinite(made.variance(value)).all()), f"{told}: so must variances")
        if isinstance(mechanism, Additive):
            _check_scaling(mechanism)


def _check_scaling(mechanism: Additive) -> None:
    """Noise is multiplied by 2^k with the sensitivity, and with the axes, without losing a bit."""
    own = mechanism.to_dict()
    accepted = 0
    for k in _POWERS:
        for name in ("sensitivity", "axes"):
            made = _made(own | {name: np.ldexp(own[name], k).tolist()})
            if not isinstance(made, Additive):
                continue
            accepted += 1
            same = np.array_equal(made.scales, np.ldexp(mechanism.scales, k))
            expect(same, f"{name} times 2^{k}: scales must go with it")
            steps = made.lattice_step
            inside = bool((steps >= LEAST_STEP).all() and (steps <= MOST_STEP).all())
            expect(inside, f"{name} times 2^{k}: a lattice step is {steps.min():g}")
            expect(bool((made.law.variance > 0).all()), f"{name} times 2^{k}: no noise")
    expect(accepted > len(_POWERS) // 2, "usual sizes must be accepted")


def _made(data: dict[str, Any]) -> Mechanism | None:
    try:
        return Mechanism.from_dict(data)
    except InvalidParameter:
        return None


def _bad_batches(mechanism: Mechanism) -> Iterator[tuple[str, Any]]:
    good = np.repeat(mechanism.worst_cases()[0][0], 3, axis=0)

    def spoiled(value: float) -> Any:
        values = good.copy()
        values[1, ...] = value
        return values

    yield "NaN", spoiled(math.nan)
    yield "infinity", spoiled(math.inf)
    yield "text", np.full(good.shape, str(_SECRET))
    yield "no array", {"curve": _SECRET}
    yield "ragged rows", [[_SECRET], [_SECRET, _SECRET]]
    yield "no dimension", _SECRET
    yield "no rows", good[:0]
    if good.ndim == 2:
        yield "another number of columns", np.full((3, good.shape[1] + 1), good[0, 0])
        yield "one dimension more", good[None]
    if mechanism.guarantee.model == "local":
        yield "an entry out of bounds", spoiled(_SECRET)


def _expect_silence(error: BaseException | None, what: str) -> None:
    """Neither the message nor anything that a traceback prints below it holds the value."""
    while error is not None:
        expect(_TRACE not in str(error), f"the error for {what} must not show a private value")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
