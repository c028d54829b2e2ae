"""Several classes that differ in spread: distances from the middle are found and asked about."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import multivariate_normal

from dpfda import plan_study
from dpfda._validate import FloatArray
from dpfda.local.study.design import VectorDesign
from dpfda.local.study.vectors import Known
from dpfda.noise import SimulationSource
from dpfda.questions import estimation
from dpfda.questions.widths import _GRID, Widths
from dpfda.simulate import people_from, simulate

SCALES = np.array([0.4, 0.2, 0.1])


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
    location, _, width = known._columns.found()
    known._mean = 3 * np.array([1, -1, 0, 0]) / width
    assert known.slopes is not None
    assert_allclose(known.seen.folds, [1, -1, *location[2:]])


# -- how far people are from the middle ----------------------------------------------------------


def answered(widths: Widths, true: FloatArray, people: int, *, alpha: float) -> Widths:
    """Normal features whose median distances are `true`, everybody asked about all of them."""
    rng = np.random.default_rng(0)
    features = np.tile(np.arange(len(true)), (people, 1))
    asked = widths.thresholds(SCALES, features, rng.random(features.shape))
    distances = np.abs(rng.normal(size=features.shape)) * true / 0.6745
    reply = np.where(distances > asked, 1.0, -1.0)
    reply = np.where(rng.random(reply.shape) < alpha, reply, rng.choice([-1.0, 1.0], reply.shape))
    widths.counts += widths.counted(features, asked, reply)
    return widths


def test_median_distances_are_found() -> None:
    true = np.array([0.02, 0.01, 0.2])
    widths = Widths(3, alpha=0.6, alike=True)
    for _ in range(3):
        widths = answered(widths, true, 2000, alpha=0.6)
    found, unsure = widths.found(SCALES)
    assert_allclose(found, true, rtol=0.12)
    assert np.all(unsure < 0.1)
    assert np.all(widths.posterior(SCALES).sum(axis=1).round(9) == 1)


def test_a_feature_nobody_was_asked_about_follows_the_others() -> None:
    widths = answered(Widths(3, alpha=0.6, alike=True), 0.1 * SCALES, 1500, alpha=0.6)
    widths.counts[2] = 0
    before = Widths(3, alpha=0.6, alike=True).found(SCALES)[0]
    assert_allclose(before, 0.42 * np.exp(-0.3) * SCALES, rtol=0.05)
    found, unsure = widths.found(SCALES)
    assert_allclose(found[2] / SCALES[2], found[:2].mean() / SCALES[:2].mean(), rtol=0.25)
    assert unsure[2] > 2.5 * unsure[:2].max()


def test_the_posterior_of_distances_is_that_of_bayes() -> None:
    widths = Widths(1, alpha=0.5, alike=False)
    widths.counts[0, 60] = 3, 9
    above = 0.5 + 0.5 * 0.98 * (expit((_GRID - _GRID[60]) / 0.6) - 0.5)
    prior = np.exp(-0.5 * (_GRID - np.log(0.42 * 0.4) + 0.3) ** 2 / (0.5**2 + 0.7**2))
    wanted = prior * above**9 * (1 - above) ** 3
    assert_allclose(widths.posterior(SCALES[:1])[0], wanted / wanted.sum(), atol=2e-4)


def test_answers_are_counted_where_they_were_asked() -> None:
    counts = Widths(2, alpha=0.5, alike=True).counted(
        np.array([[0, 1], [1, 0]]),
        np.exp(_GRID[[[3, 7], [7, 3]]]),
        np.array([[1.0, -1.0], [1.0, -1.0]]),
    )
    assert counts[0, 3].tolist() == [1, 1]
    assert counts[1, 7].tolist() == [1, 1]
    assert counts.sum() == 4


# -- two runs of features ------------------------------------------------------------------------


def test_runs_of_features_have_an_order_each() -> None:
    raw, precision = np.array([0.05, 0.02, 0.5, 0.02]), np.full(4, 100.0)
    together = estimation._shrinkage(raw, precision, ordered=True, room=1.0)
    apart = estimation._shrinkage(raw, precision, ordered=True, room=1.0, runs=2)
    assert_allclose(apart[:2], 0)
    assert np.all(together[:2] > 0.5), (
        "a late feature carries earlier ones where they have one order"
    )
    assert apart[2] == together[2] > 0.9


def test_correlations_of_distances_learn_from_each_other() -> None:
    raw, precision = np.array([0.3, 0.3, 0.4, 0.0]), np.full(4, 12.0)
    found, better = estimation._alike(raw, precision, room=1.0)
    signal = 0.08 + 0.01 * np.eye(4)
    assert_allclose(found, signal @ np.linalg.inv(signal + np.eye(4) / 12) @ raw)
    assert better > 0
    assert estimation._alike(0 * raw, precision, room=1.0)[1] < 0
    few = np.r_[np.zeros(4), raw]
    told = estimation._wider(few, np.full(8, 12.0), np.zeros(8), room=1.0)
    assert np.all((told > 0.1) & (told < found)), "mostly alike, as far as the answers bear it out"
    mixed = np.r_[np.zeros(4), 0.9, -0.9, 0.9, -0.9]
    own = np.r_[np.zeros(4), 0.8, -0.8, 0.8, -0.8]
    assert_allclose(estimation._wider(mixed, np.full(8, 12.0), own, room=1.0), own[4:], atol=0.1)


def test_evidence_of_runs_is_that_of_any_or_all() -> None:
    signal = estimation._Signal(0.5, (0.2,), {1.0: 1.0})
    raw, precision = np.array([0.1, 0.0, 0.4, 0.2]), np.full(4, 50.0)

    def odds(variances: list[float]) -> float:
        total = np.array(variances) + 1 / precision
        fit = np.exp(-0.5 * raw**2 / total) / np.sqrt(total)
        none = np.exp(-0.5 * raw**2 * precision) * np.sqrt(precision)
        return float(np.prod(fit / none))

    wanted = np.mean([odds([0.2, 0.1, 0.2, 0.1]), odds([0.2, 0.1, 0, 0]), odds([0, 0, 0.2, 0.1])])
    together = 0.08 + np.diag([0.01, 0.01]) + np.diag(1 / precision[2:])
    alike, none = (
        multivariate_normal.pdf(raw[2:], cov=c) for c in (together, np.diag(1 / precision[2:]))
    )
    wanted = 0.7 * wanted + 0.3 * alike / none
    told = estimation._evidence(raw, precision, signal=signal, room=1.0, runs=2)
    assert told / (1 - told) == pytest.approx(wanted)
