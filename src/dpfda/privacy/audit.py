"""Attack a mechanism and compute a lower bound on its ε.

An audit takes the role of the adversary. It draws reports from two neighboring inputs and searches
for an event that distinguishes them. The frequencies of this event in *fresh* draws give a lower
bound on ε with 99.9 % confidence. A bound above the claimed ε disproves the claim.

The search covers

* the likelihood ratio that the mechanism itself states;
* each reported number, the difference of two, the whole pattern, and the direction in which the
  two inputs differ;
* the low-order bits of each number, through which floating-point noise leaks (Mironov 2012).

A few pilot draws select the event. The audit then counts as many draws as it needs to show a
violation of the required size. `AuditResult.detects` states the smallest violation that its draws
would have shown.

If the mechanism states a likelihood, the audit searches it for a ratio above e^ε. If that is the
likelihood of added noise, all coordinates of all reports together test whether the noise has the
stated size (`Fit`). This test needs far fewer draws than an event to show noise that is slightly
too small. Reports of one input must be independent; shared noise appears as correlation
(`Dependence`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.noise import Source
from dpfda.privacy.audit_evidence import (
    DEPENDENT,
    AuditEvent,
    Claim,
    Dependence,
    Inputs,
    LogLikelihood,
    candidates,
    counts,
    log_ratio,
    statistics,
)
from dpfda.privacy.guarantee import Guarantee

Depths = Callable[[FloatArray, FloatArray], FloatArray]
"""Two columns for the reports of one input: the distance of the stated log-likelihood from its
maximum, and the shape of the Gamma distribution that this distance follows."""
GOAL = 0.05
"""The relative violation that an audit tries to detect, if its draws suffice."""
PILOT = 20_000
"""Pilot draws, which select the event."""
_FAR = 8
_RARE = 0.02
_CHUNK = 1 << 18
_FIT = 4.42  # standard errors; a valid mechanism exceeds them in one of 10^5 audits
_SEEN = 1.645  # standard errors added for a detection probability of 95 %


class Auditable(Protocol):
    """The interface of a mechanism that an audit uses.

    If `log_likelihood` is None, the audit uses the reports only.
    """

    @property
    def guarantee(self) -> Guarantee: ...  # noqa: D102

    def randomize(self, values: FloatArray, source: Source) -> FloatArray: ...  # noqa: D102

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]: ...  # noqa: D102

    @property
    def log_likelihood(self) -> LogLikelihood | None: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The result of an audit.

    Attributes:
        name: the mechanism and its parameters.
        claimed_epsilon: ε as claimed.
        claimed_delta: δ as claimed.
        lower_bound: the true ε is above this with 99.9 % confidence.
        density_excess: for pure claims, the largest observed log-likelihood ratio minus the claimed
            ε; otherwise, the δ that the stated likelihood needs at the claimed ε, minus the claimed
            δ. A positive value disproves the claim. None if the mechanism states no likelihood.
        misfit: deviation of the total noise from its stated size, in standard errors; negative if
            the noise is too small, None if it is not tested.
        dependence: the largest correlation, in standard errors, between reports of different people
            or between noisy coordinates of one report.
        draws: number of reports counted from each input.
        detects: the smallest relative violation of the claim (in ε; in μ for Gaussian claims) that
            these draws would have shown with 95 % probability; None if they would have shown none.
    """

    name: str
    claimed_epsilon: float
    claimed_delta: float
    lower_bound: float
    density_excess: float | None
    misfit: float | None
    dependence: float
    draws: int
    detects: float | None

    @property
    def passed(self) -> bool:
        """Whether nothing disproved the claim."""
        density_fine = self.density_excess is None or self.density_excess <= 0
        fits = self.misfit is None or abs(self.misfit) <= _FIT
        apart = self.dependence <= DEPENDENT
        return self.lower_bound <= self.claimed_epsilon and density_fine and fits and apart

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"passed": self.passed}


def audit(
    mechanism: Auditable,
    *,
    name: str,
    draws: int,
    source: Source,
    mu: float | None = None,
    depths: Depths | None = None,
    goal: float = GOAL,
    pilot: int = PILOT,
) -> AuditResult:
    """Attack the worst cases of `mechanism`.

    Args:
        mechanism: the mechanism to attack.
        name: name of the result.
        draws: upper limit on the number of reports counted from each input.
        source: source of randomness of the reports.
        mu: the claimed μ of Gaussian DP, if any; `mechanism.guarantee` states the claim as (ε, δ).
        depths: see `Fit`; only for mechanisms that add noise.
        goal: stop as soon as a relative violation of this size would have been detected.
        pilot: number of reports from each input for selecting the event; at most a quarter of
            `draws`.

    Examples:
        >>> from dpfda.mechanisms import Mechanism
        >>> from dpfda.noise import SimulationSource
        >>> bit = Mechanism.named("randomized_response")(epsilon=1.0)
        >>> result = audit(bit, name="bit", draws=200_000, source=SimulationSource(0))
        >>> result.passed, result.detects < 0.05, 0.9 < result.lower_bound < 1.0
        (True, True, True)
    """
    draws = _validate.whole("draws", draws, least=1000)
    promise = mechanism.guarantee
    claim = Claim(promise.epsilon, promise.delta, mu)
    fit = None if depths is None else Fit(depths, degree=1 if mu is None else 2)
    size = int(np.size(mechanism.worst_cases()[0][0]))
    dependence = Dependence(added=0 if depths is None else size)
    attempt = Attempt(mechanism, claim, min(pilot, draws // 4), draws)
    event, excess = attempt.best(source, fit)
    total = _enough(claim, event, fit, most=draws, least=min(pilot, draws), goal=goal)
    counted = []
    for value in event.inputs:
        seen = 0.0
        for start in range(0, total, _CHUNK):
            reports = _draw(mechanism, value, min(_CHUNK, total - start), source)
            seen += event.count(reports)
            dependence.add(reports)
            if fit is not None:
                fit.add(reports, value)
        counted.append(seen)
    often = counted[0] / total, max(counted[1], 0.5) / total
    shown = [claim.detects(*(event.frequencies if event.stated else often), total)]
    shown += [] if fit is None else [fit.detects]
    known = [violation for violation in shown if violation is not None]
    return AuditResult(
        name=name,
        claimed_epsilon=promise.epsilon,
        claimed_delta=promise.delta,
        lower_bound=claim.as_epsilon(float(claim.bound(counted[0], counted[1], total))),
        density_excess=excess,
        misfit=None if fit is None else fit.misfit,
        dependence=dependence.largest,
        draws=total,
        detects=min(known) if known else None,
    )


class Fit:
    """Test whether the added noise, over all coordinates of all reports, has its stated size.

    Let x be noise in J dimensions, in units of its scale, with log-density -‖x‖ (Laplace, spherical
    Laplace) or -‖x‖²/2 (Gaussian) up to constants. The distance of the log-density from its maximum
    then follows a Gamma distribution of rate 1 and shape J, or J/2. Sums of independent Gamma
    variables are Gamma variables, so one sum tests all draws; its Wilson-Hilferty cube root is
    compared with a normal distribution. Noise that is too small by a factor 1 + r divides the sum
    by 1 + r, or by its square.

    Args:
        depths: computes the distances and shapes of reports.
        degree: 2 if all noise is Gaussian, otherwise 1.

    Examples:
        >>> noise = np.random.default_rng(0).laplace(size=(5000, 2)) / 1.1  # a tenth too small
        >>> def depths(reports, center):
        ...     away = np.abs(reports - center).sum(axis=1)
        ...     return np.stack([away, np.full(len(away), 2.0)], axis=1)
        >>> fit = Fit(depths, degree=1)
        >>> fit.add(noise, np.zeros(2))
        >>> fit.misfit < -4.42, round(fit.detects, 3)
        (True, 0.063)
    """

    def __init__(self, depths: Depths, *, degree: int) -> None:
        self._depths, self._degree = depths, degree
        self._depth = self._shape = 0.0
        self.reports = 0

    def add(self, reports: FloatArray, value: FloatArray) -> None:
        """Add some draws."""
        depth, shape = self._depths(reports, value).sum(axis=0)
        self._depth, self._shape = self._depth + float(depth), self._shape + float(shape)
        self.reports += len(reports)

    @property
    def misfit(self) -> float:
        """Deviation of the sum from its expectation, in standard errors."""
        if not self._shape:
            return 0.0
        root = 3 * math.sqrt(self._shape)
        return float(((self._depth / self._shape) ** (1 / 3) - 1) * root + 1 / root)

    @property
    def detects(self) -> float | None:
        """The smallest relative reduction of the noise that these draws show."""
        if not self._shape:
            return None
        root = 3 * math.sqrt(self._shape)
        middle = 1 - 1 / root**2
        low, high = middle - _FIT / root, middle + _SEEN / root
        return float((high / low) ** (3 / self._degree) - 1) if low > 0 else None

    def missing(self, violation: float) -> float:
        """Number of further reports needed to show noise that is too small by 1 + `violation`."""
        if not self._shape:
            return math.inf
        ratio = (1 + violation) ** (self._degree / 3)
        shape = float(((_SEEN + _FIT * ratio) / (ratio - 1) / 3) ** 2)
        return max(0.0, (shape / self._shape - 1) * self.reports)


@dataclass(frozen=True)
class Attempt:
    """The search for an event with few draws."""

    mechanism: Auditable
    claim: Claim
    pilot: int
    draws: int

    def best(self, source: Source, fit: Fit | None) -> tuple[AuditEvent, float | None]:
        """The event that best distinguishes the inputs, and the excess; adds all draws to `fit`."""
        mechanism, claim, found, excesses = self.mechanism, self.claim, [], []
        for pair in mechanism.worst_cases():
            reports = [_draw(mechanism, value, self.pilot, source) for value in pair]
            for one, other in ((0, 1), (1, 0)):
                inputs, likely = (pair[one], pair[other]), reports[one]
                if fit is not None:
                    fit.add(likely, inputs[0])
                excesses.append(_density_excess(mechanism, inputs, likely))
                score, event = _seen(mechanism, claim, inputs, likely, reports[other])
                # If no event disproves the claim, the stated likelihood gives the best event.
                if score <= claim.size and mechanism.log_likelihood is not None:
                    stated = mechanism.log_likelihood
                    score, event = _stated(stated, claim, inputs, likely, self.draws)
                    score = min(score, claim.size)
                found.append((score, event))
        _, event = max(found, key=lambda entry: entry[0])
        known = [excess for excess in excesses if excess is not None]
        return event, max(known) if known else None


def _seen(
    mechanism: Auditable, claim: Claim, inputs: Inputs, likely: FloatArray, unlikely: FloatArray
) -> tuple[float, AuditEvent]:
    """The event with the largest lower bound in these draws."""
    total, found = len(likely), []
    for statistic in statistics(mechanism.log_likelihood, inputs, likely.shape[1]):
        ordered = np.sort(statistic(likely)), np.sort(statistic(unlikely))
        values = candidates(np.concatenate(ordered))
        hits, misses = (counts(side, values) for side in ordered)
        bounds = claim.sure(hits, misses, total)
        place = np.unravel_index(np.argmax(bounds), bounds.shape)
        often = hits[place] / total, max(misses[place], 0.5) / total
        event = AuditEvent(inputs, statistic, int(place[0]), float(values[place[1]]), often)
        found.append((float(bounds[place]), event))
    return max(found, key=lambda entry: entry[0])


def _stated(
    likelihood: LogLikelihood, claim: Claim, inputs: Inputs, likely: FloatArray, draws: int
) -> tuple[float, AuditEvent]:
    """The threshold of the likelihood ratio e^L with the best expected bound after `draws` draws.

    Under the second input, q{L ≥ t} is the mean of e^{-L} 1{L ≥ t} under the first input. A few
    draws estimate it well.
    """
    ratio = np.sort(log_ratio(likelihood, inputs, likely))[::-1]
    p = np.arange(1, len(ratio) + 1) / len(ratio)
    q = np.cumsum(np.exp(-ratio)) / len(ratio)
    last = np.append(ratio[:-1] > ratio[1:], True)  # ties belong together
    if claim.mu is not None:  # few draws do not estimate rare events well
        last &= (p > _RARE) & (1 - q > _RARE)
    scores = np.where(last, claim.expected(p, np.minimum(q, 1.0), draws), -math.inf)
    best = int(np.argmax(scores))
    often = float(p[best]), float(min(q[best], 1.0))
    # A little below: rounding must not decide whether a tie counts.
    value = float(ratio[best]) - 1e-9 * max(1.0, abs(float(ratio[best])))
    statistic = next(statistics(likelihood, inputs, likely.shape[1]))
    return float(scores[best]), AuditEvent(inputs, statistic, 0, value, often, stated=True)


def _enough(
    claim: Claim, event: AuditEvent, fit: Fit | None, *, most: int, least: int, goal: float
) -> int:
    """Number of draws of each input that show a violation of the required size; at most `most`."""
    wanted = 0.85 * goal  # a margin, because the frequencies are estimates
    missing = math.inf if fit is None else fit.missing(wanted) / 2
    enough, total = int(min(most, max(least, math.ceil(min(missing, most))))), least
    hopeless = claim.detects(*event.frequencies, enough)
    if event.stated and fit is None and (hopeless is None or hopeless > _FAR * goal):
        return max(total, enough // 10)  # not a worst case: more draws would show little more
    while total < enough:
        shown = claim.detects(*event.frequencies, total)
        if shown is not None and shown <= wanted:
            return total
        total = min(enough, math.ceil(1.25 * total))
    return enough


def _draw(mechanism: Auditable, value: FloatArray, draws: int, source: Source) -> FloatArray:
    """`draws` reports from one input, as a matrix."""
    return mechanism.randomize(np.repeat(value, draws, axis=0), source).reshape(draws, -1)


def _density_excess(mechanism: Auditable, inputs: Inputs, reports: FloatArray) -> float | None:
    """The excess of the stated likelihood over the claim; at most 0 if the claim holds."""
    if mechanism.log_likelihood is None:
        return None
    claim = mechanism.guarantee
    ratio = log_ratio(mechanism.log_likelihood, inputs, reports)
    if claim.delta == 0:
        # Allow the rounding error of the logarithms, nothing more.
        return float(ratio.max() - claim.epsilon - 1e-9)
    # δ(ε) = E (1 - e^{ε - L})₊ under the first input; 5 standard errors of room.
    loss = -np.expm1(np.minimum(claim.epsilon - ratio, 0))
    room = 5 * float(loss.std()) / math.sqrt(len(loss))
    return float(loss.mean()) - claim.delta - room
