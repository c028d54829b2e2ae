"""How likely answers are: means, variances and the polynomial in the share of label 1."""

from __future__ import annotations

import numpy as np

from dpfda.local.study.answers import (
    Answers,
    Questions,
    above,
    farther,
    label_answers,
    log_likelihoods,
    row_answers,
    single_answers,
)

RNG = np.random.default_rng(0)
QUESTION = Questions(np.zeros(1, np.int64), np.zeros(1), np.full(1, np.nan))


def test_mean_answers_are_those_of_the_working_model() -> None:
    n, m, s, d, t, share = 400_000, 0.2, 0.5, 0.7, 0.3, 0.3
    y = np.where(RNG.random(n) < share, 1.0, -1.0)
    z = m + s * (y * d + RNG.normal(size=n))
    ones, others = above(*map(np.array, (t, m, s, d, 0.0)))
    told = np.where(z > t, 1.0, -1.0)
    for mean, answers in (
        (share * ones + (1 - share) * others, told),
        (share * ones - (1 - share) * others, told * y),
    ):
        assert abs(answers.mean() - mean) < 4 / np.sqrt(n)


def test_the_polynomial_is_the_log_likelihood() -> None:
    weights = np.array([[30.0, -8.0, 20.0], [5.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    alpha, plain, joined = np.array([0.4, 0.9, 0.2]), RNG.normal(size=3), RNG.normal(size=3)
    threshold = np.array([0.1, -0.4, 0.0])
    answers = Answers(
        np.zeros(3, np.int64),
        threshold,
        np.array([np.nan, 0.1, np.nan]),
        alpha,
        plain,
        joined,
        weights,
    )
    points = RNG.normal(size=(1, 5, 4)) * [0.3, 0.5, 0.8, 0.4]
    found = log_likelihoods(answers, np.broadcast_to(points, (3, 5, 4)))
    for share in (0.1, 0.5, 0.8):
        for row in range(3):
            for k, (m, log_s, d, r) in enumerate(points[0]):
                law = [np.array(one) for one in (m, np.exp(log_s), d, r)]
                ones, others = (
                    farther(threshold[row], answers.center[row], *law)
                    if row == 1
                    else above(threshold[row], *law)
                )
                off = np.array(
                    [
                        plain[row] - alpha[row] * (share * ones + (1 - share) * others),
                        joined[row] - alpha[row] * (share * ones - (1 - share) * others),
                    ]
                )
                own, between, label = weights[row]
                form = np.array([[own, between], [between, label]])
                polynomial = found[row, k] @ [1, share, share**2]
                np.testing.assert_allclose(polynomial, -0.5 * off @ form @ off, rtol=1e-9)


def test_weights_are_inverse_covariances_of_means() -> None:
    """Simulated rows of a label and one plain bit; 4000 repetitions of 200 people."""
    alpha, share, people, times = 0.6, 0.3, 200, 4000
    rng = np.random.default_rng(1)
    y = np.where(rng.random((times, people)) < share, 1.0, -1.0)
    z = np.where(rng.random((times, people)) < np.where(y > 0, 0.8, 0.4), 1.0, -1.0)
    true = rng.random((times, people)) < alpha
    y, z = (np.where(true, one, rng.choice([-1.0, 1.0], (times, people))) for one in (y, z))
    plain, joined = z.mean(axis=1), (y * z).mean(axis=1)
    real = np.linalg.inv(np.cov(plain, joined))
    zero = np.zeros(1)
    answers = row_answers(
        QUESTION, (zero + people * plain.mean(), zero + people * joined.mean()),
        zero + people, alpha=alpha,
        expected=(zero + plain.mean() / alpha, zero + joined.mean() / alpha), label=float(y.mean()),
    )  # fmt: skip
    own, between, label = answers.weights[0]
    np.testing.assert_allclose([[own, between], [between, label]], real, rtol=0.1)


def test_single_answers_and_labels_know_their_precision() -> None:
    known = {"alpha": 0.5, "expected": np.array([0.0])}
    zero, asked = np.zeros(1), np.full(1, 400.0)
    plain = single_answers(QUESTION, zero + 100, asked, labelled=False, **known)  # type: ignore[arg-type]
    joined = single_answers(QUESTION, zero + 100, asked, labelled=True, **known)  # type: ignore[arg-type]
    precision = 400 / (1 - (100 / 404) ** 2)
    assert plain.plain[0] == joined.labelled[0] == 0.25
    np.testing.assert_allclose(plain.weights, [[precision, 0, 0]])
    np.testing.assert_allclose(joined.weights, [[0, 0, precision]])
    labels = label_answers(100, 400, alpha=0.5, expected=0.0)
    best = np.linspace(0, 1, 1001)[np.argmax(labels.log_likelihood(np.linspace(0, 1, 1001)))]
    assert abs(best - 0.75) < 1e-9  # 0.25 = α (2π - 1)
