"""What makes the batched support vector machine exact, beyond what scikit-learn can confirm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import InvalidParameter
from dpfda.local.mrma.learners.linear_svm import LinearSVM


def objective(models, features, labels, C):
    margins = labels * models.scores(features)
    return 0.5 * np.sum(models.coefficients**2, axis=1) + C * np.sum(
        np.maximum(0.0, 1.0 - margins), axis=1
    )


@given(
    rows=st.integers(2, 60),
    features=st.integers(1, 14),
    C=st.sampled_from([1e-4, 0.1, 1.0, 100.0]),
    noise=st.sampled_from([0.1, 1.0, 100.0]),
    seed=st.integers(0, 10**6),
)
def test_no_step_in_any_direction_improves_the_solution(rows, features, C, noise, seed):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random((3, rows)) < 0.5, 1.0, -1.0)
    labels[:, 0], labels[:, 1] = 1.0, -1.0
    z = 0.5 * labels[:, :, None] + noise * rng.laplace(size=(3, rows, features))
    models = LinearSVM(C=C).fit(z, labels)
    best = objective(models, z, labels, C)
    # The loss is convex: if no small step descends, the point is the minimum. Steps of 1e-4 of
    # the parameters' own size; a descent would have to exceed what rounding can explain.
    for _ in range(20):
        slope = rng.normal(size=models.coefficients.shape) * 1e-4 * np.abs(models.coefficients)
        shift = rng.normal(size=models.intercept.shape) * 1e-4
        moved = type(models)(
            intercept=models.intercept + shift, coefficients=models.coefficients + slope
        )
        assert np.all(objective(moved, z, labels, C) >= best * (1.0 - 1e-6) - 1e-12)


def test_intercept_is_the_middle_of_its_interval():
    # C is so small that every row lies inside the margin: w = C Σ y x and any intercept that
    # keeps all margins below 1 is optimal.
    features = np.array([[[-2.0], [-1.0], [1.0], [3.0]]])
    labels = np.array([[-1.0, -1.0, 1.0, 1.0]])
    C = 1e-3
    models = LinearSVM(C=C).fit(features, labels)
    slope = C * 7.0
    # Row i is on the margin at b = y (1) - slope x; the slope of the loss is 0 between the two.
    corners = np.sort(labels[0] - slope * features[0, :, 0])
    assert models.coefficients[0, 0] == pytest.approx(slope, abs=1e-9)
    assert models.intercept[0] == pytest.approx((corners[1] + corners[2]) / 2, abs=1e-9)


def test_a_solution_without_slope_has_coefficients_of_exactly_zero():
    # 9 rows of class +1 against 1 that no line can separate from them: a constant is optimal.
    features = np.zeros((1, 10, 2))
    features[0, :8] = [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]]
    labels = np.ones((1, 10))
    labels[0, 9] = -1.0
    models = LinearSVM().fit(features, labels)
    assert np.all(models.coefficients == 0.0)
    assert models.intercept[0] == pytest.approx(1.0)


def test_separable_classes_give_the_widest_margin():
    features = np.array([[[-3.0, 1.0], [-1.0, 0.0], [1.0, 0.0], [2.0, -5.0]]])
    models = LinearSVM(C=1e3).fit(features, [[-1, -1, 1, 1]])
    margins = np.array([[-1, -1, 1, 1]]) * models.scores(features)
    assert np.all(margins >= 1.0 - 1e-8)
    assert np.sum(margins < 1.0 + 1e-6) >= 2


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 0.0},
        {"loss": "absolute"},
        {"tolerance": -1.0},
        {"max_iterations": 0},
    ],
)
def test_bad_parameters_are_refused(parameters):
    with pytest.raises(InvalidParameter):
        LinearSVM(**parameters)
