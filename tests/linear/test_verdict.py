"""A linear study that found nothing says so, and one that found something does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from dpfda.curves import CurveEncoder
from dpfda.linear.labels import ClassPhases
from dpfda.linear.shrinkage import believed
from dpfda.linear.spread import normal_rows, with_one
from dpfda.linear.two_classes import Belief, Rate, Score, moment_cut
from dpfda.noise import SimulationSource
from dpfda.protocol import Server, StudyPlan
from dpfda.simulate import simulate


def held(signal: float, *, classes: int = 2, people: int = 4000, seed: int = 0) -> Server:
    """A study of four columns, of which the first has the class in it."""
    plan = StudyPlan(
        epsilon=1.0,
        n_people=people,
        encoder=CurveEncoder("identity", n_basis=4, rescale="clip", scale=1.0),
        classes=tuple("abc"[:classes]),
        design={"name": "linear"},
        seed=seed,
    )
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, people)
    z = 0.1 * rng.normal(size=(people, 4))
    z[:, 0] += 0.1 * signal * y
    return simulate(plan, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(seed))


@pytest.mark.parametrize("classes", [2, 3])
def test_nothing_is_called_nothing(classes: int) -> None:
    said = [bool(held(0.0, classes=classes, seed=seed).findings.said) for seed in range(6)]
    assert sum(said) >= 5
    for seed in range(3):
        told = "".join(held(3.0, classes=classes, people=8000, seed=seed).findings.said)
        # Of three classes one such study in ten is not sure: a third of its people say it first.
        assert not told if classes == 2 else "is no better" not in told


@pytest.mark.parametrize("classes", [2, 3])
def test_the_evidence_survives_a_restart(classes: int) -> None:
    server = held(2.0, classes=classes)
    progress: Any = server.progress
    again = Server.resume(server.plan, server.state())
    restored: Any = again.progress
    assert isinstance(restored.labels, ClassPhases)
    assert restored.labels.evidence == progress.labels.evidence
    assert again.findings.said == server.findings.said


def test_the_fit_is_a_ratio_of_likelihoods() -> None:
    """One direction, eight sizes of signal: by quadrature over its effect."""
    estimate, noise = 0.5, 0.02
    grid = np.linspace(-4, 4, 40_001)
    reading = -((grid - estimate) ** 2) / (2 * noise)
    sizes = np.geomspace(0.02, 0.8, 8)
    found = [
        logsumexp(reading - grid**2 / (2 * size)) - logsumexp(-(grid**2) / (2 * size))
        for size in sizes
    ]
    ratio = logsumexp(found) - np.log(8) + estimate**2 / (2 * noise)
    told = believed(np.array([[estimate]]), np.array([noise]), np.ones(1)).fit
    assert told == pytest.approx(ratio, abs=1e-4)


def test_a_round_adds_what_it_says_of_a_rule_without_slopes() -> None:
    """What public rows would report, by drawing labels that follow a rule near that one."""
    server = held(1.0, people=12_000)
    progress: Any = server.progress
    labels = progress.labels
    assert labels.refines
    before, asked = labels.score, labels._round()
    gradient, noise = np.linspace(0.05, -0.1, labels.q + 1), np.linspace(0.01, 0.03, labels.q + 1)
    after = before.after(asked, gradient, noise)
    rows = with_one(normal_rows(labels.q))
    lengths = np.linalg.norm(rows * asked.weights, axis=1)
    start = np.r_[np.log(before.share / (1 - before.share)), np.zeros(labels.q)]

    def reported(theta: Any) -> Any:
        share, p = expit(rows @ theta), expit(rows @ asked.theta)
        told = np.zeros_like(rows)
        for label, weight in ((1, share), (0, 1 - share)):
            length = (label - p) * np.minimum(lengths, asked.reach)
            length = np.clip(length, -asked.limit, asked.limit)
            told += rows * (weight * length / lengths)[:, None]
        return told.mean(axis=0)

    steps = 1e-5 * np.eye(labels.q + 1)
    slope = np.stack([(reported(start + h) - reported(start - h)) / 2e-5 for h in steps], axis=1)
    assert after.information - before.information == pytest.approx(
        slope.T @ np.diag(1 / noise) @ slope, rel=1e-4, abs=1e-9
    )
    assert after.told - before.told == pytest.approx(
        slope.T @ ((gradient - reported(start)) / noise), rel=1e-4, abs=1e-9
    )


def test_the_first_look_and_the_rate_begin_the_score() -> None:
    moment, noise = np.array([0.02, 0.1, -0.05]), np.array([0.001, 0.004, 0.002])
    score = Score.first(moment, noise, Rate(0.3, 15.0))
    step = np.linalg.solve(score.information, score.told)
    assert step[1:] == pytest.approx(moment[1:] / 0.21)
    # The share has a variance of 1/(40 + 60), the reading of E(y - p) one of .001.
    assert step[0] == pytest.approx(0.02 / 0.21 * 0.01 / 0.011)
    assert score.balance == pytest.approx(np.tanh((np.log(3 / 7) + step[0]) / 2))
    by_hand = believed(moment[None, 1:] / 0.21**0.5, noise[1:] / 0.21, np.ones(2)).fit
    assert score.fit(np.ones(2)) == pytest.approx(by_hand)


def test_the_evidence_is_that_of_all_replies() -> None:
    server = held(1.0, people=12_000)
    progress: Any = server.progress
    labels = progress.labels
    limit, part = moment_cut(labels.weights, labels.rate.share)
    first = Score.first(*labels._mean_vector(labels.total, labels.people, limit, part), labels.rate)
    assert np.all(np.linalg.eigvalsh(labels.score.information - first.information) > 0)
    assert labels.evidence == pytest.approx(expit(labels.score.fit(labels.importance)), rel=1e-12)


def test_a_linear_rule_leans_to_the_larger_class_as_far_as_nothing_shows() -> None:
    server = held(1.0, people=12_000)
    progress: Any = server.progress
    labels = progress.labels
    nothing = np.zeros_like(labels.score.told)
    labels.score = replace(labels.score, share=0.3, told=nothing)
    (intercept,), slopes, scale = labels.rule()
    theta, evidence = labels.belief.theta, labels.evidence
    assert evidence < 0.5
    x = np.random.default_rng(0).normal(size=(400, labels.q))
    mixture = evidence * expit(theta[0] + x @ theta[1:]) + (1 - evidence) * 0.3
    assert np.all((mixture > 0.5) == (intercept + x @ slopes[0] > 0))
    assert expit(intercept) == pytest.approx(evidence * expit(theta[0]) + (1 - evidence) * 0.3)
    assert slopes[0] == pytest.approx(scale * theta[1:])
    model = server.model
    assert model.variances[0, 0] == pytest.approx(scale**2 * labels.doubt()[0])
    assert server.findings.covariances[0] == pytest.approx(scale**2 * labels.covariances()[0])


def test_a_rule_that_names_one_label_is_called_so() -> None:
    server = held(1.0, people=12_000)
    progress: Any = server.progress
    belief: Belief = progress.labels.belief
    assert not progress.labels.constant_rule
    belief.theta[0] = -3 * np.linalg.norm(belief.theta[1:])
    assert progress.labels.constant_rule
    belief.theta[0] = 2 * np.linalg.norm(belief.theta[1:])
    assert not progress.labels.constant_rule


def test_means_without_doubt_are_certainly_apart() -> None:
    server = held(2.0, classes=3)
    progress: Any = server.progress
    labels = progress.labels
    labels.picture.doubt = np.zeros_like(labels.picture.doubt)
    assert labels.evidence == 1.0
    assert not server.findings.said


def test_nothing_is_said_before_the_end() -> None:
    plan = held(0.0).plan
    assert not Server(plan).findings.said
