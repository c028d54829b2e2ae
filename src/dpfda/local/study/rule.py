"""The classifier that follows: of all linear rules, the best one for people as they are believed.

People are drawn as they are believed to be, feature by feature, and a logistic regression is fitted
to them; where classes may differ in spread, to distances from the middles as well. So the rule
leans on a feature as far as it is known, the larger class wins where nothing is, and probabilities
allow for what is not known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr

from dpfda._validate import FloatArray, IntArray
from dpfda.local.study.answers import above, away
from dpfda.local.study.posterior import Cloud, Posterior
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.study import Result
from dpfda.protocol.task import folded

_TITLE = "how far apart are the classes? (half, in standard deviations)"
_NORMAL = 1.96  # half such an interval of a normal law, in deviations
_HALF = 0.6745  # so many deviations from the middle is half of a normal law
_DRAWN = 2048  # draws, of four people each
_WORLDS, _NODES = 512, 16  # draws in which the rule is judged, and points of a normal law there
_NEWTON = 8  # steps; the loss is nearly quadratic after the first
_RIDGE = 1.0  # people's worth of doubt in each coefficient
_TINY = 1e-300  # instead of no weight at all
_REACH = 4.0  # standard deviations from where on a feature says nothing more


def result(posterior: Posterior, plan: StudyPlan, *, heard: int) -> Result:
    """Classifier and findings after so many people answered."""
    drawn, labels, weights = _people(posterior)
    folds = np.zeros(0)
    if posterior.prior.spread_differs:
        cloud = posterior.cloud
        folds = np.clip(cloud.mean(cloud.points[..., 0]), -1, 1)
        drawn = folded(drawn, folds)
    centers = weights @ drawn / weights.sum()
    scales = _REACH * np.sqrt(weights @ (drawn - centers) ** 2 / weights.sum())
    inside = np.clip((drawn - centers) / scales, -1, 1)
    rule = _logistic(inside, labels, weights)
    model = CurveModel(
        intercept=rule[:1],
        coefficients=rule[None, 1:],
        centers=centers[None],
        scales=scales[None],
        clipped=True,
        folds=folds,
        variances=np.zeros((1, len(rule))),  # probabilities allow for them already
        **plan.stamp,
    )
    findings = _findings(posterior, plan, scales, heard=heard, rule=rule)
    if heard:
        findings = replace(findings, better=_beats_guessing(posterior, model))
    return Result(model, findings)


def _findings(
    posterior: Posterior, plan: StudyPlan, scales: FloatArray, *, heard: int, rule: FloatArray
) -> Findings:
    """Differences and middles with what is not known of them; how frequent labels are."""
    cloud = posterior.cloud
    middle, log_width, d, r = np.moveaxis(cloud.points, 2, 0)
    slopes = 2 * d / np.exp(log_width)
    share, doubt = posterior.share
    learnt, lie, title = [d], [middle], _TITLE
    if posterior.prior.spread_differs:
        learnt, lie = [d, r], [middle, _HALF * np.exp(log_width)]
        title += "; of distances, which class is wider? (half the log ratio)"
    return Findings(
        classes=plan.classes,
        learnt="difference",
        title=title,
        features=[[one for values in learnt for one in _estimates(cloud, values, heard)]],
        centers=[one for values in lie for one in _estimates(cloud, values, heard)],
        folded=len(d) if len(learnt) > 1 else 0,
        guessing=Estimate(min(share, 1 - share), doubt**0.5, heard) if heard else None,
        covariances=[np.diag((_half(cloud, slopes) * scales[: len(d)] / _NORMAL) ** 2)],
        evidence=posterior.evidence if heard else None,
        constant=bool(heard and abs(rule[0]) >= np.abs(rule[1:]).sum()),
        liars=_liars(posterior, share) if heard else None,
    )


def _liars(posterior: Posterior, share: float) -> float:
    """The smallest share of people who, lying in agreement, could make features look as they do.

    Where a feature says nothing, answers about it with the label have the mean (2 π - 1) P of those
    without. A liar's answer is always the one that moves it towards what was seen; honest answers
    are true with probability α only. The feature that takes most liars decides.
    """
    cloud, answers = posterior.cloud, posterior.answers
    middle, log_width, d, r = (
        cloud.mean(values)[:, None] for values in np.moveaxis(cloud.points, 2, 0)
    )
    law = middle, np.exp(log_width), d, r
    asked = [above(middle, *law)]
    if posterior.prior.spread_differs:
        asked.append(away(_HALF * np.exp(log_width), middle, *law))
    weights = answers.weights[:, 2]
    total = np.bincount(answers.feature, weights * answers.alpha, len(d))
    truth = total / np.maximum(np.bincount(answers.feature, weights, len(d)), _TINY)
    needed = [0.0]
    for ones, others in asked:
        seen = truth * (share * ones - (1 - share) * others)[:, 0]
        without = truth * (2 * share - 1) * (share * ones + (1 - share) * others)[:, 0]
        moved = seen - without
        needed.append(float((np.abs(moved) / (1 - np.sign(moved) * without)).max()))
    return max(needed)


def _half(cloud: Cloud, values: FloatArray) -> FloatArray:
    """Half the length of intervals that hold 95 % of the weight, by feature.

    Widths that are hardly known make slopes of heavy tails: their deviation would say nothing.
    """
    order = np.argsort(values, axis=1)
    rising = np.cumsum(np.take_along_axis(cloud.weights, order, axis=1), axis=1)
    last = values.shape[1] - 1
    ends = [np.minimum((rising < level).sum(axis=1), last)[:, None] for level in (0.025, 0.975)]
    low, high = (
        np.take_along_axis(values, np.take_along_axis(order, end, axis=1), axis=1) for end in ends
    )
    return np.asarray((high - low)[:, 0] / 2)


def _estimates(cloud: Cloud, values: FloatArray, heard: int) -> list[Estimate]:
    return [
        Estimate(float(mean), float(variance**0.5), heard)
        for mean, variance in zip(cloud.mean(values), cloud.variance(values), strict=True)
    ]


@lru_cache(maxsize=4)
def _public(features: int) -> tuple[FloatArray, FloatArray]:
    """The same random numbers for every study: nothing about anybody."""
    generator = np.random.default_rng(0)
    return generator.random((_DRAWN, features + 1)), generator.normal(size=(_DRAWN, features))


def _people(posterior: Posterior) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features, labels ±1 and weights of people as the posterior has them.

    Each draw stands for four: with both labels, as likely as they are, and with both signs of what
    is normal, so that drawing itself says nothing of the labels.
    """
    share, middle, log_width, d, r = _worlds(posterior)
    _, normals = _public(d.shape[1])
    drawn, labels, weights = [], [], []
    for label, chance in ((1.0, share), (-1.0, 1 - share)):
        for sign in (1.0, -1.0):
            away = label * d + sign * np.exp(label * r) * normals
            drawn.append(middle + np.exp(log_width) * away)
            labels.append(np.full(_DRAWN, label))
            weights.append(chance / 2)
    return np.concatenate(drawn), np.concatenate(labels), np.concatenate(weights)


def _worlds(posterior: Posterior) -> tuple[FloatArray, ...]:
    """Draws of π, and of (m, log s, d, r) of every feature."""
    cloud = posterior.cloud
    chances, _ = _public(len(cloud.points))
    share = posterior.shares[_chosen(posterior.share_weights, chances[:, 0])]
    places = [
        points[_chosen(weights, chances[:, 1 + feature])]
        for feature, (points, weights) in enumerate(zip(*cloud, strict=True))
    ]
    return share, *np.moveaxis(np.stack(places, axis=1), 2, 0)


def _beats_guessing(posterior: Posterior, model: CurveModel) -> float:
    """How likely the classifier is better than the larger class, if any feature says something.

    In every draw of what is believed, scores are normal to all purposes: sums over features.
    """
    share, middle, log_width, d, r = (values[:_WORLDS] for values in _worlds(posterior))
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights, features = weights[:, None, None] / weights.sum(), d.shape[1]
    wrong = []
    for label in (1.0, -1.0):
        away = label * d + np.exp(label * r) * nodes[:, None, None]
        rows = (middle + np.exp(log_width) * away).reshape(-1, features)
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
    some = (np.abs(d) + np.abs(r)).sum(axis=1) > 0
    better = error < np.minimum(share, 1 - share) - posterior.prior.beliefs.better
    return float(better[some].mean()) if some.any() else 0.0


def _chosen(weights: FloatArray, chances: FloatArray) -> IntArray:
    """Places of a weighted list, from uniform numbers."""
    rising = np.cumsum(weights)
    places = np.searchsorted(rising, chances * rising[-1])
    return np.asarray(np.minimum(places, len(weights) - 1))


def _logistic(inside: FloatArray, labels: FloatArray, weights: FloatArray) -> FloatArray:
    """Intercept and coefficients of a logistic regression, by Newton's method."""
    rows = np.column_stack([np.ones(len(inside)), inside])
    ridge = _RIDGE * np.var(rows, axis=0)
    rule, ones = np.zeros(rows.shape[1]), (labels + 1) / 2
    for _ in range(_NEWTON):
        chance = expit(rows @ rule)
        curvature = (rows.T * (weights * chance * (1 - chance))) @ rows + np.diag(ridge)
        slope = rows.T @ (weights * (ones - chance)) - ridge * rule
        rule = rule + np.linalg.solve(curvature, slope)
    return np.asarray(rule)
