"""How far two classes are from balanced, and the intercept that follows (methods 10.5).

r₀ = 2·share - 1 is the mean answer to the constant stump, which is right on everybody of class 1.
Many data sets are balanced by whoever collected them, the others may be anything: the prior of r₀
has two components, and so has all that follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import softmax

from dpfda._validate import FloatArray
from dpfda.protocol.public_randomness import public_uniforms

_BALANCED = 0.75  # how likely it is that somebody balanced the classes
_VARIANCES = (0.01, 0.2)  # of r₀, if so and if not
_MOST = 0.95  # |r₀| of a study that can be made
_SPREAD = 0.35  # of centered and scaled features, relative to uniform ones on [-1, 1]
_INTERCEPT = 0.25  # variance of an intercept, whatever the classes are
_TINY = 1e-6
_MISFIT = (0.01, 0.02)  # variance that squared slopes add, since _SPREAD is a guess: r₀ known, not


@dataclass(frozen=True)
class Belief:
    """A number that is one of two normal ones: weights, means and variances, shape (2,) each.

    Examples:
        >>> sure = Belief(np.array([1.0, 0.0]), np.zeros(2), np.ones(2)).told(1.0, noise=1.0)
        >>> sure.mean, sure.variance
        (0.5, 0.5)
    """

    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    @property
    def mean(self) -> float:
        """Of both components together."""
        return float(self.weights @ self.means)

    @property
    def variance(self) -> float:
        """Of both components together."""
        return float(self.weights @ (self.variances + (self.means - self.mean) ** 2))

    def told(self, value: float, *, noise: float) -> Belief:
        """After an unbiased reading of the number with this variance."""
        total = self.variances + noise
        with np.errstate(divide="ignore"):
            odds = np.log(self.weights) - 0.5 * np.log(total)
        gain = self.variances / total
        return Belief(
            weights=softmax(odds - 0.5 * (value - self.means) ** 2 / total),
            means=self.means + gain * (value - self.means),
            variances=self.variances * (1 - gain),
        )


def balance_of(share: float | None, *, answer: float = 0.0, precision: float = 0.0) -> Belief:
    """What is known of r₀: a public share of class 1, or the constant stump's mean answer.

    Examples:
        >>> balance_of(0.25).mean, round(balance_of(None, answer=-0.5, precision=50.0).mean, 2)
        (-0.5, -0.4)
    """
    if share is not None:
        return Belief(np.array([0.0, 1.0]), np.full(2, 2 * share - 1), np.zeros(2))
    prior = Belief(np.array([_BALANCED, 1 - _BALANCED]), np.zeros(2), np.array(_VARIANCES))
    if precision <= 0:
        return prior
    told = prior.told(answer, noise=1 / precision)
    return replace(told, means=np.clip(told.means, -_MOST, _MOST))


def intercept_of(balance: Belief, slopes: FloatArray, *, doubt: float) -> Belief:
    """The intercept of slopes θ that makes as many people of class 1 as r₀ says.

    Args:
        balance: what is known of r₀.
        slopes: θ, shape (d,).
        doubt: variance of θ·(center - its estimate).
    """
    reach = _SPREAD * slopes
    means = np.array([_solved(r, reach) for r in balance.means])
    reaction = sensitivity(means[1], reach)
    misfit = _MISFIT[int(balance.variances[1] > 0)] * float(slopes @ slopes)
    # If somebody balanced the classes, the intercept is small, however wide the features are.
    spread = np.array([0.0, misfit + balance.variances[1] / reaction**2])
    return Belief(balance.weights, means, _INTERCEPT + doubt + spread)


def cautious(intercept: Belief, slopes: FloatArray, *, evidence: float) -> tuple[float, float]:
    """The same as `mixed` for what is believed of an intercept; r₀ is what it implies.

    Examples:
        >>> sure = Belief(np.array([0.0, 1.0]), np.full(2, -1.0), np.zeros(2))
        >>> cautious(sure, np.array([2.0]), evidence=1.0)
        (-1.0, 1.0)
        >>> [round(x, 2) for x in cautious(sure, np.array([2.0]), evidence=0.5)]
        [-0.99, 0.5]
    """
    scores = _SPREAD * _reference(len(slopes)) @ slopes
    implied = [float(np.mean(np.tanh((mean + scores) / 2))) for mean in intercept.means]
    balance = float(intercept.weights @ implied)
    return mixed(intercept.mean, balance=balance, evidence=evidence)


def mixed(intercept: float, *, balance: float, evidence: float) -> tuple[float, float]:
    """What a rule's intercept becomes, and its slopes are taken times, since they may mean nothing.

    With probability w (the evidence) the score a + θ·x is right, else nothing is known of anybody
    but r₀: P(y = 1 | x) = w σ(a + θ·x) + (1 - w)(1 + r₀)/2. That exceeds ½ exactly where a + θ·x +
    2 artanh(q) > 0, q = r₀ (1 - w)/w, so the rule stays a line, and for balanced classes the same
    line. It is scaled so that its probability in the middle (x = 0) is the mixture's.

    Args:
        intercept: a.
        balance: r₀.
        evidence: w.

    Examples:
        >>> mixed(-1.0, balance=-0.5, evidence=1.0)
        (-1.0, 1.0)
        >>> intercept, scale = mixed(-1.0, balance=-0.5, evidence=0.1)
        >>> round(intercept, 2), scale < 0.1  # the larger class, whatever features say
        (-1.09, True)
    """
    if evidence == 1:
        return intercept, 1.0
    q = float(np.clip(balance * (1 - evidence) / max(evidence, _TINY), -1 + _TINY, 1 - _TINY))
    moved = intercept + 2 * np.arctanh(q)
    even = evidence * np.tanh(intercept / 2) + (1 - evidence) * balance
    middle = 2 * np.arctanh(np.clip(even, -1 + _TINY, 1 - _TINY))
    if abs(moved) < _TINY:  # the middle is where the mixture is ½: by its slope there
        return float(moved), evidence * (1 - q * q)
    return float(middle), float(middle / moved)


def always_the_same(intercept: float, slopes: FloatArray) -> bool:
    """Whether a rule gives people one label, whoever they are, as far as features can reach."""
    scores = intercept + _reference(len(slopes)) @ slopes
    return bool(np.all(scores >= 0) or np.all(scores < 0))


def one_against_the_rest(*, doubt: float) -> Belief:
    """The intercept of one score among several, before anybody helps it."""
    return Belief(np.array([1.0, 0.0]), np.zeros(2), np.full(2, _INTERCEPT + doubt))


def sensitivity(intercept: float, slopes: FloatArray) -> float:
    """κ = E ½ sech²((a + θ·u)/2) over public uniform u: no person's curve is needed."""
    at = np.clip((intercept + _reference(len(slopes)) @ slopes) / 2, -15, 15)
    return float(np.mean(0.5 / np.cosh(at) ** 2))


def _solved(balance: float, slopes: FloatArray) -> float:
    """a with E tanh((a + θ·u)/2) = r₀: it grows with a, so halve the interval."""
    scores = _reference(len(slopes)) @ slopes
    wanted = np.clip(balance, -0.97, 0.97)
    low, high = -30.0, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        if np.mean(np.tanh((middle + scores) / 2)) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@lru_cache(maxsize=64)
def _reference(width: int) -> FloatArray:
    return 2 * public_uniforms(seed=0, phase=0, start=0, people=200, width=width) - 1
