"""Randomized responses, by enumeration of every answer."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.randomized_response import (
    CategoricalResponse,
    QuestionResponse,
    RandomizedResponse,
    best_questions,
    information,
)
from dpfda.noise import SecureSource, SimulationSource

EPSILON = st.floats(1e-3, 20)


def exact_moments(mechanism, reports: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Total probability, mean and variance of debias over every report."""
    p = np.exp(mechanism.log_likelihood(reports, np.repeat(values, len(reports), axis=0)))
    estimates = mechanism.debias(reports).reshape(len(reports), -1)
    mean = p @ estimates
    return p.sum(), mean, p @ (estimates - mean) ** 2


@given(epsilon=EPSILON, bit=st.sampled_from([-1.0, 1.0]))
def test_one_bit(epsilon: float, bit: float) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon)
    values = np.array([bit])
    total, mean, variance = exact_moments(mechanism, np.array([-1.0, 1.0]), values)
    assert total == pytest.approx(1, abs=1e-12)
    assert mean[0] == pytest.approx(bit, abs=1e-9)
    # 1/(2q-1)² - 1 cancels when q is close to 1.
    assert mechanism.variance(values)[0] == pytest.approx(variance[0], rel=1e-6, abs=1e-12)
    assert mechanism.keep_probability <= math.exp(epsilon) / (1 + math.exp(epsilon)) + 1e-16


@given(epsilon=EPSILON, categories=st.integers(2, 12), data=st.data())
def test_categories(epsilon: float, categories: int, data: st.DataObject) -> None:
    mechanism = CategoricalResponse(epsilon=epsilon, categories=categories)
    values = np.array([float(data.draw(st.integers(0, categories - 1)))])
    reports = np.arange(categories, dtype=float)
    total, mean, variance = exact_moments(mechanism, reports, values)
    assert total == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(mean, mechanism.target(values)[0], atol=1e-9)
    np.testing.assert_allclose(mechanism.variance(values)[0], variance, rtol=1e-6, atol=1e-12)
    ratio = mechanism.keep_probability / mechanism.other_probability
    assert math.log(ratio) <= epsilon * (1 + 1e-12)


@given(epsilon=EPSILON, questions=st.integers(1, 6), data=st.data())
def test_questions(epsilon: float, questions: int, data: st.DataObject) -> None:
    mechanism = QuestionResponse(epsilon=epsilon, questions=questions)
    reports = np.array(list(product([-1.0, 1.0], repeat=questions)))
    values = reports[[data.draw(st.integers(0, len(reports) - 1))]]
    total, mean, variance = exact_moments(mechanism, reports, values)
    assert total == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(mean, values[0], atol=1e-9)
    np.testing.assert_allclose(mechanism.variance(values)[0], variance, rtol=1e-6, atol=1e-9)
    logs = mechanism.log_likelihood(reports, np.repeat(values, len(reports), axis=0))
    assert logs.max() - logs.min() <= epsilon * (1 + 1e-12)
    alpha = math.expm1(epsilon) / (math.exp(epsilon) + 2**questions - 1)
    assert mechanism.truth_probability == pytest.approx(alpha, rel=1e-6)


def test_one_question_is_one_bit() -> None:
    one, bit = QuestionResponse(epsilon=1.3), RandomizedResponse(epsilon=1.3)
    reports, values = np.array([[1.0], [-1.0]]), np.array([[1.0], [1.0]])
    np.testing.assert_allclose(
        one.log_likelihood(reports, values), bit.log_likelihood(reports, values)[:, 0], rtol=1e-8
    )


@given(epsilon=st.floats(0.1, 8), most=st.integers(1, 10))
def test_best_number_of_questions(epsilon: float, most: int) -> None:
    best = best_questions(epsilon, most=most)
    assert 1 <= best <= most
    everything = [information(epsilon, questions=k) for k in range(1, most + 1)]
    assert information(epsilon, questions=best) == max(everything)


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (RandomizedResponse(epsilon=1.0), [0.0]),
        (RandomizedResponse(epsilon=1.0), [1.0, 0.5]),
        (CategoricalResponse(epsilon=1.0), [3.0]),
        (CategoricalResponse(epsilon=1.0), [-1.0]),
        (CategoricalResponse(epsilon=1.0), [0.5]),
        (QuestionResponse(epsilon=1.0, questions=2), [[1.0, 0.0]]),
        (QuestionResponse(epsilon=1.0, questions=2), [1.0, 1.0]),
    ],
)
@pytest.mark.parametrize("clip", [False, True])
def test_what_is_no_answer_is_refused(mechanism, values: list, clip: bool) -> None:
    with pytest.raises(InvalidData):
        mechanism.randomize(values, SecureSource(), clip=clip)


@pytest.mark.parametrize("categories", [1, 0, 2.0, True])
def test_bad_number_of_categories(categories: object) -> None:
    with pytest.raises(InvalidParameter, match="categories must be"):
        CategoricalResponse(epsilon=1.0, categories=categories)  # type: ignore[arg-type]


def test_every_category_is_reached() -> None:
    mechanism = CategoricalResponse(epsilon=0.1, categories=5)
    reports = mechanism.randomize(np.full(2000, 4.0), SimulationSource(0))
    assert set(reports) == {0.0, 1.0, 2.0, 3.0, 4.0}
