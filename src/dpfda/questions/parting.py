"""Where two classes part in each feature, where people are few: all answers in one posterior.

Of a feature, people of class ±1 are taken to be normal around m ± δ with deviation s. Their answers
to "above t?" and "is t right on you?" at many thresholds t, and those about the label alone, have a
likelihood in (r₀, m, ρ, s), where r₀ is how far the classes are from balanced and ρ = 2Φ(δ/s) - 1
the correlation of the label with the stump at m. A public grid is enough for it. Unlike the middle
of all people, m needs no people of its own: it is where the stump is most often right. Several
answers of one person count as if they were several people's.

Lengths are in units of the public half-width h of a feature, from its public middle.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from dpfda._validate import FloatArray, IntArray
from dpfda.questions import balance

_PLACES: FloatArray = np.linspace(-1.25, 1.25, 21)  # m, and thresholds
_WIDTHS: FloatArray = np.array([0.12, 0.2, 0.35, 0.6])  # s, each as likely as the others
_RIGHT: FloatArray = np.array([0.12, 0.25, 0.4, 0.6, 0.8, 0.95])
_RIGHT = np.concatenate([-_RIGHT[::-1], [0.0], _RIGHT])  # ρ
_BALANCES: FloatArray = np.array([0.16, 0.32, 0.5, 0.7, 0.88])
_BALANCES = np.concatenate([-_BALANCES[::-1], [0.0], _BALANCES])  # r₀
_TINY = 1e-300
_UNBALANCED = 0.25  # |r₀| from which classes are not balanced

_OFFSETS = {0.06: 0.3, 0.2: 0.35, 0.5: 0.35}
"""How far m may be from the public middle, for all features of a study alike: how likely it is."""
_EXPECTED = 0.5  # how likely it is that features say anything of the label
_SIZES = (0.1, 0.4)  # variances of the first ρ if they do, and by which power those of later ones
_DECAYS = {0.0: 0.25, 1.0: 0.2, 2.0: 0.2, 4.0: 0.35}  # fall: how likely that is
_SIZES_WITHOUT_ORDER = (0.03, 0.1, 0.3)  # each as likely as the others, and
_SHARES = (1.0, 0.3)  # how many features say something, likewise
_NARROWEST = 0.25  # s that slopes are computed with: no class is believed to be narrower


class Parting(NamedTuple):
    """What is known of d features and of the labels.

    Attributes:
        middles: m, shape (d,), in units of h from the public middle.
        unsure: their variances, shape (d,).
        widths: s, shape (d,).
        right: ρ if features say anything, shape (d,).
        doubt: its variances, shape (d,).
        slopes: by how much the log odds of class 1 grow with each feature, shape (d,), likewise.
        slope_doubt: their variances, shape (d,).
        intercept: the log odds of class 1 where all features are at their middles.
        intercept_doubt: its variance, as far as r₀ is unknown.
        evidence: how likely it is that they say anything.
        balance: r₀.
        unbalanced: how likely it is that classes are not balanced.
    """

    middles: FloatArray
    unsure: FloatArray
    widths: FloatArray
    right: FloatArray
    doubt: FloatArray
    slopes: FloatArray
    slope_doubt: FloatArray
    intercept: float
    intercept_doubt: float
    evidence: float
    balance: float
    unbalanced: float


def cells(thresholds: FloatArray) -> IntArray:
    """The places of the grid nearest to thresholds.

    Examples:
        >>> cells(np.array([-9.0, 0.0, 0.06, 0.07]))
        array([ 0, 10, 10, 11])
    """
    step = _PLACES[1] - _PLACES[0]
    found = np.rint((thresholds - _PLACES[0]) / step).astype(np.int64)
    return np.asarray(np.clip(found, 0, len(_PLACES) - 1))


def on_grid(thresholds: FloatArray) -> FloatArray:
    """Thresholds moved to the nearest places of the grid."""
    return np.asarray(_PLACES[cells(thresholds)])


def nothing_heard(d: int) -> FloatArray:
    """Answers no and yes: without and with the label, by feature and threshold."""
    return np.zeros((2, d, len(_PLACES), 2))


def found(answers: FloatArray, labels: FloatArray, *, alpha: float, ordered: bool) -> Parting:
    """The posterior's means.

    Given a feature, the log odds of class 1 grow by 2δ/s² times it, from the middle m on.

    Args:
        answers: as in `nothing_heard`.
        labels: answers about the label alone, no and yes.
        alpha: truth probability of an answer.
        ordered: whether the first features matter most.
    """
    d = answers.shape[1]
    log = np.einsum("kgta,kdta->gd", _log_likelihood(alpha), answers, optimize=True)
    log = log.reshape(len(_BALANCES), len(_PLACES), len(_RIGHT), len(_WIDTHS), d)
    best = log.max(axis=(1, 2, 3))  # of each r₀: features may contradict each other about it
    fits = np.exp(log - best[:, None, None, None])  # (r₀, m, ρ, s, feature)
    fit = fits.mean(axis=3)
    offsets, offset_odds = _offset_priors()
    signals, signal_odds = _signal_priors(d) if ordered else _priors_without_order(d)
    told = np.log1p(alpha * np.outer([-1, 1], _BALANCES))
    # Of each signal, offset and balance: how well it explains each feature, and all of them.
    each = np.einsum("brcd,acd->abrd", np.einsum("rmcd,bm->brcd", fit, offsets), signals)
    with np.errstate(divide="ignore"):
        every = (np.log(each) + best).sum(axis=-1) + np.log(_balance_prior()) + labels @ told
        weights = softmax(every + np.log(signal_odds)[:, None, None] + np.log(offset_odds)[:, None])
    likely, balances = weights[:-1].sum(), weights.sum(axis=(0, 1))
    given = weights[:-1] / max(likely, _TINY)
    share = given[..., None] / np.maximum(each[:-1], _TINY)
    posterior = fit * np.einsum(
        "brcd,bm->rmcd", np.einsum("abrd,acd->brcd", share, signals[:-1]), offsets
    )
    right = posterior.sum(axis=(0, 1))  # (ρ, feature)
    mean = _RIGHT @ right
    where = np.einsum("rmcd,c->md", posterior, _RIGHT**2)  # where it matters
    where /= where.sum(axis=0)
    middles = _PLACES @ where
    weight = posterior / np.maximum(fit, _TINY) / len(_WIDTHS)
    full = np.einsum("rmcd,rmcsd->mcsd", weight, fits)
    steep = 2 * ndtri((1 + _RIGHT) / 2)[:, None] / np.maximum(_WIDTHS, _NARROWEST)
    slopes = np.einsum("mcsd,cs->d", full, steep)
    at_middles = slopes * middles - np.einsum("mcsd,cs,m->d", full, steep, _PLACES)
    odds = 2 * np.arctanh(_BALANCES)
    by_balance = given.sum(axis=(0, 1))
    log_odds = float(by_balance @ odds)
    return Parting(
        middles=middles,
        unsure=_spread(_PLACES**2 @ where, middles),
        widths=np.einsum("mcsd,s->d", full, _WIDTHS),
        right=mean,
        doubt=_spread(_RIGHT**2 @ right, mean),
        slopes=slopes,
        slope_doubt=_spread(np.einsum("mcsd,cs->d", full, steep**2), slopes),
        intercept=log_odds + float(at_middles.sum()),
        intercept_doubt=float(_spread(by_balance @ odds**2, np.array(log_odds))),
        evidence=float(likely),
        balance=float(balances @ _BALANCES),
        unbalanced=float(balances[np.abs(_BALANCES) > _UNBALANCED].sum()),
    )


def _spread(square: FloatArray, mean: FloatArray) -> FloatArray:
    """Variances, which rounding may not make negative."""
    return np.asarray(np.maximum(square - mean**2, 0.0))


@lru_cache(maxsize=4)
def _log_likelihood(alpha: float) -> FloatArray:
    """Of an answer without or with the label at each place of the grid, no or yes.

    Up to the factor ½ that all have; shape (2, grid, thresholds, 2).
    """
    r0, m, rho, s, t = np.ix_(_BALANCES, _PLACES, _RIGHT, _WIDTHS, _PLACES)
    apart, share = ndtri((1 + rho) / 2), (1 + r0) / 2
    above, below = (2 * ndtr((m - t) / s + side * apart) - 1 for side in (1, -1))
    means = [share * above + side * (1 - share) * below for side in (1, -1)]
    log = [np.log1p(alpha * np.stack([-mean, mean], axis=-1)) for mean in means]
    return np.stack(log).reshape(2, -1, len(_PLACES), 2)


def _offset_priors() -> tuple[FloatArray, FloatArray]:
    off = np.exp(-0.5 * (_PLACES / np.array(list(_OFFSETS))[:, None]) ** 2)
    return off / off.sum(axis=1, keepdims=True), np.array(list(_OFFSETS.values()))


def _signal_priors(d: int) -> tuple[FloatArray, FloatArray]:
    """What ρ of each feature may be, shape (signals, ρ, d): the last says nothing of the label."""
    powers = np.array(list(_DECAYS))[:, None]
    variances = np.outer(_SIZES, (1.0 + np.arange(d)) ** -powers).reshape(-1, 1, d)
    odds = np.tile(list(_DECAYS.values()), len(_SIZES)) / len(_SIZES)
    return _or_nothing(_normal(variances), odds)


def _priors_without_order(d: int) -> tuple[FloatArray, FloatArray]:
    """The same where any feature may be among those that say something."""
    some = _normal(np.repeat(_SIZES_WITHOUT_ORDER, d).reshape(-1, 1, d))
    signals = np.concatenate([share * some + (1 - share) * _nothing(d) for share in _SHARES])
    return _or_nothing(signals, np.full(len(signals), 1 / len(signals)))


def _normal(variances: FloatArray) -> FloatArray:
    """ρ around 0, shape (signals, ρ, d)."""
    some = np.gradient(_RIGHT)[:, None] * np.exp(-0.5 * _RIGHT[:, None] ** 2 / variances)
    return np.asarray(some / some.sum(axis=1, keepdims=True))


def _nothing(d: int) -> FloatArray:
    return np.repeat(_RIGHT[:, None] == 0, d, axis=1).astype(np.float64)


def _or_nothing(signals: FloatArray, odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """With what is as likely as all of them together."""
    d = signals.shape[-1]
    return np.concatenate([signals, _nothing(d)[None]]), np.append(odds * _EXPECTED, 1 - _EXPECTED)


def _balance_prior() -> FloatArray:
    return np.asarray(np.gradient(_BALANCES) * balance.prior_density(_BALANCES))
