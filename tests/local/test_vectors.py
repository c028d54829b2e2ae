"""Whole studies by vector reports: what they learn, ask and keep."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dpfda import CurveEncoder, SimulationSource
from dpfda.errors import InvalidParameter
from dpfda.local.study.design import NumberDesign, VectorDesign
from dpfda.local.study.reports import poured
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.simulate import people_from, simulate


def table(
    n: int, seed: int, *, apart: float = 1.2, d: int = 6, share: float = 0.5, classes: int = 2
) -> tuple[Any, Any]:
    """Columns of other scales, the first two correlated; the first ones tell classes apart."""
    rng = np.random.default_rng(seed)
    shares = np.full(classes, 1 / classes) if classes > 2 else np.array([1 - share, share])
    y = rng.choice(classes, p=shares, size=n)
    rows = rng.normal(size=(n, d))
    rows[:, 1] = 0.7 * rows[:, 0] + 0.7 * rows[:, 1]
    means = np.zeros((classes, d))
    for k in range(classes):
        means[k, k % 2] = apart * (1 if k < 2 else -1) * (k > 0 or classes > 2)
    return (rows + means[y]) * 3.0 ** np.arange(d) + 5, y


def ranges(d: int = 6, slack: float = 2.0) -> list[tuple[float, float]]:
    """Far too wide, and not around the middle."""
    return [(5 - 6 * slack * 3.0**j, 5 + 4 * slack * 3.0**j) for j in range(d)]


def plan(n: int, epsilon: float, *, classes: Any = (0, 1), d: int = 6, **design: Any) -> StudyPlan:
    """A study of such a table."""
    return StudyPlan(
        epsilon=epsilon,
        n_people=n,
        encoder=CurveEncoder("identity", feature_ranges=ranges(d)),
        classes=classes,
        target_range=None if classes else (-20.0, 60.0),
        design={"name": "vectors" if classes else "vector_numbers", **design},
    )


def studied(X: Any, y: Any, epsilon: float, seed: int, **facts: Any) -> Server:
    """A finished study of these people."""
    made = plan(len(y), epsilon, **facts)
    return simulate(made, people_from(made, X, y), source=SimulationSource(seed))


@pytest.mark.parametrize(("classes", "most"), [(2, 0.33), (3, 0.40)])
def test_classes_are_told_apart(classes: int, most: float) -> None:
    """Guessing errs in one half or two thirds; the limits are about 0.20 and 0.25."""
    errors = []
    for seed in range(3):
        X, y = table(6000, seed, classes=classes, apart=1.2 if classes == 2 else 1.6)
        others, truth = table(4000, 100 + seed, classes=classes, apart=1.2 if classes == 2 else 1.6)
        study = studied(X, y, 2.0, seed, classes=tuple(range(classes)))
        errors.append(np.mean(study.model.predict(others) != truth))
    assert np.median(errors) < most


def test_more_people_reach_the_logistic_regression() -> None:
    """Correlated, skewed and yes/no columns: what is wrong in the working model is found out."""
    rng = np.random.default_rng(0)

    def drawn(n: int) -> tuple[Any, Any]:
        hidden = rng.normal(size=(n, 3))
        rows = np.column_stack(
            [hidden[:, 0] + hidden[:, 1], np.exp(hidden[:, 1]), hidden[:, 2] > 1]
        )
        odds = 1.2 * rows[:, 0] - 0.8 * rows[:, 1] + 1.5 * rows[:, 2]
        return rows.astype(float), (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)

    from sklearn.linear_model import LogisticRegression

    (X, y), (others, truth) = drawn(200_000), drawn(20_000)
    best = LogisticRegression(C=1e3, max_iter=500).fit(X[:20_000], y[:20_000])
    made = StudyPlan(
        epsilon=2.0,
        n_people=len(y),
        encoder=CurveEncoder("identity", feature_ranges=[(-8, 8), (0, 20), (0, 1)]),
        classes=(0, 1),
        design={"name": "vectors"},
    )
    study = simulate(made, people_from(made, X, y), source=SimulationSource(0))
    error, limit = (np.mean(one.predict(others) != truth) for one in (study.model, best))
    assert error < limit + 0.01


def test_the_larger_class_wins_and_the_mean_is_predicted_where_nothing_is() -> None:
    errors, loss = [], []
    for seed in range(4):
        X, y = table(3000, seed, apart=0.0, share=0.2)
        study = studied(X, y, 1.0, seed)
        errors.append(np.mean(study.model.predict(X) != y) - y.mean())
        numbers = np.random.default_rng(seed).normal(20, 5, size=3000)
        study = studied(X, numbers, 1.0, seed, classes=())
        loss.append(np.mean((study.model.predict(X) - numbers) ** 2) / numbers.var())
    assert np.mean(errors) < 0.03
    assert np.mean(loss) < 1.25


def test_numbers_are_predicted() -> None:
    found = []
    for seed in range(3):
        X, _ = table(8000, seed, apart=0.0)
        standard = (X - 5) / 3.0 ** np.arange(6)
        y = 20 + 4 * standard[:, 0] + np.random.default_rng(seed).normal(0, 2, size=8000)
        study = studied(X[:6000], y[:6000], 4.0, seed, classes=(), evaluation_share=0.1)
        left = np.mean((study.model.predict(X[6000:]) - y[6000:]) ** 2)
        found.append(left / y.var())
        error = study.findings.error
        assert error is not None
        assert abs(error.value - left**0.5) < 4 * error.standard_error
    assert np.median(found) < 0.35  # the limit is 0.2


def test_intervals_hold_the_weights() -> None:
    """Of a logistic regression on the standardized features, whose columns are normal here."""
    off = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20_000, 5))
        weights = np.array([1.0, -0.5, 0.0, 0.0, 0.3])
        y = (rng.random(len(X)) < 1 / (1 + np.exp(-X @ weights))).astype(int)
        made = StudyPlan(
            epsilon=2.0,
            n_people=len(y),
            encoder=CurveEncoder("identity", feature_ranges=[(-5, 5)] * 5),
            classes=(0, 1),
            design={"name": "vectors"},
        )
        study = simulate(made, people_from(made, X, y), source=SimulationSource(seed))
        model = study.model
        # The rule in units of the public columns: half a range is 5, clipped widths are scales.
        slopes = model.coefficients[0] / model.scales[0] / 5
        errors = np.sqrt(np.diag(study.findings.covariances[0])) / model.scales[0] / 5
        off += list((slopes - weights) / errors)
    assert np.mean(np.abs(off) < 1.96) >= 0.85


def test_phases_hold_everybody_and_nobody_twice() -> None:
    for n in (1, 7, 40, 3001):
        for classes, more in (((0, 1), {"temperature_share": 0.1}), ((0, 1, 2), {}), ((), {})):
            made = plan(n, 1.0, classes=classes, evaluation_share=0.1, **more)  # type: ignore[arg-type]
            server = Server(made)
            while not server.finished:
                task = server.issue(server.wanted)
                replies = task.answer(task.trial(np.random.default_rng(0)), SimulationSource(0))
                server.receive(replies.values, start=0)
            assert sum(step.people for step in server.run.steps) == n


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c"), ()])
def test_a_study_goes_on_from_any_phase_to_the_same_bits(classes: Any) -> None:
    made = plan(800, 2.0, classes=classes, evaluation_share=0.1)

    def finished(*, restarts: bool) -> str:
        server, phase = Server(made), 0
        while not server.finished:
            task = server.issue(server.wanted)
            drawn = np.random.default_rng(phase)
            server.receive(task.answer(task.trial(drawn), SimulationSource(phase)).values, start=0)
            phase += 1
            if restarts:
                _ = server.model, server.findings  # whoever looks changes nothing
                server = Server.resume(made, json.loads(json.dumps(server.state())))
        return str(server.model.to_json())

    assert finished(restarts=False) == finished(restarts=True)


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c"), ()])
def test_a_machine_that_rounds_otherwise_asks_for_the_same(
    classes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directions of equal importance are where rounding would decide."""
    made, eigh = plan(800, 2.0, classes=classes), np.linalg.eigh

    def phases() -> list[str]:
        server, hashes = Server(made), []
        while not server.finished:
            task = server.issue(server.wanted)
            hashes.append(server.run.present.hash)
            drawn, source = np.random.default_rng(len(hashes)), SimulationSource(len(hashes))
            server.receive(task.answer(task.trial(drawn), source).values, start=0)
        return hashes

    def otherwise(matrix: Any) -> Any:
        rng = np.random.default_rng(len(matrix))
        noise = 1e-15 * np.abs(matrix).max() * rng.normal(size=matrix.shape)
        values, vectors = eigh(matrix + noise + noise.T)
        return values, vectors * rng.choice([-1, 1], size=len(values))

    here = phases()
    monkeypatch.setattr(np.linalg, "eigh", otherwise)
    assert phases() == here


def test_spread_that_differs_is_found() -> None:
    """Both classes have the same means; one is three times as wide."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=8000)
    X = 5 + rng.normal(size=(8000, 2)) * np.where(y[:, None] == 1, 3.0, 1.0) * [1.0, 3.0]
    study = studied(X, y, 2.0, 0, d=2, spread_differs=True)
    assert np.mean(study.model.predict(X) != y) < 0.35
    assert study.findings.folded == 2


def test_a_public_share_is_used() -> None:
    X, y = table(400, 0, apart=0.0, share=0.1)
    study = studied(X, y, 0.2, 0, class_share=0.1)
    assert np.mean(study.model.predict(X)) < 0.02
    guessing = study.findings.guessing
    assert guessing is not None
    assert abs(guessing.value - 0.1) < 0.02
    with pytest.raises(InvalidParameter, match="class_share must be left out with 3 classes"):
        Server(plan(100, 1.0, classes=(0, 1, 2), class_share=0.1))


def test_precision_is_poured_where_least_is_known() -> None:
    """No move of a little precision from one number to another leaves less unknown."""
    rng = np.random.default_rng(0)
    for answers in (0.1, 3.0, 100.0):
        variances = rng.exponential(size=5)
        share = poured(variances, answers)
        left = 1 / (1 / variances + answers * share)
        for i in range(5):
            for j in range(5):
                moved = share + 1e-3 * (np.eye(5)[i] - np.eye(5)[j])
                if moved.min() >= 0:
                    assert (1 / (1 / variances + answers * moved)).sum() >= left.sum() - 1e-12


def test_designs_are_read_as_they_were_written() -> None:
    encoder = CurveEncoder("cosine", n_basis=3)
    assert VectorDesign().settled(encoder).ordered
    with pytest.raises(InvalidParameter, match="n_features must be an integer from 1 to 3"):
        NumberDesign(n_features=4).settled(encoder)
