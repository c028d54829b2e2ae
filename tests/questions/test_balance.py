"""Classes that are not balanced: what a study knows of their shares, and what it does with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import LocalCurveClassifier, SimulationSource, plan_study
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.question_response import effective_answers
from dpfda.protocol import Server
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.questions import balance, estimation, sizes
from dpfda.simulate import simulate


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
        plan = plan_study(n, 1.0, feature_ranges=[(-1, 1)] * 2, classes=(0, 1), seed=seed, **facts)
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
    assert errors(0.1, signal=0.0, n=3000, times=10) < 0.02


def test_a_wrong_share_is_believed() -> None:
    """That the fact is used, and which class it is about."""
    assert errors(0.1, signal=0.0, class_share=0.9) > 0.5


def test_the_constant_stump_is_right_on_class_one_whatever_the_features_are() -> None:
    plan = plan_study(2000, 0.5, feature_ranges=[(-1, 1)] * 2, classes=(0, 1), center_known=True)
    server = Server(plan)
    task = server.issue(server.wanted)
    assert isinstance(task, StumpTask)
    constant = task.thresholds[:, 0] < -1
    calm, _ = sizes.constant_shares(effective_answers(2000, 0.5))
    # A binomial share of some 670 people: four standard errors are 5 points.
    assert abs(np.mean(constant) - calm) < 0.05
    z = np.random.default_rng(0).uniform(-1, 1, (task.people, 2))
    z[0] = -1.0
    for label in (0, 1):
        said = task.exact((z, np.full(task.people, label)), SimulationSource(0))
        assert np.all(said[constant] == 2 * label - 1)


def test_unbalanced_answers_make_the_next_people_be_asked_more_about_it() -> None:
    calm, alarmed = sizes.constant_shares(effective_answers(2000, 0.5))
    shares = {}
    for share in (0.5, 0.05):
        z, y = people(2000, share, signal=1.0, seed=0)
        plan = plan_study(
            2000, 0.5, feature_ranges=[(-1, 1)] * 2, classes=(0, 1), center_known=True
        )
        server = Server(plan)
        task = server.issue(server.wanted)
        told = task.exact((z[: task.people], y[: task.people]), SimulationSource(0))
        server.receive(told, start=0)
        following = server.issue(server.wanted)
        assert isinstance(following, StumpTask)
        shares[share] = np.mean(following.thresholds[:, 0] < -1)
    assert calm < alarmed
    assert shares[0.05] > shares[0.5] + 0.1


def test_nobody_is_asked_for_a_share_that_is_known() -> None:
    plan = plan_study(
        2000, 0.5, feature_ranges=[(-1, 1)] * 2, classes=(0, 1), center_known=True, class_share=0.2
    )
    server = Server(plan)
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


def test_slopes_count_as_much_as_there_is_evidence_for_them() -> None:
    """No stump can be right more often than unbalanced classes allow."""
    pairs = np.zeros((3, 3))
    asked = np.full(3, 400.0)
    sums = {"asked": asked, "pair_total": pairs, "pair_asked": pairs, "alpha": 0.5}
    how = sums | {"whiten": False, "ordered": False}
    clear = estimation.direction(total=np.array([80.0, 2, -3]), balance=0.0, **how)
    vague = estimation.direction(total=np.array([12.0, 2, -3]), balance=0.0, **how)
    assert clear.evidence > 0.99
    assert vague.evidence < 0.6
    skew = estimation.direction(total=np.array([12.0, 2, -3]), balance=-0.8, **how)
    # Prior variance times (1 - .8)² = .04: 0.25 → 0.01, against 1/(400 · .25) = 0.01 of noise.
    lead = 0.06 * 0.5 * 4 * skew.evidence / 0.36
    assert skew.slopes[0] == pytest.approx(lead, rel=0.02)


def test_a_study_that_found_nothing_says_so() -> None:
    z, y = people(1500, 0.3, signal=0.0, seed=1)
    nothing = LocalCurveClassifier(
        epsilon=1.0, feature_ranges=(-1, 1), classes=(0, 1), random_state=0
    ).fit(z, y)
    assert "no better than guessing" in str(nothing.result_)
    z, y = people(1500, 0.5, signal=3.0, seed=1)
    something = LocalCurveClassifier(
        epsilon=1.0, feature_ranges=(-1, 1), classes=(0, 1), random_state=0
    ).fit(z, y)
    assert "no better" not in str(something.result_)
    assert "guessing" in str(nothing.evaluate(z, y))


def test_a_rule_is_always_the_same_only_if_no_features_outweigh_its_intercept() -> None:
    """With typical features alone, two in five good studies of unbalanced classes were."""
    assert not balance.always_the_same(-1.5, np.array([4.0, 0.0]))
    assert not balance.always_the_same(1.5, np.array([4.0, 0.0]))
    assert balance.always_the_same(-1.5, np.array([1.0, 0.0]))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, "half", True])
def test_a_share_lies_between_zero_and_one(share: Any) -> None:
    with pytest.raises(InvalidParameter, match="class_share must be strictly between 0 and 1"):
        plan_study(99, 1.0, value_range=(0, 1), classes=(0, 1), class_share=share)


def test_one_share_does_not_describe_three_classes() -> None:
    plan = plan_study(99, 1.0, value_range=(0, 1), classes=(0, 1, 2), class_share=0.2)
    with pytest.raises(InvalidParameter, match="class_share must be None but for two classes"):
        Server(plan)
