"""What a server concludes from answers: pure functions of sums (methods 8.2).

Notation: α is the truth probability of the k-question response, so that answer/α is unbiased for
the true ±1 answer; n_j is how many people were asked about coordinate j; ``precision`` n_j α² is
how many clean answers that is worth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit, softmax

from dpfda._validate import AnyArray, FloatArray

_LEAD_PRIOR = 0.25  # variance of the strongest stump's correlation r_j before any answer
_OTHER_PRIOR = 0.03  # variance of any other stump's, where features have no order
_DOUBT = 2.5  # evidence that an ordered feature must bring before it is believed at all
_PAIR_PRIOR = 0.02  # variance of the correlation of two stumps before any answer
_BLIND = 0.4  # by what to take scores times where products of stumps are unknown
_RIDGE = 0.1
_ALIKE = (0.08, 0.01)  # variances of what distances' correlations have in common, and of the rest
_APART = 0.05  # variance where they have nothing in common
_ALL_WIDER = 0.3  # how likely it is that one class is wider in all features, if there is a signal
_SMALLEST_EIGENVALUE = 0.2


class _Signal(NamedTuple):
    """What is expected of correlations r_j before any answer.

    Attributes:
        expected: how likely it is that features say something of the label.
        sizes: variances of the first stump's correlation if they do, each as likely as the others.
        decays: how likely it is that those of later ones fall with this power.
    """

    expected: float
    sizes: tuple[float, ...]
    decays: dict[float, float]


_CLEAR = _Signal(0.5, (0.1, 0.4), {0.0: 0.15, 2.0: 0.25, 4.0: 0.6})
"""Of ordered features, where people answer one question each."""
_FAINT = {True: _Signal(0.7, (0.06,), {1.0: 1.0}), False: _Signal(0.7, (0.03,), {0.0: 1.0})}
"""Of ordered features and of others that may tell little alone and much together."""


def shift_center(
    center: FloatArray,
    uncertainty: FloatArray,
    *,
    total: FloatArray,
    asked: FloatArray,
    width: FloatArray,
    alpha: float,
    located: AnyArray | bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Move the center of each coordinate towards where half of the people are.

    A dithered answer sgn(z - c - wU) has mean (z - c)/w for |z - c| ≤ w, so total/(n α) estimates
    the offset in units of w. How large offsets are is learnt from all coordinates together
    (empirical Bayes): where none stands out of the noise, the public center stays. Coordinates that
    were `located` before have an uncertainty that was measured, and move by as much as it says.

    Returns:
        The new center and the variance that is left of `uncertainty`.
    """
    offset = total / np.maximum(asked, 1) / alpha
    noise = 1 / np.maximum(asked * alpha**2, 1e-3)
    spread = max(0.0, float(np.mean(offset**2 - noise)))
    certain = uncertainty / (uncertainty + width**2 * noise)
    gain = np.where(located, certain, spread / (spread + noise))
    left = np.where(
        gain > 0, uncertainty * (1 - certain), np.minimum(uncertainty, width**2 * noise)
    )
    return center + gain * width * np.clip(offset, -1, 1), left


class Direction(NamedTuple):
    """Slopes θ and the unshrunk correlations r, and how much of it to believe.

    Attributes:
        slopes: θ, shape (d,).
        raw: r, shape (d,).
        variances: of θ, shape (d,).
        evidence: how likely it is that any stump is right at all.
        damping: what scores are to be taken times for probabilities: stumps without an order say
            the same twice as long as nobody knows their products.
    """

    slopes: FloatArray
    raw: FloatArray
    variances: FloatArray
    evidence: float
    damping: float


def direction(
    *,
    total: FloatArray,
    asked: FloatArray,
    pair_total: FloatArray,
    pair_asked: FloatArray,
    alpha: float,
    whiten: bool,
    ordered: bool,
    runs: int = 1,
    balance: float | None = None,
) -> Direction:
    """Slopes θ from the answers to "is this stump right on you?".

    r_j = mean/α is the correlation of label and stump j, shrunk against its noise; correlated
    stumps are whitened by their estimated products. Reversal needs no rule: it is the sign of r_j.
    Where class 1 has a share of (1 + r₀)/2, no stump can have |r_j| above 1 - |r₀|. Slopes are
    those if features say anything at all; how likely that is stands beside them.

    Args:
        total: sums of answers to each of d stumps.
        asked: how many people were asked about each.
        pair_total: sums of products of two answers.
        pair_asked: how many people were asked about both.
        alpha: truth probability.
        whiten: whether anybody was asked about two.
        ordered: whether the first features matter most.
        runs: into how many equal parts features are divided, each with an order of its own.
        balance: r₀ of two classes; None for one class against several others.
    """
    precision = np.maximum(asked, 0.5) * alpha**2
    raw = total / np.maximum(asked, 1) / alpha
    off = 0.0 if balance is None else balance
    room = (1 - abs(off)) ** 2
    believed = _shrinkage(raw, precision, ordered=ordered, runs=runs, room=room)
    r = raw * believed
    if runs > 1:
        r[len(r) // 2 :] = _wider(raw, precision, r, room=room)
    u = np.linalg.solve(_correlations(pair_total, pair_asked, alpha), r) if whiten else r
    spread = 1 - off**2
    evidence = 1.0
    if balance is not None:
        signal = _signal(ordered=ordered, whiten=whiten)
        evidence = _evidence(raw, precision, signal=signal, runs=runs, room=room)
    steepness = 4 * (evidence if whiten else 1.0) / (spread * (1 - np.clip(u @ r / spread, 0, 0.9)))
    return Direction(
        slopes=steepness * u,
        raw=raw,
        variances=steepness**2 * believed**2 / precision,
        evidence=evidence,
        damping=1.0 if ordered else _BLIND + (1 - _BLIND) * _pairs_known(pair_asked, alpha),
    )


def _signal(*, ordered: bool, whiten: bool) -> _Signal:
    return _CLEAR if ordered and not whiten else _FAINT[ordered]


def evidence_at_even_odds(evidence: float, *, ordered: bool, whiten: bool) -> float:
    """What the evidence would be if a signal had been expected in one of two studies.

    Examples:
        >>> round(evidence_at_even_odds(0.7, ordered=False, whiten=False), 9)
        0.5
    """
    return float(expit(logit(evidence) - logit(_signal(ordered=ordered, whiten=whiten).expected)))


def _shrinkage(
    raw: FloatArray, precision: FloatArray, *, ordered: bool, room: float, runs: int = 1
) -> FloatArray:
    """How much of each correlation to believe.

    Ordered features: the signal-to-noise ratio, n α² r² less 2.5 times its mean under noise alone,
    is taken to fall with the order (isotonic regression), so that one noisy late feature by itself
    is not believed. Without an order: a common prior. The strongest stump has a prior of its own:
    something must be believed. `room` is by how much unbalanced classes make prior variances small.
    """
    evidence = precision * raw**2
    if ordered:
        falling = [
            isotonic_regression(run - _DOUBT, increasing=False).x
            for run in np.split(evidence, runs)
        ]
        signal = np.maximum(np.concatenate(falling), 0)
        believed = signal / (signal + 1)
    else:
        believed = _OTHER_PRIOR * room / (_OTHER_PRIOR * room + 1 / precision)
    lead = int(np.argmax(evidence))
    believed[lead] = _LEAD_PRIOR * room / (_LEAD_PRIOR * room + 1 / precision[lead])
    return np.asarray(believed)


def _wider(raw: FloatArray, precision: FloatArray, own: FloatArray, *, room: float) -> FloatArray:
    """Correlations of label and distances, the later half, where one class may be wider in all.

    If it is, r_j = μ + e_j with few people enough for μ; else they are those that are their `own`.
    """
    half = len(raw) // 2
    alike, fit = _alike(raw[half:], precision[half:], room=room)
    apart = _fits(raw[half:], precision[half:], np.full((1, half), _APART * room))[0]
    weight = expit(fit - apart)
    return np.asarray(weight * alike + (1 - weight) * own[half:])


def _alike(raw: FloatArray, precision: FloatArray, *, room: float) -> tuple[FloatArray, float]:
    """Posterior means of correlations around a common one, and how much better that explains them.

    The second is a logarithm, in comparison with none of them being there.
    """
    common, own = _ALIKE
    signal = room * (common + own * np.eye(len(raw)))
    total = signal + np.diag(1 / precision)
    solved = np.linalg.solve(total, raw)
    worse = precision * raw**2 + np.log(1 / precision)
    fit = 0.5 * (worse.sum() - raw @ solved - np.linalg.slogdet(total)[1])
    return np.asarray(signal @ solved), float(fit)


def _fits(raw: FloatArray, precision: FloatArray, variance: FloatArray) -> FloatArray:
    """How much better each row of variances explains correlations than none of them being there."""
    gain = variance / (variance + 1 / precision)
    fit = precision * raw**2 * gain - np.log1p(variance * precision)
    return np.asarray(0.5 * fit.sum(axis=1))


def _evidence(
    raw: FloatArray, precision: FloatArray, *, signal: _Signal, room: float, runs: int = 1
) -> float:
    """How likely it is that any stump is right.

    If so, r_j ~ N(0, τ² (j + 1)^-p) with τ² one of the sizes and p one of the decays, else all r_j
    are 0. Of several runs of features, all say something, or any one alone.
    """
    sizes = np.array(signal.sizes) * room
    places = np.tile(1.0 + np.arange(len(raw) // runs), runs)
    variance = np.concatenate([np.outer(sizes, places**-power) for power in signal.decays])
    prior = signal.expected * np.repeat(list(signal.decays.values()), len(sizes)) / len(sizes)
    if runs > 1:
        alone = np.repeat(np.vstack([np.ones(runs), np.eye(runs)]), len(raw) // runs, axis=1)
        variance = (alone[:, None] * variance).reshape(-1, len(raw))
        prior = np.tile(prior, 1 + runs) / (1 + runs)
    fit = _fits(raw, precision, variance)
    if runs > 1:
        half = len(raw) // 2
        fit = np.append(fit, _alike(raw[half:], precision[half:], room=room)[1])
        prior = np.append((1 - _ALL_WIDER) * prior, _ALL_WIDER * signal.expected)
    return float(softmax(np.append(np.log(prior) + fit, np.log(1 - signal.expected)))[:-1].sum())


def _correlations(pair_total: FloatArray, pair_asked: FloatArray, alpha: float) -> FloatArray:
    """Estimated correlations of the stumps, shrunk, with eigenvalues kept away from 0."""
    pairs = pair_total / np.maximum(pair_asked, 1) / alpha
    pairs *= _pair_belief(pair_asked, alpha)
    np.fill_diagonal(pairs, 1 + _RIDGE)
    values, vectors = np.linalg.eigh(pairs)
    return np.asarray((vectors * np.maximum(values, _SMALLEST_EIGENVALUE)) @ vectors.T)


def _pair_belief(pair_asked: FloatArray, alpha: float) -> FloatArray:
    """How much of each estimated product of two stumps to believe."""
    precision = np.maximum(pair_asked, 0.5) * alpha**2
    return _PAIR_PRIOR / (_PAIR_PRIOR + 1 / precision)


def _pairs_known(pair_asked: FloatArray, alpha: float) -> float:
    """The same of all pairs, from 0 (nobody was asked about two stumps) to 1."""
    others = ~np.eye(len(pair_asked), dtype=bool)
    if not np.any(pair_asked[others]):
        return 0.0 if len(pair_asked) > 1 else 1.0
    return float(np.mean(_pair_belief(pair_asked, alpha)[others]))


def intercept_reading(
    intercept: float, *, total: float, people: int, questions: int, reaction: float, alpha: float
) -> tuple[float, float]:
    """One Newton step of the intercept towards E[y - tanh((a + s)/2)] = 0, and its variance.

    Args:
        intercept: a so far.
        total: sum over people of their mean answer.
        people: how many answered.
        questions: k.
        reaction: κ, how strongly the equation reacts to a.
        alpha: truth probability.
    """
    variance = 4 * (1 / alpha**2 - 1 + 1 / questions)
    return intercept + 2 * total / people / alpha / reaction, variance / people / reaction**2
