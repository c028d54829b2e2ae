"""Formulas of the parts of a study, against enumeration, quadrature or draws."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logit
from scipy.stats import norm

from dpfda import CurveEncoder, SimulationSource
from dpfda.local.study import columns, moments, reports, slopes, worth
from dpfda.local.study.beliefs import Beliefs, Prior, believing, current, evidence
from dpfda.local.study.design import NumberDesign, VectorDesign
from dpfda.local.study.moments import Correlations, FeatureMap, Reply, public_rows
from dpfda.local.study.posterior import Posterior
from dpfda.local.study.vectors import Known, _evaluated_number, _one_label
from dpfda.protocol.estimate import accuracies_behind
from dpfda.protocol.findings import Step
from dpfda.protocol.linear_scores import chances
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.tasks.vector import SummaryTask

# -- reports --------------------------------------------------------------------------------------


def known(theta: Any, covariance: Any = None, place: float = 0.0) -> Any:
    """As if this were the posterior of slopes."""
    theta = np.atleast_2d(np.asarray(theta, float))
    m, p = theta.shape
    spread = np.zeros((m, p, p)) if covariance is None else np.asarray(covariance, float)
    return SimpleNamespace(theta=theta, covariance=spread, place=place)


def shortened(vectors: Any, most: float) -> Any:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.minimum(1.0, most / lengths)


def vectors_of(query: Any) -> Any:
    """Weighted (1, ψ) of public people, cut at the reach."""
    rows = public_rows(query.directions.shape[1])
    turned = np.column_stack([rows[:, 0], rows[:, 1:] @ query.directions.T]) * query.weights
    return rows, shortened(turned, query.reach)


def reported(kind: Any, query: Any, psi: Any, labels: Any) -> Any:
    """The mean of what people with these white features are asked for, from the task itself."""
    size = psi.shape[1]
    features = FeatureMap.standard(np.zeros(size), np.ones(size), 50.0)
    fields = kind.fields(query, features) | {"weights": query.weights, "limit": query.limit}
    classes = max(kind.rows, 2)
    task = SummaryTask(
        epsilon=1.0, people=len(psi), classes=classes, statistic=query.statistic, **fields
    )
    exact = task.exact((psi, labels), SimulationSource(0))
    return exact.mean(axis=0).reshape(kind.rows, -1)


THETA, OTHER = np.array([[0.4, 1.1, -0.6]]), np.array([[-0.2, 0.5, 0.9]])
DOUBT = np.diag([0.3, 0.5, 0.1])[None]
THREE = np.vstack([THETA, OTHER, -THETA - OTHER])


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("rows", [1, 3])
def test_mean_reports_of_labels(rows: int, here: bool) -> None:
    """All labels of everybody, as likely as θ makes them; some reports are cut twice."""
    kind: Any = reports.Labels(1.0, max(rows, 2))
    asked = THREE[:rows]
    theta = asked if here else 0.3 * THREE[-rows:]
    centered = asked - asked.mean(axis=0) if rows == 3 else asked
    query = kind.query(known(centered, np.tile(DOUBT, (rows, 1, 1))), 1000)
    people, vectors = vectors_of(query)
    mean = np.zeros((rows, 3))
    for label, chance in enumerate(chances(people @ theta.T).T):
        likely = np.array([label]), chance[:, None]
        each = [reported(kind, query, one[None, 1:], likely[0]) for one in people]
        mean += (likely[1][:, :, None] * np.array(each)).mean(axis=0)
    event = kind.event(query, np.zeros(3 * rows), 500)
    np.testing.assert_allclose(event.expected(theta), mean, atol=1e-9)
    # Half-way from where it was asked, and of each score by itself.
    middle = (event.theta + theta) / 2
    for row in range(rows):
        step = np.zeros((rows, 3))
        step[row] = 1e-4 * np.arange(3)
        local = kind.event(query._replace(theta=event.theta), np.zeros(3 * rows), 500)
        moved = (local.expected(middle + step) - local.expected(middle - step))[row] / 2
        together = 1.5 if rows == 3 else 1.0
        np.testing.assert_allclose(
            event.slope(theta)[row] @ step[row], together * moved, rtol=1e-4, atol=1e-9
        )
    assert event.noise == pytest.approx(Reply.of(3 * rows, 1.0).noise)
    cut = np.linalg.norm(vectors, axis=1) >= query.reach - 1e-9
    assert 0.2 < cut.mean() < 0.9


def test_mean_reports_of_numbers() -> None:
    """Residuals are normal around what the other θ predicts, and cut."""
    kind = reports.Numbers(1.0)
    theta, other = 0.5 * THETA, 0.5 * OTHER
    query = kind.query(known(theta, 0.1 * DOUBT), 1000)
    rows, vectors = vectors_of(query)
    z = norm.ppf((np.arange(2000) + 0.5) / 2000)
    left = np.sqrt(1 - other[0, 1:] @ other[0, 1:])
    residual = (rows @ (other - theta)[0])[:, None] + left * z
    length = np.linalg.norm(vectors, axis=1)[:, None]
    kept = np.clip(residual * length, -query.limit, query.limit).mean(axis=1) / query.limit
    mean = (vectors / length * kept[:, None]).mean(axis=0)
    event = kind.event(query, np.zeros(3), 500)
    np.testing.assert_allclose(event.expected(other)[0], mean, atol=1e-4)
    assert np.abs(mean).max() > 0.05
    assert event.noise == pytest.approx(Reply.of(3, 1.0).noise)


def test_what_is_not_known_of_slopes_is_a_residual() -> None:
    kind = reports.Numbers(1.0)
    theta = np.array([0.0, 0.6, 0.0])
    assert kind.residual(known(theta)) == pytest.approx(0.8)
    assert kind.residual(known(theta, DOUBT)) == pytest.approx(np.sqrt(0.64 + 0.9))


def test_every_direction_is_reported_a_little() -> None:
    sure = np.diag([1e-6, 1.0, 1e-6, 1e-6])[None]
    query = reports.Labels(1.0, 2).query(known(np.zeros(4), sure), 100)
    share = query.weights**2 / (query.weights**2).sum()
    assert share.min() == pytest.approx(current().even / 4)
    assert share.max() == pytest.approx(1 - 3 * current().even / 4)


def test_guessing_names_the_larger_class() -> None:
    for share in (0.2, 0.8):
        found = reports.Labels(1.0, 2).scores(known([logit(share), 0.0]))
        assert found.guessing[0] == pytest.approx(0.2)


def test_a_regression_of_several_classes_is_found() -> None:
    """Without noise its scores, which add up to 0, are those of the people who report."""
    kind = reports.Labels(2.0, 3)
    truth = THREE - THREE.mean(axis=0)
    one = slopes.Slopes(slopes.priors(kind.totals, kind.constants, (np.eye(2),)), 3, place=0.0)
    for _ in range(20):
        query = kind.query(one, 10**6)
        one.update(kind.event(query, kind.event(query, truth, 1).expected(truth), 10**6))
    found = kind.scores(one).theta
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found, truth, atol=0.02)
    assert one.evidence > 0.99


# -- slopes ---------------------------------------------------------------------------------------


def test_a_normal_prior_by_quadrature() -> None:
    """Mean, variance and evidence of one coefficient; two that are independent multiply."""
    variances = np.array([0.7, 2.0])
    precision, pull = np.array([3.0, 0.4]), np.array([2.0, -1.0])

    def moment(j: int, power: int) -> float:
        def density(t: float) -> float:
            told = np.exp(pull[j] * t - precision[j] * t**2 / 2)
            return float(t**power * told * norm.pdf(t, scale=variances[j] ** 0.5))

        return quad(density, -20, 20, points=[0.0])[0]

    whole = [moment(j, 0) for j in (0, 1)]
    mean = [moment(j, 1) / whole[j] for j in (0, 1)]
    square = [moment(j, 2) / whole[j] for j in (0, 1)]
    prior = slopes.Priors(
        odds=np.ones(1), bases=np.eye(2)[None], variances=variances[None, None], likely=np.ones(1)
    )
    means, spreads, fit = prior.after(
        np.diag(precision)[None, None], pull[None, None], np.zeros((1, 1, 2))
    )
    np.testing.assert_allclose(means[0, 0], mean)
    np.testing.assert_allclose(np.diag(spreads[0, 0]), np.array(square) - np.square(mean))
    assert fit[0] == pytest.approx(np.log(whole).sum())


def test_liars_behind_slopes_are_those_who_make_them_of_nothing() -> None:
    """Everybody else reports nothing, a liar the longest vector that there is."""
    one = posterior()
    share, longest = 0.1, 8.0
    one.update(direct(np.zeros(3), [0.0, share * longest, 0.0], 1e-6, longest=longest))
    assert one.liars(np.zeros((1, 3))) == pytest.approx(share, rel=0.3)


def test_a_prior_of_unequal_slopes_by_enumeration() -> None:
    """Where numbers do not act on each other, the law that is sought is exact."""
    variances, likely = np.array([[1e-9, 1e-9], [0.7, 2.0], [5.0, 3.0]]), np.array([0.5, 0.2, 0.3])
    precision, pull = np.array([3.0, 0.4]), np.array([2.0, -1.0])
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    spread = 1 / (precision + 1 / variances)
    value = spread * pull
    better = likely[:, None] * np.sqrt(spread / variances) * np.exp(value**2 / (2 * spread))
    which = better / better.sum(axis=0)
    mean = (which * value).sum(axis=0)
    prior = slopes.Priors(
        odds=np.ones(1), bases=turn[None], variances=variances[None], likely=likely
    )
    means, spreads, fit = prior.after(
        (turn @ np.diag(precision) @ turn.T)[None, None], (turn @ pull)[None, None],
        np.zeros((1, 1, 2)),
    )  # fmt: skip
    np.testing.assert_allclose(means[0, 0], turn @ mean)
    variance = (which * (spread + value**2)).sum(axis=0) - mean**2
    np.testing.assert_allclose(spreads[0, 0], turn @ np.diag(variance) @ turn.T, atol=1e-12)
    assert fit[0] == pytest.approx(np.log(better.sum(axis=0)).sum())


class Direct(slopes.Event):
    """The report is θ, with noise."""

    def expected(self, theta: Any) -> Any:
        return theta

    def slope(self, theta: Any) -> Any:
        return np.eye(theta.shape[1])[None]


def direct(theta: Any, report: Any, noise: float, *, longest: float = 1.0) -> Direct:
    at, mean = np.atleast_2d(theta), np.atleast_2d(report)
    return Direct(theta=at, report=mean, people=10, noise=10 * noise, longest=longest)


def posterior(place: float = 0.0) -> slopes.Slopes:
    priors = slopes.priors(np.array([0.2, 2.0]), ((1.0, 1.0),), (np.eye(2),))
    return slopes.Slopes(priors, 1, place=place)


def test_reports_asked_far_from_the_truth_stay_in_doubt() -> None:
    """However many there are; those at the truth are trusted."""
    truth = np.array([0.0, 1.0, 1.0])
    far = posterior()
    for _ in range(20):
        far.update(direct(np.zeros(3), truth, 1e-6))
    near = posterior()
    near.update(direct(np.zeros(3), truth, 1e-6))
    for _ in range(4):
        near.update(direct(near.theta, truth, 1e-6))
    assert np.trace(far.covariance[0]) > 1e-3
    assert np.trace(near.covariance[0]) < 1e-4
    np.testing.assert_allclose(near.theta[0], truth, atol=0.01)
    assert near.evidence > 0.99


def test_slopes_move_a_constant_whose_middle_is_not_known() -> None:
    found = []
    for place in (0.0, 0.5):
        one = posterior(place)
        one.update(direct(np.zeros(3), [0.5, 1.0, 1.0], 0.01))
        found.append(one.covariance[0, 0, 0])
    assert found[1] > 1.3 * found[0]


def test_precise_reports_of_nothing_are_evidence_of_nothing() -> None:
    one = posterior()
    assert one.evidence == pytest.approx(0.5)
    one.update(direct(np.zeros(3), np.zeros(3), 1e-4))
    assert one.evidence < 0.1
    assert one.evidence + evidence(0.9, 1 - one.nothing) == pytest.approx(1)


def test_beliefs_stand_in_one_place() -> None:
    """Slopes are believed in as features of answers are, classes as frequent."""
    with believing(Beliefs(nothing=0.3)):
        found = slopes.priors(np.ones(1), ((1.0, 1.0),), (np.eye(9), np.eye(9)))
        one = Prior(turns=(0,), levels=(True,))
    assert found.odds[: found.without].sum() == pytest.approx(0.3)
    assert found.odds.sum() == pytest.approx(1)
    assert len(found.odds) == 1 + 2
    assert one.hypothesis_odds[0] == 0.3
    log_odds = np.linspace(-9, 9, 2001)
    odds = one.share_odds(log_odds)
    mixed = sum(share * variance for variance, share in reports.Labels(1.0, 2).constants)
    assert odds @ log_odds**2 == pytest.approx(mixed, rel=1e-3)


# -- moments --------------------------------------------------------------------------------------


def test_correlations_of_many_people_without_noise() -> None:
    """Products of ψ that are cut at |ψ|² = d: the second look finds what the first one left."""
    truth = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 1.0]])
    people = np.random.default_rng(0).normal(size=(400_000, 3)) @ np.linalg.cholesky(truth).T
    together = Correlations(np.eye(3))
    rows, others = np.triu_indices(3)
    for _ in range(4):
        psi = shortened(people @ together.into.T, np.sqrt(3))
        both = (psi[:, rows] * psi[:, others]).mean(axis=0) / 3
        together = together.updated(both * np.where(rows == others, 1, np.sqrt(2)), 1e-12)
    np.testing.assert_allclose(together.covariance, truth, atol=0.02)


def test_noise_alone_has_no_correlations() -> None:
    rng = np.random.default_rng(0)
    for noise in (0.02, 0.08):
        square = rng.normal(size=(30, 30)) * noise
        seen_ = np.eye(30) + (np.triu(square) + np.triu(square, 1).T)
        found = np.linalg.eigvalsh(moments.denoised(seen_, noise))
        assert np.ptp(found) < 0.1


def test_what_stands_out_is_not_counted_twice() -> None:
    """One direction has 8 of 20; the others share the rest."""
    rng = np.random.default_rng(0)
    values = np.r_[8.0, np.full(19, 12 / 19)]
    axes = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    square = rng.normal(size=(20, 20)) * 0.05
    seen_ = (axes * values) @ axes.T + np.triu(square) + np.triu(square, 1).T
    found = np.linalg.eigvalsh(moments.denoised(seen_, 0.05))
    assert found[-1] == pytest.approx(8, abs=0.3)
    assert np.median(found) == pytest.approx(12 / 19, abs=0.05)


def test_variances_are_right_on_average() -> None:
    """Also where means are half noise."""
    rng = np.random.default_rng(0)
    mean, noise = rng.normal(0, 0.15**0.5, size=20_000), 0.2
    told = np.r_[mean, 0.8 + mean**2 - 1] + rng.normal(0, noise**0.5, size=40_000)
    found, deviation, left = moments.mean_and_deviation(told, noise)
    assert np.mean(deviation**2) == pytest.approx(0.8, abs=0.02)
    assert left == pytest.approx(np.mean((found - mean) ** 2), rel=0.05)
    assert left == pytest.approx(0.15 * 0.2 / 0.35, rel=0.05)


def test_a_rule_scores_people_as_white_features_do() -> None:
    rng = np.random.default_rng(0)
    first = FeatureMap.standard(rng.normal(size=3), rng.uniform(0.5, 2, size=3), 1.5)
    seen_ = first.then(rng.normal(size=(2, 3)), rng.normal(size=3))
    people = 3 * rng.normal(size=(50, 3))
    inside = np.clip((people - first.location) / first.width, -1.5, 1.5)
    psi = inside @ seen_.matrix.T + seen_.offset
    intercept, weights = rng.normal(size=1), rng.normal(size=(1, 2))
    rule = seen_.rule(intercept, weights)
    scaled = np.clip((people - rule["centers"]) / rule["scales"], -1, 1)
    told = rule["intercept"] + scaled @ rule["coefficients"].T
    np.testing.assert_allclose(told, intercept + psi @ weights.T)


def test_white_features_are_uncorrelated() -> None:
    covariance = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
    into = moments.whitening(covariance)
    np.testing.assert_allclose(into @ covariance @ into.T, np.eye(3), atol=1e-9)


# -- columns --------------------------------------------------------------------------------------


def test_a_shape_has_the_mean_that_its_answers_say() -> None:
    """∫ P(x > t) dt, for shapes inside the range."""
    every = columns.shapes()
    grid = np.r_[0.0, columns.THRESHOLDS, 1.0]
    above = np.column_stack([every.above[:, :1], every.above, every.above[:, -1:]])
    mean = np.trapezoid(above, grid, axis=1)
    hills = len(every.mean) - 2 * len(columns._SHARES) * len(columns._TAILS) - len(columns._SHARES)
    far = np.minimum(every.mean, 1 - every.mean) > 5 * every.width / columns._TO_DEVIATION
    inside = far | (np.arange(len(far)) >= hills)
    assert inside.sum() > 500
    np.testing.assert_allclose(mean[inside], every.mean[inside], atol=0.006)
    low, high = (slice(hills + k, hills + k + 121) for k in (0, 121))  # slopes at either end
    np.testing.assert_allclose(every.above[high], 1 - every.above[low, ::-1], atol=1e-5)


def told(prior_: Any, answers: dict[int, tuple[int, int]], d: int = 1, alone: int = 1) -> Any:
    """Columns after answers no and yes to thresholds, about the first column."""
    found = columns.Columns(prior_, np.ones(d), alpha=0.4, alone=alone)
    asked = np.tile(list(answers), (d, 1))
    counts = np.zeros((*asked.shape, 2))
    counts[0] = list(answers.values())
    found.update(asked, counts)
    return found


def test_answers_are_weighed_by_their_truth() -> None:
    """Odds of two shapes, by hand: answers are true 4 times in 10, and 1 person in 25 anywhere."""
    every = columns.shapes()
    even = np.zeros(len(every.mean))
    one, two = 400, 700
    even[[one, two]] = 0.5
    answers = {20: (30, 50), 90: (40, 10)}
    log = 0.0
    for place, (no, yes) in answers.items():
        for shape, sign in ((one, 1), (two, -1)):
            chance = 0.5 + 0.4 * 0.96 * (every.above[shape, place] - 0.5)
            log += sign * (yes * np.log(chance) + no * np.log(1 - chance))
    posterior_ = told(even, answers).posterior[0]
    assert abs(log) > 0.3
    assert posterior_[one] / posterior_[two] == pytest.approx(np.exp(log))


def test_columns_learn_from_each_other_unless_they_are_alone() -> None:
    public = columns.expected(curves=False)
    answers = {20: (900, 100), 100: (990, 10)}
    for alone, learns in ((0, True), (2, False)):
        found = told(public, answers, d=2, alone=alone)
        assert (not np.allclose(found.posterior[1], public)) is learns


def test_a_column_that_may_be_in_several_places_is_wide() -> None:
    """Three narrow hills; people who lie on the middle one, and to either side of it."""
    every = columns.shapes()
    likely, narrow = np.zeros(len(every.mean)), len(columns._SCALES) - 1
    hills = narrow + len(columns._SCALES) * np.arange(len(columns._LOCATIONS))
    places = [hills[np.abs(every.mean[hills] - mean).argmin()] for mean in (0.3, 0.5, 0.7)]
    likely[places] = 0.3, 0.4, 0.3
    found = columns.Columns(likely, np.ones(1), alpha=0.4, alone=1)
    location, doubt, width = (float(one[0]) for one in found.placed())
    assert location == pytest.approx(0.0, abs=1e-9)
    assert doubt == pytest.approx(2 * np.sqrt(0.6 * 0.2**2))
    assert width == pytest.approx(0.4, abs=0.01)
    chosen = columns.THRESHOLDS[found.asked()[0]]
    np.testing.assert_allclose(np.sort(chosen), np.sort(1 - chosen), atol=0.02)
    halfway = columns._quantile(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([2.0, 4.0]), 0.5)
    np.testing.assert_allclose(halfway, [3.0, 3.5])


# -- vectors --------------------------------------------------------------------------------------


def study(n: int = 1000, d: int = 4, epsilon: float = 2.0) -> Known:
    made = StudyPlan(
        epsilon=epsilon,
        n_people=n,
        encoder=CurveEncoder("identity", feature_ranges=[(-5, 5)] * d),
        classes=(0, 1),
        design={"name": "vectors"},
    )
    return Known(VectorDesign(), made)


def plan_of_numbers() -> StudyPlan:
    return StudyPlan(
        epsilon=2.0,
        n_people=10_000,
        encoder=CurveEncoder("identity", feature_ranges=[(-5, 5)] * 4),
        classes=(),
        target_range=(-20.0, 60.0),
        design={"name": "vector_numbers"},
    )


def test_limits_and_noise_of_reports_about_columns() -> None:
    """The noise of a mean is that of an entry of a report, times what its vector is cut at.

    Tasks carry limits with 20 bits.
    """
    one = study()
    task: Any = one.column_phase(Step("correlation", 10), []).tasks(0, 1)
    assert float(task.limit) == pytest.approx(2.0)  # |ψ|² ≤ d
    task = one.column_phase(Step("spread", 10), []).tasks(0, 1)
    limit, total = float(task.limit), 40 * np.full(8, 0.1)
    one.update_columns("spread", {"total": total, "people": np.array([40.0])})
    noise = limit**2 * Reply.of(8, 2.0).noise / 40
    expected = moments.mean_and_deviation(limit * total / 40, noise)
    assert one._place == pytest.approx(expected[2], rel=1e-5)
    np.testing.assert_allclose(one._mean, expected[0], rtol=1e-5)
    np.testing.assert_allclose(one._deviation, expected[1], rtol=1e-5)


def test_columns_take_a_smaller_share_of_more_people() -> None:
    shares = [study().sizes(n)["location"] / n for n in (100, 10_000, 1_000_000)]
    assert 0.15 < shares[0] < 0.2
    assert shares[2] < 0.1 * shares[1] < 0.1 * shares[0]
    together = [study().sizes(n)["correlation"] / n for n in (100, 1_000_000)]
    assert together[0] < 0.03 < 0.14 < together[1] < 0.15


def test_looking_at_a_study_fixes_nothing() -> None:
    """White features follow what is known of columns until reports begin."""
    one = study()
    before = one.result()
    one.update_columns("spread", {"total": 40 * np.full(8, 0.1), "people": np.array([40.0])})
    after = one.result()
    fresh = study()
    fresh.update_columns("spread", {"total": 40 * np.full(8, 0.1), "people": np.array([40.0])})
    assert after.model.to_dict() == fresh.result().model.to_dict()
    assert not np.array_equal(one.fit.white.matrix, study().fit.white.matrix)
    assert before.model.to_dict() == study().result().model.to_dict()
    assert one.fit.slopes is not one.fit.slopes
    one.next_query(40)
    assert one.fit.slopes is one.fit.slopes
    one.update_columns("spread", {"total": np.zeros(8), "people": np.array([40.0])})
    np.testing.assert_array_equal(one.fit.white.matrix, fresh.fit.white.matrix)


def test_who_is_near_a_prediction_tells_its_error() -> None:
    """E r² = H² P(|r| > h) where h² is uniform, of numbers that are normal around predictions."""
    made = plan_of_numbers()
    half, farthest, deviation = 40.0, 0.3, 4.0
    radius = farthest * np.sqrt((np.arange(4000) + 0.5) / 4000)
    near = np.mean(2 * norm.cdf(radius * half / deviation) - 1)
    heard = 5000
    left, right = (float(accuracies_behind(t, heard, epsilon=2.0)[0]) for t in (0.0, 1000.0))
    total = 1000 * (near - left) / (right - left)
    error = float(accuracies_behind(total, heard, epsilon=2.0)[1])
    first = Known(NumberDesign(), made).result()
    asked: Any = SimpleNamespace(plan=made, phase=3, farthest=farthest)
    judged = _evaluated_number(asked, first, heard)
    next(judged)
    with pytest.raises(StopIteration) as end:
        judged.send({"total": np.array([total]), "people": np.array([float(heard)])})
    found = end.value.value.findings.error
    assert found.value == pytest.approx(deviation, rel=0.01)
    slope = (farthest * half) ** 2 / (2 * deviation)
    assert found.standard_error == pytest.approx(slope * error, rel=0.01)
    assert found.people == heard


def test_numbers_are_predicted_by_their_mean_before_anybody_reports() -> None:
    """Also if that is far from the middle of their range."""
    one = Known(NumberDesign(), plan_of_numbers())
    one.update_columns(
        "spread", {"total": 4e6 * np.r_[0.2, np.zeros(9)], "people": np.array([4e6])}
    )
    standard = one._standard()
    mean = standard.location[0] + standard.width[0] * one._mean[0]
    assert one._mean[0] > 0.5
    assert one.result().model.intercept[0] == pytest.approx(20 + 40 * mean)


def test_rules_that_give_nearly_everybody_one_label() -> None:
    slopes_ = np.array([[1.0, 0.5]])
    for intercept, constant in ((0.0, False), (2.0, False), (9.0, True), (-9.0, True)):
        assert _one_label(np.insert(slopes_, 0, intercept, axis=1)) is constant
    three = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    for intercept, constant in ((0.0, False), (30.0, True)):
        assert _one_label(np.insert(three, 0, [0.0, intercept, 0.0], axis=1)) is constant


# -- worth ----------------------------------------------------------------------------------------


def covariance(features: int = 2, questions: int = 3) -> Any:
    rng = np.random.default_rng(0)
    size = 4 + 2 * questions
    half = rng.normal(size=(features, size, size))
    return half @ np.swapaxes(half, 1, 2), rng.uniform(0.5, 2, size=(features, 2, questions))


def conditioned(whole: Any, places: list[int], noise: Any) -> Any:
    """Variances of the targets, given noisy answers at these places."""
    inner = whole[np.ix_(places, places)] + np.diag(noise)
    cross = whole[:4, places]
    return np.diag(whole[:4, :4] - cross @ np.linalg.solve(inner, cross.T))


def test_variances_after_one_answer_and_after_both() -> None:
    whole, noise = covariance()
    for answered in ([0], [1], [0, 1]):  # plain, labelled, both
        heard = np.full_like(noise, np.inf)
        heard[:, answered] = noise[:, answered]
        falls = worth._falls(whole, heard)
        for feature in range(2):
            before = np.diag(whole[feature])[:4]
            for k in range(3):
                places = [4 + 3 * kind + k for kind in answered]
                found = conditioned(whole[feature], places, noise[feature, answered, k])
                np.testing.assert_allclose(before - falls[feature, :, k], found)


def test_the_loss_is_a_variance_of_log_odds() -> None:
    """Of a feature with d = r = 0 and a middle that is known, at normal people: 4 d² and 8 r²."""
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    for d, r in ((0.1, 0.0), (0.0, 0.1)):
        loss = worth._loss(np.array([[d**2, 0.0, 0.0, r**2]]), np.zeros(1), later=0.0)
        odds = 2 * d * np.ones_like(z) if d else 2 * r * (z**2 - 1)
        assert loss[0] == pytest.approx(np.mean(odds**2), rel=0.01)


def test_doubt_about_the_share_makes_answers_less_certain() -> None:
    """The variance of a mean answer is that over π and over points."""
    of = {"turns": (0,), "levels": (True,)}
    unsure = worth._belief(Posterior(Prior(**of)))
    one = Posterior(Prior(**of))
    particles, (share, doubt) = one.particles, one.share
    middle, log_width, d, r = np.moveaxis(particles.points, 2, 0)
    threshold = unsure.questions.threshold[1 + 3]
    ones, others = (part[0] for part in worth.above(threshold, middle, np.exp(log_width), d, r))
    weights = particles.weights[0]
    for place, sign in ((3, -1), (8, 1)):
        mean = share * ones - sign * (1 - share) * others
        slope = weights @ (ones + sign * others)
        variance = weights @ (mean - weights @ mean) ** 2 + doubt * slope**2
        assert unsure.covariance[0, 4 + place, 4 + place] == pytest.approx(variance)
    assert doubt > 0.01


def test_middles_are_worth_something_before_differences_are_known() -> None:
    """If others are asked about these later: beside the middle, their answers say less."""
    variances = np.array([[[0.2, 0.2], [0.0, 1.5], [0.0, 0.0], [0.0, 0.0]]])
    known_, vague = worth._loss(variances, np.zeros(1), later=10.0)[0]
    told = 0.64 * 10 * 0.2  # information beside 1/variance; half of it where the middle is vague
    expected = 4 * 0.2 * (np.log1p(told / 2) / (told / 2) - np.log1p(told) / told)
    assert vague - known_ == pytest.approx(expected)
    known_, vague = worth._loss(variances, np.zeros(1), later=0.0)[0]
    assert vague == known_


@pytest.mark.parametrize("questions", [1, 2])
def test_features_that_are_alike_are_asked_about_alike(questions: int) -> None:
    """A question that was asked is worth less in the next step; a label is one as well."""
    one = Posterior(Prior(turns=(0, 0, 0, 0), levels=(True,) * 4, ordered=False))
    _, asked = worth._chosen(worth._belief(one), 50.0, per_person=questions, alpha=0.5, later=0.0)
    assert np.ptp(asked[1:].reshape(4, -1).sum(axis=1)) <= 50
    assert asked.sum() == 8 * 50  # beside the label, which everybody tells who answers two


def test_labels_tell_how_frequent_classes_are() -> None:
    """As 400 of them do that are normal around α (2π - 1)."""
    one = worth._belief(Posterior(Prior(turns=(0,), levels=(True,))))
    of = {"per_person": 2, "alpha": 0.6, "later": 0.0}
    (asked, _), (known_, _) = (
        worth._chosen(one._replace(share=0.3, log_odds=odds), 50.0, **of) for odds in (0.5, 0.0)
    )
    rise = 0.6 * 2 * 0.3 * 0.7  # of the mean answer, with logit π
    after = 1 / (1 / 0.5 + 400 * rise**2 / (1 - (0.6 * 0.4) ** 2))
    assert asked - known_ == pytest.approx(0.5 - after)
