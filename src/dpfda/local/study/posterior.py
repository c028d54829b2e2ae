"""The posterior of a study of two classes, by importance sampling.

Given the share π and the quantities common to all features, the features are independent. Each
feature has weighted particles (m, log s, d, r) for the hypothesis that it differs between the
classes, and others with d = r = 0 for the hypothesis that it does not. π and the common quantities
lie on small grids, and sums over all of them are matrix products. If few particles of a feature
have most of the weight, new ones are drawn around these and weighted by all answers so far. Every
step is public and deterministic.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, expit, logit, logsumexp, ndtr, ndtri

from dpfda._validate import FloatArray
from dpfda.local.study.answers import Answers, Questions, log_likelihoods
from dpfda.local.study.beliefs import FIRST_LOG_ODDS, Prior, evidence

_PARTICLES = (192, 96)  # numbers for a feature that differs, and for one that does not
_LEAST_SIZE = 1 / 6  # of the particles: with a smaller effective size, new ones are drawn
_CENTERED_ON = 12.0  # least effective number of particles around which new ones are drawn
_ATTEMPTS = 15  # of drawing new particles after a batch; one or two are usually enough
_RETAINED = 5  # every fifth particle remains a draw from the prior
_INFLATION = 1.2  # factor of the variance of new particles
_PROPOSAL = 6.0  # degrees of freedom of their Student law
_SHARES, _REACH = 9, 3.0  # grid values of logit π, and how many standard deviations they span
_LARGEST_LOG = 30.0  # |log s| of a particle, at most
_RESOLUTION = 0.35  # least standard deviation that a grid represents, in grid steps
_LEAST_SHARES = 3.0  # least effective number of grid values of logit π
_MOST_AT_END = 0.02  # largest weight of the first or the last grid value
_LEAST = 1e-300
_NOBODY = np.zeros(0)
_NONE = Answers(
    Questions(np.zeros(0, np.int64), _NOBODY, _NOBODY), _NOBODY, np.zeros((0, 2)), np.zeros((0, 3))
)


class Particles(NamedTuple):
    """Weighted particles of every feature.

    Attributes:
        points: (m, log s, d, r), shape (features, K, 4).
        weights: shape (features, K), each row with sum 1.
    """

    points: FloatArray
    weights: FloatArray

    def mean(self, values: FloatArray) -> FloatArray:
        """Posterior mean of each feature's value."""
        return np.asarray((self.weights * values).sum(axis=1))

    def variance(self, values: FloatArray) -> FloatArray:
        """Posterior variance of each feature's value."""
        return self.mean((values - self.mean(values)[:, None]) ** 2)


class _Component:
    """The particles of all features under one hypothesis: they differ, or they do not.

    Attributes:
        points: shape (features, K, 4).
        ratio: prior over proposal at each particle, given each combination of common quantities,
            divided by its largest value.
        log_peak: logarithm of this largest value, which may itself underflow.
        log_likelihood: log likelihood of all answers, as coefficients of 1, π and π².
    """

    def __init__(self, prior: Prior, *, differs: bool) -> None:
        self._prior, self._differs = prior, differs
        self._normals, self._first, log_ratio = _first_particles(prior, differs)
        self.points = self._first.copy()
        self.log_peak, self.ratio = _peaked(log_ratio)
        self.log_likelihood = np.zeros((*self.points.shape[:2], 3))

    def add(self, answers: Answers) -> None:
        """Add the log likelihood of some answers."""
        feature = answers.questions.feature
        np.add.at(self.log_likelihood, feature, log_likelihoods(answers, self.points[feature]))

    def log_joint(self, shares: FloatArray) -> FloatArray:
        """Log likelihood plus `log_peak` at each share, shape (features, K, shares)."""
        powers = np.stack([np.ones_like(shares), shares, shares**2])
        return np.asarray(self.log_likelihood @ powers + self.log_peak[..., None])

    def redraw(self, feature: int, log_weights: FloatArray, answers: Answers) -> None:
        """Draw new particles of one feature around those with the largest weights.

        The proposal is a mixture: some particles remain draws from the prior, the others are drawn
        from a Student law.
        """
        from scipy.stats import multivariate_t  # slow to import

        prior, size = self._prior, self.points.shape[1]
        dims = (4 if prior.spread_differs else 3) if self._differs else 2
        points, weights = self.points[feature], _flattened(log_weights)
        center = weights @ points[:, :dims]
        off = points[:, :dims] - center
        spread = _INFLATION * (off.T * weights) @ off + 1e-8 * np.eye(dims)
        chances = np.clip(ndtr(self._normals[:, -1]), 1e-6, 1 - 1e-6)
        stretch = np.sqrt(_PROPOSAL / chdtri(_PROPOSAL, chances))
        new = self._normals[:, :dims] * stretch[:, None] @ np.linalg.cholesky(spread).T
        points[:, :dims] = center + new
        points[:, 1] = np.clip(points[:, 1], -_LARGEST_LOG, _LARGEST_LOG)
        retained = size // _RETAINED
        points[:retained] = self._first[feature, :retained]
        near = multivariate_t.logpdf(points[:, :dims], center, spread, _PROPOSAL)
        log_prior = _log_prior(prior, feature, points, differs=self._differs)
        whole = logsumexp(log_prior + np.log(prior.common_odds), axis=1)
        part = retained / size
        proposal = np.logaddexp(near + np.log1p(-part), whole + np.log(part))
        log_ratio = log_prior - proposal[:, None] - np.log(size)
        self.log_peak[feature], self.ratio[feature] = _peaked(log_ratio)
        repeated = np.broadcast_to(points, (len(answers.alpha), size, 4))
        self.log_likelihood[feature] = log_likelihoods(answers, repeated).sum(axis=0)


class Posterior:
    """The posterior given all answers so far.

    Attributes:
        prior: the prior of the study.
        answers: all answers.
        share_weights: posterior probability of each of the `shares`.
        hypotheses: posterior probability of each hypothesis of the prior.
        differs: posterior probability that each feature differs between the classes.
    """

    def __init__(self, prior: Prior) -> None:
        self.prior, self.answers = prior, _NONE
        self._components = _Component(prior, differs=True), _Component(prior, differs=False)
        if prior.class_share is None:
            self._log_odds = FIRST_LOG_ODDS
        else:
            self._log_odds = np.array([logit(prior.class_share)])
        self._weigh()

    def update(self, answers: Answers) -> None:
        """Update the posterior by the answers of a batch."""
        self.answers = self.answers.and_also(answers)
        for component in self._components:
            component.add(answers)
        self._weigh()
        for _ in range(_ATTEMPTS):
            if not (self._redrawn() | self._moved()):
                break
            self._weigh()

    @property
    def shares(self) -> FloatArray:
        """Grid values of π."""
        return np.asarray(expit(self._log_odds))

    @property
    def log_odds(self) -> tuple[float, float]:
        """Posterior mean and standard deviation of logit π."""
        mean = float(self.share_weights @ self._log_odds)
        return mean, float(np.sqrt(self.share_weights @ (self._log_odds - mean) ** 2 + 1e-4))

    @property
    def share(self) -> tuple[float, float]:
        """Posterior mean and variance of π."""
        mean = float(self.share_weights @ self.shares)
        return mean, float(self.share_weights @ (self.shares - mean) ** 2)

    @property
    def particles(self) -> Particles:
        """The particles of both components together."""
        points = np.concatenate([one.points for one in self._components], axis=1)
        weights = np.concatenate(self._weights, axis=1)
        return Particles(points, weights / weights.sum(axis=1, keepdims=True))

    @property
    def evidence(self) -> float:
        """Posterior probability that any feature differs, at even prior odds."""
        return evidence(self.prior.hypothesis_odds[0], self.hypotheses[0])

    def _moved(self) -> bool:
        """Move the grid of logit π if few values have most of the weight, or an end has much."""
        weights = self.share_weights
        enough = 1 / (weights**2).sum() >= _LEAST_SHARES and weights[[0, -1]].max() <= _MOST_AT_END
        if enough or self.prior.class_share is not None:
            return False
        mean, deviation = self.log_odds
        deviation = max(deviation, _RESOLUTION * float(np.diff(self._log_odds).max()))
        self._log_odds = mean + deviation * np.linspace(-_REACH, _REACH, _SHARES)
        return True

    def _redrawn(self) -> bool:
        """Draw new particles for features with few effective ones; whether any were drawn."""
        any_drawn = False
        for component, weights in zip(self._components, self._weights, strict=True):
            total = weights.sum(axis=1)
            size = total**2 / np.maximum((weights**2).sum(axis=1), _LEAST)
            few = (size < _LEAST_SIZE * weights.shape[1]) & (total > 1e-6)
            if not few.any():
                continue
            # These are approximate log weights, which locate new particles even if the weights
            # themselves underflow.
            log_shares = np.log(self.share_weights + _LEAST)
            log_weights = logsumexp(component.log_joint(self.shares)[few] + log_shares, axis=2)
            log_weights += np.log(component.ratio[few] @ self._common_weights + _LEAST)
            for feature, logs in zip(np.flatnonzero(few).tolist(), log_weights, strict=True):
                component.redraw(feature, logs, self.answers.of(feature))
            any_drawn = True
        return any_drawn

    def _weigh(self) -> None:
        """Compute all posterior weights, by sums over hypotheses, shares and common quantities."""
        prior, shares = self.prior, self.shares
        logs = [component.log_joint(shares) for component in self._components]
        top = np.maximum(*(log.max(axis=1) for log in logs))  # (features, shares)
        likelihoods = [np.exp(log - top[:, None]) for log in logs]  # (features, K, shares)
        of_differing, of_equal = (
            np.swapaxes(likelihood, 1, 2) @ component.ratio
            for likelihood, component in zip(likelihoods, self._components, strict=True)
        )  # (features, shares, common)
        included = prior.included[:, :, None, None]
        mixed = included * of_differing + (1 - included) * of_equal + _LEAST
        of_share = np.log(prior.share_odds(self._log_odds) + _LEAST) + top.sum(axis=0)
        log_joint = (
            np.log(mixed).sum(axis=1)
            + np.log(prior.hypothesis_odds)[:, None, None]
            + of_share[:, None]
            + np.log(prior.common_odds)
        )
        joint = np.exp(log_joint - log_joint.max())
        joint /= joint.sum()  # (hypotheses, shares, common)
        self.hypotheses, self.share_weights = joint.sum(axis=(1, 2)), joint.sum(axis=(0, 2))
        self._common_weights = joint.sum(axis=(0, 1))
        each = joint[:, None] / mixed
        sums = (each * included).sum(axis=0), (each * (1 - included)).sum(axis=0)
        self._weights = [
            ((likelihood @ one) * component.ratio).sum(axis=2)
            for likelihood, one, component in zip(likelihoods, sums, self._components, strict=True)
        ]
        self.differs = self._weights[0].sum(axis=1)


def _log_prior(prior: Prior, feature: int, points: FloatArray, *, differs: bool) -> FloatArray:
    """Log density of particles given each combination of common quantities."""
    log_density = prior.log_places(feature, points[:, :2])
    if differs:
        log_density = log_density + prior.log_differences(points[:, 2])[:, None]
    if differs and prior.spread_differs:
        log_density = log_density + prior.log_spreads(points[:, 3])
    return log_density


@lru_cache(maxsize=8)
def _first_particles(prior: Prior, differs: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Public normals, prior draws computed from them, and their log ratio of prior to proposal."""
    from scipy.stats import qmc  # slow to import

    size, columns = (_PARTICLES[0], 5) if differs else (_PARTICLES[1], 4)
    chances = qmc.Sobol(columns, scramble=True, seed=1 + differs).random_base2(10)[:size]
    normals = ndtri(np.clip(chances, 1e-9, 1 - 1e-9))
    points = np.zeros((prior.features, size, 4))
    log_ratios = np.zeros((prior.features, size, len(prior.common_odds)))
    for feature in range(prior.features):
        points[feature, :, :2] = prior.places(feature, normals)
        if differs:
            points[feature, :, 2] = prior.differences(chances[:, 3])
        if differs and prior.spread_differs:
            points[feature, :, 3] = prior.spreads(normals)
        log_prior = _log_prior(prior, feature, points[feature], differs=differs)
        log_ratio = log_prior - logsumexp(log_prior + np.log(prior.common_odds), axis=1)[:, None]
        log_ratios[feature] = log_ratio - logsumexp(log_ratio, axis=0)  # sums to 1 over particles
    return normals, points, log_ratios


def _peaked(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The maximum of each row, and the exponentials of the differences from it."""
    peak = logs.max(axis=-1)
    return peak, np.exp(logs - peak[..., None])


def _flattened(logs: FloatArray) -> FloatArray:
    """A power of weights, given as logarithms, with sum 1 and a sufficient effective size."""
    logs, power = logs - logs.max(), 1.0
    while True:
        flat = np.exp(power * logs)
        flat /= flat.sum()
        if 1 / (flat**2).sum() >= _CENTERED_ON:
            return np.asarray(flat)
        power /= 2
