"""How a target goes with whitened features: a first look at E[u ψ], then a fit in small rounds.

θ are the coefficients of (1, ψ) in u, the standardized target. Reports are vectors r(w, a ψ) of
bounded length, r = u - θ(1, ψ) being the residual at the present θ. Each round sees the mean of
them, which is F times the error of θ plus known noise: a Kalman filter. F comes from public normal
rows, so that nobody's curve is needed for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf, softmax

from dpfda._validate import FloatArray
from dpfda.linear.reports import entry_noise
from dpfda.linear.shrinkage import believed
from dpfda.linear.spread import normal_rows, passed, with_one

RADIUS = 0.8
"""Vectors are cut at this share of their root mean square length."""
CONSTANT = 1.0
"""Weight of the constant beside the strongest direction."""

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_POWERS = (0.0, 0.5, 1.0)
_SIGNAL = 0.5  # expected share of the target's variance, over all directions
_DECAY = 3.0  # how fast it falls with what a direction is favored

_LEAST_EXPLAINED, _MOST_EXPLAINED = 0.01, 0.9
_OFF = 0.1  # variance of the mean of a target that was standardized
WIDTHS: FloatArray = np.geomspace(0.2, 5.0, 13)
"""Guesses of the variance of ψ where signal is, in units of what was thought."""
_WIDTH = 0.7  # standard deviation of its logarithm
_CUT = 0.06  # relative variance of a step, since what a cut lets pass is a guess
_PLACE = 0.1  # variance of what is thought of the mean of ψ
_LEAST_LIKELY = 1e-300
_FOCUS = (0.0, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Belief:
    """A posterior of θ, for each of G guesses of how wide ψ is.

    Attributes:
        theta: means, shape (G, q + 1).
        covariances: of θ, shape (G, q + 1, q + 1).
        weights: how likely each guess is, shape (G,).
    """

    theta: FloatArray
    covariances: FloatArray
    weights: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Of θ."""
        return np.asarray(self.weights @ self.theta)

    @property
    def covariance(self) -> FloatArray:
        """Of θ."""
        apart = self.theta - self.mean
        within = np.einsum("g,gij->ij", self.weights, self.covariances)
        return np.asarray(within + (apart.T * self.weights) @ apart)

    @property
    def seen(self) -> bool:
        """Whether more is known of the slopes than is unknown of them."""
        slopes = self.mean[1:]
        return bool(slopes @ slopes > np.trace(self.covariance[1:, 1:]))

    @property
    def residual(self) -> float:
        """Standard deviation of what the mean leaves unexplained, and of what is unknown of θ.

        A residual that is thought too small is cut too early: then steps are far too short.
        """
        explained = float((self.weights * WIDTHS) @ (self.theta[:, 1:] ** 2).sum(axis=1))
        spread = np.trace(self.covariances[:, 1:, 1:], axis1=1, axis2=2)
        spread = spread + ((self.theta - self.mean)[:, 1:] ** 2).sum(axis=1)
        unknown = float((self.weights * WIDTHS) @ spread) + float(self.covariance[0, 0])
        return float(np.sqrt(max(1 - explained, 1 - _MOST_EXPLAINED) + unknown))


def weights(values: FloatArray, favor: FloatArray, *, people: float, epsilon: float) -> FloatArray:
    """a_1 = 1 ≥ a_j: weights of the first q whitened directions in a report.

    q and the power p of a_j² = s_j^p are those that keep most of the signal s_j that is expected.
    Where features have an order, p is not 0: the first must not be missed.
    """
    expected = values * favor**_DECAY
    signal = _SIGNAL * expected / expected.sum()
    best, chosen = -1.0, np.ones(1)
    for q in sorted({min(len(values), count) for count in (*_COUNTS, len(values))}):
        noise = entry_noise(q + 1, epsilon) / people
        for power in _POWERS[int(np.ptp(favor) > 0) :]:
            square = (signal[:q] / signal[0]) ** power
            own = noise * (square.sum() + CONSTANT**2) / square
            kept = float((signal[:q] ** 2 / (signal[:q] + own)).sum())
            if kept > best * (1 + 1e-9):
                best, chosen = kept, np.sqrt(square)
    return np.asarray(chosen)


def first_cut(weights: FloatArray) -> tuple[float, float]:
    """Where u(1, ψ) weighted is cut, and how much of its mean the cut lets pass."""
    rows = normal_rows(len(weights))
    lengths = np.linalg.norm(with_one(rows[:, 1:]) * weights, axis=1) * np.abs(rows[:, 0])
    limit = RADIUS * float(np.sqrt(np.mean(lengths**2)))
    return limit, passed(lengths, limit)


def first_look(moment: FloatArray, noise: FloatArray, importance: FloatArray) -> Belief:
    """What an estimate of E[u(1, ψ)] says of θ.

    Args:
        moment: shape (q + 1,).
        noise: its variances.
        importance: of each direction.
    """
    kept = believed(
        moment[None, 1:], noise[1:], importance, least=_LEAST_EXPLAINED, most=_MOST_EXPLAINED
    ).kept
    effect = kept * moment[1:]
    share = _OFF / (_OFF + noise[0])
    guesses = WIDTHS[:, None]
    theta = np.column_stack([np.full(len(guesses), share * moment[0]), effect / guesses])
    doubt = np.column_stack(
        [np.full(len(guesses), share * noise[0]), kept * noise[1:] / guesses**2]
    )
    weights = np.exp(-0.5 * (np.log(WIDTHS) / _WIDTH) ** 2)
    covariances = doubt[:, None] * np.eye(doubt.shape[1]) + [_unsure(one) for one in theta]
    return Belief(theta, covariances, weights / weights.sum())


@dataclass(frozen=True)
class Round:
    """What one round asks, and how to read its replies.

    Attributes:
        turn: the directions of ψ that are asked about, one a row: most is unknown of the first.
        weights: of 1 and of these.
        reach: weighted (1, ψ) longer than this is shortened to it.
        limit: so is the weighted residual times it, to this.
        reaction: derivative of the mean report by the true θ.
    """

    turn: FloatArray
    weights: FloatArray
    reach: float
    limit: float
    reaction: FloatArray


def prepare(belief: Belief, *, noise: float, patience: float) -> Round:
    """The next round.

    ψ is shortened by its own length only, which moves no fixed point; nor does cutting a residual
    whose law is symmetric.

    Args:
        belief: about θ.
        noise: variance of an entry of the mean report, in units of its limit.
        patience: how many standard deviations a residual may have before it is cut.
    """
    values, vectors = np.linalg.eigh(belief.covariance[1:, 1:])
    turn = vectors[:, ::-1].T
    unknown = np.r_[belief.covariance[0, 0], values[::-1]]
    spread = belief.residual
    weights = _weights_for(unknown, noise * (RADIUS * spread * patience) ** 2)
    rows = with_one(normal_rows(len(turn)))
    lengths = np.linalg.norm(rows * weights, axis=1)
    reach = RADIUS * float(np.sqrt(np.mean(lengths**2)))
    shortened = np.minimum(lengths, reach)
    limit = reach * spread * patience
    inside = erf(limit / shortened / spread / np.sqrt(2))  # how likely a residual is not cut
    along = rows / lengths[:, None]
    reaction = (along * (shortened * inside)[:, None]).T @ rows / len(rows)
    return Round(turn, weights, reach, limit, reaction)


def _weights_for(unknown: FloatArray, noise: float) -> FloatArray:
    """a_j² = v_j^p with the p that leaves least unknown of θ."""
    ratios = np.maximum(unknown / unknown.max(), 1e-3)
    best, chosen = np.inf, np.ones_like(ratios)
    for power in _FOCUS:
        square = ratios**power
        own = noise * square.sum() / square
        left = float((unknown * own / (unknown + own)).sum())
        if left < best:
            best, chosen = left, np.sqrt(square)
    return np.asarray(chosen)


def update(belief: Belief, asked: Round, mean: FloatArray, noise: FloatArray) -> Belief:
    """θ after a round whose mean report was seen with this noise.

    A guess of how wide ψ is says how much the mean report should have changed.
    """
    turn = np.eye(len(noise))
    turn[1:, 1:] = asked.turn
    theta, covariances, weights = [], [], []
    turned, at = asked.reaction @ turn, belief.mean
    for guess, before, covariance in zip(WIDTHS, belief.theta, belief.covariances, strict=True):
        reaction = np.column_stack([turned[:, 0], guess * turned[:, 1:]])
        through = reaction @ covariance
        total = through @ reaction.T + np.diag(noise)
        surprise = mean - reaction @ (before - at)
        gain = np.linalg.solve(total, through).T
        step = gain @ surprise
        after = covariance - gain @ through
        after = after + _unsure(step)
        theta.append(before + step)
        covariances.append((after + after.T) / 2)
        weights.append(
            -0.5 * (surprise @ np.linalg.solve(total, surprise) + np.linalg.slogdet(total)[1])
        )
    likely = softmax(np.array(weights) + np.log(np.maximum(belief.weights, _LEAST_LIKELY)))
    return Belief(np.array(theta), np.array(covariances), likely)


def _unsure(step: FloatArray) -> FloatArray:
    """What a step of θ leaves unknown because ψ is not where, nor cut, as it was thought."""
    slopes = np.r_[0.0, step[1:]]
    found = _CUT * np.outer(slopes, slopes)
    found[0, 0] = _PLACE * float(slopes @ slopes)
    return np.asarray(found)
