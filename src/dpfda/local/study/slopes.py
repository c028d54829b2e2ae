"""What vector reports say of slopes: one posterior over a grid of priors.

The state θ has one row of coefficients of (1, ψ) for each score, ψ being white features. Every mean
report is an event: its mean is a known function of θ, plus known privacy noise, plus a discrepancy
of the working model in proportion to how far θ is from where the report was asked. So reports that
are asked at one place cannot average it away, while those at the present θ become trusted by
themselves. All events are weighed again after every batch.

Priors say how strong slopes are, how fast they fall with the importance of a direction, and whether
one, three or all features matter. One of them is that there are none, so that the larger class
wins, or the mean is predicted, where nothing is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit, logsumexp, xlogy

from dpfda._validate import FloatArray
from dpfda.local.study.beliefs import current, evidence

_POWERS = np.array([0.0, 1.0, 2.0])
"""Slopes fall with the importance of their direction: not at all, or like one of its powers."""
_DISCREPANCY = 0.3
"""Of the variance of a signal: how far the working model may be wrong about it."""
_ROUNDS = 2  # of weighing all events again after a batch
_SWEEPS = 6  # over the features of a sparse prior; each begins where the last one ended
_TINY, _SURE = 1e-9, 1 - 1e-9


@dataclass(frozen=True)
class Event(ABC):
    """A mean report of some people.

    Attributes:
        asked: θ where it was asked, shape (m, p).
        told: the mean report, shape (m, r); the first entry is about the constant.
        expected: what it would be if θ were what was asked at.
        noise: variance of an entry of it, shape (m,).
    """

    asked: FloatArray
    told: FloatArray
    expected: FloatArray
    noise: FloatArray
    exact: ClassVar[bool] = False
    """Whether the working model cannot be wrong about it."""

    @abstractmethod
    def slope(self, theta: FloatArray) -> FloatArray:
        """How the mean report changes from where it was asked to this θ, shape (m, r, p)."""


Fitted = tuple[FloatArray, FloatArray, FloatArray]
"""Means (G, m, p) and covariances (G, m, p, p) of θ, and log evidence (G,), one a prior."""


@dataclass(frozen=True)
class Family(ABC):
    """Some priors of a row of θ.

    Attributes:
        variances: shape (G, p).
        odds: how likely each prior is.
    """

    variances: FloatArray
    odds: FloatArray

    @abstractmethod
    def before(self, rows: int) -> Fitted:
        """Before anything was told."""

    @abstractmethod
    def after(self, precision: FloatArray, pull: FloatArray, means: FloatArray) -> Fitted:
        """Where log likelihoods are pull·θ - ½ θ·precision·θ; `means` is where to begin."""


@dataclass(frozen=True)
class Dense(Family):
    """Gaussian priors, one coefficient independent of the others."""

    def before(self, rows: int) -> Fitted:
        """Before anything was told."""
        g, p = self.variances.shape
        spreads = (self.variances[:, None] * np.eye(p))[:, None]
        return np.zeros((g, rows, p)), np.tile(spreads, (1, rows, 1, 1)), np.zeros(g)

    def after(self, precision: FloatArray, pull: FloatArray, means: FloatArray) -> Fitted:
        """Exact."""
        root = np.sqrt(self.variances)
        inner = root[:, None, :, None] * precision * root[:, None, None, :]
        inner = inner + np.eye(root.shape[1])
        spreads = root[:, None, :, None] * np.linalg.inv(inner) * root[:, None, None, :]
        means = np.einsum("gmij,gmj->gmi", spreads, pull)
        fit = 0.5 * np.einsum("gmi,gmi->g", means, pull)
        return means, spreads, fit - 0.5 * np.linalg.slogdet(inner)[1].sum(axis=1)


@dataclass(frozen=True)
class Sparse(Family):
    """Few features matter: θ is a basis times numbers most of which are 0, for all scores alike.

    Attributes:
        basis: shape (p, p).
        matter: how likely a number is not 0, shape (G, p).
    """

    basis: FloatArray
    matter: FloatArray

    def before(self, rows: int) -> Fitted:
        """Before anything was told."""
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
    falls = (importance / importance.mean()) ** _POWERS[:, None]
    falls = falls / falls.sum(axis=1, keepdims=True)
    few = [number for number in current().matter if 2 * number < q]  # each as likely as all
    nothing = current().nothing
    odds = (1 - nothing) / (1 + len(few) * len(bases))

    def family(slopes: FloatArray, chance: float, **sparse: FloatArray) -> Family:
        whole = [np.column_stack([np.full(len(slopes), one), slopes]) for one, _ in constants]
        likely = [np.full(len(slopes), chance * share / len(slopes)) for _, share in constants]
        both = np.concatenate(whole), np.concatenate(likely)
        return Sparse(*both, **sparse) if sparse else Dense(*both)

    found = [family(np.full((1, q), _TINY), nothing)]
    found.append(family((totals[:, None, None] * falls).reshape(-1, q), odds))
    for number in few:
        matter = np.full((len(totals) * len(constants), q + 1), number / q)
        matter[:, 0] = _SURE
        for basis in bases:
            wide = np.eye(q + 1)
            wide[1:, 1:] = basis
            slopes = np.tile(totals[:, None] / number, (1, q))
            found.append(family(slopes, odds, basis=wide, matter=matter))
    return found


class Slopes:
    """The posterior.

    Args:
        families: of priors.
        rows: of θ.
        place: variance of what is not known of the middle of each direction.

    Attributes:
        theta: its mean, shape (m, p).
        covariance: shape (m, p, p).
    """

    def __init__(self, families: Sequence[Family], rows: int, *, place: float) -> None:
        self._families, self._events, self.place = families, list[Event](), place
        self._odds = np.concatenate([one.odds for one in families])
        self._fit([one.before(rows) for one in families], np.zeros(len(self._odds)))

    def told(self, event: Event) -> None:
        """Take in the replies of a phase."""
        self._events.append(event)
        for _ in range(_ROUNDS):
            self._weigh()

    def _weigh(self) -> None:
        g, m, p = self._means.shape
        precision, pull, fit = np.zeros((g, m, p, p)), np.zeros((g, m, p)), np.zeros(g)
        for event in self._events:
            slope = event.slope(self.theta)
            first, square = _square(slope[:, :1]), _square(slope[:, 1:])
            off, r = self._means - event.asked, slope.shape[1]
            away = self._spreads + off[..., :, None] * off[..., None, :]
            signal = np.einsum("gmij,mij->gm", away, first + square)
            doubt = (1 - event.exact) * _DISCREPANCY * signal / r
            # Where ψ is not quite centered, slopes move the mean residual too.
            moved = np.trace(away[..., 1:, 1:], axis1=2, axis2=3) * (1 - event.exact)
            noise = event.noise + doubt
            noises = noise + self.place * slope[:, 0, 0] ** 2 * moved, noise
            gap = event.told - event.expected + np.einsum("mrp,mp->mr", slope, event.asked)
            for own, part, entries in zip(
                noises, (first, square), (slice(1), slice(1, None)), strict=True
            ):
                precision += part / own[..., None, None]
                told = np.einsum("mrp,mr->mp", slope[:, entries], gap[:, entries])
                pull += told / own[..., None]
                lost = (gap[:, entries] ** 2).sum(axis=1) / own
                fit -= 0.5 * (lost + len(range(r)[entries]) * np.log(own)).sum(axis=1)
        found, start = [], 0
        for one in self._families:
            some = slice(start, start + len(one.odds))
            found.append(one.after(precision[some], pull[some], self._means[some]))
            start += len(one.odds)
        self._fit(found, fit)

    def _fit(self, found: Sequence[Fitted], fit: FloatArray) -> None:
        self._means, self._spreads, better = (
            np.concatenate(part) for part in zip(*found, strict=True)
        )
        logs = np.log(self._odds) + fit + better
        self._weights = np.exp(logs - logsumexp(logs))
        self.theta = np.einsum("g,gmi->mi", self._weights, self._means)
        off = self._means - self.theta
        spreads = self._spreads + off[..., :, None] * off[..., None, :]
        self.covariance = np.einsum("g,gmij->mij", self._weights, spreads)

    @property
    def evidence(self) -> float:
        """How likely it is that there are slopes, if it was as likely as not before."""
        nothing = len(self._families[0].odds)
        return evidence(self._odds[:nothing].sum(), self._weights[:nothing].sum())


def _square(slope: FloatArray) -> FloatArray:
    """FᵀF of each row of θ."""
    return np.asarray(np.swapaxes(slope, 1, 2) @ slope)
