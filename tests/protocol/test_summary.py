"""Vectors of features and label: what is computed, where it is cut, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.mechanisms.class_index import ClassIndex
from dpfda.noise import SimulationSource
from dpfda.protocol.task import check_reply
from dpfda.protocol.tasks.vector import SummaryTask

CENTERS, SCALES = np.array([0.2, -0.1, 0.0]), np.array([0.5, 0.25, 2.0])
MATRIX = np.array([[1.0, 0.5, -2.0], [0.0, -1.0, 3.0]])
OFFSET, WEIGHTS, THETA = [0.25, -0.5], [0.5, 2.0, -1.0], [[0.3, 0.8, -0.6]]
Z = np.array([[0.4, 0.9, -0.3], [0.2, -0.1, 0.0]])
Y = np.array([1, 0])


def asked(statistic: str, *, people: int = 2, **changed: Any) -> SummaryTask:
    given: dict[str, Any] = {
        "epsilon": 2.0,
        "people": people,
        "statistic": statistic,
        "classes": 3,
        "centers": CENTERS,
        "scales": SCALES,
        "clip": 1.5,
        "matrix": MATRIX,
        "offsets": [OFFSET],
        "limit": 100.0,
    }
    if statistic in ("residual", "classes"):
        given["weights"] = WEIGHTS
    if statistic == "cross":
        given["weights"] = WEIGHTS[:2]
    if statistic == "residual":
        given["theta"] = THETA
    return SummaryTask(**given | changed)


def exact(task: SummaryTask, z: Any = Z, y: Any = Y) -> np.ndarray:
    return task.exact(task.fitting((np.asarray(z), np.asarray(y))), SimulationSource(0))


# By hand: (z - center)/scale = (.4, 4, -.15), clipped at 1.5: (.4, 1.5, -.15).
FIRST = np.array([0.4 + 0.75 + 0.3 + 0.25, -1.5 - 0.45 - 0.5])
SECOND = np.array(OFFSET)


def test_features_are_clipped_mapped_and_moved() -> None:
    found = exact(asked("spread"))
    for row, psi in zip(found, (FIRST, SECOND), strict=True):
        np.testing.assert_allclose(row * 100, [*psi, *(psi**2 - 1)], rtol=1e-12)
    # The lower end too: -1 is far below a center of 3.
    low = exact(asked("spread", centers=[3.0, -0.1, 0.0], matrix=np.eye(3), offsets=[[0.0] * 3]))
    assert low[0, 0] == pytest.approx(-0.015)


def test_products_have_the_length_of_the_square() -> None:
    found = exact(asked("products", limit=10.0)) * 100
    a, b = FIRST
    np.testing.assert_allclose(found[0], [a * a, math.sqrt(2) * a * b, b * b], rtol=1e-12)
    assert np.linalg.norm(found[0]) == pytest.approx(a * a + b * b)
    # Cut by the length of ψ.
    short = exact(asked("products", limit=0.5))
    np.testing.assert_allclose(np.linalg.norm(short[0]), 1.0)
    np.testing.assert_allclose(short[0], found[0] / (a * a + b * b))


def test_residuals_of_a_public_rule() -> None:
    found = exact(asked("residual"), np.repeat(Z[:1], 3, axis=0)[:2], [1, 2]) * 100
    score = 0.3 + 0.8 * FIRST[0] - 0.6 * FIRST[1]
    p = 1 / (1 + math.exp(-score))
    vector = np.array([0.5, 2.0 * FIRST[0], -FIRST[1]])
    np.testing.assert_allclose(found[0], (1 - p) * vector, rtol=1e-12)
    np.testing.assert_allclose(found[1], -p * vector, rtol=1e-12)  # label 2 is not label 1
    # The vector is cut by its own length first, then the product.
    length = float(np.linalg.norm(vector))
    reached = exact(asked("residual", reach=1.0)) * 100
    np.testing.assert_allclose(reached[0], (1 - p) * vector / length, rtol=1e-12)
    # A residual below 1: a product at half the reach is not cut at a limit of the reach.
    both = exact(asked("residual", reach=1.0, limit=1.0))
    np.testing.assert_allclose(both[0], (1 - p) * vector / length, rtol=1e-12)
    tight = exact(asked("residual", reach=1.0, limit=1e-3))
    np.testing.assert_allclose(tight[0], vector / length, rtol=1e-12)


SCORES = [*THETA, [0.1, -0.5, 0.2], [0.0, 0.3, 0.4]]


def test_residuals_of_several_classes_follow_each_other() -> None:
    rows, labels = np.repeat(Z[:1], 2, axis=0), [2, 9]  # the classes end at 2
    scores = [theta[0] + theta[1] * FIRST[0] + theta[2] * FIRST[1] for theta in SCORES]
    p = np.exp(scores) / np.exp(scores).sum()
    vector = np.array([0.5, 2.0 * FIRST[0], -FIRST[1]])
    wanted = np.concatenate([((k == 2) - p[k]) * vector for k in range(3)])
    for row in exact(asked("residual", theta=SCORES), rows, labels) * 100:
        np.testing.assert_allclose(row, wanted, rtol=1e-12)
    tight = exact(asked("residual", theta=SCORES, limit=1e-3), rows, labels)
    np.testing.assert_allclose(tight[0], wanted / np.linalg.norm(wanted), rtol=1e-12)


def test_steep_rules_are_sure() -> None:
    for slope, p in (1e40, 1.0), (-1e40, 0.0):
        found = exact(asked("residual", theta=[[slope, 0.0, 0.0]]), Z, [1, 1]) * 100
        np.testing.assert_allclose(found[:, 0], (1 - p) * 0.5, atol=1e-12)


def test_cross_products_with_the_first_entry() -> None:
    r, other = FIRST
    vector = np.array([WEIGHTS[0], WEIGHTS[1] * other])
    np.testing.assert_allclose(exact(asked("cross"))[0] * 100, r * vector, rtol=1e-12)
    # The vector is cut by its own length first, then the product.
    unit = vector / np.linalg.norm(vector)
    reached = exact(asked("cross", reach=0.5)) * 100
    np.testing.assert_allclose(reached[0], r * 0.5 * unit, rtol=1e-12)
    tight = exact(asked("cross", reach=0.5, limit=1e-3))
    np.testing.assert_allclose(tight[0], unit, rtol=1e-12)


def test_classes_come_before_their_vectors() -> None:
    found = exact(asked("classes"), Z, [2, 0])
    assert found[:, 0].tolist() == [2.0, 0.0]
    vector = np.array([0.5, 2.0 * FIRST[0], -FIRST[1]])
    np.testing.assert_allclose(found[0, 1:] * 100, vector, rtol=1e-12)
    cut = exact(asked("classes", limit=1.0), Z, [7, -3])
    assert cut[:, 0].tolist() == [2.0, 0.0]  # there are three classes
    np.testing.assert_allclose(cut[0, 1:], vector / np.linalg.norm(vector), rtol=1e-12)


@pytest.mark.parametrize("statistic", ["spread", "products", "residual", "classes", "cross"])
def test_offsets_may_differ_by_class(statistic: str) -> None:
    offsets = [OFFSET, [1.0, 2.0], [-3.0, 0.5]]
    found = exact(asked(statistic, offsets=offsets), Z[[0, 0]], [1, 9])
    for row, own, label in zip(found, (1, 2), (1, 2), strict=True):
        alone = asked(statistic, people=1, offsets=[offsets[own]])
        np.testing.assert_allclose(row, exact(alone, Z[:1], [label])[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("statistic", "dimension", "changed"),
    [
        ("spread", 4, {}), ("products", 3, {}), ("residual", 3, {}), ("classes", 3, {}),
        ("cross", 2, {}), ("residual", 9, {"theta": SCORES}),
    ],
)  # fmt: skip
def test_the_report_is_the_best_one(
    statistic: str, dimension: int, changed: dict[str, Any]
) -> None:
    task = asked(statistic, **changed)
    best: Any = CapIndex.best(epsilon=2.0, dimension=dimension)
    if statistic == "classes":
        best = ClassIndex.best(epsilon=2.0, dimension=dimension, classes=3)
    assert task.mechanism == best
    assert (task.width, task.columns) == (2, 3)
    reply = task.answer((Z, Y), SimulationSource(3)).values
    assert np.array_equal(reply, best.randomize(exact(task), SimulationSource(3)))
    check_reply(task, reply)
    np.testing.assert_allclose(task.total(reply), best.debias(reply).sum(axis=0))
    for wrong in [-1.0, 0.0], [0.0, 1e6], [0.5, 0.0]:
        with pytest.raises(ProtocolError, match="possible output"):
            check_reply(task.rows([0]), [wrong])


@pytest.mark.parametrize("statistic", ["spread", "products", "residual", "classes", "cross"])
def test_the_sum_of_many_replies_is_that_of_their_vectors(statistic: str) -> None:
    """Five standard deviations, from the stated variance."""
    n = 20_000
    task = asked(statistic, people=n, limit=4.0, reach=6.0)
    rows = np.repeat(Z[:1], n, axis=0), np.full(n, 2)  # the rule is sure of label 1
    total = task.total(task.answer(rows, SimulationSource(4)).values)
    one = exact(task.rows([0]), Z[:1], [2])
    mean, spread = (np.asarray(f(one))[0] for f in (task.mechanism.target, task.mechanism.variance))
    assert np.abs(total / n - mean).max() < 5 * math.sqrt(spread.max() / n)


@pytest.mark.parametrize(
    ("statistic", "wrong"),
    [
        ("spread", {"weights": WEIGHTS}), ("products", {"theta": THETA}),
        ("classes", {"theta": THETA}), ("residual", {"weights": WEIGHTS[:2]}),
        ("residual", {"theta": [[*THETA[0], 0.0]]}), ("residual", {"theta": THETA * 2}),
        ("classes", {"weights": [1.0]}),
        ("classes", {"offsets": [OFFSET] * 2}), ("classes", {"offsets": [OFFSET] * 4}),
        ("spread", {"matrix": np.zeros((0, 3)), "offsets": np.zeros((1, 0))}),
        ("spread", {"matrix": np.zeros((2, 0)), "centers": [], "scales": []}),
        ("spread", {"matrix": np.zeros((2, 2))}), ("spread", {"scales": [1.0, 0.0, 1.0]}),
        ("spread", {"limit": 0.0}), ("spread", {"limit": math.nan}), ("spread", {"clip": 0.0}),
        ("spread", {"clip": math.inf}), ("residual", {"reach": -1.0}),
        ("classes", {"classes": 0}), ("spread", {"centers": [math.nan, 0.0, 0.0]}),
        ("spread", {"matrix": np.full((2, 3), 1e51)}),
    ],
)  # fmt: skip
def test_other_numbers_are_refused(statistic: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        asked(statistic, **wrong)
    with pytest.raises(InvalidParameter, match="statistic"):
        asked("sum")


def test_a_vector_too_long_for_a_codebook_is_refused() -> None:
    q = 362  # 362 · 363/2 > 2^16
    task = asked("products", matrix=np.zeros((q, 3)), offsets=np.zeros((1, q)))
    with pytest.raises(InvalidParameter, match="dimension"):
        _ = task.event


@pytest.mark.parametrize("statistic", ["spread", "products", "residual", "classes", "cross"])
def test_the_largest_public_numbers_still_give_a_direction(statistic: str) -> None:
    changed = {
        "centers": [1e50, -1e50, 0.0],
        "scales": [1e-50] * 3,
        "clip": 1e9,
        "matrix": np.full((2, 3), 1e50),
        "limit": 1e-50,
    }
    if statistic in ("residual", "classes"):
        changed["weights"] = [1e50] * 3
    found = exact(asked(statistic, **changed))[0]
    vector = found[1:] if statistic == "classes" else found
    assert np.isfinite(found).all()
    assert np.linalg.norm(vector) <= 1 + 1e-9
    assert statistic == "residual" or np.linalg.norm(vector) == pytest.approx(1)
