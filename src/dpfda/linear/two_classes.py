"""Two classes: a linear discriminant from E[(y - p) ψ], then a logistic fit in small rounds.

θ are the coefficients of (1, ψ), ψ whitened features. Reports are vectors (y - p)(w, a ψ) of
bounded length. The logistic fit is a Kalman filter: each round reports the mean gradient at the
present θ, which is F times the error of θ plus known noise. F comes from synthetic rows of the
present model, so that nobody's curve is needed for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dpfda._validate import FloatArray
from dpfda.linear.shrinkage import believed
from dpfda.linear.spread import normal_rows, passed, with_one

RADIUS = 0.8
"""Vectors are cut at this share of their root mean square length."""
CONSTANT = 0.5
"""Weight of the constant beside the strongest direction."""

_RATE_PRIOR = 0.1  # variance of 2p - 1 before anybody is asked
RATE_PRIOR_ANSWERS = 1 / _RATE_PRIOR
"""How many clean answers that is worth."""
_PUBLIC_ANSWERS = 1e6  # a public share is believed as if so many had told their label
_MOST_EXPLAINED = 0.8
_DOUBT = 0.3  # of the rounds' model: added to the noise, in units of its mean signal
_FORGET = 1.05  # each round, the past counts a little less: the gradient is not linear
_RIDGE = 1e-3
_EVEN = 0.3  # of what a round tells: about all directions as the first look did
_LEAST_DOUBT = 1e-12


@dataclass(frozen=True)
class Rate:
    """The share of label 1 and the effective number of clean answers behind it."""

    share: float
    answers: float

    @classmethod
    def of(cls, total: float, people: int, alpha: float) -> Rate:
        """From randomized ±1 labels that add up to `total`; ½ where nobody was asked."""
        answers = people * alpha**2
        mean = total / people / alpha if people else 0.0
        kept = _RATE_PRIOR / (_RATE_PRIOR + 1 / max(answers, 1e-9))
        return cls(float((1 + np.clip(mean * kept, -0.9, 0.9)) / 2), answers)

    @classmethod
    def known(cls, share: float) -> Rate:
        """A public share."""
        return cls(share, _PUBLIC_ANSWERS)


def moment_cut(weights: FloatArray, share: float) -> tuple[float, float]:
    """Where (y - p)(1, ψ) weighted is cut, and how much of its mean the cut lets pass."""
    lengths = np.linalg.norm(with_one(normal_rows(len(weights) - 1)) * weights, axis=1)
    # Exactly a share p of the public rows has label 1.
    labels = np.where(np.arange(len(lengths)) % 1000 < share * 1000, 1 - share, share)
    limit = RADIUS * float(np.sqrt(np.mean((lengths * labels) ** 2)))
    return limit, passed(lengths * labels, limit)


@dataclass
class Belief:
    """A posterior of θ, and the discriminant's picture of the two classes.

    Attributes:
        theta: mean, shape (q + 1,).
        covariance: of θ.
        means: of ψ in each class, shape (2, q).
        within: covariance of ψ in a class.
        share: of label 1.
    """

    theta: FloatArray
    covariance: FloatArray
    means: FloatArray
    within: FloatArray
    share: float


def discriminant(
    moment: FloatArray, noise: FloatArray, importance: FloatArray, rate: Rate
) -> Belief:
    """The linear discriminant behind an estimate of E[(y - p)(1, ψ)].

    Args:
        moment: shape (q + 1,).
        noise: its variances.
        importance: of each direction.
        rate: p and what is known of it.
    """
    p = rate.share
    variance = p * (1 - p)
    effect, own = moment[1:] / np.sqrt(variance), noise[1:] / variance
    kept = believed(effect[None], own, importance).kept
    effect = kept * effect
    explained = float(effect @ effect)
    if explained > _MOST_EXPLAINED:
        effect = effect * np.sqrt(_MOST_EXPLAINED / explained)
        explained = _MOST_EXPLAINED
    difference = effect / np.sqrt(variance)
    slope = difference / (1 - explained)
    means = np.stack([-p * difference, (1 - p) * difference])
    doubt = _doubt(rate)
    share = float(np.clip(p + moment[0] * doubt / (doubt + noise[0]), 0.05, 0.95))
    intercept = np.log(share / (1 - share)) - 0.5 * means.sum(axis=0) @ slope
    left = min(doubt, float(noise[0])) / variance**2
    spread = kept * own / variance / (1 - explained) ** 2 + 0.1 * np.mean(slope**2) + 1e-4
    return Belief(
        theta=np.r_[intercept, slope],
        covariance=np.diag(np.r_[1 / (2 + 1 / (left + 1e-9)) + 0.05, spread]),
        means=means,
        within=np.eye(len(effect)) - np.outer(effect, effect),
        share=share,
    )


@dataclass(frozen=True)
class Round:
    """What one gradient round asks, and how to read its replies.

    Attributes:
        theta: where the gradient is taken.
        weights: of (1, ψ) in reports.
        reach: weighted (1, ψ) longer than this is shortened to it.
        limit: so is the weighted gradient, to this.
        bias: mean gradient, cut as it is, if θ were the truth.
        fisher: its derivative by the true θ.
    """

    theta: FloatArray
    weights: FloatArray
    reach: float
    limit: float
    bias: FloatArray
    fisher: FloatArray

    def gradients(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What (1, ψ) report where the label is 1, and where it is 0 with the other sign."""
        lengths = np.linalg.norm(rows * self.weights, axis=1)
        p = 1 / (1 + np.exp(-np.clip(rows @ self.theta, -40, 40)))
        shortened = np.minimum(lengths, self.reach)
        if_one, if_zero = (np.minimum(r * shortened, self.limit) / lengths for r in (1 - p, p))
        return rows * if_one[:, None], rows * if_zero[:, None]


@dataclass(frozen=True)
class Score:
    """What all replies say of θ near a rule without slopes, whatever the rounds believed by then.

    The rounds forget, and begin with what the first look believed; whether there is anything to
    believe is asked of the reports themselves. Near θ₀ = (log odds of p, 0) a mean report is what
    it would be there, plus a known matrix times θ - θ₀, plus known noise.

    Attributes:
        share: p, the share of label 1 that θ₀ stands for.
        told: Σ Fᵀ N⁻¹ (report - expected), shape (q + 1,).
        information: Σ Fᵀ N⁻¹ F, with what is known of the share.
    """

    share: float
    told: FloatArray
    information: FloatArray

    @classmethod
    def first(cls, moment: FloatArray, noise: FloatArray, rate: Rate) -> Score:
        """Of E[(y - p)(1, ψ)], which is p(1 - p) times θ - θ₀."""
        variance = rate.share * (1 - rate.share)
        precision = variance**2 / noise
        precision[0] += variance**2 / _doubt(rate)
        return cls(rate.share, variance * moment / noise, np.diag(precision))

    def after(self, asked: Round, gradient: FloatArray, noise: FloatArray) -> Score:
        """With a round's mean gradient; rows are public, as ψ is if it goes with nothing."""
        rows, p = with_one(normal_rows(len(noise) - 1)), self.share
        if_one, if_zero = asked.gradients(rows)
        expected = p * if_one.mean(axis=0) - (1 - p) * if_zero.mean(axis=0)
        reaction = p * (1 - p) * (if_one + if_zero).T @ rows / len(rows)
        weighed = reaction / noise[:, None]
        return Score(
            self.share,
            self.told + weighed.T @ (gradient - expected),
            self.information + reaction.T @ weighed,
        )

    @property
    def balance(self) -> float:
        """2p - 1 as all replies tell it if there are no slopes."""
        odds = np.log(self.share / (1 - self.share)) + self.told[0] / self.information[0, 0]
        return float(np.tanh(odds / 2))

    def fit(self, importance: FloatArray) -> float:
        """How much better slopes explain all replies than none, as a logarithm."""
        covariance = np.linalg.inv(self.information)
        variance = self.share * (1 - self.share)
        effects = np.sqrt(variance) * (covariance @ self.told)[1:]
        return believed(effects[None], variance * np.diag(covariance)[1:], importance).fit


def _doubt(rate: Rate) -> float:
    """Variance of the share of label 1, by those who told it."""
    return 1 / (40 + 4 * rate.answers)


def prepare(belief: Belief, weights: FloatArray, *, noise: float) -> Round:
    """The next round: directions of which more is unknown weigh more than they did at first.

    ψ is shortened by its own length only, which moves no fixed point. The residual is cut at its
    root mean square. That would: E cut(y - p) is not 0 for y of probability p, and a fit without
    the bias would be half as sure again of itself as it should be.

    Args:
        belief: about θ.
        weights: of (1, ψ) at first.
        noise: variance of an entry of the mean of the reports to come, in units of its limit.
    """
    rows = with_one(_synthetic(belief))
    p = 1 / (1 + np.exp(-np.clip(rows @ belief.theta, -40, 40)))
    # What reports of so many people add to the precision of θ, all directions together.
    answers = float(np.mean(p * (1 - p))) / (RADIUS**2 * noise)
    weights = _attentive(np.diag(belief.covariance), weights, answers)
    lengths = np.linalg.norm(rows * weights, axis=1)
    reach = RADIUS * float(np.sqrt(np.mean(lengths**2)))
    limit = reach * float(np.sqrt(np.mean(p * (1 - p))))
    shortened = np.minimum(lengths, reach)
    if_one, if_zero = (np.minimum(r * shortened, limit) for r in (1 - p, p))
    along = rows / lengths[:, None]
    bias = (p * if_one - (1 - p) * if_zero) @ along / len(rows)
    reaction = p * (1 - p) * (if_one + if_zero)
    fisher = (along * reaction[:, None]).T @ rows / len(rows)
    fisher += _RIDGE * np.eye(rows.shape[1])
    return Round(belief.theta, weights, reach, limit, bias, fisher)


def _attentive(unknown: FloatArray, at_first: FloatArray, answers: float) -> FloatArray:
    """Weights of (1, ψ), of whose coefficients this is unknown; the largest is 1.

    A report tells of each in proportion to the square of its weight.
    """
    share = poured(np.maximum(unknown, _LEAST_DOUBT), answers)
    square = (1 - _EVEN) * share + _EVEN * at_first**2 / (at_first @ at_first)
    return np.asarray(np.sqrt(square / square.max()))


def poured(variances: FloatArray, answers: float) -> FloatArray:
    """The shares of so many answers that leave least unknown of all numbers together.

    Each answer adds 1 to the precision of its number, and the least precise is worth it most, so
    precisions are filled up to a common level.

    Examples:
        >>> poured(np.array([1.0, 0.5, 0.01]), 3.0)
        array([0.66666667, 0.33333333, 0.        ])
    """
    precision = 1 / variances
    above = precision - precision.min()  # a few answers would be lost beside a large number
    steps = np.sort(above)
    levels = (answers + np.cumsum(steps)) / np.arange(1, len(steps) + 1)
    level = levels[np.flatnonzero(levels > steps)[-1]]
    added = np.maximum(level - above, 0)
    return np.asarray(added / added.sum())


def update(
    belief: Belief, asked: Round, gradient: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """θ and its covariance after a round whose mean gradient was seen with this noise."""
    through = asked.fisher @ belief.covariance
    signal = through @ asked.fisher.T
    doubt = _DOUBT * np.trace(signal) / len(signal)
    gain = np.linalg.solve(signal + np.diag(noise + doubt), through).T
    covariance = belief.covariance - gain @ through
    return belief.theta + gain @ (gradient - asked.bias), _FORGET * (covariance + covariance.T) / 2


def _synthetic(belief: Belief) -> FloatArray:
    """Public rows that look like ψ of the discriminant's two classes."""
    width = belief.means.shape[1]
    factor = np.linalg.cholesky(belief.within + 1e-9 * np.eye(width))
    label = (_uniforms() < belief.share).astype(np.int64)
    return np.asarray(belief.means[label] + normal_rows(width) @ factor.T)


@cache
def _uniforms() -> FloatArray:
    return np.random.default_rng(4).random(len(normal_rows(1)))
