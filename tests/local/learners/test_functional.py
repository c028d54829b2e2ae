"""The learners that treat features as curves: DWD, conjugate gradient, nearest centroid."""

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.optimize import minimize

from dpfda.errors import InvalidParameter
from dpfda.local.mrma.learners.linear_learners import DWD, ConjugateGradient, NearestCentroid

KNOTS = np.concatenate([[0.0] * 4, [0.5], [1.0] * 4])
GRID = np.linspace(0.0, 1.0, 4001)
BASIS = BSpline.design_matrix(np.clip(GRID, 0.0, 1.0 - 1e-12), KNOTS, 3).toarray()
STEP = np.full(GRID.size, 1.0 / 4000)
STEP[[0, -1]] /= 2
GRAM = BASIS.T @ (STEP[:, None] * BASIS)
SECOND = np.stack([BSpline(KNOTS, unit, 3).derivative(2)(GRID) for unit in np.eye(5)], axis=1)
ROUGHNESS = SECOND.T @ (STEP[:, None] * SECOND)


def curves(members=4, rows=40, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random((members, rows)) < 0.5, 1.0, -1.0)
    shape = 0.5 * labels[:, :, None] * np.array([1.0, 0.5, 0.0, -0.5, 0.2])
    return shape + rng.normal(size=(members, rows, 5)), labels


def loss(margins):
    return np.where(margins <= 0.5, 1.0 - margins, 0.25 / np.maximum(margins, 0.5))


@pytest.mark.parametrize("roughness", [None, ROUGHNESS.tolist()])
@pytest.mark.parametrize("smoothing", [1e-3, 0.1])
def test_dwd_minimizes_its_objective(smoothing, roughness):
    features, labels = curves()
    models = DWD(smoothing=smoothing, roughness=roughness).fit(features, labels, gram=GRAM)
    omega = GRAM if roughness is None else ROUGHNESS
    for b in range(len(models)):
        # The slope function's coefficients β: the model's act on z, they are Gβ.
        slope = np.linalg.solve(GRAM, models.coefficients[b])
        ours = np.concatenate([models.intercept[b : b + 1], slope])

        def objective(parameters, b=b):
            scores = parameters[0] + features[b] @ GRAM @ parameters[1:]
            penalty = parameters[1:] @ omega @ parameters[1:]
            return np.mean(loss(labels[b] * scores)) + smoothing * penalty

        # From our point and from 0, a general optimizer finds nothing better.
        for start in (ours, np.zeros(6)):
            found = minimize(objective, start, method="BFGS", options={"gtol": 1e-9})
            assert objective(ours) <= found.fun + 1e-8


def test_dwd_coefficients_do_not_depend_on_the_basis():
    features, labels = curves()
    change = np.random.default_rng(1).normal(size=(5, 5)) + 3.0 * np.eye(5)
    plain = DWD().fit(features, labels, gram=GRAM)
    # The same curves in another basis: z = A z', so G' = AᵀGA.
    other = DWD().fit(features @ np.linalg.inv(change).T, labels, gram=change.T @ GRAM @ change)
    assert np.allclose(other.coefficients, plain.coefficients @ change, atol=1e-6)


def test_heavy_roughness_penalty_leaves_a_straight_line():
    features, labels = curves()
    models = DWD(smoothing=1e4, roughness=ROUGHNESS.tolist()).fit(features, labels, gram=GRAM)
    slope = np.linalg.solve(GRAM, models.coefficients.T).T @ BASIS.T
    straight = np.polynomial.polynomial.polyfit(GRID, slope.T, 1)
    residual = slope - np.polynomial.polynomial.polyval(GRID, straight)
    assert np.max(np.abs(residual)) < 1e-4 * np.max(np.abs(slope))
    assert np.max(np.abs(slope)) > 0.1


def test_dwd_refuses_matrices_that_are_no_penalty():
    for matrix in ([[1.0, 2.0], [0.0, 1.0]], [[-1.0]], [[1.0, 2.0]], [[np.nan]], "x"):
        with pytest.raises(InvalidParameter, match="roughness"):
            DWD(roughness=matrix)
    features, labels = curves()
    with pytest.raises(InvalidParameter, match="roughness"):
        DWD(roughness=[[1.0]]).fit(features, labels, gram=GRAM)


def krylov_direction(features, labels, steps):
    """ψ of `steps` steps as the minimizer of ½⟨ψ, Kψ⟩ − ⟨μ, ψ⟩ over the Krylov space itself."""
    high, low = features[labels > 0].mean(axis=0), features[labels < 0].mean(axis=0)
    centered = np.where((labels > 0)[:, None], features - high, features - low)
    operator = centered.T @ centered / len(labels) @ GRAM
    space = [high - low]
    for _ in range(steps - 1):
        space.append(operator @ space[-1])
    space = np.linalg.qr(np.stack(space, axis=1))[0]
    inner = space.T @ GRAM @ operator @ space
    return space @ np.linalg.solve(inner, space.T @ GRAM @ (high - low)), (high + low) / 2


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_conjugate_gradient_is_optimal_in_its_krylov_space(steps):
    features, labels = curves()
    models = ConjugateGradient(steps=steps).fit(features, labels, gram=GRAM)
    for b in range(len(models)):
        direction, middle = krylov_direction(features[b], labels[b], steps)
        assert np.allclose(models.coefficients[b], GRAM @ direction, rtol=1e-6)
        assert np.allclose(models.scores(middle[None])[b], 0.0, atol=1e-9)


def test_one_step_is_the_nearest_centroid():
    features, labels = curves()
    one = ConjugateGradient(steps=1).fit(features, labels, gram=GRAM)
    nearest = NearestCentroid().fit(features, labels, gram=GRAM)
    ratio = one.intercept / nearest.intercept
    assert np.all(ratio > 0)
    assert np.allclose(one.coefficients, ratio[:, None] * nearest.coefficients)


def test_enough_steps_are_linear_discriminant_analysis():
    features, labels = curves()
    models = ConjugateGradient(steps=9).fit(features, labels)
    for b in range(len(models)):
        groups = [features[b][labels[b] == sign] for sign in (1.0, -1.0)]
        within = sum(len(g) * np.cov(g.T, bias=True) for g in groups) / len(labels[b])
        direction = np.linalg.solve(within, groups[0].mean(axis=0) - groups[1].mean(axis=0))
        assert np.allclose(models.coefficients[b], direction, rtol=1e-5)


def test_no_variation_within_the_classes_leaves_the_difference_of_the_means():
    features = np.array([[[0.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, 1.0]]])
    models = ConjugateGradient(steps=3).fit(features, [[-1, -1, 1, 1]])
    assert models.predict([[0.9, 0.0], [1.1, 0.0]]).tolist() == [[-1.0, 1.0]]


def test_equal_means_score_zero():
    features = np.array([[[1.0], [-1.0], [1.0], [-1.0]]])
    models = ConjugateGradient().fit(features, [[-1, -1, 1, 1]])
    assert np.all(models.scores(features) == 0.0)


def test_nearest_centroid_compares_distances_in_l2():
    features, labels = curves()
    models = NearestCentroid().fit(features, labels, gram=GRAM)
    for b in range(len(models)):
        distances = []
        for sign in (1.0, -1.0):
            gap = (features[b] - features[b][labels[b] == sign].mean(axis=0)) @ BASIS.T
            distances.append(np.sum(STEP * gap**2, axis=1))
        expected = 0.5 * (distances[1] - distances[0])
        assert np.allclose(models.scores(features)[b], expected, atol=1e-8)


@pytest.mark.parametrize(
    "gram", [np.eye(4), -np.eye(5), np.arange(25.0).reshape(5, 5), np.full((5, 5), np.nan)]
)
def test_a_gram_matrix_that_is_none_is_refused(gram):
    features, labels = curves()
    with pytest.raises(InvalidParameter, match="gram"):
        NearestCentroid().fit(features, labels, gram=gram)
