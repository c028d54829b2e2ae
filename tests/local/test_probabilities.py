"""Probabilities of local studies: the model's own doubt is in them."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import LocalCurveClassifier, load
from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidParameter
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.model import CurveModel

PARTS = {
    "encoder": CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
    "classes": ("no", "yes"),
    "guarantee": Guarantee(epsilon=1.0, model="local"),
    "intercept": [0.5], "coefficients": [[2.0, -1.0]], "centers": [[0.1, 0.0]],
    "scales": [[0.5, 0.25]], "clipped": True,
}  # fmt: skip


def test_the_formula() -> None:
    """p = sigma(w s / sqrt(1 + pi v / 8)), v = var a + x1^2 var t1 + x2^2 var t2."""
    model = CurveModel(**PARTS, variances=[[0.3, 2.0, 5.0]], damping=0.7)  # type: ignore[arg-type]
    z = np.array([[0.35, -0.5]])  # x = (0.5, -1): the second is clipped
    score = 0.5 + 2 * 0.5 + 1.0
    variance = 0.3 + 0.25 * 2.0 + 5.0
    expected = 1 / (1 + np.exp(-0.7 * score / np.sqrt(1 + np.pi * variance / 8)))
    np.testing.assert_allclose(model.chances(z), [[1 - expected, expected]], rtol=1e-12)
    plain = CurveModel(**PARTS)  # type: ignore[arg-type]
    np.testing.assert_allclose(plain.chances(z)[0, 1], 1 / (1 + np.exp(-score)), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"scales": [[0.5]]}, "scales must be of the coefficients' shape"),
        ({"scales": [[0.5, 0.25, 1.0]]}, "scales must be of the coefficients' shape"),
        ({"scales": [[0.5, 0.0]]}, "scales must be above 0"),
        ({"centers": [[0.0]]}, "centers must be of the coefficients' shape"),
        ({"coefficients": [[1.0] * 3], "centers": [[0.0] * 3], "scales": [[1.0] * 3]}, "columns"),
    ],
)
def test_a_model_of_the_wrong_size_is_refused(change, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        CurveModel(**PARTS | change)  # type: ignore[arg-type]


def test_variances_travel_with_the_model(tmp_path) -> None:
    model = CurveModel(**PARTS, variances=[[0.3, 2.0, 5.0]], damping=0.7)  # type: ignore[arg-type]
    model.save(tmp_path / "model.json")
    z = np.random.default_rng(0).uniform(-1, 1, (9, 2))
    np.testing.assert_array_equal(load(tmp_path / "model.json").chances(z), model.chances(z))


@pytest.mark.parametrize("bad", [[[0.3, 2.0]], [[0.3, -2.0, 5.0]], [[0.3, np.inf, 5.0]]])
def test_variances_fit_the_coefficients(bad: list[list[float]]) -> None:
    with pytest.raises(InvalidParameter, match="variances must be"):
        CurveModel(**PARTS, variances=bad)  # type: ignore[arg-type]


def test_a_small_study_is_less_sure_than_a_large_one() -> None:
    others = simulate_001(2000, 1)
    sure = {}
    for n in (200, 20_000):
        people = simulate_001(n, 0)
        fitted = LocalCurveClassifier(
            epsilon=1.0, value_range=(-6, 6), classes=(-1, 1), random_state=1
        ).fit(people.X, people.y)
        found = fitted.predict_proba(others.X)
        assert np.array_equal(fitted.classes_[found.argmax(axis=1)], fitted.predict(others.X))
        sure[n] = np.mean(found.max(axis=1))
    assert sure[200] < 0.7 < 0.8 < sure[20_000]


def test_probabilities_of_curves_are_calibrated() -> None:
    """641 effective people, ten studies; the goal is .05 above what chance shows."""
    others = simulate_001(4000, 99)
    happened, off = others.y == 1, []
    for seed in range(10):
        people = simulate_001(3000, seed)
        fitted = LocalCurveClassifier(
            epsilon=1.0, value_range=(-6, 6), classes=(-1, 1), random_state=seed
        ).fit(people.X, people.y)
        chance = fitted.predict_proba(others.X)[:, 1]
        place = np.minimum((10 * chance).astype(int), 9)
        off.append(np.abs(np.bincount(place, chance - happened, 10)).sum() / len(chance))
    assert np.mean(off) < 0.07
