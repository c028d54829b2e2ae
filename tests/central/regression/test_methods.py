"""Every method: it learns, it keeps its budget, and an attack finds no more than it claims."""

import math

import numpy as np
import pytest

from dpfda.central.regression.base import RegressionMechanism
from dpfda.errors import InvalidParameter
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_logistic_regression import PrivateLogisticRegression
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import audit
from dpfda.privacy.guarantee import Guarantee

# Other packages, such as the benchmarks, may register mechanisms of their own.
EVERY = sorted(
    name
    for name, member in RegressionMechanism.members().items()
    if member.__module__.startswith("dpfda.")
)
PURE = ["moments", "output_perturbation"]


def linear(epsilon, **more):
    return PrivateLinearRegression(epsilon, feature_norm_bound=1.0, target_range=(-1, 1), **more)


def logistic(epsilon, **more):
    return PrivateLogisticRegression(epsilon, feature_norm_bound=1.0, **more)


def line(n=20_000, seed=0, dimension=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, dimension))
    slope = np.array([0.9, -0.5] + [0.0] * (dimension - 2))
    return X, X @ slope + 0.1 + rng.uniform(-0.1, 0.1, n)


@pytest.mark.parametrize("mechanism", EVERY)
def test_learns_a_line(mechanism):
    X, y = line()
    model = linear(2.0, mechanism=mechanism, random_state=1).fit(X, y)
    # The trivial predictor's error is the variance 0.09; non-private 0.0033.
    assert np.mean((model.predict(X) - y) ** 2) < 0.05
    assert model.coef_.shape == (3,)
    assert model.guarantee_.epsilon == 2.0
    # Of four numbers the noise of pure ε is smaller.
    assert model.guarantee_.delta == (0 if mechanism == "output_perturbation" else 1e-6)


@pytest.mark.parametrize("mechanism", EVERY)
def test_learns_a_boundary(mechanism):
    X, y = line()
    labels = (y > 0.1).astype(int)
    model = logistic(2.0, mechanism=mechanism, random_state=1).fit(X, labels)
    assert model.score(X, labels) > 0.85
    proba = model.predict_proba(X[:5])
    assert np.allclose(proba.sum(1), 1)
    assert ((proba[:, 1] > 0.5) == (model.decision_function(X[:5]) > 0)).all()


@pytest.mark.parametrize("mechanism", EVERY)
def test_without_intercept(mechanism):
    X, y = line()
    model = linear(2.0, mechanism=mechanism, fit_intercept=False, random_state=1)
    model.fit(X, y)
    assert model.intercept_ == pytest.approx(0.0)


@pytest.mark.parametrize("mechanism", [name for name in EVERY if name not in PURE])
def test_pure_epsilon_is_refused_where_no_exact_sampler_is_known(mechanism):
    X, y = line(100)
    with pytest.raises(InvalidParameter, match="delta"):
        linear(1.0, delta=0.0, mechanism=mechanism, random_state=0).fit(X, y)


@pytest.mark.parametrize("mechanism", PURE)
def test_pure_epsilon(mechanism):
    X, y = line(50_000)
    model = linear(2.0, delta=0.0, mechanism=mechanism, random_state=0).fit(X, y)
    assert model.guarantee_.delta == 0.0
    assert np.mean((model.predict(X) - y) ** 2) < 0.05


def test_audit_catches_the_published_twin():
    """Three releases that each spend the whole budget (C7) are told apart too well."""
    scale = math.sqrt(2 * math.log(1.25 / 0.05)) / 2.0  # claimed ε = 2, δ = 0.05

    class Twin:
        log_likelihood = None
        guarantee = Guarantee(epsilon=2.0, delta=0.05)

        def randomize(self, values, rng):
            return values + rng.generator.normal(size=values.shape) * scale

        def worst_cases(self):
            # (Λ0/1, Λ1/4, Λ2/1) of y = 1, x = e1 and y = 0, x = e2: upper triangles
            return [
                (np.array([[1.0, -0.5, 0.0, 1.0, 0.0, 0.0]]), np.array([[0, 0, 0, 0, 0, 1.0]])),
            ]

    found = audit(Twin(), name="as published", draws=60_000, source=SimulationSource(5))
    assert found.lower_bound > 2.0


@pytest.mark.parametrize("mechanism", ["gaussian_fm", "adassp"])
def test_intervals_are_as_wide_as_fits_spread(mechanism):
    X, y = line(20_000)
    fits = [
        linear(4.0, delta=1e-5, mechanism=mechanism, random_state=k).fit(X, y) for k in range(50)
    ]
    spread = np.std([fit.coef_ for fit in fits], axis=0)
    stated = np.mean([np.subtract(*fit.model_.interval()[::-1]) for fit in fits], axis=0)
    # 50 fits: a standard deviation is known to 1/√100 = 10 %; three of those.
    assert (np.abs(2 * 1.96 * spread / stated - 1) < 0.3).all()


def test_log_odds_state_no_interval():
    X, y = line(20_000)
    model = logistic(1.0, mechanism="gaussian_fm", random_state=0).fit(X, (y > 0.1).astype(int))
    assert not model.model_.has_interval
    with pytest.raises(InvalidParameter, match="for intervals"):
        model.model_.interval()


def test_chebyshev_scales_the_log_odds_and_keeps_the_boundary():
    from dpfda.central.regression.alternatives import GaussianFM

    X, y = line()
    labels = (y > 0.1).astype(int)
    fits = [
        logistic(1.0, mechanism=GaussianFM(expansion=e), random_state=0).fit(X, labels)
        for e in ("taylor", "chebyshev")
    ]
    assert (fits[0].predict(X) == fits[1].predict(X)).all()
    assert np.abs(fits[1].coef_).sum() > np.abs(fits[0].coef_).sum()
