"""Regressions of people who hold a curve and a number, from the first person to the last."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import norm

from dpfda.curves import CurveEncoder
from dpfda.documents import read
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.linear import regression_fit
from dpfda.linear.location import Whereabouts
from dpfda.linear.regression_schedule import RegressionSchedule
from dpfda.linear.shapes import public_prior
from dpfda.linear.spread import normal_rows
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Person, Server, StudyPlan
from dpfda.protocol.curve_regression import CurveRegression
from dpfda.protocol.person import encode_people, target_places
from dpfda.protocol.tasks.summary import SummaryTask
from dpfda.recipe import in_words, plan_study
from dpfda.simulate import people_from, simulate

TARGET = (0.0, 100.0)
RANGES = [(-1.0, 1.0)] * 4


def make_plan(n_people: int = 2000, epsilon: float = 4.0, **design: Any) -> StudyPlan:
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=CurveEncoder("identity", feature_ranges=RANGES),
        target_range=TARGET,
        design={"name": "local_regression"} | design,
    )


def crowd(n: int, seed: int = 0, *, signal: float = 1.0) -> tuple[Any, Any]:
    """Rows off the middle, with correlated columns; features explain 80 % of the target."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 0.1, (n, 1))
    z = 0.4 + common + rng.normal(0, [0.06, 0.06, 0.1, 0.1], (n, 4))
    y = 30 + signal * 60 * (z[:, 0] - z[:, 1]) + 2.55 * rng.normal(size=n)
    return z, y


def run(plan: StudyPlan, X: Any, y: Any, seed: int = 0, **options: Any) -> Server:
    return simulate(plan, people_from(plan, X, y), source=SimulationSource(seed), **options)


def relative(model: CurveRegression, X: Any, y: Any) -> float:
    return float(np.mean((model.predict(X) - y) ** 2) / np.var(y))


def test_learns_what_correlations_hide() -> None:
    """A single feature explains a fifth of what both together do."""
    server = run(make_plan(20_000), *crowd(20_000))
    assert relative(server.model, *crowd(5000, 1)) < 0.3
    assert not server.findings.notes


def test_says_when_it_is_no_better_than_the_mean() -> None:
    """Of targets that no feature goes with, nine studies in ten see none, and lose little by it."""
    said = 0
    for seed in range(10):
        server = run(make_plan(1500, 3.0), *crowd(1500, seed, signal=0.0), seed=seed)
        said += any("do not show that any feature goes" in one for one in server.findings.said)
        assert relative(server.model, *crowd(5000, 99, signal=0.0)) < 1.25
    assert said >= 8


@pytest.mark.parametrize("signal", [0.0, 1.0])
def test_an_error_stands_beside_what_the_mean_leaves(signal: float) -> None:
    """The standard deviation of targets is held by its interval, and no verdict is wrong."""
    kinds, held = [], 0
    for seed in range(8):
        plan = make_plan(3000, 3.0, evaluation_share=0.2)
        rows, targets = crowd(3000, seed, signal=signal)
        server = run(plan, rows, targets, seed=seed)
        found = server.findings
        low, high = found.guessing.interval()
        held += low < targets.std() < high
        kinds.append(found.verdict.kind)
        assert Server.resume(plan, server.state()).findings.verdict == found.verdict
    assert held >= 7
    wrong = "signal" if signal == 0 else "guessing"
    assert kinds.count(wrong) <= 1
    assert signal == 0 or "signal" in kinds


@pytest.mark.parametrize("n_people", [40, 90])
def test_stop_store_and_resume_at_any_person(n_people: int) -> None:
    """One reply at a time, stored as JSON and rebuilt after each: the very same model."""
    plan = make_plan(n_people, 9.0, evaluation_share=0.1)
    people = people_from(plan, *crowd(n_people))
    whole = run(plan, *crowd(n_people), seed=5)
    kinds = {phase.kind for phase in whole.findings.phases}
    assert kinds >= {"location", "moment", "gradient", "evaluation"}
    assert ("correlation" in kinds) == (n_people == 90)
    source = SimulationSource(5)
    server, person = Server(plan), 0
    while not server.finished:
        start = server.issued
        task = server.issue(server.wanted)
        reply = task.answer(people(person, person + task.people), source).values
        person += task.people
        for row in range(task.people):
            stored = msgspec.json.decode(msgspec.json.encode(server.state()))
            server = Server.resume(plan, stored)
            server.receive(reply[row : row + 1], start=start + row)
    assert server.model.to_json() == whole.progress.model.to_json()
    assert server.findings.error == whole.findings.error
    assert server.findings.estimates() == whole.findings.estimates()


@pytest.mark.parametrize("absent", [0.3, 1.0])
def test_people_who_never_answer(absent: float) -> None:
    gone = np.random.default_rng(0).random(800) < absent
    server = run(make_plan(800, 6.0), *crowd(800), answers=lambda who: ~gone[who])
    assert server.finished
    found = server.model.predict(crowd(9)[0])
    assert np.all((found >= TARGET[0]) & (found <= TARGET[1]))


@pytest.mark.parametrize(("n_people", "epsilon"), [(1, 0.1), (2, 5.0), (7, 1.0), (300, 0.01)])
def test_very_few_people(n_people: int, epsilon: float) -> None:
    server = run(make_plan(n_people, epsilon, evaluation_share=0.5), *crowd(n_people))
    assert np.all(np.isfinite(server.model.predict(crowd(9)[0])))


def test_one_target_only_and_constant_features() -> None:
    X, y = np.full((2000, 4), 0.25), np.full(2000, 70.0)
    server = run(make_plan(2000, 5.0), X, y)
    assert abs(server.model.predict(X[:1])[0] - 70) < 5


def test_the_estimated_error_covers_the_truth() -> None:
    server = run(make_plan(10_000, 3.0, evaluation_share=0.4), *crowd(10_000))
    X, y = crowd(50_000, 9)
    error = server.findings.error
    assert error is not None
    assert error.people == 4000
    low, high = error.interval(0.9999)
    assert low < float(np.sqrt(np.mean((server.model.predict(X) - y) ** 2))) < high
    assert high - low < 2


def test_people_say_whether_the_prediction_is_near() -> None:
    """Exactly those whose target is within h of it, for the h of each of them."""
    plan = make_plan(3000, 2.0, evaluation_share=0.3)
    X, y = crowd(3000)
    server = Server(plan)
    people, source, person = people_from(plan, X, y), SimulationSource(0), 0
    while server.kind != "evaluation":
        start = server.issued
        task = server.issue(server.wanted)
        reply = task.answer(people(person, person + task.people), source)
        person += task.people
        server.receive(reply.values, start=start)
    task = server.issue(server.wanted)
    records = people(person, person + task.people)
    places = records[0][:, 0]
    off = np.abs(50 + 50 * places - server.model.scores(records[0][:, 1:])[:, 0])
    near = 50 * task.intercept[:, 0]
    assert np.array_equal(task.exact(records, source)[:, None][:, 0] > 0, off <= near)
    assert 0.3 < np.mean(near**2) / near.max() ** 2 < 0.7  # uniform squares


def test_the_target_is_the_first_column_and_keeps_to_its_range() -> None:
    plan = make_plan(3)
    features, labels = encode_people(plan, [[0.5, 0.0, 0.0, 0.0]] * 3, [0, 75, 1e9])
    assert features[:, 0].tolist() == [-1.0, 0.5, 1.0]
    assert features[:, 1].tolist() == [0.5] * 3
    assert labels.tolist() == [0, 0, 0]
    odd = target_places([None, "x", float("nan"), "75", [1], -(10**400), np.inf], TARGET)
    assert odd.tolist() == [0, 0, 0, 0.5, 0, 0, 1]


def test_the_server_is_held_to_its_tasks() -> None:
    """What no phase asks is refused, and costs nothing."""
    plan = make_plan(400)
    ledger = Ledger(plan.epsilon)
    person = Person(plan, curve=[0.1, 0.2, 0.3, 0.4], label=40.0, ledger=ledger)
    good: dict[str, Any] = {
        "epsilon": 4.0, "people": 1, "statistic": "cross", "classes": 1,
        "centers": np.zeros(5), "scales": np.ones(5), "clip": 3.0, "matrix": np.eye(5),
        "offsets": np.zeros((1, 5)), "weights": np.ones(5), "reach": 2.0, "limit": 1.0,
    }  # fmt: skip
    alone = {"weights": (1.0,), "reach": 1e50}
    bad: list[dict[str, Any]] = [
        {"epsilon": 4.5},
        {"clip": 1e6},
        {"unit": "household"},
        {"statistic": "spread", **alone},
        {"statistic": "residual", "weights": np.ones(6), "theta": np.zeros(6)},
        {"centers": np.zeros(3), "scales": np.ones(3), "matrix": np.ones((5, 3))},
        {"matrix": np.ones((6, 5)), "offsets": np.zeros((1, 6)), "weights": np.ones(6)},
    ]  # fmt: skip
    for change in bad:
        with pytest.raises(ProtocolError):
            person.answer(SummaryTask(**(good | change)))
    assert ledger.remaining.epsilon == 4.0
    assert person.answer(SummaryTask(**good)).values.shape == (1, 2)


def test_a_design_and_what_it_predicts_go_together() -> None:
    plan = make_plan(10)
    for change in (
        {"design": {"name": "linear"}},
        {"design": {"name": "questions"}},
        {"target_range": None, "classes": (0, 1)},
    ):
        with pytest.raises(InvalidParameter, match="target_range must be"):
            Server(StudyPlan.from_dict(plan.to_dict() | change))
    with pytest.raises(InvalidParameter, match="classes must be left out with target_range"):
        StudyPlan.from_dict(plan.to_dict() | {"classes": (0, 1)})
    with pytest.raises(InvalidParameter, match="target_range must be"):
        StudyPlan.from_dict(plan.to_dict() | {"target_range": (5, 5)})
    assert StudyPlan.from_dict(plan.to_dict() | {"target_range": (0, 99)}).hash != plan.hash


def test_the_document_of_a_regression_is_read_again() -> None:
    model = Server(make_plan(10)).model
    again = read(model.to_json().encode())
    assert isinstance(again, CurveRegression)
    X = crowd(5)[0]
    assert np.array_equal(again.predict(X), model.predict(X))
    for change in ({"intercept": [1.0, 2.0]}, {"scales": [[1.0]]}, {"target_range": (3.0, 3.0)}):
        with pytest.raises(InvalidParameter):
            CurveRegression.from_dict(model.to_dict() | change)


@pytest.mark.parametrize("columns", [2, 9, 60])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("people", [1, 13, 900, 100_001])
def test_everybody_is_asked_once(columns: int, epsilon: float, people: int) -> None:
    schedule = RegressionSchedule(people=people, epsilon=epsilon, columns=columns, judges=7)
    phases = schedule.phases()
    assert sum(phase.people for phase in phases) == people + 7
    assert all(phase.people > 0 for phase in phases)
    assert phases[-1].kind == "evaluation"


def test_too_few_people_are_refused_unless_forced() -> None:
    facts: dict[str, Any] = {"value_range": (-6, 6), "target_range": (-20, 20)}
    with pytest.raises(InvalidParameter, match=r"n_people must be at least \d+ at this ε") as told:
        plan_study(200, 1.0, **facts)
    enough = int(str(told.value).split("at least ")[1].split()[0])
    plan_study(enough, 1.0, **facts)
    with pytest.raises(InvalidParameter, match="n_people"):
        plan_study(enough - 1, 1.0, **facts)
    assert plan_study(200, 1.0, **facts, force=True).n_people == 200


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"classes": (0, 1)}, "classes must be given, or else target_range"),
        ({"target_range": None}, "classes must be given, or else target_range"),
        ({"class_share": 0.2}, "class_share must be left out with target_range"),
        ({"protects": "labels"}, "protects must be 'both' or 'features'"),
        ({"target_range": None, "classes": (0, 1), "force": True}, "force must be left out"),
    ],
)
def test_facts_that_do_not_go_together(change: dict[str, Any], told: str) -> None:
    facts: dict[str, Any] = {"value_range": (-6, 6), "target_range": (-20, 20)}
    with pytest.raises(InvalidParameter, match=told):
        plan_study(5000, 1.0, **(facts | change))


def test_a_plan_in_words_speaks_of_the_target() -> None:
    plan = plan_study(5000, 1.0, value_range=(-6, 6), target_range=(-20, 20), evaluation_share=0.1)
    rows, _ = in_words(plan)
    assert sum(row["people"] for row in rows) == 5000
    assert not any("label" in row["asked"] for row in rows)


# -- the pieces -----------------------------------------------------------------------------------


def test_a_first_look_is_scaled_back_by_what_the_cut_lets_pass() -> None:
    """On normal rows where the target is one of three features and noise: E[u ψ] comes back.

    Less a tenth, as long vectors bear more of it: a cut without its correction leaves half.
    """
    weights = np.array([1.0, 1.0, 0.7, 0.5])
    limit, part = regression_fit.first_cut(weights)
    rows = np.random.default_rng(3).normal(size=(200_000, 4))
    u = 0.2 * rows[:, 1] + np.sqrt(1 - 0.04) * rows[:, 0]
    vectors = u[:, None] * np.column_stack([np.ones(len(rows)), rows[:, 1:]]) * weights
    lengths = np.linalg.norm(vectors, axis=1)
    seen = (vectors * np.minimum(1, limit / lengths)[:, None]).mean(axis=0) / weights / part
    assert np.allclose(seen, [0, 0.18, 0, 0], atol=0.015)


def test_rounds_end_at_the_least_squares_fit() -> None:
    """Without noise, whatever width ψ has: E[r ψ] = 0 at the true θ, and there the rounds go."""
    rng = np.random.default_rng(0)
    psi = 0.7 * rng.normal(size=(20_000, 3)) + 0.2
    true = np.array([0.3, 0.9, -0.4, 0.1])
    u = true[0] + psi @ true[1:] + 0.4 * rng.normal(size=len(psi))
    noise = np.full(4, 1e-4)
    belief = regression_fit.first_look(np.array([0.2, 0.3, 0.0, 0.0]), 100 * noise, np.ones(3))
    for _ in range(12):
        asked = regression_fit.prepare(belief, noise=1e-4, patience=2.0)
        rows = np.column_stack([np.ones(len(psi)), psi @ asked.turn.T]) * asked.weights
        rows *= np.minimum(1, asked.reach / np.linalg.norm(rows, axis=1))[:, None]
        theta = belief.mean
        vectors = (u - theta[0] - psi @ theta[1:])[:, None] * rows
        vectors *= np.minimum(1, asked.limit / np.linalg.norm(vectors, axis=1))[:, None]
        belief = regression_fit.update(belief, asked, vectors.mean(axis=0) / asked.weights, noise)
    assert np.allclose(belief.mean, true, atol=0.05)


def test_the_reaction_of_a_round_is_the_derivative_of_its_mean_report() -> None:
    """On normal ψ and normal residuals, by a small change of θ."""
    belief = regression_fit.first_look(np.array([0.0, 0.6, 0.0]), np.full(3, 0.01), np.ones(2))
    asked = regression_fit.prepare(belief, noise=1e-3, patience=1.5)
    rows = np.column_stack([np.ones(4000), normal_rows(2)])
    weighted = rows * asked.weights
    weighted *= np.minimum(1, asked.reach / np.linalg.norm(weighted, axis=1))[:, None]
    residual = belief.residual * norm.ppf((np.arange(4000) * 0.6180339887 % 1) * 0.999 + 5e-4)

    def report(change: Any) -> Any:
        vectors = (residual + rows @ change)[:, None] * weighted
        vectors *= np.minimum(1, asked.limit / np.linalg.norm(vectors, axis=1))[:, None]
        return vectors.mean(axis=0) / asked.weights

    for entry, step in enumerate(0.05 * np.eye(3)):
        seen = (report(step) - report(-step)) / 0.1
        assert np.allclose(seen, asked.reaction[:, entry], atol=0.06)


def test_columns_that_stand_alone_keep_what_was_expected_of_them() -> None:
    own = public_prior(curves=True)
    where = Whereabouts.unknown(3, alpha=0.9, public=public_prior(), alone=own[None])
    where.counts[1:, 50:60, 1] = 40.0
    where.pool()
    assert not np.allclose(where.prior, public_prior())
    assert np.allclose(where.posterior()[0], own)
