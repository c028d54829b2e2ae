"""The posterior of slopes from mean reports, over a grid of priors.

The state θ has rows of coefficients of (1, ψ), ψ being white features: one row for each score, or
one for all scores together, coefficient by coefficient. Rows are independent.

Every mean report is an event: its mean is a known function of θ, plus known privacy noise, plus a
discrepancy of the working model in proportion to how far θ is from where the report was asked. So
reports that are asked at one place cannot average it away, while those at the present θ become
trusted by themselves. All events are weighed again after every batch.

Priors say how strong slopes are and in which basis they are independent, many of them small and a
few large. One of them is that there are none, so that the larger class wins, or the mean is
predicted, where nothing is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, xlogy

from dpfda._validate import FloatArray
from dpfda.local.study.beliefs import SLOPES, current, evidence

_SWEEPS = 3  # over the features; each begins where the last one ended
_ROUNDS = 2  # of weighing all events again after a batch
_TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """The mean report of some people.

    Attributes:
        theta: where it was asked, shape (m, p).
        report: the mean, shape (m, r); the first entry of a row is about its constant.
        people: how many reported.
        noise: variance of an entry of one person's report.
        longest: length of the longest reply that anybody could send, in the units of the report.
        exact: whether the working model cannot be wrong about it.
    """

    theta: FloatArray
    report: FloatArray
    people: int
    noise: float
    longest: float
    exact: bool = False

    @abstractmethod
    def expected(self, theta: FloatArray) -> FloatArray:
        """The mean report if this were θ, shape (m, r)."""

    @abstractmethod
    def slope(self, theta: FloatArray) -> FloatArray:
        """Derivative with respect to a row of θ, from the point of the query; shape (m, r, p)."""


Fitted = tuple[FloatArray, FloatArray, FloatArray]
"""Means (G, m, p) and covariances (G, m, p, p) of θ, and log evidence (G,), one a prior."""


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Priors of θ: a basis times independent normal numbers of one of several variances.

    Which variance a number has is the same for all scores.

    Attributes:
        odds: how likely each prior is, shape (G,).
        bases: shape (G, p, p).
        variances: that a number may have, shape (G, S, p).
        likely: how likely it has each of them, shape (S,).
        without: so many first priors say that there are no slopes.
    """

    odds: FloatArray
    bases: FloatArray
    variances: FloatArray
    likely: FloatArray
    without: int = 0

    @cached_property
    def _inverses(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self.bases))

    def before(self, rows: int) -> Fitted:
        """Before any report."""
        g, _, p = self.variances.shape
        variances = np.einsum("s,gsj->gj", self.likely, self.variances)
        spreads = (self.bases * variances[:, None]) @ np.swapaxes(self.bases, 1, 2)
        return np.zeros((g, rows, p)), np.tile(spreads[:, None], (1, rows, 1, 1)), np.zeros(g)

    def after(self, precision: FloatArray, pull: FloatArray, means: FloatArray) -> Fitted:
        """Posterior for log likelihoods pull·θ - ½ θ·precision·θ, from the start `means`.

        An approximation: the best law under which numbers are independent (variational Bayes).
        """
        bases, turned = self.bases[:, None], np.swapaxes(self.bases, 1, 2)[:, None]
        inner, pull = turned @ precision @ bases, pull @ self.bases
        own, wide = np.einsum("gmii->gmi", inner), self.variances[:, :, None]
        spread = 1 / (own[:, None] + 1 / wide)
        gain = 0.5 * np.log(spread / wide) + np.log(self.likely)[:, None, None] / len(own[0])
        mean = means @ np.swapaxes(self._inverses, 1, 2)
        value, which = np.zeros_like(spread), np.zeros_like(self.variances)
        for _ in range(_SWEEPS):
            for j in range(mean.shape[2]):
                others = (
                    np.einsum("gmi,gmi->gm", inner[..., j, :], mean) - own[..., j] * mean[..., j]
                )
                value[..., j] = spread[..., j] * (pull[..., j] - others)[:, None]
                better = gain[..., j] + 0.5 * value[..., j] ** 2 / spread[..., j]
                odds = better.sum(axis=2)
                odds = np.exp(odds - odds.max(axis=1, keepdims=True))
                which[..., j] = odds / odds.sum(axis=1, keepdims=True)
                mean[..., j] = np.einsum("gs,gsm->gm", which[..., j], value[..., j])
        square, each = spread + value**2, which[:, :, None]
        variance = (each * square).sum(axis=1) - mean**2
        fit = (pull * mean - 0.5 * own * variance).sum(axis=(1, 2))
        fit -= 0.5 * np.einsum("gmi,gmij,gmj->g", mean, inner, mean)
        fit += (each * (0.5 + gain - 0.5 * square / wide)).sum(axis=(1, 2, 3))
        fit -= xlogy(which, which).sum(axis=(1, 2))
        spreads = (bases * variance[:, :, None]) @ turned
        return mean @ np.swapaxes(self.bases, 1, 2), spreads, fit


def priors(
    totals: FloatArray, constants: Sequence[tuple[float, float]], bases: Sequence[FloatArray]
) -> Priors:
    """All priors; the first of them say that there are no slopes.

    Args:
        totals: of the variances of all slopes of a row together.
        constants: variances that the constant may have, and how likely each is.
        bases: of slopes; each is equally likely.
    """
    times, likely = np.array(SLOPES.slabs).T
    variances, shares = np.array(constants).T
    nothing, q = current().nothing, len(bases[0])
    some = np.maximum(totals[:, None] * times / q, _TINY)
    none = np.full((1, len(times)), _TINY)
    kinds = [(bases[0], none, nothing), *((one, some, (1 - nothing) / len(bases)) for one in bases)]
    odds, turns, each = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    for basis, slopes, share in kinds:
        size = len(slopes) * len(constants)
        odds.append(np.repeat(share * shares / len(slopes), len(slopes)))
        wide = np.eye(q + 1)
        wide[1:, 1:] = basis
        turns.append(np.repeat(wide[None], size, axis=0))
        both = np.tile(slopes[:, :, None], (len(constants), 1, q + 1))
        both[:, :, 0] = np.repeat(variances, len(slopes))[:, None]
        each.append(both)
    return Priors(
        odds=np.concatenate(odds),
        bases=np.concatenate(turns),
        variances=np.concatenate(each),
        likely=likely,
        without=len(constants),
    )


class Slopes:
    """The posterior.

    Args:
        priors: of θ; that there are no slopes was as likely at the beginning of the study as
            `Beliefs.nothing` says.
        rows: of θ.
        place: variance of what is not known of the middle of each direction.

    Attributes:
        theta: its mean, shape (m, p).
        covariance: shape (m, p, p).
        nothing: how likely it is by now that there are no slopes.
        events: all mean reports.
    """

    def __init__(self, priors: Priors, rows: int, *, place: float) -> None:
        self._priors, self.place = priors, place
        self.events = list[Event]()
        self._fit(priors.before(rows), 0.0)

    def update(self, event: Event) -> None:
        """Take in a mean report."""
        self.events.append(event)
        for _ in range(_ROUNDS):
            self._weigh()

    def _weigh(self) -> None:
        g, m, p = self._means.shape
        precision, pull, fit = np.zeros((g, m, p, p)), np.zeros((g, m, p)), np.zeros(g)
        for event in self.events:
            slope = event.slope(self.theta)
            noise = self._noise(event, slope, self._means, self._spreads)
            gap = event.report - event.expected(self.theta)
            gap += np.einsum("mrp,mp->mr", slope, self.theta)
            weighed = np.swapaxes(slope, 1, 2) / noise[:, :, None]
            precision += weighed @ slope
            pull += np.einsum("gmpr,mr->gmp", weighed, gap)
            fit -= 0.5 * (gap**2 / noise + np.log(noise)).sum(axis=(1, 2))
        self._fit(self._priors.after(precision, pull, self._means), fit)

    def _noise(
        self, event: Event, slope: FloatArray, means: FloatArray, spreads: FloatArray
    ) -> FloatArray:
        """Variance of each entry of a mean report around what is expected, shape (G, m, r)."""
        off, wrong = means - event.theta, 1.0 - event.exact
        away = spreads + off[..., :, None] * off[..., None, :]
        signal = np.einsum("gmij,mij->gm", away, np.swapaxes(slope, 1, 2) @ slope)
        noise = event.noise / event.people + wrong * SLOPES.discrepancy * signal / slope.shape[1]
        noise = np.repeat(noise[..., None], slope.shape[1], axis=2)
        # Where ψ is not quite centered, slopes move the mean residual too.
        moved = wrong * np.trace(away[..., 1:, 1:], axis1=2, axis2=3)
        noise[..., 0] += self.place * slope[:, 0, 0] ** 2 * moved
        return noise

    def _fit(self, fitted: Fitted, fit: FloatArray | float) -> None:
        self._means, self._spreads, better = fitted
        logs = np.log(self._priors.odds) + fit + better
        weights = np.exp(logs - logsumexp(logs))
        self.theta = np.einsum("g,gmi->mi", weights, self._means)
        off = self._means - self.theta
        spreads = self._spreads + off[..., :, None] * off[..., None, :]
        self.covariance = np.einsum("g,gmij->mij", weights, spreads)
        self.nothing = float(weights[: self._priors.without].sum())

    @property
    def evidence(self) -> float:
        """Posterior probability that there are slopes, for a prior of 1/2."""
        return evidence(current().nothing, self.nothing)

    def liars(self, without: FloatArray) -> float:
        """The smallest share of people who, lying in agreement, could make slopes look as they do.

        All of them send the longest reply in the direction in which the mean report was moved.

        Args:
            without: θ if there were no slopes.
        """
        people, lying = 0, 0.0
        for event in self.events:
            if not event.exact:
                honest = event.expected(without)
                moved = event.expected(self.theta) - honest
                size = max(float(np.linalg.norm(moved)), _TINY)
                reach = event.longest - float((moved * honest).sum()) / size
                people, lying = people + event.people, lying + event.people * size / reach
        return lying / max(people, 1)
