"""The posterior of slopes from mean reports: Gaussian updates over a grid of priors.

The state θ has rows of coefficients of (1, ψ), ψ being white features: one row for each score, or
one for all scores together, coefficient by coefficient. Rows are independent.

Every mean report is an event: its mean is a known function of θ, plus known privacy noise, plus a
discrepancy of the working model in proportion to how far θ is from where the report was asked. So
reports that are asked at one place cannot average it away, while those at the present θ become
trusted by themselves. All events are weighed again after every batch.

Priors say how strong slopes are, how fast they fall with the importance of a direction, and whether
one, three or all features matter. One of them is that there are none, so that the larger class
wins, or the mean is predicted, where nothing is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit, logit, logsumexp, xlogy

from dpfda._validate import FloatArray
from dpfda.local.study.beliefs import SLOPES, current, evidence

_ROUNDS = 2  # of weighing all events again after a batch
_SWEEPS = 6  # over the features of a sparse prior; each begins where the last one ended
_TINY, _SURE = 1e-9, 1 - 1e-9


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """The mean report of some people.

    Attributes:
        theta: where it was asked, shape (m, p).
        report: the mean, shape (m, r); the first entries of a row are about its constants.
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


@dataclass(frozen=True)
class Family(ABC):
    """Some priors of θ.

    Attributes:
        odds: how likely each prior is.
    """

    odds: FloatArray

    @abstractmethod
    def before(self, rows: int) -> Fitted:
        """Before any report."""

    @abstractmethod
    def after(self, precision: FloatArray, pull: FloatArray, means: FloatArray) -> Fitted:
        """Posterior for log likelihoods pull·θ - ½ θ·precision·θ, from the start `means`."""


@dataclass(frozen=True)
class Dense(Family):
    """Gaussian priors, one coefficient independent of the others.

    Attributes:
        variances: of a row, shape (G, p).
    """

    variances: FloatArray

    def before(self, rows: int) -> Fitted:
        """Before any report."""
        g, p = self.variances.shape
        spreads = (self.variances[:, None] * np.eye(p))[:, None]
        return np.zeros((g, rows, p)), np.tile(spreads, (1, rows, 1, 1)), np.zeros(g)

    def after(self, precision: FloatArray, pull: FloatArray, means: FloatArray) -> Fitted:
        """Exact."""
        root = np.sqrt(self.variances)
        whole = root[:, None, :, None] * precision * root[:, None, None, :]
        whole = np.asarray(whole + np.eye(root.shape[1]))
        spreads = root[:, None, :, None] * np.linalg.inv(whole) * root[:, None, None, :]
        return _updated(spreads, whole, pull)


@dataclass(frozen=True)
class Around(Family):
    """Gaussian priors around a θ that is nearly known; the first is that there are no slopes.

    Attributes:
        center: means of θ, shape (G, m, p).
        spreads: its covariances, shape (G, m, p, p).
    """

    center: FloatArray
    spreads: FloatArray

    def before(self, rows: int) -> Fitted:
        """Before any report."""
        return self.center, self.spreads, np.zeros(len(self.odds))

    def after(self, precision: FloatArray, pull: FloatArray, means: FloatArray) -> Fitted:
        """Exact."""
        shift = np.einsum("gmij,gmj->gmi", precision, self.center)
        root = np.linalg.cholesky(self.spreads)
        turned = np.swapaxes(root, 2, 3)
        whole = turned @ precision @ root + np.eye(root.shape[3])
        found = _updated(root @ np.linalg.inv(whole) @ turned, whole, pull - shift)
        fit = found[2] + np.einsum("gmi,gmi->g", pull - shift / 2, self.center)
        return self.center + found[0], found[1], fit


def _updated(spreads: FloatArray, whole: FloatArray, pull: FloatArray) -> Fitted:
    """Posterior of normal numbers with mean 0; `whole` is its precision in units of the prior's."""
    means = np.einsum("gmij,gmj->gmi", spreads, pull)
    fit = 0.5 * np.einsum("gmi,gmi->g", means, pull)
    return means, spreads, fit - 0.5 * np.linalg.slogdet(whole)[1].sum(axis=1)


@dataclass(frozen=True)
class Sparse(Family):
    """Few features matter: θ is a basis times numbers most of which are 0, for all scores alike.

    Attributes:
        variances: of the numbers that are not 0, shape (G, p).
        basis: shape (p, p).
        matter: how likely a number is not 0, shape (G, p).
    """

    variances: FloatArray
    basis: FloatArray
    matter: FloatArray

    def before(self, rows: int) -> Fitted:
        """Before any report."""
        g, p = self.variances.shape
        spreads = np.einsum("ij,gj,kj->gik", self.basis, self.variances * self.matter, self.basis)
        return np.zeros((g, rows, p)), np.tile(spreads[:, None], (1, rows, 1, 1)), np.zeros(g)

    def after(self, precision: FloatArray, pull: FloatArray, means: FloatArray) -> Fitted:
        """Near: by the best law under which numbers are independent (variational Bayes)."""
        inner, pull = self.basis.T @ precision @ self.basis, pull @ self.basis
        own, wide = np.einsum("gmii->gmi", inner), self.variances[:, None]
        spread, odds = 1 / (own + 1 / wide), logit(self.matter)
        gain = 0.5 * np.log(spread / wide)
        mean = means @ np.linalg.inv(self.basis).T
        there, value = np.ones_like(odds), mean.copy()
        for _ in range(_SWEEPS):
            for j in range(mean.shape[2]):
                others = (inner[..., j, :] * mean).sum(axis=2) - own[..., j] * mean[..., j]
                value[..., j] = spread[..., j] * (pull[..., j] - others)
                better = gain[..., j] + 0.5 * value[..., j] ** 2 / spread[..., j]
                there[:, j] = expit(odds[:, j] + better.sum(axis=1))
                mean[..., j] = there[:, j, None] * value[..., j]
        square = spread + value**2
        variance = there[:, None] * square - mean**2
        fit = (pull * mean - 0.5 * own * variance).sum(axis=(1, 2))
        fit -= 0.5 * np.einsum("gmi,gmij,gmj->g", mean, inner, mean)
        fit += (there[:, None] * (0.5 + gain - 0.5 * square / wide)).sum(axis=(1, 2))
        fit -= xlogy(there, there / self.matter).sum(axis=1)
        fit -= xlogy(1 - there, (1 - there) / (1 - self.matter)).sum(axis=1)
        spreads = np.einsum("ij,gmj,kj->gmik", self.basis, variance, self.basis)
        return mean @ self.basis.T, spreads, fit


def priors(
    importance: FloatArray,
    totals: FloatArray,
    constants: Sequence[tuple[float, float]],
    bases: Sequence[FloatArray],
) -> list[Family]:
    """All priors; those of the first family are that there are no slopes.

    Args:
        importance: of each direction.
        totals: of the variances of all slopes of a row together.
        constants: variances that the constant may have, and how likely each is.
        bases: in which few numbers may matter.
    """
    q = len(importance)
    falls = (importance / importance.mean()) ** np.array(SLOPES.falls)[:, None]
    falls = falls / falls.sum(axis=1, keepdims=True)
    few = [number for number in current().matter if 2 * number < q]  # each as likely as all
    nothing = current().nothing
    odds = (1 - nothing) / (1 + len(few) * len(bases))

    def family(slopes: FloatArray, chance: float, **sparse: FloatArray) -> Family:
        whole = [np.column_stack([np.full(len(slopes), one), slopes]) for one, _ in constants]
        likely = [np.full(len(slopes), chance * share / len(slopes)) for _, share in constants]
        both = np.concatenate(likely), np.concatenate(whole)
        return Sparse(*both, **sparse) if sparse else Dense(*both)

    every = [family(np.full((1, q), _TINY), nothing)]
    every.append(family((totals[:, None, None] * falls).reshape(-1, q), odds))
    for number in few:
        matter = np.full((len(totals) * len(constants), q + 1), number / q)
        matter[:, 0] = _SURE
        for basis in bases:
            wide = np.eye(q + 1)
            wide[1:, 1:] = basis
            slopes = np.tile(totals[:, None] / number, (1, q))
            every.append(family(slopes, odds, basis=wide, matter=matter))
    return every


class Slopes:
    """The posterior.

    Args:
        families: of priors; those of the first are that there are no slopes, which was as
            likely at the beginning of the study as `Beliefs.nothing` says.
        rows: of θ.
        constants: how many constants come first in a row.
        place: variance of what is not known of the middle of each direction.

    Attributes:
        theta: its mean, shape (m, p).
        covariance: shape (m, p, p).
        nothing: how likely it is by now that there are no slopes.
        events: all mean reports.
    """

    def __init__(
        self, families: Sequence[Family], rows: int, *, place: float, constants: int = 1
    ) -> None:
        self._families, self._constants, self.place = families, constants, place
        self.events = list[Event]()
        self._odds = np.concatenate([one.odds for one in families])
        self._fit([one.before(rows) for one in families], np.zeros(len(self._odds)))

    def update(self, event: Event) -> None:
        """Take in a mean report."""
        self.events.append(event)
        for _ in range(_ROUNDS):
            self._weigh()

    def _weigh(self) -> None:
        (g, m, p), c = self._means.shape, self._constants
        precision, pull, fit = np.zeros((g, m, p, p)), np.zeros((g, m, p)), np.zeros(g)
        for event in self.events:
            slope, wrong = event.slope(self.theta), 1.0 - event.exact
            first, square = _square(slope[:, :c]), _square(slope[:, c:])
            off, r = self._means - event.theta, slope.shape[1]
            away = self._spreads + off[..., :, None] * off[..., None, :]
            signal = np.einsum("gmij,mij->gm", away, first + square)
            noise = event.noise / event.people + wrong * SLOPES.discrepancy * signal / r
            # Where ψ is not quite centered, slopes move the mean residual too.
            moved = wrong * np.trace(away[..., c:, c:], axis1=2, axis2=3) / c
            rise = (slope[:, :c, :c] ** 2).sum(axis=(1, 2)) / c
            noises = noise + self.place * rise * moved, noise
            gap = event.report - event.expected(self.theta)
            gap += np.einsum("mrp,mp->mr", slope, self.theta)
            for variance, part, entries in zip(
                noises, (first, square), (slice(c), slice(c, None)), strict=True
            ):
                precision += part / variance[..., None, None]
                pulled = np.einsum("mrp,mr->mp", slope[:, entries], gap[:, entries])
                pull += pulled / variance[..., None]
                lost = (gap[:, entries] ** 2).sum(axis=1) / variance
                fit -= 0.5 * (lost + len(range(r)[entries]) * np.log(variance)).sum(axis=1)
        ends = np.cumsum([0] + [len(one.odds) for one in self._families])
        fitted = [
            one.after(precision[start:end], pull[start:end], self._means[start:end])
            for one, (start, end) in zip(self._families, pairwise(ends), strict=True)
        ]
        self._fit(fitted, fit)

    def _fit(self, fitted: Sequence[Fitted], fit: FloatArray) -> None:
        self._means, self._spreads, better = (
            np.concatenate(part) for part in zip(*fitted, strict=True)
        )
        logs = np.log(self._odds) + fit + better
        weights = np.exp(logs - logsumexp(logs))
        self.theta = np.einsum("g,gmi->mi", weights, self._means)
        off = self._means - self.theta
        spreads = self._spreads + off[..., :, None] * off[..., None, :]
        self.covariance = np.einsum("g,gmij->mij", weights, spreads)
        self.nothing = float(weights[: len(self._families[0].odds)].sum())

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


def _square(slope: FloatArray) -> FloatArray:
    """FᵀF of each row of θ."""
    return np.asarray(np.swapaxes(slope, 1, 2) @ slope)
