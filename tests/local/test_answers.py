"""How likely answers are: means, variances and the polynomial in the share of label 1."""

from __future__ import annotations

import numpy as np

from dpfda.local.study.answers import (
    Answers,
    Questions,
    above,
    farther,
    log_likelihoods,
    mean_answers,
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
    questions = Questions(np.zeros(3, np.int64), threshold, np.array([np.nan, 0.1, np.nan]))
    answers = Answers(questions, alpha, np.column_stack([plain, joined]), weights)
    points = RNG.normal(size=(1, 5, 4)) * [0.3, 0.5, 0.8, 0.4]
    found = log_likelihoods(answers, np.broadcast_to(points, (3, 5, 4)))
    for share in (0.1, 0.5, 0.8):
        for row in range(3):
            for k, (m, log_s, d, r) in enumerate(points[0]):
                law = [np.array(one) for one in (m, np.exp(log_s), d, r)]
                ones, others = (
                    farther(threshold[row], questions.center[row], *law)
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
    means, count = np.array([[plain.mean(), joined.mean()]]), np.full((1, 2), float(people))
    answers = mean_answers(
        QUESTION, count, count * means, alpha=alpha, expected=means / alpha, label=float(y.mean())
    )
    own, between, label = answers.weights[0]
    np.testing.assert_allclose([[own, between], [between, label]], real, rtol=0.1)


def test_single_answers_know_their_precision() -> None:
    precision = 400 / (1 - (100 / 404) ** 2)
    for kind, weights in ((0, [precision, 0, 0]), (1, [0, 0, precision])):
        asked = np.eye(2)[[kind]]
        answers = mean_answers(
            QUESTION, 400 * asked, 100 * asked, alpha=0.5, expected=np.zeros((1, 2))
        )
        np.testing.assert_allclose(answers.means, 0.25 * asked)
        np.testing.assert_allclose(answers.weights, [weights])


def test_the_label_is_a_labelled_question_that_every_feature_exceeds() -> None:
    always = Questions(np.zeros(1, np.int64), np.array([-np.inf]), np.full(1, np.nan))
    count, total = np.array([[0.0, 400.0]]), np.array([[0.0, 100.0]])
    answers = mean_answers(always, count, total, alpha=0.5, expected=np.zeros((1, 2)))
    points = RNG.normal(size=(1, 7, 4))
    share = np.linspace(0, 1, 1001)
    logs = log_likelihoods(answers, points)[0] @ [np.ones(1001), share, share**2]
    np.testing.assert_allclose(logs, np.broadcast_to(logs[0], logs.shape))  # whatever the feature
    assert abs(share[np.argmax(logs[0])] - 0.75) < 1e-9  # 0.25 = α (2π - 1)


def test_questions_that_nobody_answered_are_left_out() -> None:
    count = np.array([[0.0, 0.0], [0.0, 9.0]])
    both = Questions(np.array([0, 1]), np.zeros(2), np.full(2, np.nan))
    answers = mean_answers(both, count, count / 2, alpha=0.5, expected=np.zeros((2, 2)))
    assert answers.questions.feature.tolist() == [1]
    assert answers.of(0).alpha.size == 0
    assert len(answers.and_also(answers).weights) == 2
