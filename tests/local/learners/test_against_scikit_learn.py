"""The same numbers as scikit-learn, tightly converged, where it has the learner."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid as TheirNearestCentroid
from sklearn.svm import SVC, LinearSVC

from dpfda.local.mrma.learners.linear_learners import Logistic, NearestCentroid
from dpfda.local.mrma.learners.linear_svm import LinearSVM
from dpfda_bench.reproductions._p001 import StandardizedSVM

TOLERANCE = 1e-6
MEMBERS = 8


def reports(*, rows=50, features=5, seed=0):
    """Noisy features on a lattice of 1/8, labels that depend on them a little.

    LIBSVM keeps its kernel matrix in single precision. Products of multiples of 1/8 of this size
    are exact there, so that SVC itself converges to the solution and not to 1e-6 beside it.
    """
    rng = np.random.default_rng(seed)
    clean = rng.uniform(-1.0, 1.0, (MEMBERS, rows, features))
    score = 2.0 * clean @ np.linspace(1.0, -1.0, features)
    labels = np.where(rng.random(score.shape) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0)
    noisy = np.round(8.0 * (clean + rng.laplace(0.0, 0.5, clean.shape))) / 8.0
    weights = rng.integers(0, 4, score.shape) / 2.0
    return noisy, labels, weights


def largest_difference(learner, make, *, weighted, seed=0):
    features, labels, weights = reports(seed=seed)
    weights = weights if weighted else np.ones_like(weights)
    models = learner.fit(features, labels, weights=weights)
    differences = []
    for b in range(MEMBERS):
        theirs = make().fit(features[b], labels[b], sample_weight=weights[b])
        differences.append(np.max(np.abs(theirs.coef_[0] - models.coefficients[b])))
        differences.append(abs(np.ravel(theirs.intercept_)[0] - models.intercept[b]))
    return max(differences)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.7, 20.0])
def test_logistic(l2, weighted):
    inverse = np.inf if l2 == 0 else 1.0 / l2

    def make():
        return LogisticRegression(C=inverse, tol=1e-10, max_iter=1000, solver="newton-cholesky")

    assert largest_difference(Logistic(l2=l2), make, weighted=weighted) < TOLERANCE


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.001, 0.05, 1.0])
def test_hinge_with_a_free_intercept_is_svc(C, weighted):
    def make():
        return SVC(kernel="linear", C=C, tol=1e-9)

    assert largest_difference(LinearSVM(C=C), make, weighted=weighted) < TOLERANCE


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.01, 0.5, 1.0, 100.0])
def test_squared_hinge_is_linear_svc_with_a_free_intercept(C, weighted):
    # scikit-learn penalizes (intercept / scale)²; at scale 1e3 that is 1e-6 of a penalty.
    def make():
        return LinearSVC(C=C, dual=False, tol=1e-12, max_iter=10**6, intercept_scaling=1e3)

    learner = LinearSVM(C=C, loss="squared_hinge")
    assert largest_difference(learner, make, weighted=weighted) < TOLERANCE


def test_standardized_svm_is_svc_on_standardized_features():
    features, labels, _ = reports(seed=4)
    models = StandardizedSVM(C=0.5).fit(features, labels)
    for b in range(MEMBERS):
        center, scale = features[b].mean(axis=0), features[b].std(axis=0, ddof=1)
        theirs = SVC(kernel="linear", C=0.5, tol=1e-9).fit(
            (features[b] - center) / scale, labels[b]
        )
        slopes = theirs.coef_[0] / scale
        # The standardized features are not exact in single precision: LIBSVM's own limit.
        assert np.allclose(models.coefficients[b], slopes, atol=1e-5)
        assert np.allclose(models.intercept[b], theirs.intercept_ - slopes @ center, atol=1e-5)


def test_nearest_centroid_gives_the_same_classes():
    features, labels, _ = reports()
    models = NearestCentroid().fit(features, labels)
    for b in range(MEMBERS):
        theirs = TheirNearestCentroid().fit(features[b], labels[b])
        assert np.array_equal(models.predict(features)[b], theirs.predict(features[b]))
