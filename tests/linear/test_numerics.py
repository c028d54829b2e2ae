"""What a local linear study computes from sums, against closed forms and simulated truths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpfda._validate import FloatArray
from dpfda.linear import many_classes, spread, two_classes
from dpfda.linear.directions import principal, weights
from dpfda.linear.features import FeatureMap
from dpfda.linear.location import Whereabouts, thresholds
from dpfda.linear.reports import effective_people, entry_noise
from dpfda.linear.schedule import Schedule
from dpfda.linear.shapes import THRESHOLDS, public_prior, shapes
from dpfda.linear.shrinkage import believed
from dpfda.linear.two_classes import Rate
from dpfda.protocol.linear_scores import linear_scores


def asked(where: Whereabouts, x: np.ndarray, rng: np.random.Generator) -> None:
    """Everybody answers one threshold of each column, truthfully with probability α."""
    n, d = x.shape
    columns = np.broadcast_to(np.arange(d), (n, d))
    place = thresholds(where.posterior(), columns, rng.random((n, 2 * d)))
    true = rng.random((n, d)) < where.alpha
    yes = np.where(true, x > THRESHOLDS[place], rng.random((n, d)) < 0.5)
    np.add.at(where.counts, (columns, place, yes.astype(np.int64)), 1)


@pytest.mark.parametrize(("middle", "scale"), [(0.5, 0.1), (0.05, 0.02), (0.8, 0.04)])
def test_location_and_width_are_found(middle: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    where = Whereabouts.unknown(3, alpha=0.5, public=public_prior())
    for _ in range(8):
        asked(where, rng.normal(middle, scale, (400, 3)), rng)
        where.pool()
    location, doubt, width = where.found()
    # 800 effective answers at ±1.1 s of the median: its standard error is about 1.25 σ/√800 = σ/22,
    # and the grid is 0.01 wide in the middle.
    assert np.all(np.abs(location - middle) < max(0.011, scale / 4))
    assert np.all(doubt < max(0.01, scale / 2))
    # Scales of the grid are powers of two, and a cautious quantile is taken.
    assert np.all((width > scale / 2) & (width < 1.6 * scale))


def test_columns_learn_from_each_other() -> None:
    """With three answers each, forty columns alike find their common width; four cannot."""
    widths = {}
    for columns in (4, 40):
        rng = np.random.default_rng(1)
        found = []
        for _ in range(10):
            where = Whereabouts.unknown(columns, alpha=1.0, public=public_prior())
            for _ in range(3):
                asked(where, rng.normal(0.3, 0.02, (1, columns)), rng)
                where.pool()
            found.append(np.abs(where.found()[0] - 0.3).mean())
        widths[columns] = np.mean(found)
    assert widths[40] < 0.7 * widths[4]


def test_widths_that_are_alike_are_found_together() -> None:
    """From forty effective answers a column; nobody who knows the widths changes them."""
    rng = np.random.default_rng(4)
    where = Whereabouts.unknown(8, alpha=0.5, public=public_prior(curves=True))
    for _ in range(8):
        asked(where, rng.normal(0.5, 0.08, (20, 8)), rng)
        where.pool()
    alone, together = (where.found(alike=spread)[2] for spread in (None, 0.35))
    # Answers of one column leave a factor of two open, those of eight a factor of 1.3.
    errors = [np.abs(np.log(width / 0.08)).mean() for width in (alone, together)]
    assert errors[1] < 0.7 * errors[0]
    every = shapes()
    where = Whereabouts.unknown(2, alpha=0.5, public=public_prior(curves=True))
    sure = np.flatnonzero((every.mean == 0.5) & (every.width > 0.01))[[0, -1]]
    where.alone = np.zeros((2, len(every.mean)))
    where.alone[[0, 1], sure] = 1.0
    assert_allclose(where.found(alike=0.35)[2], every.width[sure], rtol=1e-4)
    where.alone[:, sure] = [[0.8, 0.2], [0.2, 0.8]]
    first, second = np.log(every.width[sure])
    # Each knows its logarithm as well as the other: by 0.16 times the square of their distance.
    v = 0.16 * (second - first) ** 2
    middle, off = (first + second) / 2, 0.3 * (second - first) * 0.35**2 / (v + 0.35**2)
    found = np.log(where.found(alike=0.35)[2])
    assert_allclose(found, [middle - off, middle + off], rtol=1e-4)


def amounts(rng: np.random.Generator, n: int) -> FloatArray:
    """Of most people 0, of the others exponential."""
    return (rng.random(n) < 0.4) * np.minimum(rng.exponential(0.2, n), 1)


@pytest.mark.parametrize(
    ("mean", "deviation", "column"),
    [
        (0.65, 0.477, lambda rng, n: (rng.random(n) < 0.65) * 1.0),
        (
            0.08,
            0.146,
            lambda rng, n: (rng.random(n) < 0.4) * np.minimum(rng.exponential(0.2, n), 1),
        ),
        (
            0.92,
            0.146,
            lambda rng, n: 1 - (rng.random(n) < 0.4) * rng.exponential(0.2, n).clip(0, 1),
        ),
    ],
    ids=["ends", "low slope", "high slope"],
)
def test_columns_with_people_at_an_end_are_not_narrow(
    mean: float, deviation: float, column: Callable[[np.random.Generator, int], FloatArray]
) -> None:
    """Most people of a hill lie near its middle; here they would make the column 2^-11 wide."""
    rng = np.random.default_rng(3)
    where = Whereabouts.unknown(3, alpha=0.7, public=public_prior())
    for _ in range(8):
        asked(where, column(rng, 900).reshape(300, 3), rng)
        where.pool()
    location, _, width = where.found()
    # 1200 effective answers a column; shapes are a tenth apart, widths of slopes a factor of two.
    assert np.all(np.abs(location - mean) < 0.06)
    assert np.all((width > deviation / 2) & (width < 1.5 * deviation))


def test_each_shape_has_the_mean_of_its_law() -> None:
    """E x = ∫ P(x > t) dt, by the trapezoidal rule; hills may reach beyond the range."""
    every = shapes()
    t = np.r_[0.0, THRESHOLDS, 1.0]
    hills = np.prod(every.hills)
    above = np.concatenate([every.above[:, :1], every.above, every.above[:, -1:]], axis=1)
    found = ((above[:, 1:] + above[:, :-1]) / 2 * np.diff(t)).sum(axis=1)
    assert_allclose(found[hills:], every.mean[hills:], atol=3e-3)
    inside = (every.mean[:hills] > 0.3) & (every.mean[:hills] < 0.7) & (every.width[:hills] < 0.12)
    assert_allclose(found[:hills][inside], every.mean[:hills][inside], atol=3e-3)
    assert np.all((every.above >= 0) & (every.above <= 1))
    assert np.all(np.diff(every.above) <= 1e-12)
    # Amounts that fill little of the range: half of θ beyond the mean is already all that counts.
    slopes = every.above[hills : hills + 121]
    tails = np.log(slopes[:, 0] / slopes[:, 40]) / (THRESHOLDS[40] - THRESHOLDS[0])
    assert np.all(2 * every.width[hills : hills + 121][tails > 40] < 0.5 / tails[tails > 40])
    assert np.all(2 * every.width[hills : hills + 121][tails < 20] > 0.1 / tails[tails < 20])


def test_people_at_one_end_alone_are_no_rare_yes() -> None:
    """Ten times nobody above: a rare yes explains that as well as a slope, and would be wide."""
    where = Whereabouts.unknown(1, alpha=0.9, public=public_prior())
    where.counts[:, np.searchsorted(THRESHOLDS, [0.02, 0.1, 0.3, 0.5, 0.7]), 0] = 2
    # Were all shares of a yes as likely before, it would be 0.22.
    assert where.posterior()[0, -11:].sum() < 0.1


def test_a_width_is_no_less_than_what_is_not_known_of_the_location() -> None:
    where = Whereabouts.unknown(1, alpha=0.5, public=public_prior())
    every = shapes()
    narrow = np.flatnonzero(every.width < 0.002)
    three = [narrow[np.abs(every.mean[narrow] - middle).argmin()] for middle in (0.2, 0.5, 0.8)]
    where.prior = np.zeros(len(every.mean))
    where.prior[three] = 1 / 3
    location, _, width = where.found()
    assert location[0] == pytest.approx(0.5, abs=0.01)
    assert width[0] == pytest.approx(0.3, abs=0.02)


def test_a_known_middle_stays() -> None:
    rng = np.random.default_rng(2)
    where = Whereabouts.unknown(2, alpha=0.3, public=public_prior(center_known=True))
    asked(where, rng.normal(0.2, 0.1, (50, 2)), rng)
    where.pool()
    assert_allclose(where.found()[0], 0.5, atol=1e-9)


def test_curves_are_expected_in_the_middle_of_their_range() -> None:
    of = [Whereabouts.unknown(1, alpha=0.5, public=public_prior(curves=c)) for c in (False, True)]
    (table, curve) = (where.found()[1][0] for where in of)
    assert curve < 0.75 * table
    assert of[1].found()[2][0] == pytest.approx(1 / 6, rel=0.6)


def test_thresholds_do_not_depend_on_who_else_is_asked() -> None:
    posterior = Whereabouts.unknown(3, alpha=0.5, public=public_prior()).posterior()
    columns = np.array([[0, 2], [1, 0], [2, 1]])
    uniforms = np.random.default_rng(0).random((3, 4))
    whole = thresholds(posterior, columns, uniforms)
    for row in range(3):
        part = thresholds(posterior, columns[row : row + 1], uniforms[row : row + 1])
        assert part.tolist() == whole[row : row + 1].tolist()


def test_a_map_of_features_and_its_rule_agree() -> None:
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (50, 3))
    seen = FeatureMap.standard(rng.normal(size=3) / 5, np.array([0.1, 0.3, 0.5]), 2.0)
    seen = seen.then(np.diag([2.0, 0.5, 1.0]), np.array([0.1, -0.2, 0.3]))
    seen = seen.then(rng.normal(size=(2, 3)))
    psi = np.clip((z - seen.location) / seen.width, -2, 2) @ seen.matrix.T + seen.offset
    intercept, slopes = rng.normal(size=4), rng.normal(size=(4, 2))
    scores = linear_scores(z, **seen.rule(intercept, slopes))
    assert_allclose(scores, intercept + psi @ slopes.T, atol=1e-12)
    assert_allclose(seen.then(np.eye(2), 1.0).offset, seen.offset - 1.0)


def test_mean_and_deviation_without_noise_are_exact() -> None:
    mean, square = np.array([0.3, -0.5, 0.0]), np.array([1.5, 0.8, 1.0])
    found = spread.mean_and_deviation(np.r_[mean, square - 1], 1e-12)
    assert_allclose(found[0], mean, rtol=1e-6)
    assert_allclose(found[1], np.sqrt(square - mean**2), rtol=1e-6)


def test_a_mean_that_is_hardly_known_makes_no_feature_narrow() -> None:
    """Thirty features of mean ±.7 and variance 1, seen with noise of variance .5.

    An estimate of the square less the square of the estimated mean is near 0 for some of them; a
    feature that is then stretched threefold drowns the others.
    """
    rng = np.random.default_rng(0)
    means = np.where(rng.random(30) < 0.5, 0.7, -0.7)
    typical = []
    for _ in range(20):
        told = np.r_[means, means**2] + rng.normal(size=60) * np.sqrt(0.5)
        mean, deviation = spread.mean_and_deviation(told, 0.5)
        assert deviation.min() > 0.5
        assert np.mean((mean - means) ** 2) < 0.5
        typical.append(deviation.mean())
    # Means are believed less than they could be, which leaves .2 of their square to the variance.
    assert np.mean(typical) == pytest.approx(1.1, abs=0.1)


def test_mean_and_deviation_of_noise_alone_say_nothing() -> None:
    told = np.r_[0.3, -0.3, 0.2, -0.2]
    mean, deviation = spread.mean_and_deviation(told, 10.0)
    assert_allclose(mean, 0.0, atol=1e-6)
    assert_allclose(deviation, 1.0, atol=1e-6)


def test_a_matrix_without_noise_stays() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 4))
    second = rows.T @ rows / 6
    second /= np.trace(second) / 4
    upper = np.triu_indices(4)
    products = (second * np.where(np.eye(4), 1.0, np.sqrt(2)))[upper]
    assert_allclose(spread.as_matrix(products, 4), second)
    assert_allclose(spread.denoised(second, 1e-9, floor=1e-6), second, atol=1e-6)


def test_noise_has_no_directions_and_a_factor_is_seen() -> None:
    rng = np.random.default_rng(0)
    size, noise = 30, 0.2
    upper = np.triu(rng.normal(size=(size, size)), 1) * noise
    noisy = upper + upper.T + np.diag(rng.normal(size=size) * noise * np.sqrt(2))
    # Eigenvalues of noise reach 2 σ √d = 2.2 and more than 2.05 σ √d = 2.25 hardly ever.
    assert np.ptp(np.linalg.eigvalsh(spread.denoised(np.eye(size) + noisy, noise))) < 1.0
    axis = np.ones(size) / np.sqrt(size)
    truth = 0.7 * np.eye(size) + 9.0 * np.outer(axis, axis)
    values, vectors = np.linalg.eigh(spread.denoised(truth + noisy, noise))
    assert abs(vectors[:, -1] @ axis) > 0.9
    assert values[-1] == pytest.approx(9.7, rel=0.25)
    # The others share what is left of the trace: (30 · 0.7 + 9 - 9)/30, not 1.
    assert values[:-1].mean() == pytest.approx(0.7, abs=0.1)


def test_correlations_come_back_from_two_looks() -> None:
    """E ψψᵀ cut at |ψ|² = d is put right as for I; what is left goes in whitened coordinates."""
    rng = np.random.default_rng(1)
    truth = np.array([[1.2, 0.5], [0.5, 0.8]])
    psi = rng.normal(size=(400_000, 2)) @ np.linalg.cholesky(truth).T
    whole = np.eye(2)
    for atol in (0.15, 0.06):
        seen = psi @ np.linalg.inv(whole).T
        seen *= np.minimum(1, np.sqrt(2 / (seen**2).sum(axis=1)))[:, None]
        square, across = (seen**2).mean(axis=0), np.sqrt(2) * (seen[:, 0] * seen[:, 1]).mean()
        products = np.array([square[0], across, square[1]])
        factor, noise = spread.correlated(products, noise=1e-12, size=2)
        assert noise == pytest.approx(2 * np.sqrt(0.5e-12))
        whole = whole @ factor
        assert_allclose(whole @ whole.T, truth, atol=atol)


def test_what_a_cut_lets_pass() -> None:
    assert spread.passed(np.array([1.0, 2.0]), 1.0) == pytest.approx((1 + 2) / (1 + 4))
    assert spread.passed(np.array([1.0, 2.0]), 5.0) == 1.0
    assert spread.cut_square(1, 1e9) == pytest.approx(1.0, abs=0.07)  # 4000 public squares: ± 3 %


def test_directions_whiten_and_are_favored() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9, 3))
    covariance = rows.T @ rows / 9
    values, whitening, favor = principal(covariance, np.array([1.0, 0.5, 0.25]))
    assert_allclose(whitening @ covariance @ whitening.T, np.eye(3), atol=1e-9)
    assert np.all(np.diff(values * favor) <= 1e-12)


def test_more_people_hear_about_more_directions() -> None:
    values = 2.0 ** -np.arange(12)
    counts = [
        len(weights(values, np.ones(12), people=n, epsilon=1.0, n_classes=2))
        for n in (30, 3000, 300_000)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    favor = 1 / (1 + np.arange(12.0))
    several = [
        len(weights(np.ones(12), favor, people=3000, epsilon=1.0, n_classes=5, ordered=curves))
        for curves in (False, True)
    ]
    assert several[0] < several[1]  # more is expected of several classes of curves
    chosen = weights(values, np.ones(12), people=3000, epsilon=1.0, n_classes=2)
    assert chosen[0] == 1.0
    assert np.all(np.diff(chosen) <= 0)


def test_belief_follows_the_evidence() -> None:
    rng = np.random.default_rng(0)
    noise, flat = np.full(20, 0.01), np.ones(20)
    nothing, no_fit = believed(rng.normal(0, 0.1, (1, 20)), noise, flat)
    sparse = rng.normal(0, 0.1, (1, 20))
    sparse[0, 3] = 0.7
    some, fit = believed(sparse, noise, flat)
    assert some[3] > 0.9 > 0.4 > np.delete(some, 3).max()
    assert nothing.max() < 0.7
    strong, much = believed(rng.normal(0, 0.5, (1, 20)), noise / 100, flat)
    assert strong.mean() > 0.9
    assert no_fit < 0 < 10 < fit < much


def test_noise_of_reports_is_that_of_their_mechanism() -> None:
    assert entry_noise(8, 1.0) > entry_noise(8, 2.0) > entry_noise(8, 5.0)
    assert effective_people(1000, 1.0) == pytest.approx(1000 / entry_noise(32, 1.0))
    # With a bucket for each class an entry is told by 1/K of the people, with less noise for it.
    assert 26 * entry_noise(16, 8.0, n_classes=26) > entry_noise(16, 8.0)


def test_a_rate_is_shrunk_and_debiased() -> None:
    assert Rate.of(0.0, 0, 0.3) == Rate(0.5, 0.0)
    many = Rate.of(-0.3 * 0.4 * 10**8, 10**8, 0.4)  # mean label -0.3, told with α = 0.4
    assert many.share == pytest.approx(0.35, abs=1e-4)
    few = Rate.of(-0.3 * 0.4 * 50, 50, 0.4)
    assert few.share == pytest.approx((1 - 0.3 * 0.1 / (0.1 + 1 / 8)) / 2)
    assert Rate.known(0.2).share == 0.2


def gaussian_classes(
    n: int, rng: np.random.Generator, share: float = 0.3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ψ with mean 0 and covariance I overall, label 0/1, and the true log odds (1, ψ)."""
    effect = np.array([0.4, -0.3, 0.0]) * np.sqrt(share * (1 - share)) * 2
    difference = effect / np.sqrt(share * (1 - share))
    means = np.stack([-share * difference, (1 - share) * difference])
    within = np.eye(3) - np.outer(effect, effect)
    y = (rng.random(n) < share).astype(np.int64)
    psi = means[y] + rng.normal(size=(n, 3)) @ np.linalg.cholesky(within).T
    slope = np.linalg.solve(within, difference)
    intercept = np.log(share / (1 - share)) - 0.5 * means.sum(axis=0) @ slope
    return psi, y, np.r_[intercept, slope]


def test_the_discriminant_of_exact_moments_is_the_true_one() -> None:
    psi, y, truth = gaussian_classes(2_000_000, np.random.default_rng(0))
    moment = np.r_[0.0, ((y - 0.3)[:, None] * psi).mean(axis=0)]
    noise = np.full(4, 1e-9)
    belief = two_classes.discriminant(moment, noise, np.ones(3), Rate.known(0.3))
    # Standard error of a moment 0.5/√(2·10⁶), divided by the label's variance 0.21.
    assert_allclose(belief.theta, truth, atol=0.02)


def test_gradient_rounds_find_the_logistic_fit_from_a_bad_start() -> None:
    """Exact gradients (no noise): what is left is the cut's bias and the last step."""
    rng = np.random.default_rng(3)
    psi, y, truth = gaussian_classes(400_000, rng)
    rows = np.column_stack([np.ones(len(psi)), psi])
    weight = np.array([0.5, 1.0, 1.0, 1.0])
    start = two_classes.discriminant(np.zeros(4), np.full(4, 0.01), np.ones(3), Rate.known(0.5))
    start.covariance = np.eye(4)
    for _ in range(12):
        asked_ = two_classes.prepare(start, weight, noise=1e-4)
        p = 1 / (1 + np.exp(-rows @ asked_.theta))
        vector = rows * asked_.weights
        vector *= np.minimum(1, asked_.reach / np.linalg.norm(vector, axis=1))[:, None]
        vector *= (y - p)[:, None]
        lengths = np.linalg.norm(vector, axis=1)
        vector *= np.minimum(1, asked_.limit / lengths)[:, None]
        gradient = vector.mean(axis=0) / asked_.weights
        start.theta, start.covariance = two_classes.update(
            start, asked_, gradient, np.full(4, 1e-6)
        )
    # Standard error of a logistic fit: about 1/√(0.2 · 4·10⁵) = 0.004; the rest is the cut.
    assert_allclose(start.theta, truth, atol=0.05)


def test_rounds_turn_to_what_is_unknown() -> None:
    at_first = np.array([0.5, 1.0, 1.0, 0.7])
    belief = two_classes.discriminant(np.zeros(4), np.full(4, 0.01), np.ones(3), Rate.known(0.5))
    belief.covariance = np.diag([0.01, 4.0, 0.01, 0.01])
    few = two_classes.prepare(belief, at_first, noise=0.2).weights
    # All that is told beyond an even share, 0.3 of it, is told about the one that is unknown.
    square = few**2 / (few @ few)
    even = 0.3 * at_first**2 / (at_first @ at_first)
    assert_allclose(np.delete(square, 1), np.delete(even, 1))
    many = two_classes.prepare(belief, at_first, noise=1e-7).weights
    assert many.min() > 0.8 * many.max()  # in the end as much is told about each


def test_how_much_a_round_tells_is_what_a_simulation_says() -> None:
    """Precision that n reports add to a coefficient, against the spread of its estimates."""
    noise, at_first = 1e-3, np.array([1e-6, 1.0, 1.0, 1.0])
    belief = two_classes.discriminant(np.zeros(4), np.full(4, 1e9), np.ones(3), Rate.known(0.5))
    belief.covariance = np.eye(4)
    asked_ = two_classes.prepare(belief, at_first, noise=noise)
    entries = noise * (asked_.limit / asked_.weights) ** 2
    added = np.diag(asked_.fisher.T @ np.diag(1 / entries) @ asked_.fisher)
    told = 0.25 / (two_classes.RADIUS**2 * noise)
    # Cuts let three quarters of a mean pass.
    assert 0.4 * told < added.sum() < told


def test_several_classes_from_exact_moments() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.3, 0.2])
    means = np.array([[0.5, 0.0], [-0.5, 0.4], [-0.5, -0.6]])  # of mean 0
    within = np.eye(2) - (means.T * shares) @ means
    moments = np.column_stack([shares, shares[:, None] * means])
    noise = np.full(3, 1e-9)
    picture = many_classes.first_picture(moments, noise, np.ones(2))
    assert_allclose(picture.shares, shares, atol=1e-6)
    assert_allclose(picture.means, means, atol=1e-4)
    assert_allclose(picture.within @ picture.within.T, within, atol=1e-4)
    intercepts, slopes = picture.scores()
    psi = rng.normal(size=(5, 2))
    away = psi[:, None, :] - means
    density = -0.5 * np.einsum("nki,ij,nkj->nk", away, np.linalg.inv(within), away) + np.log(shares)
    scores = intercepts + psi @ slopes.T
    assert_allclose(scores - scores[:, :1], density - density[:, :1], atol=1e-3)


def test_classes_that_are_all_off_the_middle() -> None:
    """Where location was not found well, the mean of all classes is part of each class's mean."""
    shares = np.array([0.5, 0.3, 0.2])
    apart = np.array([[0.5, 0.0], [-0.5, 0.4], [-0.5, -0.6]])
    means = apart + np.array([0.4, -0.3])
    moments = np.column_stack([shares, shares[:, None] * means])
    sure = many_classes.first_picture(moments, np.full(3, 1e-9), np.ones(2))
    assert_allclose(sure.means, means, atol=1e-4)
    # The variance of the mean of all classes is 3 · 0.3, far more than 0.4²: little is believed.
    unsure = many_classes.first_picture(moments, np.full(3, 0.3), np.ones(2))
    middle = unsure.shares @ unsure.means
    assert np.all((middle * [1, -1] > 0) & (middle * [1, -1] < 0.1))
    assert np.all(unsure.doubt > sure.doubt + 0.01)


def test_what_is_not_known_of_means_varies_like_people() -> None:
    """Without any effect a class varies by 1, and its mean by what noise leaves open."""
    moments = np.column_stack([np.full(4, 0.25), np.zeros((4, 2))])
    picture = many_classes.first_picture(moments, np.full(3, 0.02), np.ones(2))
    within = picture.within @ picture.within.T
    assert_allclose(within, within[0, 0] * np.eye(2), atol=1e-9)
    # An effect has the noise 0.02/0.25 and a variance of at least 0.15/2 by the prior: the doubt of
    # a mean is between half of 0.08 · 0.075/0.155 and all of the noise, over its share.
    assert 1 + 0.5 * 0.038 / 0.25 < within[0, 0] < 1 + 0.08 / 0.25


def test_a_second_look_corrects_the_means() -> None:
    """As a Gaussian update: with prior variance v and noise w, the share v/(v + w) of the step."""
    picture = many_classes.Picture(
        shares=np.array([0.5, 0.5]),
        means=np.zeros((2, 1)),
        doubt=np.full((2, 1), 0.5),
        within=np.array([[2.0]]),
        constant=np.array([0.5, 0.5]),
        constant_noise=1e-9,
        fit=0.0,
    )
    # In units of L = 2 the doubt is 0.5/4; the noise of a mean is 0.01/0.25.
    residuals = np.array([[0.5, 0.1], [0.5, -0.1]])
    after = many_classes.second_picture(picture, residuals, 0.01)
    kept = 0.125 / (0.125 + 0.04)
    assert_allclose(after.means, 2 * kept * np.array([[0.2], [-0.2]]), rtol=1e-3)
    assert_allclose(after.doubt, 4 * 0.125 * (1 - kept), rtol=1e-3)


def test_no_other_shares_of_answers_leave_less_unknown() -> None:
    rng = np.random.default_rng(0)
    variances, answers = rng.exponential(size=7) ** 2 + 0.01, 12.0

    def left(shares: FloatArray) -> float:
        return float((1 / (1 / variances + answers * shares)).sum())

    best = two_classes.poured(variances, answers)
    assert best.min() == 0
    assert best.sum() == pytest.approx(1)
    others = [*rng.dirichlet(np.ones(7), 500), *np.eye(7), *rng.dirichlet(1e3 * best + 0.1, 500)]
    assert left(best) <= min(map(left, others)) + 1e-12


def test_where_nothing_is_unknown_answers_are_about_all() -> None:
    assert two_classes.poured(np.full(4, 1e-30), 1.0) == pytest.approx(0.25)


def test_shares_are_shrunk_towards_equal_ones() -> None:
    told = np.array([0.7, 0.1, 0.2])
    assert_allclose(many_classes.shares_of(told, 1e-12, fewest=0.1), told, atol=1e-6)
    assert_allclose(many_classes.shares_of(told, 1e6, fewest=0.1), 1 / 3, atol=1e-6)
    # What adds up to more than 1 has noise that all share; what noise explains is not believed.
    assert_allclose(many_classes.shares_of(told + 0.2, 1e-12, fewest=0.1), told, atol=1e-6)
    half = many_classes.shares_of(np.array([0.5, 0.3, 0.2]), 0.03, fewest=0.1)
    assert 0.01 < half[0] - 1 / 3 < 0.5 * (0.5 - 1 / 3)
    least = many_classes.shares_of(np.array([1.2, -0.1, -0.1]), 1e-12, fewest=0.15)
    assert least.min() > 0
    assert least.sum() == pytest.approx(1)


def test_of_few_people_a_column_most_are_in_the_first_look() -> None:
    """Of those who are asked about labels and not for their share alone: 7 or 4 of 10."""
    for columns, share in ((30, 0.7), (10, 0.4)):  # effective people: 1000
        phases = Schedule(people=6325, epsilon=1.0, columns=columns, n_classes=2).phases()
        people = {phase.kind: 0 for phase in phases}
        for phase in phases:
            people[phase.kind] += phase.people
        about = people["moment"] + people["gradient"]
        assert people["moment"] == pytest.approx(share * about, abs=1)
