"""The classifier: the linear rule that is best under the posterior predictive distribution.

A population is simulated from the posterior predictive distribution, feature by feature, and a
logistic regression is fitted to it. If the classes may differ in spread, distances from the centers
are features too. Coefficients are thus shrunk according to their posterior uncertainty, the larger
class is predicted if nothing is known, and probabilities include the uncertainty.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr

from dpfda._validate import FloatArray, IntArray
from dpfda.local.study.answers import above, farther
from dpfda.local.study.posterior import Particles, Posterior
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.study import Result
from dpfda.protocol.task import folded

_TITLE = "how far apart are the classes? (half, in standard deviations)"
_SPREADS = "; of distances, which class is wider? (half the log ratio)"
_NORMAL = 1.96  # half the length of a normal 95 % interval, in standard deviations
_MEDIAN = 0.6745  # median distance of a normal variable from its center, in standard deviations
_DRAWS = 2048  # posterior draws, with four simulated people each
_COMPARED, _NODES = 512, 16  # draws in which the rule is compared with guessing; quadrature nodes
_NEWTON = 8  # steps; the loss is nearly quadratic after the first
_RIDGE = 1.0  # penalty, in numbers of people
_TINY = 1e-300  # avoids division by 0
_REACH = 4.0  # standard deviations beyond which a feature is clipped


def result(posterior: Posterior, plan: StudyPlan, *, people: int) -> Result:
    """The classifier and the findings after the answers of `people` participants."""
    rows, labels, weights = _population(posterior)
    folds = np.zeros(0)
    if posterior.prior.spread_differs:
        particles = posterior.particles
        folds = np.clip(particles.mean(particles.points[..., 0]), -1, 1)
        rows = folded(rows, folds)
    centers = weights @ rows / weights.sum()
    scales = _REACH * np.sqrt(weights @ (rows - centers) ** 2 / weights.sum())
    rule = _logistic(np.clip((rows - centers) / scales, -1, 1), labels, weights)
    model = CurveModel(
        intercept=rule[:1],
        coefficients=rule[None, 1:],
        centers=centers[None],
        scales=scales[None],
        clipped=True,
        folds=folds,
        variances=np.zeros((1, len(rule))),  # the population includes the uncertainty
        **plan.stamp,
    )
    findings = _findings(posterior, plan, scales, people=people)
    if people:
        share, doubt = posterior.share
        findings = replace(
            findings,
            guessing=Estimate(min(share, 1 - share), doubt**0.5, people),
            evidence=posterior.evidence,
            better=_better_than_guessing(posterior, model),
            constant=bool(abs(rule[0]) >= np.abs(rule[1:]).sum()),
            liars=_liars(posterior, share),
        )
    return Result(model, findings)


def _findings(
    posterior: Posterior, plan: StudyPlan, scales: FloatArray, *, people: int
) -> Findings:
    """Posterior differences and centers of the features, with their uncertainty."""
    particles, spread_differs = posterior.particles, posterior.prior.spread_differs
    center, log_width, d, r = np.moveaxis(particles.points, 2, 0)

    def estimates(*columns: FloatArray) -> list[Estimate]:
        pairs = [(particles.mean(values), particles.variance(values) ** 0.5) for values in columns]
        means, deviations = np.concatenate(pairs, axis=1).tolist()
        return [Estimate(*pair, people) for pair in zip(means, deviations, strict=True)]

    half = _half_interval(particles, 2 * d / np.exp(log_width))
    return Findings(
        classes=plan.classes,
        learnt="difference",
        title=_TITLE + _SPREADS * spread_differs,
        features=[estimates(d, r) if spread_differs else estimates(d)],
        centers=estimates(center, *([_MEDIAN * np.exp(log_width)] * spread_differs)),
        folded=len(d) * spread_differs,
        covariances=[np.diag((half * scales[: len(d)] / _NORMAL) ** 2)],
    )


def _half_interval(particles: Particles, values: FloatArray) -> FloatArray:
    """Half the length of central 95 % posterior intervals, by feature.

    If a width is uncertain, slopes have heavy tails, so standard deviations are not meaningful.
    """
    order, last = np.argsort(values, axis=1), values.shape[1] - 1
    rising = np.cumsum(np.take_along_axis(particles.weights, order, axis=1), axis=1)

    def quantile(level: float) -> FloatArray:
        place = np.minimum((rising < level).sum(axis=1), last)[:, None]
        return np.take_along_axis(values, np.take_along_axis(order, place, axis=1), axis=1)[:, 0]

    return np.asarray((quantile(0.975) - quantile(0.025)) / 2)


def _liars(posterior: Posterior, share: float) -> float:
    """The smallest share of coordinated liars that explains the estimated differences of features.

    If a feature does not differ, its labelled answers have the mean (2 π - 1) P, where P is the
    mean of its plain answers. A liar always gives the answer that moves the mean towards the
    observed one; honest answers are true only with probability α. The result is the maximum over
    features.
    """
    particles, answers = posterior.particles, posterior.answers
    center, log_width, d, r = (
        particles.mean(values)[:, None] for values in np.moveaxis(particles.points, 2, 0)
    )
    law = center, np.exp(log_width), d, r
    events = [above(center, *law)]
    if posterior.prior.spread_differs:
        events.append(farther(_MEDIAN * np.exp(log_width), center, *law))
    weights = answers.weights[:, 2]
    feature = answers.questions.feature
    total = np.bincount(feature, weights * answers.alpha, len(d))
    alpha = total / np.maximum(np.bincount(feature, weights, len(d)), _TINY)
    needed = [0.0]
    for ones, others in events:
        observed = alpha * (share * ones - (1 - share) * others)[:, 0]
        honest = alpha * (2 * share - 1) * (share * ones + (1 - share) * others)[:, 0]
        moved = observed - honest
        needed.append(float((np.abs(moved) / (1 - np.sign(moved) * honest)).max()))
    return max(needed)


@lru_cache(maxsize=4)
def _public_numbers(features: int) -> tuple[FloatArray, FloatArray]:
    """Uniform and normal numbers, the same in every study."""
    generator = np.random.default_rng(0)
    return generator.random((_DRAWS, features + 1)), generator.normal(size=(_DRAWS, features))


def _draws(posterior: Posterior) -> tuple[FloatArray, ...]:
    """Posterior draws of π, and of (m, log s, d, r) of every feature."""
    particles = posterior.particles
    chances, _ = _public_numbers(len(particles.points))
    share = posterior.shares[_chosen(posterior.share_weights, chances[:, 0])]
    places = [
        points[_chosen(weights, chances[:, 1 + feature])]
        for feature, (points, weights) in enumerate(zip(*particles, strict=True))
    ]
    return share, *np.moveaxis(np.stack(places, axis=1), 2, 0)


def _population(posterior: Posterior) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features, labels ±1 and weights of simulated people.

    Each posterior draw gives four people: both labels, weighted by their probability, and both
    signs of the normal variables, so that simulation error does not favor a label.
    """
    share, center, log_width, d, r = _draws(posterior)
    _, normals = _public_numbers(d.shape[1])
    kinds = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]  # label and sign
    off = [label * d + sign * np.exp(label * r) * normals for label, sign in kinds]
    rows = np.concatenate([center + np.exp(log_width) * one for one in off])
    labels = np.repeat([label for label, _ in kinds], _DRAWS)
    return rows, labels, np.concatenate([share, share, 1 - share, 1 - share]) / 2


def _better_than_guessing(posterior: Posterior, model: CurveModel) -> float:
    """Posterior probability that the classifier beats the larger class, if any feature differs.

    In every draw, scores are nearly normal, because they are sums over features.
    """
    share, center, log_width, d, r = (values[:_COMPARED] for values in _draws(posterior))
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights, features = weights[:, None, None] / weights.sum(), d.shape[1]
    wrong = []
    for label in (1.0, -1.0):
        off = label * d + np.exp(label * r) * nodes[:, None, None]
        rows = (center + np.exp(log_width) * off).reshape(-1, features)
        if len(model.folds):
            rows = folded(rows, model.folds)
        inside = np.clip((rows - model.centers[0]) / model.scales[0], -1, 1)
        terms = (inside * model.coefficients[0]).reshape(len(rows), -1, features).sum(axis=1)
        terms = terms.reshape(_NODES, -1, features)
        means = (weights * terms).sum(axis=0)
        spread = (weights * (terms - means) ** 2).sum(axis=(0, 2))
        score = model.intercept[0] + means.sum(axis=1)
        wrong.append(ndtr(-label * score / np.sqrt(spread + _TINY)))
    error = share * wrong[0] + (1 - share) * wrong[1]
    differs = (np.abs(d) + np.abs(r)).sum(axis=1) > 0
    better = error < np.minimum(share, 1 - share) - posterior.prior.beliefs.better
    return float(better[differs].mean()) if differs.any() else 0.0


def _chosen(weights: FloatArray, chances: FloatArray) -> IntArray:
    """Random positions with probabilities in proportion to weights, from uniform numbers."""
    rising = np.cumsum(weights)
    places = np.searchsorted(rising, chances * rising[-1])
    return np.asarray(np.minimum(places, len(weights) - 1))


def _logistic(rows: FloatArray, labels: FloatArray, weights: FloatArray) -> FloatArray:
    """Intercept and coefficients of a logistic regression, by Newton's method."""
    rows = np.column_stack([np.ones(len(rows)), rows])
    ridge = _RIDGE * np.var(rows, axis=0)
    rule, ones = np.zeros(rows.shape[1]), (labels + 1) / 2
    for _ in range(_NEWTON):
        chance = expit(rows @ rule)
        curvature = (rows.T * (weights * chance * (1 - chance))) @ rows + np.diag(ridge)
        slope = rows.T @ (weights * (ones - chance)) - ridge * rule
        rule = rule + np.linalg.solve(curvature, slope)
    return np.asarray(rule)
