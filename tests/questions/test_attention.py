"""Tests of which stumps are asked about next."""

import numpy as np
import pytest

from dpfda import SimulationSource
from dpfda.protocol import Server
from dpfda.questions import attention
from dpfda.recipe import plan_study
from dpfda.simulate import simulate

COLUMNS = 12
BATCHES = 6


def _plan(n_people=4000, epsilon=1.0, columns=COLUMNS, **facts):
    return plan_study(
        n_people, epsilon, classes=(0, 1), feature_ranges=[(-1, 1)] * columns,
        center_known=True, class_share=0.5, **facts,
    )  # fmt: skip


def _people(n_people, columns=COLUMNS, seed=0):
    """Of all columns the fourth says everything."""
    rng = np.random.default_rng(seed)
    z = np.where(rng.random((n_people, columns)) < 0.5, -0.5, 0.5)
    return z, (z[:, 3] > 0).astype(np.int64)


def _in_turn(z, y):
    return lambda start, stop: (z[start:stop], y[start:stop])


def test_no_other_shares_of_answers_leave_less_unknown():
    rng = np.random.default_rng(0)
    variances, answers = rng.exponential(size=7) ** 2 + 0.01, 12.0

    def left(shares):
        return (1 / (1 / variances + answers * shares)).sum()

    best = attention.poured(variances, answers)
    assert best.min() == 0
    assert best.sum() == pytest.approx(1)
    others = [*rng.dirichlet(np.ones(7), 500), *np.eye(7), *rng.dirichlet(1e3 * best + 0.1, 500)]
    assert left(best) <= min(map(left, others)) + 1e-12


def test_where_nothing_is_unknown_answers_are_about_all():
    assert attention.poured(np.full(4, 1e-30), 1.0) == pytest.approx(0.25)
    nobody_else = plan_study(
        300, 1.0, classes=(0, 1), feature_ranges=[(-1, 1)] * 8, class_share=1 - 1e-12
    )
    z, y = _people(300, 8)
    model = simulate(nobody_else, _in_turn(z, y), source=SimulationSource(0)).model
    assert np.isfinite(model.scores(z)).all()


def test_what_is_unknown_lies_between_the_prior_and_the_noise():
    raw = np.array([0.4, -0.1, 0.0])
    nobody_asked = attention.unknown(raw, np.full(3, 1e9), room=0.5)
    assert nobody_asked == pytest.approx(0.5 * np.mean(attention._SIZES), rel=1e-3)
    everybody = attention.unknown(raw, np.full(3, 1e-6), room=1.0)
    assert everybody == pytest.approx(1e-6, rel=1e-2)


def test_unknown_is_the_variance_of_a_number_that_may_be_none():
    """Against sampling from the prior and keeping what would have been answered so."""
    rng = np.random.default_rng(1)
    raw, noise = np.array([0.5, 0.2, 0, 0, 0, 0.1]), np.full(6, 0.05)
    draws = 500_000
    size, share = rng.choice(attention._SIZES, draws), rng.choice(attention._SHARES, draws)
    there = rng.random((6, draws)) < share
    truth = np.where(there, rng.normal(size=(6, draws)) * np.sqrt(size), 0.0)
    weight = np.exp(-0.5 * ((raw[:, None] - truth) ** 2 / noise[:, None]).sum(axis=0))
    mean = truth @ weight / weight.sum()
    variance = truth**2 @ weight / weight.sum() - mean**2
    assert attention.unknown(raw, noise, room=1.0) == pytest.approx(variance, rel=0.1)


def test_answers_turn_to_the_column_that_says_something():
    plan = _plan()
    people = _people(plan.n_people)
    server, asked, start = Server(plan), [], 0
    source = SimulationSource(0)
    while not server.finished:
        task = server.issue(server.wanted)
        rows = slice(start, start + task.people)
        if server.kind == "direction":
            asked.append(np.bincount(task.coordinates.ravel(), minlength=COLUMNS) / task.people)
        server.receive(task.answer((people[0][rows], people[1][rows]), source).values, start=0)
        start += task.people
    assert len(asked) == BATCHES
    assert asked[0] == pytest.approx(1 / COLUMNS, abs=0.04)
    assert asked[-1][3] > 0.3
    others = np.delete(asked[-1], 3)
    assert others.min() > 0  # nothing is given up
    assert np.median(others) < asked[-1][3] / 4
    assert np.argmax(np.sum(asked, axis=0)) == 3


def test_a_study_that_stopped_between_asks_as_if_it_had_not():
    plan = _plan(400)
    z, y = _people(plan.n_people)
    server, source = Server(plan), SimulationSource(0)
    first = server.issue(server.wanted)
    server.receive(first.answer((z[: first.people], y[: first.people]), source).values, start=0)
    assert server.progress.asking.std() > 0
    resumed = Server.resume(plan, server.state())
    assert resumed.issue(20).coordinates.tolist() == server.issue(20).coordinates.tolist()


def test_few_of_many_columns_are_found_by_few_people():
    errors = []
    for seed in range(4):
        plan = _plan(2500, 0.5, columns=30, seed=seed)
        z, y = _people(plan.n_people, 30, seed)
        model = simulate(plan, _in_turn(z, y), source=SimulationSource(seed)).model
        others, truth = _people(2000, 30, 100 + seed)
        errors.append(np.mean(model.decide(others) != truth))
    assert np.mean(errors) < 0.25


@pytest.mark.parametrize("facts", [{"ordered": True}, {"spread_differs": True}])
def test_where_features_have_an_order_or_distances_count_answers_turn_nowhere(facts):
    progress = Server(_plan(400, **facts)).progress
    assert not progress._attentive
    directions = [phase for phase in progress.phases if phase.kind == "direction"]
    assert len(directions) < BATCHES
