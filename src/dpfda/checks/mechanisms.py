"""The contract of every mechanism: its draws agree with its statements.

Statistical parts use `DRAWS` reports from a fixed seed and a two-sided level of `LEVEL` for each
comparison, so the results do not vary between runs. The contract also covers invalid input, which
must be refused without quoting a private value, and parameters of any size: if they are accepted,
the noise has a normal size and scales with them.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
from scipy import stats

from dpfda._validate import FloatArray
from dpfda.checks import expect
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import LEAST_STEP, MOST_STEP, Additive
from dpfda.noise import SimulationSource
from dpfda.privacy.events import Event

_SECRET = 7654.321
_TRACE = "7654"
_BUDGETS = (1e-300, 1e-6, 1e-3, 40.0, 700.0, 1e6, 1e300)
_POWERS = range(-1070, 1021, 10)


def check_bad_input(mechanism: Mechanism) -> None:
    """NaN, infinity, wrong shapes, empty batches, text and large values raise `InvalidData`."""
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
                text = f"{budget} = {size:g}"
                reports = made.randomize(np.repeat(value, 4, axis=0), SimulationSource(0))
                expect(bool(np.isfinite(reports).all()), f"{text}: reports must be finite")
                expect(bool(np.isfinite(made.variance(value)).all()), f"{text}: so must variances")
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

    def spoiled(value: float) -> FloatArray:
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
    """Neither the message nor its chained errors in a traceback contain the value."""
    while error is not None:
        expect(_TRACE not in str(error), f"the error for {what} must not show a private value")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


FAMILY = Mechanism
DRAWS = 20_000
LEVEL = 1e-7
_Z = float(stats.norm.isf(LEVEL / 2))
_MOST_PATTERNS = 300


def check_mechanism(mechanism: Mechanism) -> None:
    """Run the whole contract on one instance.

    Examples:
        >>> check_mechanism(Mechanism.named("laplace")(epsilon=1.0, dimension=2))
    """
    for rule in _RULES:
        rule(mechanism)


check = check_mechanism


def check_description(mechanism: Mechanism) -> None:
    """Frozen, hashable, and the same after JSON and pickle."""
    again = Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict())))
    expect(again == mechanism, "from_dict(to_dict()) must give an equal mechanism, through JSON")
    expect(pickle.loads(pickle.dumps(mechanism)) == mechanism, "pickling must change nothing")
    expect(hash(again) == hash(mechanism), "equal mechanisms must have equal hashes")
    try:
        setattr(mechanism, fields(mechanism)[0].name, 1.0)
    except FrozenInstanceError:
        pass
    else:
        raise AssertionError("a mechanism must be frozen")
    expect(mechanism.guarantee.epsilon == mechanism.epsilon, "the guarantee must state epsilon")
    expect(isinstance(mechanism.event, Event), "event must be an Event")


def check_repeatable(mechanism: Mechanism) -> None:
    """Reports depend on the seed only; shapes agree; the input is not changed."""
    for values in _probes(mechanism, 64):
        before = values.copy()
        reports = mechanism.randomize(values, SimulationSource(1))
        expect(np.array_equal(values, before), "randomize must not change its input")
        expect(len(reports) == len(values), "randomize must return one report a row")
        expect(bool(np.isfinite(reports).all()), "reports must be finite")
        same = mechanism.randomize(values, SimulationSource(1))
        expect(np.array_equal(reports, same), "the same seed must give the same reports")
        # With a large ε a bit rarely flips, so several seeds are tried.
        others = (mechanism.randomize(values, SimulationSource(seed)) for seed in range(2, 40))
        differ = any(not np.array_equal(reports, other) for other in others)
        expect(differ, "another seed must give other reports")
        shapes = {
            mechanism.debias(reports).shape,
            mechanism.target(values).shape,
            np.shape(mechanism.variance(values)),
        }
        expect(len(shapes) == 1, "debias, target and variance must have one shape")


def check_moments(mechanism: Mechanism) -> None:
    """``debias`` is unbiased for ``target`` and has the stated variance."""
    for seed, values in enumerate(_probes(mechanism, DRAWS)):
        reports = mechanism.randomize(values, SimulationSource(seed))
        errors = mechanism.debias(reports) - mechanism.target(values)
        stated = np.asarray(mechanism.variance(values[:1]))[0]
        mean, square = errors.mean(axis=0), (errors**2).mean(axis=0)
        expect(
            bool((np.abs(mean) <= _Z * np.sqrt(stated / DRAWS) + 1e-12).all()),
            "debias(randomize(values)) must be unbiased",
        )
        # The mean of squares has its own standard error, which is 0 if all squares are equal.
        spread = (errors**2).std(axis=0) / np.sqrt(DRAWS)
        expect(
            bool((np.abs(square - stated) <= _Z * spread + 1e-6 * stated).all()),
            "variance must be that of debias(randomize(values))",
        )


def check_independence(mechanism: Mechanism) -> None:
    """Reports of different rows are independent; noise on two coordinates is uncorrelated."""
    bound = _Z / np.sqrt(DRAWS)
    for seed, values in enumerate(_probes(mechanism, DRAWS)):
        reports = mechanism.randomize(values, SimulationSource(seed)).reshape(DRAWS, -1)
        ranks = np.column_stack([stats.rankdata(column) for column in reports.T])
        ranks -= ranks.mean(axis=0)
        ranks /= np.maximum(ranks.std(axis=0), 1e-9)
        for lag in (1, 2):
            together = np.abs((ranks[lag:] * ranks[:-lag]).mean(axis=0)).max()
            expect(together <= bound, "reports of different people must be independent")
        if isinstance(mechanism, Additive):
            across = np.abs(ranks.T @ ranks / DRAWS - np.eye(ranks.shape[1])).max()
            expect(across <= bound, "noise on different coordinates must be uncorrelated")


def check_likelihood(mechanism: Mechanism) -> None:
    """``log_likelihood`` is the probability with which reports are drawn."""
    for seed, (here, there) in enumerate(mechanism.worst_cases()):
        reports = mechanism.randomize(_repeat(here, DRAWS), SimulationSource(seed))
        # E[p(R|there)/p(R|here)] = 1 for R drawn from p(.|here): both are normalized alike.
        weights = np.exp(_log_ratio(mechanism, reports, there, here))
        slack = _Z * weights.std() / np.sqrt(DRAWS) + 1e-9
        expect(abs(weights.mean() - 1) <= slack, "log_likelihood must be normalized at every input")
        _check_frequencies(mechanism, reports, here)


def _check_frequencies(mechanism: Mechanism, reports: FloatArray, values: FloatArray) -> None:
    """If reports take few values, probabilities add up to 1 and fit the frequencies."""
    patterns, counts = np.unique(reports, axis=0, return_counts=True)
    if len(patterns) > _MOST_PATTERNS:
        return
    logs = mechanism.log_likelihood(patterns, _repeat(values, len(patterns)))
    expected = DRAWS * np.exp(logs)
    # Patterns that were never drawn are missing from the sum.
    missing = DRAWS - expected.sum()
    expect(
        -1e-6 * DRAWS <= missing <= len(patterns) + 20,
        "probabilities of all reports must add up to 1",
    )
    common = expected >= 5
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    limit = stats.chi2.isf(LEVEL, max(1, int(common.sum())))
    expect(statistic <= limit, "log_likelihood must fit the frequencies of reports")


def check_promise(mechanism: Mechanism) -> None:
    """At the worst cases the likelihood ratio satisfies the guarantee."""
    promise = mechanism.guarantee
    for seed, (one, other) in enumerate(mechanism.worst_cases()):
        for here, there in ((one, other), (other, one)):
            reports = mechanism.randomize(_repeat(here, DRAWS), SimulationSource(seed))
            loss = _log_ratio(mechanism, reports, here, there)
            if promise.delta == 0:
                kept = bool((loss <= promise.epsilon * (1 + 1e-9) + 1e-9).all())
                expect(kept, "no report may be more than e^ε times as likely for a neighbor")
                continue
            # δ(ε) = E[(1 - e^{ε - loss})⁺], estimated without bias.
            excess = np.maximum(0.0, -np.expm1(promise.epsilon - loss))
            slack = _Z * excess.std() / np.sqrt(DRAWS)
            expect(excess.mean() <= promise.delta + slack, "the excess over e^ε must stay below δ")


def check_clipping(mechanism: Mechanism) -> None:
    """``clip=True`` moves values to the bound; a mechanism without a box refuses instead."""
    if mechanism.guarantee.model != "local":
        return
    corner = _repeat(mechanism.worst_cases()[0][0], 32)
    try:
        clipped = mechanism.randomize(3 * corner, SimulationSource(0), clip=True)
    except ValueError:
        inside = _accepts(mechanism, corner / 2)
        expect(not inside, "a mechanism on a box must clip when it is asked to")
        return
    plain = mechanism.randomize(corner, SimulationSource(0))
    expect(np.array_equal(clipped, plain), "clip=True must treat 3x as the bound itself")


def _accepts(mechanism: Mechanism, values: FloatArray) -> bool:
    try:
        mechanism.randomize(values, SimulationSource(0))
    except ValueError:
        return False
    return True


def _probes(mechanism: Mechanism, size: int) -> list[FloatArray]:
    """Batches of equal rows, one batch for each input of the worst cases."""
    rows = {row.tobytes(): row for pair in mechanism.worst_cases() for row in pair}
    return [_repeat(row, size) for row in rows.values()]


def _repeat(row: FloatArray, size: int) -> FloatArray:
    return np.repeat(row, size, axis=0)


def _log_ratio(
    mechanism: Mechanism, reports: FloatArray, above: FloatArray, below: FloatArray
) -> FloatArray:
    size = len(reports)
    numerator = mechanism.log_likelihood(reports, _repeat(above, size))
    return np.asarray(numerator - mechanism.log_likelihood(reports, _repeat(below, size)))


_RULES = (
    check_description, check_repeatable, check_moments, check_independence, check_likelihood,
    check_promise, check_clipping, check_bad_input, check_bad_parameters, check_magnitudes,
)  # fmt: skip
