"""Ranges that are far too wide: the first people say where curves lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import SimulationSource, plan_study
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.question_response import effective_answers
from dpfda.protocol import Server
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.questions import location, sizes
from dpfda.questions.progress import QuestionProgress
from dpfda.simulate import people_from, simulate

LOOSE = (-30.0, 90.0)  # ten times as wide as the curves' (-6, 6), and shifted


def studied(epsilon: float, **facts: Any) -> tuple[float, Server]:
    people, others = simulate_001(3000, 0), simulate_001(3000, 1)
    plan = plan_study(3000, epsilon, value_range=LOOSE, classes=(-1, 1), **facts)
    server = simulate(plan, people_from(plan, people.X, people.y), source=SimulationSource(0))
    return float(np.mean(server.model.predict(others.X) != others.y)), server


def test_a_loose_range_ruins_a_study_that_is_not_told() -> None:
    error, server = studied(2.0, range_is_loose=True)
    assert error < 0.2  # Bayes: 0.10
    assert studied(2.0, n_features=3)[0] > 0.3
    progress = server.progress
    assert isinstance(progress, QuestionProgress)
    # The level is 0: half a range below the middle of the loose one.
    assert abs(progress.centers[0] + 0.5) < 0.03
    # A fitting range of ±6 would make the first scale 6/3 = 2, in units of the half-width 60.
    assert 0.5 < 60 * progress.scales[0] < 8


def test_labels_are_not_asked_for_and_phases_add_up() -> None:
    plan = plan_study(3000, 0.5, value_range=LOOSE, classes=(-1, 1), range_is_loose=True)
    server = Server(plan)
    task = server.issue(server.wanted)
    assert isinstance(task, StumpTask)
    assert server.progress.kind == "range"
    assert task.uses_label is False
    phases = server.progress.phases
    located = sum(phase.people for phase in phases if phase.kind == "range")
    assert located == int(sizes.range_share(effective_answers(3000, 0.5)) * 3000)
    assert sum(phase.people for phase in phases) == 3000


def test_questions_close_in() -> None:
    """Truthful people at 0.25 ± 0.01: after 300 answers thresholds lie around them."""
    rng = np.random.default_rng(0)
    counts = location.nobody_asked()
    first = location.Whereabouts(counts, alpha=1.0)
    features = np.zeros((300, 1), dtype=np.int64)
    early = first.thresholds(features, rng.random((300, 2)))
    assert np.ptp(early) > 1.5
    for _ in range(8):
        where = location.Whereabouts(counts, alpha=1.0)
        asked = where.thresholds(features, rng.random((300, 2)))
        told = np.where(rng.normal(0.25, 0.01, (300, 1)) > asked, 1.0, -1.0)
        counts = counts + location.counted(features, asked, told)
    found = location.Whereabouts(counts, alpha=1.0)
    assert abs(found.centers[0] - 0.25) < 0.003
    late = found.thresholds(features, rng.random((300, 2)))
    assert np.quantile(np.abs(late - 0.25), 0.9) < 0.03


def test_the_posterior_is_that_of_the_model() -> None:
    """Two answers about the level, by hand: the sum over thresholds is a convolution."""
    features = np.array([[0], [0]])
    asked = location.Whereabouts(location.nobody_asked(), alpha=0.5).thresholds(
        features, np.array([[0.3, 0.5], [0.8, 0.5]])
    )
    counts = location.counted(features, asked, np.array([[1.0], [-1.0]]))
    assert counts.sum() == 2
    found = location.Whereabouts(counts, alpha=0.5).cells[0]
    grid = (np.arange(1024) + 0.5) / 512 - 1
    scale = np.geomspace(1 / 600, 1 / 3, 14)[:, None, None] * np.array([0.08, 0.18, 0.4])[:, None]
    weights = np.array([0.25, 0.5, 0.25])[:, None]
    expected = np.geomspace(1 / 600, 1 / 3, 14)[:, None, None] ** 0.7 * weights * np.ones(1024)
    for threshold, sign in zip(asked[:, 0], (1, -1), strict=True):
        z = np.clip((grid - threshold) / scale, -500, 500)
        expected = expected * (0.5 + sign * 0.5 * 0.98 * (1 / (1 + np.exp(-z)) - 0.5))
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-9)


def test_features_share_one_width() -> None:
    """Answers about the second feature alone narrow down the first one's width."""
    rng = np.random.default_rng(0)
    features = np.ones((400, 1), dtype=np.int64)
    counts = location.nobody_asked()
    before = location.Whereabouts(counts, alpha=1.0)
    for _ in range(5):
        asked = location.Whereabouts(counts, alpha=1.0).thresholds(features, rng.random((400, 2)))
        told = np.where(rng.normal(0, 0.01, (400, 1)) > asked, 1.0, -1.0)
        counts = counts + location.counted(features, asked, told)
    after = location.Whereabouts(counts, alpha=1.0)
    assert after.widths.max() > 2 * before.widths.max()
    assert after.width < before.width * 1.5


@pytest.mark.parametrize(
    "facts",
    [
        {"feature_ranges": [(0, 1)] * 2},
        {"value_range": [(0, 1), (0, 2)]},
    ],
)
def test_only_curves_of_one_channel_are_looked_for(facts: dict[str, Any]) -> None:
    plan = plan_study(99, 1.0, classes=(0, 1), range_is_loose=True, **facts)
    with pytest.raises(InvalidParameter, match="range_is_loose must be False but for curves"):
        Server(plan)
