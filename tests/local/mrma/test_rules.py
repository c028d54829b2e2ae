"""Members that are not linear: fits, votes, the task, whole studies, and where they are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from dpfda import MRMAClassifier
from dpfda.collector.plans import check_sizes
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.local.mrma.designs import VoteDesign
from dpfda.local.mrma.learners.rule_learners import KernelMachine, RuleLearner, ShallowTree
from dpfda.local.mrma.rules import KernelRule, RuleTask, TreeRule, VoteModel
from dpfda.noise import SimulationSource
from dpfda.privacy.price import compose, exact
from dpfda.protocol import Server, StudyPlan
from dpfda.protocol.task import Task
from dpfda.simulate import simulate

LEARNERS = sorted(RuleLearner.members())
TREE = TreeRule(features=[0], thresholds=[0.0], leaves=[0.2, 0.9])  # type: ignore[arg-type]
OTHER = TreeRule(features=[1], thresholds=[0.0], leaves=[0.9, 0.4])  # type: ignore[arg-type]


def plan(n_people: int, *, epsilon: float = 8.0, classes: int = 2, **design: Any) -> StudyPlan:
    return StudyPlan(
        epsilon=epsilon, n_people=n_people, seed=3, classes=tuple(range(classes)),
        encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        design={"name": "mrma_votes", **design},
    )  # fmt: skip


def crossed(n: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes that no line tells apart: the label is whether |z_0| is small; ten percent wrong."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, (n, 2))
    return z, ((np.abs(z[:, 0]) < 0.5) ^ (rng.random(n) < 0.1)).astype(np.int64)


def test_a_completed_tree_decides_like_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (3, 60, 2))
    labels = np.where(rows[..., 0] * rows[..., 1] + 0.3 * rng.normal(size=(3, 60)) > 0, 1.0, -1.0)
    learner = ShallowTree(depth=4, leaf_size=4)
    probe = rng.uniform(-1, 1, (500, 2))
    for rule, x, y in zip(learner.rules(learner.fit(rows, labels)), rows, labels, strict=True):
        tree = DecisionTreeClassifier(max_depth=4, min_samples_leaf=4, random_state=0)
        chances = tree.fit(x, y > 0).predict_proba(probe)[:, 1]
        sizes = tree.tree_.n_node_samples[tree.apply(probe)]
        np.testing.assert_allclose(rule.chances(probe), (chances * sizes + 1) / (sizes + 2))


def test_a_kernel_machine_solves_its_ridge_problem() -> None:
    rng = np.random.default_rng(1)
    rows, labels = rng.uniform(-1, 1, (1, 30, 2)), np.where(rng.random((1, 30)) < 0.5, 1.0, -1.0)
    fields = KernelMachine(width=0.7, ridge=0.5).fit(rows, labels)
    kernel = np.exp(-((rows[0, :, None] - rows[0]) ** 2).sum(axis=2) / 0.7**2)
    left = labels[0] - labels[0].mean() - kernel @ fields["weights"][0]
    np.testing.assert_allclose(left, 0.5 * fields["weights"][0])  # the gradient is 0


@pytest.mark.parametrize("name", LEARNERS)
def test_reports_far_outside_the_box_are_cut_to_it(name: str) -> None:
    rng = np.random.default_rng(2)
    labels = np.where(rng.random((2, 50)) < 0.5, 1.0, -1.0)
    far = 40 * rng.normal(size=(2, 50, 2)) + 30 * labels[..., None]
    learner = RuleLearner.named(name)()
    inside = rng.uniform(-1, 1, (200, 2))
    for rule in learner.rules(learner.fit(far, labels)):
        assert 0.05 < np.mean(rule.chances(inside) >= 0.5) < 0.95


@pytest.mark.parametrize("name", LEARNERS)
def test_rules_travel(name: str) -> None:
    rng = np.random.default_rng(3)
    learner = RuleLearner.named(name)()
    labels = np.where(rng.random((1, 20)) < 0.5, 1.0, -1.0)
    (rule,) = learner.rules(learner.fit(rng.uniform(-1, 1, (1, 20, 2)), labels))
    again = type(rule).from_dict(json.loads(json.dumps(rule.to_dict())))
    probe = rng.uniform(-1, 1, (50, 2))
    np.testing.assert_array_equal(again.chances(probe), rule.chances(probe))


def test_rules_are_judged_one_by_one_or_as_a_vote() -> None:
    z, y = np.array([[0.5, -0.5], [-0.5, -0.5], [0.5, 0.5]]), np.array([1, 0, 0])
    common: dict[str, Any] = {"people": 3, "dimension": 2, "rules": (TREE, OTHER)}
    each = RuleTask(epsilon=0.7, member=[[0, 1]] * 3, right=[[0, 1], [1, 0]], **common)  # type: ignore[arg-type]
    assert each.exact((z, y), SimulationSource(0)).tolist() == [[1, -1], [1, 1], [-1, -1]]
    assert [part.epsilon for part in each.mechanism.parts] == [0.35, 0.35]
    assert compose([each.event]).epsilon <= exact(0.7)
    weights, first = [0.6, -0.4], [[0]] * 3
    # Votes: .6 - .4, -.6 - .4, .6 + .4; chances: .6 (.8) - .4 (.8), -.36 - .32, .48 + .08.
    for soft, weighing in ((False, weights), (True, weights), (True, [0.1, 0.9])):
        vote = RuleTask(
            epsilon=1.0, weights=weighing, soft=soft, member=first, right=[[0, 1]], **common
        )  # type: ignore[arg-type]
        said = np.array([1, 1, 0]) if weighing[1] > 0 else np.array([1, 0, 1])
        assert (
            vote.exact((z, y), SimulationSource(0))[:, 0].tolist()
            == np.where(said == y, 1, -1).tolist()
        )


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"member": [[2]]}, "member"),
        ({"right": [[0, 1]]}, "right"),
        ({"weights": [0.5]}, "weights"),
        ({"rules": ()}, "rules"),
        ({"dimension": 1}, "rules"),
        ({"weights": [0.5, 2.0]}, "weights"),
    ],
)
def test_malformed_tasks_are_refused(changes: dict[str, Any], name: str) -> None:
    good: dict[str, Any] = {
        "epsilon": 1.0, "people": 1, "dimension": 2, "rules": (TREE, OTHER), "member": [[0]],
        "right": [[0, 1], [0, 1]],
    }  # fmt: skip
    RuleTask(**good)
    with pytest.raises(InvalidParameter, match=name):
        RuleTask(**good | changes)


@pytest.mark.parametrize("leaves", [[0.5, 0.5, 0.5], [0.5] * 512])
def test_trees_are_complete_and_shallow(leaves: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="leaves"):
        TreeRule(features=[0], thresholds=[0.0], leaves=leaves)  # type: ignore[arg-type]


@pytest.mark.parametrize("average", ["votes", "chances"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_study_learns_what_no_line_says(learner: str, average: str) -> None:
    parameters = {"width": 0.7} if learner == "kernel_machine" else {"leaf_size": 10}
    asked = plan(
        6000, epsilon=30.0, learner=learner, learner_parameters=parameters, average=average,
        member_size=200, evaluation_share=0.2, n_classifiers=20,
    )  # fmt: skip
    z, y = crossed(6000, seed=0)
    server = simulate(asked, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    others, truth = crossed(3000, seed=1)
    wrong = np.mean(server.model.decide(others) != truth)
    assert wrong < 0.25  # every line errs on 45 % or more, the best rule on 10 %
    assert server.findings.error is not None
    low, high = server.findings.error.interval(0.999)
    assert low < wrong < high


def test_several_classes_and_several_members_each() -> None:
    asked = plan(
        6000, epsilon=30.0, classes=3, learner_parameters={"leaf_size": 10}, member_size=100,
        n_classifiers=30, classifiers_per_person=2, evaluation_share=0.1,
    )  # fmt: skip
    rng = np.random.default_rng(4)
    z = rng.uniform(-1, 1, (6000, 2))
    y = np.digitize(z[:, 0], [-0.4, 0.4])
    server = simulate(asked, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    assert np.mean(server.model.decide(z) != y) < 0.3  # guessing errs on 65 %
    assert server.findings.candidates.people.sum() == 2 * (6000 - 1000 - 600)
    np.testing.assert_allclose(server.model.chances(z).sum(axis=1), 1)


def test_resumes_between_phases_and_asks_the_same() -> None:
    asked = plan(400, n_classifiers=6, member_size=30, evaluation_share=0.2)
    z, y = crossed(400, seed=5)

    def answered(server: Server, people: int) -> Server:
        source, start = SimulationSource(1), server.issued
        for first in range(0, people, 40):
            task = server.issue(min(40, server.wanted))
            who = slice(first, first + task.people)
            server.receive(task.answer((z[who], y[who]), source).values, start=start)
            start = server.issued
        return server

    server = answered(Server(asked), 67)
    stored = json.loads(json.dumps(server.state()))
    again = Server.resume(asked, stored)
    one, other = (each.run.tasks(0, 5).to_dict() for each in (server, again))
    assert one == other
    assert Task.from_dict(json.loads(json.dumps(one))).digest == Task.from_dict(one).digest


def test_nobody_answers() -> None:
    server = Server(plan(100, n_classifiers=5, evaluation_share=0.1))
    while not server.finished:
        server.close_phase()
    assert np.isfinite(server.model.scores(np.zeros((3, 2)))).all()
    assert not server.findings.judgement.weight.survived


@pytest.mark.parametrize("average", ["votes", "chances"])
def test_the_classifier_saves_evaluates_and_draws(average: str, tmp_path: Any) -> None:
    z, y = crossed(3000, seed=6)
    ranges: dict[str, Any] = {"feature_ranges": [(-1, 1)] * 2, "classes": (0, 1)}
    made = MRMAClassifier(
        30.0, learner="shallow_tree", average=average, member_size=200, random_state=0, **ranges
    )
    errors = made.fit(z, y).evaluate(*crossed(1000, seed=7)).errors
    assert errors["MRMA"] < errors["MR only"] < 0.5
    made.model_.save(tmp_path / "model.json")
    again = VoteModel.from_json((tmp_path / "model.json").read_text(encoding="utf-8"))
    np.testing.assert_array_equal(again.predict(z), made.predict(z))
    np.testing.assert_allclose(made.predict_proba(z).sum(axis=1), 1)
    assert len(made.plot().axes) == 2
    assert "vote model" in str(made.report().html())
    with pytest.raises(InvalidParameter, match="learner must be a linear one"):
        made.slope()


def test_linear_members_are_averaged_by_their_parameters() -> None:
    z, y = crossed(100, seed=8)
    with pytest.raises(InvalidParameter, match="average must be left out with the linear learner"):
        MRMAClassifier(1.0, average="votes", random_state=0).fit(z, y)
    with pytest.raises(InvalidParameter, match="average"):
        VoteDesign(average="parameters")


def test_a_collector_refuses_what_the_page_cannot_check() -> None:
    with pytest.raises(InvalidParameter, match="every participant's device can check"):
        check_sizes(plan(100))
    check_sizes(replace(plan(100), design={"name": "mrma"}))


def test_other_tasks_are_refused() -> None:
    asked = plan(100, n_classifiers=2)
    good: dict[str, Any] = {
        "epsilon": 8.0, "people": 1, "dimension": 2, "rules": (TREE, OTHER), "member": [[1]],
        "right": [[0, 1], [0, 1]],
    }  # fmt: skip
    asked.check(RuleTask(**good))
    for changes in (
        {"epsilon": 4.0}, {"soft": True}, {"member": [[0, 1]]}, {"right": [[0, 2], [0, 1]]},
        {"weights": [1.0, 0.0, 0.0, 1.0], "right": [[0, 1]], "member": [[0]]},
        {"right": [[0, 1, 1], [0, 1, 1]]},
    ):  # fmt: skip
        with pytest.raises(ProtocolError):
            asked.check(RuleTask(**good | changes))


def test_kernel_values() -> None:
    rule = KernelRule(centers=[[0.0, 0.0]], weights=[1.0], intercept=-0.5, width=2.0)  # type: ignore[arg-type]
    found = rule.chances(np.array([[2.0, 0.0]]))
    np.testing.assert_allclose(found, (1 - 0.5 + np.exp(-1)) / 2)
