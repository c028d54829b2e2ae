"""Batched studies and the methods beside MRMA."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpfda.local.mrma.designs import MRMADesign
from dpfda.local.mrma.learners.linear_learners import Logistic
from dpfda.local.mrma.members import intercept_shrinkage
from dpfda.noise import SimulationSource
from dpfda.protocol import Server
from dpfda_bench import baselines
from dpfda_bench.baselines import People, Setting
from dpfda_bench.decision_rules import CellRule, ConstantRule, LinearRule, MembersRule, grid_cells
from dpfda_bench.reproductions import _p001_batch

DESIGN = MRMADesign(n_classifiers=10, member_size=30, learner="logistic", boundary_spread=0.3)


def setting(
    n: int, *, epsilon: float = 2.0, training: int = 100, protects: str = "both"
) -> Setting:
    """Studies of n people, of whom `training` report."""
    design = replace(DESIGN, training_share=training / n)
    return Setting(design, epsilon=epsilon, learner=Logistic(), protects=protects)


def batch(crowd, studies: int, n: int, *, seed: int) -> People:
    features, numbers = crowd(studies * n, seed=seed)
    labels = np.where(numbers == 1, 1.0, -1.0)
    return People.plain(features.reshape(studies, n, 2), labels.reshape(studies, n))


def test_a_batch_of_studies_does_what_the_protocol_does(crowd, make_plan) -> None:
    """Mean errors of 60 batched studies and of 60 protocol runs agree."""
    n, studies = 600, 60
    test, truth = crowd(2000, seed=99)
    study = setting(n)
    people = batch(crowd, studies, n, seed=1)
    source = SimulationSource(2)
    reports = baselines.noisy_reports(study, people, source)
    who = _p001_batch.chosen(study, (studies, n), source)
    weak = _p001_batch.weak_members(study, *reports, who)
    members = _p001_batch.shrunk_members(study, weak)
    told = _p001_batch.coins(study, (studies, n), source)
    totals, judges = _p001_batch.verdict_totals(study, members, people, told)
    rule = _p001_batch.mrma_rules(study, members, totals, judges)["MRMA"]
    signs = np.where(truth == 1, 1.0, -1.0)
    batched = rule.errors(
        np.broadcast_to(test, (studies, *test.shape)), np.broadcast_to(signs, (studies, 2000))
    )
    single = []
    design = study.design.to_dict()
    for number in range(studies):
        server = Server(make_plan(n, epsilon=2.0, **design))
        features, numbers = crowd(n, seed=1000 + number)
        source, person = SimulationSource(number), 0
        while not server.finished:
            task = server.issue(server.wanted)
            who = slice(person, person + task.people)
            server.receive(task.answer((features[who], numbers[who]), source).values, start=0)
            person += task.people
        single.append(np.mean(server.model.decide(test) != truth))
    error = np.sqrt(np.var(batched) / studies + np.var(single) / studies)
    assert abs(batched.mean() - np.mean(single)) < 4 * error


def test_verdicts_reach_every_member_evenly(crowd) -> None:
    people = batch(crowd, 3, 133, seed=2)
    source = SimulationSource(0)
    members = np.zeros((3, 10)), np.ones((3, 10, 2))

    def totals_of(study: Setting) -> tuple[np.ndarray, np.ndarray]:
        told = _p001_batch.coins(study, (3, 133), source)
        return _p001_batch.verdict_totals(study, members, people, told)

    totals, judges = totals_of(setting(133))
    assert judges.tolist() == [4, 4, 4, 3, 3, 3, 3, 3, 3, 3]
    assert totals.shape == (3, 10)
    assert (np.abs(totals) <= judges).all()
    few = totals_of(setting(133, training=130))
    assert few[1].tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert (few[0][:, 3:] == 0).all()


def test_what_is_public_gets_no_noise(crowd) -> None:
    people = batch(crowd, 2, 50, seed=3)
    for protects, same in (
        ("both", (False, False)),
        ("features", (False, True)),
        ("labels", (True, False)),
    ):
        study = setting(50, training=20, protects=protects, epsilon=0.5)
        features, labels = baselines.noisy_reports(study, people, SimulationSource(1))
        found = np.array_equal(features, people.reported), np.array_equal(labels, people.labels)
        assert found == same


def test_histogram_noise_is_that_of_the_task(crowd) -> None:
    """A sum of n Laplace numbers, drawn as one, has the variance of n reports."""
    people = batch(crowd, 400, 30, seed=4)
    rule = baselines.histogram_rule(people, epsilon=1.0, handicap=3.0, source=SimulationSource(5))
    assert isinstance(rule, CellRule)
    exact = baselines.histogram_rule(people, epsilon=1e12, source=SimulationSource(6))
    assert isinstance(exact, CellRule)
    noise = rule.table - np.rint(exact.table)
    scale = 2 * 3.0 / 1.0
    # 6400 draws: relative error of a variance √(2/6400), a little more for the fourth moment.
    assert noise.var() == pytest.approx(30 * 2 * scale**2, rel=5 * np.sqrt(2.2 / 6400))


def test_rules_count_errors() -> None:
    features = np.array([[[1.0], [-1.0], [2.0], [-2.0]]])
    labels = np.array([[1.0, -1.0, -1.0, 1.0]])
    linear = LinearRule(np.zeros(1), np.ones((1, 1)))
    assert linear.errors(features, labels).tolist() == [0.5]
    assert ConstantRule(np.ones(1)).errors(features, labels).tolist() == [0.5]
    # Three members: right, opposite, always +1.
    members = np.array([[0.0, 0.0, 9.0]]), np.array([[[1.0], [-1.0], [0.0]]])
    clean = np.array([[1.0, -1.0, 1.0, -1.0]])
    assert MembersRule(*members, np.ones((1, 3))).errors(features, clean) == pytest.approx(0.5)
    turned = MembersRule(*members, np.array([[1.0, -1.0, 1.0]]))
    assert turned.errors(features, clean) == pytest.approx(0.5 / 3)
    together = replace(turned, voting=True)
    assert together.errors(features, clean).tolist() == [0.0]
    even = MembersRule(members[0][:, :2], members[1][:, :2], np.ones((1, 2)), voting=True)
    assert even.errors(features, clean).tolist() == [0.5]  # ties are votes for +1
    assert replace(even, ties_wrong=True).errors(features, clean).tolist() == [1.0]


def test_intercept_shrinkage() -> None:
    assert intercept_shrinkage(100.0, size=50, spread=None) == 1.0
    assert intercept_shrinkage(0.0, size=50, spread=0.3) == 1.0
    assert intercept_shrinkage(4.5, size=50, spread=0.3) == pytest.approx(0.5)


def test_cells_cover_the_box() -> None:
    edges = np.array([[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [-1e-12, 0.0]])
    assert grid_cells(edges, splits=4).tolist() == [0, 15, 10, 6]
