"""Classes that are not balanced: what a study knows of their shares, and what it does with it.

Of two classes, question studies are held where spread may differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from question_plan import question_plan
from scipy.special import expit, logit

from dpfda import LocalCurveClassifier, SimulationSource, plan_study
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.question_response import effective_answers
from dpfda.protocol import Server
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.folds import folded
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import public_uniforms
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.questions import balance, estimation, sizes
from dpfda.questions.design import QuestionDesign
from dpfda.questions.progress import QuestionProgress
from dpfda.simulate import simulate


def planned(n_people: int, epsilon: float, **facts: Any) -> StudyPlan:
    """A question study of two classes."""
    plan = question_plan(n_people, epsilon, classes=(0, 1), spread_differs=True, **facts)
    assert plan.design["name"] == "questions"
    return plan


def directions(plan: StudyPlan, z: Any, y: Any) -> Server:
    """Where people begin to be asked about directions; those before told the truth."""
    server = Server(plan)
    while server.kind != "direction":
        tell_the_truth(server, z, y)
    return server


def tell_the_truth(server: Server, z: Any, y: Any) -> None:
    """Of everybody of the present phase."""
    start = server.issued
    task = server.issue(server.wanted)
    assert isinstance(task, StumpTask)
    own = folded(z[: task.people], task.folds)
    told = task.exact((own, y[: task.people]), SimulationSource(0))
    server.receive(told, start=start)


def people(n: int, share: float, *, signal: float, seed: int) -> tuple[Any, Any]:
    """Two columns in [-1, 1]; the first tells the classes apart, if anything does."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(np.int64)
    z = rng.normal(0, 0.3, (n, 2))
    z[:, 0] += signal * 0.3 * np.where(y == 1, 0.5, -0.5)
    return np.clip(z, -1, 1), y


def errors(share: float, *, signal: float, n: int = 300, times: int = 30, **facts: Any) -> float:
    """Mean error of studies at ε = 1, less the larger class's."""
    found = []
    for seed in range(times):
        z, y = people(n, share, signal=signal, seed=seed)
        plan = planned(n, 1.0, feature_ranges=[(-1, 1)] * 2, seed=seed, **facts)
        server = simulate(plan, lambda a, b, z=z, y=y: (z[a:b], y[a:b]),
                          source=SimulationSource(seed))  # fmt: skip
        others, truth = people(2000, share, signal=signal, seed=10_000 + seed)
        found.append(np.mean(server.model.decide(others) != truth))
    return float(np.mean(found)) - min(share, 1 - share)


def test_a_known_share_keeps_a_study_from_doing_worse_than_guessing() -> None:
    """64 effective people, 30 studies: their mean is known to about half a point."""
    assert errors(0.1, signal=0.0, class_share=0.1) < 0.015
    assert errors(0.9, signal=0.0, class_share=0.9) < 0.015
    assert errors(0.3, signal=2.0, class_share=0.3) < -0.02  # and it still learns


def test_an_unknown_share_is_asked_for() -> None:
    """Before, half of everybody's labels were guessed wrong: 40 points above the larger class."""
    assert errors(0.1, signal=0.0) < 0.08
    assert errors(0.1, signal=0.0, n=2000, times=10) < 0.02


def test_a_wrong_share_is_believed() -> None:
    """That the fact is used, and which class it is about."""
    assert errors(0.1, signal=0.0, class_share=0.9) > 0.5


def test_the_constant_stump_is_right_on_class_one_whatever_the_features_are() -> None:
    plan = planned(2000, 0.5, feature_ranges=[(-1, 1)] * 2, center_known=True)
    server = directions(plan, *people(2000, 0.5, signal=1.0, seed=0))
    task = server.issue(server.wanted)
    assert isinstance(task, StumpTask)
    constant = task.thresholds[:, 0] < -1
    calm, _ = sizes.constant_shares(effective_answers(2000, 0.5))
    # A binomial share of some 600 people: four standard errors are 5 points.
    assert abs(np.mean(constant) - calm) < 0.05
    z = np.random.default_rng(0).uniform(-1, 1, (task.people, 2))
    z[0] = -1.0
    for label in (0, 1):
        said = task.exact((folded(z, task.folds), np.full(task.people, label)), SimulationSource(0))
        assert np.all(said[constant] == 2 * label - 1)


def test_unbalanced_answers_make_the_next_people_be_asked_more_about_it() -> None:
    calm, alarmed = sizes.constant_shares(effective_answers(2000, 0.5))
    shares = {}
    for share in (0.5, 0.05):
        z, y = people(2000, share, signal=1.0, seed=0)
        server = directions(
            planned(2000, 0.5, feature_ranges=[(-1, 1)] * 2, center_known=True), z, y
        )
        tell_the_truth(server, z, y)
        following = server.issue(server.wanted)
        assert isinstance(following, StumpTask)
        shares[share] = np.mean(following.thresholds[:, 0] < -1)
    assert calm < alarmed
    assert shares[0.05] > shares[0.5] + 0.1


_WAITING = {
    "curves": ({"value_range": (-1, 1)}, (0.66, 0.55, 0.44), 0.5),
    "table": ({"feature_ranges": [(-1, 1)] * 8}, (0.63, 0.56, 0.49), 0.7),
    "middles": (
        {"feature_ranges": [(-1, 1)] * 8, "center_known": True},
        (0.63, 0.56, 0.49),
        0.7,
    ),
}
"""How likely a signal is for nobody, some and all to be asked late, and how likely the prior has
it."""


@pytest.mark.parametrize("of", _WAITING)
def test_the_last_people_tell_their_label_unless_a_stump_seems_right(of: str) -> None:
    facts, (seen, half, unseen), expected = _WAITING[of]
    late = 2  # of five batches
    progress: Any = Server(planned(280, 1.0, **facts)).progress  # type: ignore[arg-type]
    alpha = progress._alpha(1)
    usual = np.interp(0.25, [0, 1], sizes.constant_shares(effective_answers(280, 1.0)))
    places = [i for i, phase in enumerate(progress.phases) if phase.kind == "direction"]
    left = alpha**2 * sum(progress.phases[place].people for place in places[-late:])
    missing = 3.6 * effective_answers(280, 1.0) ** 0.5 - 15
    assert 0.4 < missing / left < 0.8

    def asked(shown: float, *, place: int, heard: float = 15.0) -> float:
        progress.phase, progress.evidence = place, expit(logit([shown]) + logit(expected))
        return float(progress._label_share(0.25, heard, alpha))

    assert asked(unseen, place=places[-late - 1]) == pytest.approx(missing / left)
    assert asked(half, place=places[-late - 1]) == pytest.approx(
        max(missing / left / 2, usual), rel=0.01
    )
    assert asked(seen, place=places[-late - 1]) == pytest.approx(usual)
    assert asked(unseen, place=places[-late - 2]) == pytest.approx(usual)
    assert asked(unseen, place=places[-late - 1], heard=99.0) == pytest.approx(usual)
    assert asked(unseen, place=places[-late - 1], heard=0.0) == 0.95


def test_where_a_share_is_known_or_found_later_nobody_tells_a_label_late() -> None:
    curves: dict[str, Any] = {"value_range": (-1, 1)}
    for people, facts in (
        (280, curves | {"class_share": 0.3}),
        (352, curves | {"center_known": True}),  # 75 effective people
        (1410, curves),  # 301 effective people
        (1410, {"feature_ranges": [(-1, 1)] * 8}),
    ):
        progress: Any = Server(planned(people, 1.0, **facts)).progress
        progress.phase = len(progress.phases) - 2
        progress.evidence = np.array([0.1])
        usual = progress._label_share(1.0, 0.0, progress._alpha(1))
        assert usual == pytest.approx(progress._constant[1])


def test_who_answers_several_questions_tells_the_label_as_often_as_is_wanted() -> None:
    plan = question_plan(4000, 2.0, value_range=(-1, 1), classes=(0, 1), center_known=True)
    progress: Any = QuestionProgress(QuestionDesign(center_known=True), plan)
    assert progress.k == 2
    found = {}
    for share in (0.1, 0.95):
        progress.constant_share = np.array(share)
        found[share] = np.mean(np.any(progress.tasks(0, 4000).thresholds < -1, axis=1))
    assert found[0.1] > 0.4  # twice as likely as the first stump
    assert 0.9 < found[0.95] < 0.99


def test_slopes_must_show_more_where_the_larger_class_is_known_by_few_labels_alone() -> None:
    for facts, factor in (
        ({"value_range": (-1, 1)}, 0.25),
        ({"feature_ranges": [(-1, 1)] * 2}, 0.5),
    ):
        plan = planned(200, 1.0, center_known=True, **facts)  # type: ignore[arg-type]
        progress: Any = Server(plan).progress
        progress.slopes = np.full((1, progress.d), 1.5)
        progress.intercepts = [
            balance.intercept_of(balance.balance_of(0.3), progress.slopes[0], doubt=0)
        ]
        progress.evidence = np.array([0.8])
        odds = 4 * factor
        expected = balance.cautious(
            progress.intercepts[0], progress.slopes[0], evidence=odds / (1 + odds)
        )
        assert progress.model.intercept == pytest.approx([expected[0]])


def test_nobody_is_asked_for_a_share_that_is_known() -> None:
    plan = planned(2000, 0.5, feature_ranges=[(-1, 1)] * 2, center_known=True, class_share=0.2)
    server = directions(plan, *people(2000, 0.2, signal=1.0, seed=0))
    task = server.issue(server.wanted)
    assert isinstance(task, StumpTask)
    assert np.all(task.thresholds >= -1)


def test_beliefs_are_those_of_bayes() -> None:
    """Two normal components, one reading: by quadrature."""
    grid = np.linspace(-4, 4, 80_001)
    weights, variances, noise, told = np.array([0.7, 0.3]), np.array([0.01, 0.5]), 0.1, -0.8
    means = np.array([0.0, 0.2])
    prior = sum(
        w * np.exp(-((grid - m) ** 2) / (2 * v)) / v**0.5
        for w, m, v in zip(weights, means, variances, strict=True)
    )
    density = prior * np.exp(-((told - grid) ** 2) / (2 * noise))
    density /= density.sum()
    found = balance.Belief(weights, means, variances).told(told, noise=noise)
    mean = float(density @ grid)
    assert found.mean == pytest.approx(mean, abs=1e-6)
    assert found.variance == pytest.approx(float(density @ (grid - mean) ** 2), abs=1e-6)


def test_the_intercept_makes_as_many_people_of_class_one_as_the_share_says() -> None:
    slopes = np.array([2.0, -1.0])
    belief = balance.intercept_of(balance.balance_of(0.2), slopes, doubt=0.1)
    u = np.random.default_rng(0).uniform(-1, 1, (100_000, 2))
    # The spread of features is taken to be 0.35 of uniform; 200 public points are the grid.
    share = np.mean(1 / (1 + np.exp(-(belief.mean + 0.35 * u @ slopes))))
    assert share == pytest.approx(0.2, abs=0.01)
    assert belief.variance == pytest.approx(0.25 + 0.1 + 0.01 * 5.0)


def test_evidence_says_whether_any_stump_is_right() -> None:
    """No stump can be right more often than unbalanced classes allow."""
    pairs = np.zeros((3, 3))
    asked = np.full(3, 400.0)
    sums = {"asked": asked, "pair_total": pairs, "pair_asked": pairs, "alpha": 0.5}
    how = sums | {"whiten": False, "ordered": False}
    clear = estimation.direction(total=np.array([100.0, 2, -3]), balance=0.0, **how)
    vague = estimation.direction(total=np.array([12.0, 2, -3]), balance=0.0, **how)
    assert clear.evidence > 0.99
    assert vague.evidence < 0.4  # less than before any answer
    skew = estimation.direction(total=np.array([12.0, 2, -3]), balance=-0.8, **how)
    # Prior variance times (1 - .8)² = .04: 0.25 → 0.01, against 1/(400 · .25) = 0.01 of noise.
    assert skew.slopes[0] == pytest.approx(0.06 * 0.5 * 4 / 0.36, rel=0.02)
    together = estimation.direction(
        total=np.array([12.0, 2, -3]), balance=-0.8, **how | {"whiten": True}
    )
    assert together.slopes[0] == pytest.approx(together.evidence * skew.slopes[0] / 1.1, rel=0.02)


def test_evidence_is_that_of_bayes() -> None:
    """One stump of four sizes of signal: by quadrature over its correlation."""
    signal = estimation._Signal(0.3, (0.1, 0.4), {0.0: 0.5, 2.0: 0.5})
    grid = np.linspace(-8, 8, 40_001)
    raw, precision = 0.5, 20.0
    reading = np.exp(-precision * (grid - raw) ** 2 / 2)
    found = [
        np.average(reading, weights=np.exp(-(grid**2) / (2 * 0.5 * size))) for size in (0.1, 0.4)
    ]  # room makes both half as large
    odds = 0.3 / 0.7 * np.mean(found) / np.exp(-precision * raw**2 / 2)
    told = estimation._evidence(np.array([raw]), np.array([precision]), signal=signal, room=0.5)
    assert told == pytest.approx(odds / (1 + odds), abs=1e-4)


@pytest.mark.parametrize(("evidence", "mean"), [(0.9, -0.7), (0.6, 0.4), (0.3, -0.2), (0.5, 0.0)])
def test_a_cautious_rule_decides_as_the_mixture_does(evidence: float, mean: float) -> None:
    """Its line is where w σ(s) + (1 - w)(1 + r₀)/2 is ½, and its middle has that probability."""
    slopes = np.array([3.0, -1.0])
    belief = balance.Belief(np.array([0.4, 0.6]), np.array([0.1, mean]), np.full(2, 0.3))
    intercept, scale = balance.cautious(belief, slopes, evidence=evidence)
    u = 2 * public_uniforms(seed=0, phase=0, start=0, people=200, width=2) - 1
    implied = [np.mean(np.tanh((a + 0.35 * u @ slopes) / 2)) for a in belief.means]
    share = (1 + belief.weights @ implied) / 2

    def mixed(score: Any) -> Any:
        return evidence / (1 + np.exp(-score)) + (1 - evidence) * share

    x = np.random.default_rng(0).uniform(-2, 2, (500, 2))
    assert np.all((mixed(belief.mean + x @ slopes) > 0.5) == (intercept + scale * x @ slopes > 0))
    assert 1 / (1 + np.exp(-intercept)) == pytest.approx(mixed(belief.mean), abs=1e-9)


def test_a_rule_in_the_middle_of_balanced_classes_is_as_steep_as_it_is_sure() -> None:
    level = balance.Belief(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2))
    intercept, scale = balance.cautious(level, np.zeros(2), evidence=0.6)
    assert (intercept, scale) == pytest.approx((0.0, 0.6))


def test_a_study_that_found_nothing_says_so() -> None:
    z, y = people(1500, 0.3, signal=0.0, seed=1)
    facts: Any = {"feature_ranges": (-1, 1), "classes": (0, 1), "spread_differs": True}
    nothing = LocalCurveClassifier(epsilon=1.0, **facts, random_state=0).fit(z, y)
    assert "than guessing" in str(nothing.result_)
    assert nothing.server_.findings.verdict.doubted
    z, y = people(1500, 0.5, signal=3.0, seed=1)
    something = LocalCurveClassifier(epsilon=1.0, **facts, random_state=0).fit(z, y)
    assert not something.server_.findings.verdict.doubted
    assert "guessing" in str(nothing.evaluate(z, y))


def test_a_rule_is_always_the_same_only_if_no_features_outweigh_its_intercept() -> None:
    """With typical features alone, two in five good studies of unbalanced classes were."""
    assert not balance.always_the_same(-1.5, np.array([4.0, 0.0]))
    assert not balance.always_the_same(1.5, np.array([4.0, 0.0]))
    assert balance.always_the_same(-1.5, np.array([1.0, 0.0]))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, "half", True])
def test_a_share_lies_between_zero_and_one(share: Any) -> None:
    with pytest.raises(InvalidParameter, match="class_share must be strictly between 0 and 1"):
        question_plan(99, 1.0, value_range=(0, 1), classes=(0, 1), class_share=share)


def test_one_share_does_not_describe_three_classes() -> None:
    plan = plan_study(99, 1.0, value_range=(0, 1), classes=(0, 1, 2), class_share=0.2)
    with pytest.raises(InvalidParameter, match="class_share must be left out with 3 classes"):
        Server(plan)


@pytest.mark.parametrize(("epsilon", "evidence"), [(1.0, 0.3), (5.0, 1.0)])
def test_the_model_is_the_cautious_rule(epsilon: float, evidence: float) -> None:
    """Where people answer several questions, features that tell little alone tell more together."""
    plan = question_plan(200, epsilon, value_range=(-1, 1), classes=(0, 1), class_share=0.3)
    progress = QuestionProgress(QuestionDesign(class_share=0.3), plan)
    progress.slopes = np.full((1, progress.d), 1.5)
    progress.slope_variance = np.full((1, progress.d), 0.2)
    progress.intercepts = [
        balance.intercept_of(balance.balance_of(0.3), progress.slopes[0], doubt=0)
    ]
    progress.evidence = np.array([0.3])
    model, (belief,) = progress.model, progress.intercepts
    intercept, scale = balance.cautious(belief, progress.slopes[0], evidence=evidence)
    assert model.intercept == pytest.approx([intercept])
    assert model.coefficients[0] == pytest.approx(1.5 * scale)
    assert model.variances is not None
    assert model.variances[0] == pytest.approx(
        scale**2 * np.array([belief.variance] + [0.2] * progress.d)
    )
    progress.correlations = [[Estimate(0.1, 0.1, 9)]]
    before = 0.5 if epsilon == 1.0 else 0.7  # of k = 1 and k > 1 questions on ordered features
    for even, words in ((0.32, "is no better"), (0.34, "cannot tell"), (0.88, "")):
        told = float(expit(logit(even) + logit(before)))
        progress.evidence = np.array([told])
        assert words in "".join(progress.findings().said)
    assert not progress.findings().said


def test_a_rule_of_whom_everybody_is_sure_stays_a_number() -> None:
    for side in (-1, 1):
        for evidence in (0.5, 0.999, 1 - 1e-12):
            found = balance.mixed(200.0 * side, balance=float(side), evidence=evidence)
            assert np.all(np.isfinite(found))
            assert side * found[0] > 10


def test_people_who_all_say_the_same_leave_a_rule() -> None:
    """Nearly everybody judges, few are asked about features, and all of them lie."""
    facts: dict[str, Any] = {"value_range": (-1, 1), "evaluation_share": 0.95}
    server = Server(planned(5000, 1.0, **facts))
    while not server.finished:
        task = server.issue(server.wanted)
        told = np.ones((task.people, task.width))
        server.receive(told, start=server.issued - task.people)
    assert np.all(np.isfinite(server.model.intercept))
