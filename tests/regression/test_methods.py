"""Every method: it learns, it keeps its budget, and an attack finds no more than it claims."""

import math

import numpy as np
import pytest

from dpfda.errors import InvalidParameter
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import audit
from dpfda.privacy.guarantee import Guarantee
from dpfda.regression.estimators import PrivateLinearRegression, PrivateLogisticRegression
from dpfda.regression.fitting import Fitting
from dpfda.regression.methods import Method
from dpfda.regression.problem import Problem
from dpfda.regression.stage import WholeStage

EVERY = sorted(Method.members())
PURE = ["fm", "moments", "output_perturbation"]


def line(n=20_000, seed=0, dimension=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, dimension))
    slope = np.array([0.9, -0.5] + [0.0] * (dimension - 2))
    return X, X @ slope + 0.1 + rng.uniform(-0.1, 0.1, n)


@pytest.mark.parametrize("method", EVERY)
def test_learns_a_line(method):
    X, y = line()
    model = PrivateLinearRegression(2.0, method=method, random_state=1).fit(X, y)
    # The trivial predictor's error is the variance 0.09; non-private 0.0033.
    assert np.mean((model.predict(X) - y) ** 2) < 0.05
    assert model.coef_.shape == (3,)
    assert model.guarantee_.epsilon == 2.0
    assert model.guarantee_.delta == (0.0 if method == "fm" else 1e-5)


@pytest.mark.parametrize("method", EVERY)
def test_learns_a_boundary(method):
    X, y = line()
    labels = (y > 0.1).astype(int)
    model = PrivateLogisticRegression(2.0, method=method, random_state=1).fit(X, labels)
    assert model.score(X, labels) > 0.85
    proba = model.predict_proba(X[:5])
    assert np.allclose(proba.sum(1), 1)
    assert ((proba[:, 1] > 0.5) == (model.decision_function(X[:5]) > 0)).all()


@pytest.mark.parametrize("method", EVERY)
def test_without_intercept(method):
    X, y = line()
    model = PrivateLinearRegression(2.0, method=method, fit_intercept=False, random_state=1)
    model.fit(X, y)
    assert model.intercept_ == pytest.approx(0.0)


@pytest.mark.parametrize("method", EVERY)
def test_stages_spend_exactly_the_budget(method):
    problem = Problem(task="linear", epsilon=0.7, delta=1e-5, center=np.zeros(2))
    X, y = line(500, dimension=2)
    fitting = Fitting(Method.named(method)(), problem, SimulationSource(0))
    spent = []
    while not fitting.done:
        stage = fitting.stage
        spent.append((stage.noise, stage.budget))
        if isinstance(stage, WholeStage):
            fitting._answer(stage.answer(X, y, SimulationSource(1)))
        else:
            fitting.add(X, y)
            fitting.release()
    if method == "objective_perturbation":
        return  # its proof adds (ε, δ) parts; see test_objective_perturbation_budget
    if spent[0][0] == "laplace":
        assert sum(budget for _, budget in spent) == pytest.approx(0.7)
    else:
        assert math.sqrt(sum(budget**2 for _, budget in spent)) == pytest.approx(problem.mu)


@pytest.mark.parametrize("method", [name for name in EVERY if name not in PURE])
def test_pure_epsilon_is_refused_where_no_exact_sampler_is_known(method):
    X, y = line(100)
    with pytest.raises(InvalidParameter, match="delta"):
        PrivateLinearRegression(1.0, delta=0.0, method=method, random_state=0).fit(X, y)


@pytest.mark.parametrize("method", PURE)
def test_pure_epsilon(method):
    X, y = line(50_000)
    model = PrivateLinearRegression(2.0, delta=0.0, method=method, random_state=0).fit(X, y)
    assert model.guarantee_.delta == 0.0
    assert np.mean((model.predict(X) - y) ** 2) < 0.05


class StageAttack:
    """A stage's release on one of two neighbouring single rows, for the audit."""

    log_likelihood = None

    def __init__(self, stage, pairs, *, epsilon, delta):
        self.stage, self.pairs = stage, pairs
        self.guarantee = Guarantee(epsilon=epsilon, delta=delta)

    def randomize(self, values, rng):
        return self.stage.perturb(values, rng)

    def worst_cases(self):
        return self.pairs


def worst_rows(problem):
    """Single-row data sets that differ as much as rows can."""
    size = problem.dimension
    first, second = np.eye(size)[:1] * problem.radius, np.eye(size)[1:2] * problem.radius
    tilted = (0.25 * first + math.sqrt(15 / 16) * second,)
    ends = (problem.target_center - problem.target_radius, problem.target_center + 1.0)
    rows = [first, -first, second, *tilted, np.zeros((1, size))]
    return [(x, np.array([y])) for x in rows for y in (ends[0], ends[1])]


ADDITIVE = [name for name in EVERY if not name.endswith("_perturbation")]


@pytest.mark.parametrize(
    ("method", "delta"),
    [(name, 0.05) for name in ADDITIVE] + [(name, 0.0) for name in PURE if name in ADDITIVE],
)
def test_audit_of_every_stage(method, delta):
    """An attack on the release, at the worst pair of rows, finds no more than the budget."""
    problem = Problem(
        task="linear", epsilon=1.0, delta=delta, center=np.zeros(2), fit_intercept=False
    )
    conversation = Method.named(method)().converse(problem)
    stage = next(conversation)
    answers = [stage.statistic(stage.sums(x, y)) for x, y in worst_rows(problem)]
    gaussian = stage.noise == "gaussian"
    order = 2 if gaussian else 1
    pairs = [(one[None], other[None]) for one in answers for other in answers]
    pairs.sort(key=lambda pair: np.linalg.norm((pair[0] - pair[1]).ravel(), order))
    worst = pairs[-1]
    assert np.linalg.norm((worst[0] - worst[1]).ravel(), order) <= stage.sensitivity * (1 + 1e-12)
    if gaussian:  # what (ε, δ) this stage alone may cost
        from dpfda.privacy.calibration import gaussian_epsilon

        epsilon = gaussian_epsilon(delta=0.05, multiplier=1 / stage.budget)
        attack = StageAttack(stage, [worst], epsilon=epsilon, delta=0.05)
    else:
        attack = StageAttack(stage, [worst], epsilon=stage.budget, delta=0.0)
    found = audit(attack, name=method, draws=20_000, source=SimulationSource(7))
    assert found.lower_bound <= attack.guarantee.epsilon


@pytest.mark.parametrize("method", ["objective_perturbation", "output_perturbation"])
def test_audit_of_whole_fits(method):
    """The fitted slope of two neighbouring data sets, told apart no better than claimed."""
    problem = Problem(
        task="logistic", epsilon=1.0, delta=0.05, center=np.zeros(1), fit_intercept=False,
        target_center=0.5, target_radius=0.5,
    )  # fmt: skip

    class Attack:
        log_likelihood = None
        guarantee = Guarantee(epsilon=1.0, delta=0.05)

        def randomize(self, values, rng):
            rows = np.array([[1.0], [1.0], [-1.0]])
            labels = np.array([1.0, 0.0, values[0, 0]])
            fits = [
                Fitting(Method.named(method)(), problem, rng).whole(rows, labels).slope
                for _ in range(len(values))
            ]
            return np.array(fits)

        def worst_cases(self):
            return [(np.array([[0.0]]), np.array([[1.0]]))]

    found = audit(Attack(), name=method, draws=1000, source=SimulationSource(3))
    assert found.lower_bound <= 1.0


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


def test_objective_perturbation_budget():
    from scipy.stats import norm

    from dpfda.regression.methods.objective_perturbation import tilt_sigma

    sigma, q = tilt_sigma(0.5, 1e-5), norm.isf(1e-5 / 4)
    assert (2 * q * sigma + 2) / sigma**2 == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("method", "task"),
    [("gaussian_fm", "linear"), ("gaussian_fm", "logistic"), ("moments", "linear")],
)
def test_standard_errors_match_the_spread_of_fits(method, task):
    X, y = line(20_000)
    estimator = PrivateLinearRegression if task == "linear" else PrivateLogisticRegression
    target = y if task == "linear" else (y > 0.1).astype(int)
    fits = [estimator(1.0, method=method, random_state=seed).fit(X, target) for seed in range(50)]
    spread = np.std([fit.coef_ for fit in fits], axis=0)
    stated = np.mean([np.sqrt(np.diag(fit.fit_.covariance)) for fit in fits], axis=0)
    # 50 fits: a standard deviation is known to 1/√100 = 10 %; three of those, and the formula is
    # first order (it leaves out that the clipping ball moves as well).
    assert (np.abs(spread / stated - 1) < 0.45).all()


def test_chebyshev_scales_the_log_odds_and_keeps_the_boundary():
    from dpfda.regression.methods.gaussian_fm import GaussianFM

    X, y = line()
    labels = (y > 0.1).astype(int)
    fits = [
        PrivateLogisticRegression(1.0, method=GaussianFM(expansion=e), random_state=0).fit(
            X, labels
        )
        for e in ("taylor", "chebyshev")
    ]
    assert (fits[0].predict(X) == fits[1].predict(X)).all()
    assert np.abs(fits[1].coef_).sum() > np.abs(fits[0].coef_).sum()
