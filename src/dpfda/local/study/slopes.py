"""The posterior of slopes from mean reports, over a grid of priors.

The parameter θ has one row of coefficients of (1, ψ) for each score, where ψ are white features.
Rows are independent given a prior.

Every mean report is an event: a known function of θ, plus known privacy noise, plus an error of the
working model. The variance of this error grows with the distance of θ from the point of the query.
It is common to all reports at one point, so it does not average out, but it is small for reports
near the current θ. The likelihood of all events is computed again after every batch.

A grid of priors specifies the total variance of slopes and the basis in which they are independent,
many of them small and a few large. Under one prior all slopes are 0. Without information, the
larger class or the mean is therefore predicted.
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

_SWEEPS = 3  # over the features; each starts from the result of the last one
_ROUNDS = 2  # of computing the likelihood of all events after a batch
_TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """The mean report of some people.

    Attributes:
        theta: the θ of the query, shape (m, p).
        report: the mean report, shape (m, r); the first entry of a row concerns the constant.
        people: the number of reports.
        noise: variance of an entry of one person's report.
        longest: length of the longest possible reply, in the units of the report.
        exact: whether there is no error of the working model.
    """

    theta: FloatArray
    report: FloatArray
    people: int
    noise: float
    longest: float
    exact: bool = False

    @abstractmethod
    def expected(self, theta: FloatArray) -> FloatArray:
        """The expected mean report given θ, shape (m, r)."""

    @abstractmethod
    def slope(self, theta: FloatArray) -> FloatArray:
        """Derivative with respect to a row of θ, from the point of the query; shape (m, r, p)."""


Fitted = tuple[FloatArray, FloatArray, FloatArray]
"""Means (G, m, p) and covariances (G, m, p, p) of θ, and log evidence (G,), for each prior."""


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Priors of θ: a basis times independent normal numbers, each with one of several variances.

    The variance of a number is the same for all scores.

    Attributes:
        odds: probability of each prior, shape (G,).
        bases: shape (G, p, p).
        variances: possible variances of a number, shape (G, S, p).
        likely: their probabilities, shape (S,).
        without: the number of first priors under which all slopes are 0.
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
        """Means and covariances before any report."""
        g, _, p = self.variances.shape
        variances = np.einsum("s,gsj->gj", self.likely, self.variances)
        spreads = (self.bases * variances[:, None]) @ np.swapaxes(self.bases, 1, 2)
        return np.zeros((g, rows, p)), np.tile(spreads[:, None], (1, rows, 1, 1)), np.zeros(g)

    def after(self, precision: FloatArray, pull: FloatArray, means: FloatArray) -> Fitted:
        """Posterior for log likelihoods pull·θ - ½ θ·precision·θ, iterated from `means`.

        The posterior is approximated by the best law with independent numbers (variational Bayes).
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
    """The grid of priors; under the first of them, all slopes are 0.

    Args:
        totals: grid of the total variance of the slopes in a row.
        constants: possible variances of the constant, and their probabilities.
        bases: bases of slopes, which are equally likely.
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
    """The posterior of θ, a mixture over the grid of priors.

    Args:
        priors: the grid of priors; the prior probability that all slopes are 0 is
            `Beliefs.nothing`.
        rows: the number of rows of θ.
        place: variance of the unknown mean of each white feature.

    Attributes:
        theta: posterior mean, shape (m, p).
        covariance: posterior covariance, shape (m, p, p).
        nothing: posterior probability that all slopes are 0.
        events: all mean reports.
    """

    def __init__(self, priors: Priors, rows: int, *, place: float) -> None:
        self._priors, self.place = priors, place
        self.events = list[Event]()
        self._fit(priors.before(rows), 0.0)

    def update(self, event: Event) -> None:
        """Update the posterior by a mean report."""
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
        """Variance of each entry of a mean report around its expectation, shape (G, m, r)."""
        off, wrong = means - event.theta, 1.0 - event.exact
        away = spreads + off[..., :, None] * off[..., None, :]
        signal = np.einsum("gmij,mij->gm", away, np.swapaxes(slope, 1, 2) @ slope)
        noise = event.noise / event.people + wrong * SLOPES.discrepancy * signal / slope.shape[1]
        noise = np.repeat(noise[..., None], slope.shape[1], axis=2)
        # If ψ is not exactly centered, slopes change the mean residual too.
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
        """Posterior probability that slopes are not 0, at even prior odds."""
        return evidence(current().nothing, self.nothing)

    def liars(self, without: FloatArray) -> float:
        """The smallest share of coordinated liars that explains the estimated slopes.

        All liars send the longest reply in the direction of the observed deviation.

        Args:
            without: θ under the hypothesis that all slopes are 0.
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
