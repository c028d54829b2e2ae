"""Classes that differ in spread: distances from the middle are asked about and used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import LocalCurveClassifier, plan_study
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.recipe import in_words
from dpfda.local.study.answers import above, farther
from dpfda.local.study.design import VectorDesign
from dpfda.local.study.vectors import Known
from dpfda.noise import SimulationSource
from dpfda.planning.words import consent
from dpfda.protocol.server import Server
from dpfda.protocol.tasks.questions import StumpTask
from dpfda.simulate import people_from, simulate

T = np.linspace(0, 1, 31)


def curves(n: int, seed: int, *, channels: int = 1) -> tuple[FloatArray, IntArray]:
    """Around the same bump; those of class 1 vary three times as much."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    size = 0.5 / np.maximum(np.arange(6), 1) * (1 + 2 * y)[:, None, None]
    waves = np.cos(np.pi * np.outer(np.arange(6), T))
    X = np.exp(-9 * (T - 0.4) ** 2) + (rng.normal(size=(n, channels, 6)) * size) @ waves
    return np.moveaxis(X, 1, 2) if channels > 1 else X[:, 0], y


def study(n: int, epsilon: float, **facts: Any) -> Server:
    X, y = curves(n, 0)
    known = {"value_range": (-6, 6), "classes": (0, 1), "spread_differs": True} | facts
    plan = plan_study(n, epsilon, **known)
    return simulate(plan, people_from(plan, X, y), source=SimulationSource(0))


@pytest.fixture(scope="module")
def held() -> Server:
    return study(3000, 3.0)


def test_distances_tell_apart_what_means_do_not(held: Server) -> None:
    X, y = curves(3000, 1)
    z = held.plan.encoder.encode(X)
    assert np.mean(held.model.decide(z) != y) < 0.15
    plain = study(3000, 3.0, spread_differs=False)
    assert np.mean(plain.model.decide(plain.plan.encoder.encode(X)) != y) > 0.4
    chances = held.model.chances(z)[:, 1]
    sure = np.abs(chances - 0.5) > 0.4
    assert abs(np.mean(chances[sure] > 0.5) - np.mean(y[sure])) < 0.1
    for j in range(2):  # half of the people are closer to the middle than the distance found
        near = np.mean(
            np.abs(z[:, j] - held.model.folds[j])
            < held.findings.centers[len(held.model.folds) + j].value
        )
        assert 0.3 < near < 0.7


def test_everybody_can_read_that_distances_are_asked_for(held: Server) -> None:
    rows, notes = in_words(held.plan)
    assert rows[0]["phase"] == "answers"
    assert any("distance of each feature" in note for note in notes)
    assert "the distance of such a number from its center" in consent(held.plan)
    plain = plan_study(3000, 3.0, value_range=(-6, 6), classes=(0, 1))
    assert not any("distance of each feature" in note for note in in_words(plain)[1])
    assert "the distance of such a number" not in consent(plain)
    named = held.findings.estimates()
    f = len(held.model.folds)
    assert {
        "center 1",
        f"center distance {f}",
        "difference 1",
        f"difference distance {f}",
    } <= named.keys()
    assert named["difference distance 1"].value > 0.2 > abs(named["difference 1"].value)


def test_several_channels_and_short_and_irregular_curves() -> None:
    X, y = curves(1500, 0, channels=2)
    known: Any = {"classes": (0, 1), "spread_differs": True, "random_state": 0}
    known |= {"value_range": ((-6, 6), (-6, 6))}
    fitted = LocalCurveClassifier(epsilon=4.0, **known).fit(X, y)
    new, truth = curves(1500, 1, channels=2)
    assert fitted.score(new, truth) > 0.8
    known["value_range"] = (-6, 6)
    rng = np.random.default_rng(2)
    (X, y), (new, truth) = curves(1500, 0), curves(1500, 1)
    own = [np.sort(rng.choice(len(T), rng.integers(3, 12), replace=False)) for _ in X]
    pairs = [(T[at], x[at]) for at, x in zip(own, X, strict=True)]
    irregular = LocalCurveClassifier(epsilon=4.0, domain_range=(0, 1), **known).fit(pairs, y)
    assert (
        irregular.score(
            new,
            truth,
        )
        > 0.75
    )
    short = LocalCurveClassifier(epsilon=4.0, **known).fit(X[:, ::10], y)
    assert short.score(new[:, ::10], truth) > 0.75


def test_a_classifier_compares_itself_with_squares_that_saw_every_curve() -> None:
    X, y = curves(1500, 0)
    known: Any = {"value_range": (-6, 6), "spread_differs": True, "random_state": 0}
    fitted = LocalCurveClassifier(epsilon=4.0, **known).fit(X, y)
    result = fitted.evaluate(*curves(1500, 1))
    assert result.errors["non-private"] < 0.08  # a line alone errs every second time
    assert result.errors["private"] < 0.15
    assert any("their squares" in note for note in result.notes)


def test_where_it_makes_no_sense_it_is_refused() -> None:
    facts: Any = {"value_range": (0, 1), "spread_differs": True}
    with pytest.raises(InvalidParameter, match="spread_differs"):
        plan_study(5000, 2.0, target_range=(0, 1), **facts)
    with pytest.raises(InvalidParameter, match="spread_differs"):
        plan_study(5000, 2.0, classes=(0, 1), protects="labels", **facts)


def test_mean_answers_are_those_of_the_working_model() -> None:
    rng, n = np.random.default_rng(0), 400_000
    m, s, d, r, c, t = 0.2, 0.5, 0.3, 0.4, 0.1, 0.6
    for label, place in ((1, 0), (-1, 1)):
        x = m + s * (label * d + np.exp(label * r) * rng.normal(size=n))
        law = [np.array(one) for one in (m, s, d, r)]
        for mean, told in (
            (above(np.array(t), *law)[place], x > t),
            (farther(np.array(t), np.array(c), *law)[place], np.abs(x - c) > t),
        ):
            assert abs(np.mean(np.where(told, 1.0, -1.0)) - mean) < 4 / np.sqrt(n)


def test_distances_are_asked_from_one_middle_a_batch(held: Server) -> None:
    server = Server(held.plan)
    task = server.issue(server.wanted)
    assert isinstance(task, StumpTask)
    assert task.folds.shape == (12,)
    far = task.coordinates >= 12
    assert far.any()
    assert np.all(task.thresholds[far] > 0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables_and_several_classes(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 12_000)
    X = 2 + rng.normal(size=(12_000, 4)) * 4.0 ** y[:, None]
    plan = plan_study(
        6000,
        4.0,
        feature_ranges=[(-40, 60)] * 4,
        classes=tuple(range(n_classes)),
        spread_differs=True,
    )
    assert plan.design["name"] == "vectors"
    model = simulate(plan, people_from(plan, X[:6000], y[:6000]), source=SimulationSource(0)).model
    assert np.mean(model.decide(plan.encoder.encode(X[6000:])) != y[6000:]) < (
        0.1 if n_classes == 2 else 0.3
    )


def test_noise_takes_no_middle_out_of_the_range() -> None:
    """A task whose middles lie outside is refused, after people have spent their ε."""
    plan = plan_study(
        6000, 4.0, feature_ranges=[(-40, 60)] * 4, classes=(0, 1), spread_differs=True
    )
    known = Known(VectorDesign(spread_differs=True), plan)
    location, _, width = known._columns.placed()
    known._mean = 3 * np.array([1, -1, 0, 0]) / width
    np.testing.assert_allclose(known.fit.reported.folds, [1, -1, *location[2:]])
