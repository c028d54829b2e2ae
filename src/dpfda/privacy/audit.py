"""Attack a randomizer and report how much privacy it can have at most.

An audit plays the adversary. It draws reports from two neighbouring inputs, looks for an event
that tells them apart, and turns the two frequencies of that event, counted on *fresh* draws, into a
lower bound on ε that holds with 99.9 % confidence (Clopper & Pearson 1934). A bound above the
claimed ε disproves the claim. Events are looked for in

* the likelihood ratio that the randomizer itself states;
* each reported number, the whole pattern, and the direction in which the two inputs differ;
* the low-order bits of each number, through which floating-point noise leaks (Mironov 2012).

Beside the attack, the stated likelihood is searched for a ratio above e^ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import stats

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee

CONFIDENCE = 0.999
LogLikelihood = Callable[[FloatArray, Any], FloatArray]
_CANDIDATES = 400  # thresholds tried for one statistic
_MOST_COLUMNS = 8
_CHUNK = 1 << 18
_PRIMES = np.array([2.0, 3, 5, 7, 11, 13, 17, 19])


class Auditable(Protocol):
    """What an audit needs to know of a randomizer.

    `log_likelihood` may be None: then only the reports are looked at.
    """

    @property
    def guarantee(self) -> Guarantee: ...  # noqa: D102

    def randomize(self, values: Any, rng: Source) -> FloatArray: ...  # noqa: D102

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]: ...  # noqa: D102

    @property
    def log_likelihood(self) -> LogLikelihood | None: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found.

    Attributes:
        name: the randomizer and its parameters.
        claimed_epsilon: ε as claimed.
        claimed_delta: δ as claimed.
        lower_bound: the true ε is above this with 99.9 % confidence.
        density_excess: largest log-likelihood ratio seen, less the claimed ε (pure claims), or
            the δ that the stated likelihood needs at the claimed ε, less the claimed δ. Positive
            disproves the claim; None if the randomizer states no likelihood.
        draws: reports drawn from each input.
    """

    name: str
    claimed_epsilon: float
    claimed_delta: float
    lower_bound: float
    density_excess: float | None
    draws: int

    @property
    def passed(self) -> bool:
        """Whether nothing disproved the claim."""
        density_fine = self.density_excess is None or self.density_excess <= 0
        return self.lower_bound <= self.claimed_epsilon and density_fine

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "claimed_epsilon": self.claimed_epsilon,
            "claimed_delta": self.claimed_delta,
            "lower_bound": self.lower_bound,
            "density_excess": self.density_excess,
            "draws": self.draws,
            "passed": self.passed,
        }


def audit(mechanism: Auditable, *, name: str, draws: int, source: Source) -> AuditResult:
    """Attack every worst case of `mechanism` with `draws` reports from each input.

    Example:
        >>> from dpfda.mechanisms import Mechanism
        >>> from dpfda.noise import SimulationSource
        >>> bit = Mechanism.named("randomized_response")(epsilon=1.0)
        >>> result = audit(bit, name="bit", draws=10_000, source=SimulationSource(0))
        >>> result.passed, 0.8 < result.lower_bound < 1.0
        (True, True)
    """
    draws = _validate.whole("draws", draws, least=1000)
    pairs = mechanism.worst_cases()
    delta = mechanism.guarantee.delta
    # Each pair is attacked in both directions; the confidence is shared among all attempts.
    error = (1 - CONFIDENCE) / (2 * len(pairs))
    bounds, excesses = [], []
    for first, second in pairs:
        reports = [_draw(mechanism, value, draws, source) for value in (first, second)]
        for one, other in ((0, 1), (1, 0)):
            inputs = (first, second) if one == 0 else (second, first)
            bounds.append(
                _attack(mechanism, inputs, reports[one], reports[other], delta=delta, error=error)
            )
            excesses.append(_density_excess(mechanism, inputs, reports[one]))
    known = [excess for excess in excesses if excess is not None]
    return AuditResult(
        name=name,
        claimed_epsilon=mechanism.guarantee.epsilon,
        claimed_delta=delta,
        lower_bound=max(0.0, *bounds),
        density_excess=max(known) if known else None,
        draws=draws,
    )


def _draw(mechanism: Auditable, value: FloatArray, draws: int, source: Source) -> FloatArray:
    """`draws` reports from one input, as a matrix."""
    parts = []
    for start in range(0, draws, _CHUNK):
        rows = np.repeat(value, min(_CHUNK, draws - start), axis=0)
        parts.append(mechanism.randomize(rows, source))
    return np.concatenate(parts).reshape(draws, -1)


def _attack(
    mechanism: Auditable,
    inputs: tuple[FloatArray, FloatArray],
    likely: FloatArray,
    unlikely: FloatArray,
    *,
    delta: float,
    error: float,
) -> float:
    """Lower bound on ε from the best event: chosen on half of the draws, counted on the rest."""
    half = len(likely) // 2
    best, event = -math.inf, None
    for statistic in _statistics(mechanism, inputs, likely.shape[1]):
        train = np.sort(statistic(likely[:half])), np.sort(statistic(unlikely[:half]))
        values = _candidates(np.concatenate(train))
        counts = _count(train[0], values), _count(train[1], values)
        bounds = _epsilon_bound(*counts, half, delta=delta, error=error)
        row, place = np.unravel_index(np.argmax(bounds), bounds.shape)
        if bounds[row, place] > best:
            best, event = bounds[row, place], (statistic, int(row), values[place])
    if event is None:
        return 0.0
    statistic, kind, value = event
    rest = len(likely) - half
    hits, misses = (
        _count(np.sort(statistic(reports[half:])), np.array([value]))[kind]
        for reports in (likely, unlikely)
    )
    return float(_epsilon_bound(hits, misses, rest, delta=delta, error=error)[0])


Statistic = Callable[[FloatArray], FloatArray]


def _statistics(
    mechanism: Auditable, inputs: tuple[FloatArray, FloatArray], columns: int
) -> Iterator[Statistic]:
    """What an adversary might look at in a report."""
    likelihood = mechanism.log_likelihood
    if likelihood is not None:
        yield lambda reports: _log_ratio(likelihood, inputs, reports)
    difference = np.ravel(inputs[0] - inputs[1]) if inputs[0].shape == inputs[1].shape else None
    if difference is not None and difference.size == columns:
        yield lambda reports: reports @ difference
    if columns > 1:
        # Square roots of primes are independent over the rationals: every pattern of discrete
        # numbers gets a value of its own.
        yield lambda reports: reports[:, :_MOST_COLUMNS] @ np.sqrt(_PRIMES[: min(columns, 8)])
    for column in range(min(columns, _MOST_COLUMNS)):
        yield lambda reports, column=column: reports[:, column]  # type: ignore[misc]
        yield lambda reports, column=column: _lowest_bit(reports[:, column])  # type: ignore[misc]


def _lowest_bit(numbers: FloatArray) -> FloatArray:
    """Exponent of the lowest set bit of each float: how fine a grid it lies on."""
    mantissa, exponent = np.frexp(numbers)
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = (integer & -integer).astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.where(numbers == 0, 1100.0, np.log2(lowest) + exponent)


def _candidates(pooled: FloatArray) -> FloatArray:
    """Values of a statistic at which an event may begin or end."""
    values = np.unique(pooled)
    if len(values) > _CANDIDATES:
        tails = np.geomspace(20 / len(pooled), 0.5, _CANDIDATES // 2)
        values = np.unique(np.quantile(pooled, np.concatenate([tails, 1 - tails])))
    return values


def _count(ordered: FloatArray, values: FloatArray) -> FloatArray:
    """How often the statistic is ≥, ≤ and = each value, as three rows."""
    below = np.searchsorted(ordered, values, side="left")
    up_to = np.searchsorted(ordered, values, side="right")
    return np.stack([len(ordered) - below, up_to, up_to - below]).astype(np.float64)


def _epsilon_bound(
    hits: FloatArray, misses: FloatArray, total: int, *, delta: float, error: float
) -> FloatArray:
    """ln((p - δ)/q) with p bounded from below and q from above, each at half the error."""
    low = np.where(hits > 0, stats.beta.ppf(error / 2, np.maximum(hits, 1), total - hits + 1), 0.0)
    free = np.maximum(total - misses, 1)
    high = np.where(misses < total, stats.beta.ppf(1 - error / 2, misses + 1, free), 1.0)
    usable = low > delta
    return np.where(usable, np.log(np.where(usable, low - delta, 1.0) / high), -math.inf)


def _log_ratio(
    likelihood: LogLikelihood, inputs: tuple[FloatArray, FloatArray], reports: FloatArray
) -> FloatArray:
    shaped = reports if inputs[0].ndim > 1 else reports[:, 0]
    return likelihood(shaped, inputs[0]) - likelihood(shaped, inputs[1])


def _density_excess(
    mechanism: Auditable, inputs: tuple[FloatArray, FloatArray], reports: FloatArray
) -> float | None:
    """How far the stated likelihood breaks the claim; at or below 0 if it does not."""
    if mechanism.log_likelihood is None:
        return None
    claim = mechanism.guarantee
    ratio = _log_ratio(mechanism.log_likelihood, inputs, reports)
    if claim.delta == 0:
        # Allow the rounding error of the logarithms, nothing more.
        return float(ratio.max() - claim.epsilon - 1e-9)
    # δ(ε) = E (1 - e^{ε - L})₊ under the first input; 5 standard errors of room.
    loss = -np.expm1(np.minimum(claim.epsilon - ratio, 0))
    room = 5 * float(loss.std()) / math.sqrt(len(loss))
    return float(loss.mean()) - claim.delta - room
