"""Several classes: members for halves of them, reversal as ever, scores that add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import MRMAClassifier, MultiServerMRMA, OnlineMRMA
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.local.mrma.designs import MRMADesign, public_halves, signs
from dpfda.local.mrma.result import MRMAFindings
from dpfda.local.mrma.study import mrma
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.tasks.questions import MemberTask, example_fields
from dpfda.protocol.tasks.vector import VectorTask
from dpfda.simulate import simulate


def plan(classes: int, n_people: int = 600, epsilon: float = 8.0, **design: Any) -> StudyPlan:
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        classes=tuple(range(classes)),
        design={"name": "mrma", "learner": "logistic", **design},
        seed=3,
    )


def crowd(n: int, classes: int) -> tuple[Any, Any]:
    """Each class in a corner of its own."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, classes, n)
    turn = 2 * np.pi * y / classes
    z = 0.6 * np.column_stack([np.cos(turn), np.sin(turn)]) + rng.normal(0, 0.1, (n, 2))
    return np.clip(z, -1, 1), y


@pytest.mark.parametrize(("classes", "expected"), [(2, 1), (3, 3), (4, 3), (5, 10), (6, 10)])
def test_all_halves_of_a_few_classes(classes: int, expected: int) -> None:
    halves = public_halves(classes, seed=3, most=50)
    sides = signs(halves, classes)
    assert halves.shape == (expected, classes // 2)
    assert len({tuple(row) for row in (sides * sides[:, :1]).tolist()}) == expected
    assert ((sides == 1).sum(axis=1) == classes // 2).all()
    told = sides @ sides.T  # a half and its opposite would say the same
    assert (np.abs(told[~np.eye(expected, dtype=bool)]) < classes).all()


def test_some_halves_of_many_classes() -> None:
    halves = public_halves(9, seed=3, most=50)
    assert halves.shape == (18, 4)
    assert all(len(set(row)) == 4 for row in halves.tolist())
    assert (np.abs(signs(halves, 9).sum(axis=0)) < 12).all(), "each class on both sides"
    assert np.array_equal(public_halves(9, seed=3, most=5), halves[:5])


def test_what_is_reported_and_judged_is_the_half() -> None:
    z, y = np.zeros((4, 2)), np.arange(4)
    report = VectorTask(epsilon=1.0, people=4, dimension=2, positive=[1, 3])  # type: ignore[arg-type]
    assert report.exact((z, y), SimulationSource(0))[:, -1].tolist() == [-1, 1, -1, 1]
    line = {name: np.repeat(value, 4, axis=0) for name, value in _line().items()}
    verdict = MemberTask(
        epsilon=1.0, people=4, **line, member=[[0]] * 4,
        positive=[[[0, 2]], [[0, 2]], [[0, 1]], [[1, 3]]],
    )  # type: ignore[arg-type]  # fmt: skip
    assert verdict.exact((z, y), SimulationSource(0))[:, 0].tolist() == [1, -1, -1, 1]


def _line() -> dict[str, Any]:
    """Always yes."""
    fields = {name: value for name, value in example_fields(1).items() if np.ndim(value)}
    return fields | {"intercept": [[1.0]], "coefficients": [[[0.0, 0.0]]]}


@pytest.mark.parametrize("classes", [3, 4, 5])
def test_a_study_finds_the_classes(classes: int) -> None:
    asked = plan(classes, 3000, n_classifiers=30, member_size=30, evaluation_share=0.2)
    z, y = crowd(3000, classes)
    server = simulate(asked, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(0))
    wrong = np.mean(server.model.decide(z) != y)
    assert wrong < 0.25 < 1 - 1 / classes
    assert server.findings.error is not None
    low, high = server.findings.error.interval(0.999)
    assert low < wrong < high


def test_members_that_are_mostly_wrong_are_reversed() -> None:
    """Half of the members of each half point the wrong way; their scores count with their sign."""
    asked = plan(3, 3000, n_classifiers=6, training_share=0.01)
    z, y = crowd(3000, 3)
    turn = 2 * np.pi * np.repeat(np.arange(3), 2) / 3
    ways = np.column_stack([np.cos(turn), np.sin(turn)]) * np.tile([1.0, -1.0], 3)[:, None]
    design = asked.built_design
    assert isinstance(design, MRMADesign)
    study = mrma(design, asked)
    phase = next(study)
    for half in range(3):
        assert phase.kind == "report"
        made = ways[2 * half : 2 * half + 2]
        phase = study.send({"intercept": np.array([-0.1, 0.1]), "coefficients": made})
    task = phase.tasks(0, phase.people)
    reply = task.answer((z[: task.people], y[: task.people]), SimulationSource(1))
    phase = study.send(phase.count(task, reply.values))
    model, findings = phase.so_far()
    assert isinstance(findings, MRMAFindings)
    assert findings.judged[1].reversed.tolist() == [False, True] * 3
    assert np.mean(model.decide(z) != y) < 0.02
    shown = model.coefficients
    assert np.all(np.einsum("kd,kd->k", shown, ways[::2]) > 0)


def test_the_estimator_takes_several_labels() -> None:
    z, y = crowd(3000, 4)
    names = np.array(["north", "east", "south", "west"])
    found = MRMAClassifier(
        epsilon=8.0, feature_ranges=[(-1, 1)] * 2, classes=tuple(names), random_state=0
    ).fit(z, names[y])
    assert found.score(z, names[y]) > 0.7
    assert list(found.evaluate(z, names[y]).errors) == ["MRMA", "majority class", "non-private"]
    assert found.slope().shape == (4, 2)
    assert found.predict_proba(z[:5]).shape == (5, 4)
    figure = pytest.importorskip("matplotlib.pyplot")
    figure.close(found.plot())


def turned(n: int, classes: int, seed: int) -> tuple[Any, Any]:
    """The same corners, with labels that moved on by one class."""
    z, y = crowd(n, classes)
    chosen = np.random.default_rng(seed).permutation(n)
    return z[chosen], (y[chosen] + 1) % classes


@pytest.mark.parametrize("classes", [3, 4])
def test_rounds_of_several_classes_follow_a_change(classes: int) -> None:
    known = {"feature_ranges": [(-1, 1)] * 2, "learner": "logistic", "classes": range(classes)}
    clf = OnlineMRMA(8.0, **known, n_classifiers=24, new_classifiers=12, random_state=0)
    z, y = crowd(4 * 2000, classes)
    for start in range(0, 3 * 2000, 2000):
        clf.partial_fit(z[start : start + 2000], y[start : start + 2000])
    assert clf.score(z[6000:], y[6000:]) > 0.75
    held = clf._round.to_dict()["carried"]["halves"]
    halves = public_halves(classes, seed=0).tolist()
    # 24 members: each half has as many as the others, whichever were strongest.
    assert [held.count(half) for half in halves] == [24 // len(halves)] * len(halves)
    for seed in range(3):
        clf.partial_fit(*turned(2000, classes, seed))
    assert clf.score(*turned(2000, classes, 9)) > 0.75


def test_servers_of_several_classes_use_and_reverse_each_others_rules() -> None:
    """c names the opposite corner, so its rules for halves are worth as much as the others'."""
    (z, y), classes = crowd(7200, 4), 4
    labels = np.where(np.repeat([False, False, True], 2400), (y + 2) % classes, y)
    where = np.repeat(["a", "b", "c"], 2400)
    known = {"feature_ranges": [(-1, 1)] * 2, "learner": "logistic", "random_state": 1}
    clf = MultiServerMRMA(8.0, **known, n_classifiers=24).fit(z, labels, servers=where)
    for number, server in enumerate("abc"):
        own = where == server
        assert np.mean(clf.predict(z[own], server=server) == labels[own]) > 0.75
        reversed_ = clf.exchanges_[number].judgement.reversed.reshape(3, -1)  # servers, halves
        right = reversed_ == ((server == "c") != (np.arange(3) == 2))[:, None]
        # Corners 1 and 3 change sides under the turn, as do 0 and 2: two of the three halves are
        # about neighbors, which turn into the others; {1, 3} stays itself.
        halves = public_halves(classes, seed=0).tolist()
        assert right[:, [half != [1, 3] for half in halves]].mean() > 0.8


def test_candidates_of_several_classes_name_their_halves() -> None:
    lines = {"intercepts": (0.0,), "coefficients": ((1.0, 0.0),)}
    for halves in (None, ((1, 2),), ((3,),), (), ((1,), (2,))):
        asked = plan(3).to_dict() | {"design": {"name": "exchange", **lines, "halves": halves}}
        with pytest.raises(InvalidParameter, match="halves"):
            _ = StudyPlan.from_dict(asked).asks
    two = plan(2).to_dict() | {"design": {"name": "exchange", **lines, "halves": ((1,),)}}
    with pytest.raises(InvalidParameter, match="halves"):
        _ = StudyPlan.from_dict(two).asks
