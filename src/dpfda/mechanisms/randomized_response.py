"""Randomized response: on one bit, on one of K categories, or on k yes/no answers at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray
from dpfda.errors import InvalidData
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source
from dpfda.noise.uniform import below, coin_signs, odds, weights
from dpfda.privacy.events import Event, RandomizedResponseEvent

_DENOMINATOR = 1 << 30


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism, name="randomized_response"):
    """Send the true bit with probability e^ε / (1 + e^ε), the other one otherwise.

    Privacy:
        ε-LDP for one value in {-1, +1} (Warner 1965). The odds are a rational number just below
        e^ε and the coin is an exact integer draw.

    Examples:
        >>> import math
        >>> round(RandomizedResponse(epsilon=math.log(3)).keep_probability, 6)
        0.75
    """

    @cached_property
    def _keep(self) -> int:
        """Weight of the true bit; the other bit has weight `_DENOMINATOR`."""
        return odds(self.epsilon, denominator=_DENOMINATOR)

    @property
    def keep_probability(self) -> float:
        """Probability of sending the truth."""
        return self._keep / (self._keep + _DENOMINATOR)

    @property
    def event(self) -> Event:
        """Randomized response, whose privacy loss has an exact distribution."""
        return RandomizedResponseEvent(epsilon=self.epsilon)

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy bits of the same shape; every entry belongs to another person."""
        bits = _validate.signs("values", values)
        coins = below(self._keep + _DENOMINATOR, bits.size, source).reshape(bits.shape)
        return np.where(coins < np.uint64(self._keep), bits, -bits)

    def debias(self, reports: FloatArray) -> FloatArray:
        """The bits divided by 2q - 1, where q is the probability of the truth."""
        return np.asarray(reports / (2 * self.keep_probability - 1))

    def variance(self, values: ArrayLike) -> FloatArray:
        """1/(2q-1)² - 1 for either bit."""
        return np.full(np.shape(values), (2 * self.keep_probability - 1) ** -2 - 1)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each bit."""
        q = self.keep_probability
        return np.where(reports == np.asarray(values), math.log(q), math.log1p(-q))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """The two possible bits."""
        return [(np.array([1.0]), np.array([-1.0]))]

    @classmethod
    def examples(cls) -> list[Self]:
        """Small, medium and large ε."""
        return [cls(epsilon=0.1), cls(epsilon=1.0), cls(epsilon=5.0)]


@dataclass(frozen=True, kw_only=True)
class CategoricalResponse(Mechanism, name="categorical_response"):
    """Send the true category with probability e^ε / (e^ε + K - 1), the others equally often.

    Privacy:
        ε-LDP for one category in {0, ..., K-1}. Exact integer draw, odds rounded down.

    Attributes:
        categories: K.

    Examples:
        >>> import math
        >>> round(CategoricalResponse(epsilon=math.log(3), categories=4).keep_probability, 6)
        0.5
    """

    categories: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("categories", self.categories, least=2, most=1 << 20)

    @cached_property
    def _keep(self) -> int:
        return odds(self.epsilon, denominator=_DENOMINATOR)

    @cached_property
    def _total(self) -> int:
        return self._keep + (self.categories - 1) * _DENOMINATOR

    @property
    def keep_probability(self) -> float:
        """Probability of sending the truth."""
        return self._keep / self._total

    @property
    def other_probability(self) -> float:
        """Probability of sending a given category that is not the true one."""
        return _DENOMINATOR / self._total

    @property
    def event(self) -> Event:
        """Randomized response, whose privacy loss has an exact distribution."""
        return RandomizedResponseEvent(epsilon=self.epsilon, categories=self.categories)

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy categories, shape (n,)."""
        truth = _validate.vector("values", values)
        if not np.all((truth == np.rint(truth)) & (truth >= 0) & (truth < self.categories)):
            raise InvalidData("values", f"categories 0 to {self.categories - 1}")
        coins = below(self._total, truth.size, source)
        # 0: the true category; j: the category j places further, modulo K.
        replaced = coins >= np.uint64(self._keep)
        shift = (coins - np.uint64(self._keep)) // np.uint64(_DENOMINATOR) + 1
        offset = np.where(replaced, shift, 0)
        return np.asarray((truth + offset) % self.categories)

    def target(self, values: ArrayLike) -> FloatArray:
        """Indicators of the K categories, shape (n, K)."""
        return np.asarray(
            np.asarray(values)[:, None] == np.arange(self.categories), dtype=np.float64
        )

    def debias(self, reports: FloatArray) -> FloatArray:
        """Unbiased indicators of the K categories, shape (n, K)."""
        indicators = np.asarray(reports)[:, None] == np.arange(self.categories)
        p, other = self.keep_probability, self.other_probability
        return np.asarray((indicators - other) / (p - other))

    def variance(self, values: ArrayLike) -> FloatArray:
        """Variance of each debiased indicator, shape (n, K)."""
        p, other = self.keep_probability, self.other_probability
        own = np.asarray(values)[:, None] == np.arange(self.categories)
        return np.where(own, p * (1 - p), other * (1 - other)) / (p - other) ** 2

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each category."""
        kept = reports == np.asarray(values)
        return np.where(kept, math.log(self.keep_probability), math.log(self.other_probability))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Two categories (all pairs are alike)."""
        return [(np.array([0.0]), np.array([1.0]))]

    @classmethod
    def examples(cls) -> list[Self]:
        """Two, three and ten categories."""
        return [
            cls(epsilon=1.0, categories=2),
            cls(epsilon=0.5, categories=3),
            cls(epsilon=4.0, categories=10),
        ]


_MOST_QUESTIONS = 30


@dataclass(frozen=True, kw_only=True)
class QuestionResponse(Mechanism, name="question_response"):
    """Send k true answers with probability α = (e^ε - 1)/(e^ε + 2^k - 1), else random ones.

    Privacy:
        ε-LDP for the whole pattern in {-1, +1}^k: the true pattern has probability α + (1-α)/2^k,
        any other (1-α)/2^k, and their ratio is e^ε. Exact integer draw, odds rounded down.

    Attributes:
        questions: k.

    Examples:
        >>> round(QuestionResponse(epsilon=2.0, questions=2).truth_probability, 4)
        0.615
    """

    questions: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("questions", self.questions, most=_MOST_QUESTIONS)

    @cached_property
    def _weights(self) -> tuple[int, int]:
        """Weight of every pattern, and the additional weight of the true one."""
        high, low = weights(self.epsilon, likely=1, others=2**self.questions, bits=61)
        return low, high - low

    @cached_property
    def _total(self) -> int:
        low, extra = self._weights
        return extra + (low << self.questions)

    @property
    def truth_probability(self) -> float:
        """α, the probability that the answers were not replaced."""
        return self._weights[1] / self._total

    @property
    def event(self) -> Event:
        """A randomized response among 2^k patterns."""
        return RandomizedResponseEvent(epsilon=self.epsilon, categories=2**self.questions)

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy answers, shape (n, k)."""
        answers = _validate.signs("values", values)
        if answers.ndim != 2 or answers.shape[1] != self.questions:
            rule = f"an array with {self.questions} columns"
            raise InvalidData("values", rule, f"shape {answers.shape}")
        truthful = below(self._total, len(answers), source) < np.uint64(self._weights[1])
        random = coin_signs(answers.size, source).reshape(answers.shape)
        return np.where(truthful[:, None], answers, random)

    def debias(self, reports: FloatArray) -> FloatArray:
        """The answers divided by α."""
        return np.asarray(reports / self.truth_probability)

    def variance(self, values: ArrayLike) -> FloatArray:
        """1/α² - 1 for every answer."""
        return np.full(np.shape(values), self.truth_probability**-2 - 1)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each pattern: the true one or another."""
        low, extra = self._weights
        true = (reports == np.asarray(values)).all(axis=1)
        return np.log(np.where(true, low + extra, low) / self._total)

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Pairs in which all answers differ, and one answer differs."""
        ones = np.ones((1, self.questions))
        one_flipped = ones.copy()
        one_flipped[0, 0] = -1.0
        return [(ones, -ones), (ones, one_flipped)]

    @classmethod
    def examples(cls) -> list[Self]:
        """One to eight questions."""
        return [cls(epsilon=1.0 + k / 2, questions=k) for k in range(1, 9)] + [cls(epsilon=0.1)]


def best_questions(epsilon: float, *, most: int) -> int:
    """The number k of questions per person that maximizes k α_k².

    Examples:
        >>> [best_questions(epsilon, most=8) for epsilon in (0.5, 1.0, 2.0, 5.0)]
        [1, 1, 2, 5]
    """
    _validate.positive("epsilon", epsilon)
    return max(range(1, most + 1), key=lambda k: information(epsilon, questions=k))


def information(epsilon: float, *, questions: int) -> float:
    """k α_k²: the number of noiseless answers that one reply to k questions equals."""
    alpha: float = -math.expm1(-epsilon) / (1 + (2**questions - 1) * math.exp(-epsilon))
    return questions * alpha * alpha


def effective_answers(n_people: float, epsilon: float) -> float:
    """N_eff = N max_k k α_k²: the number of noiseless answers that N noisy ones equal.

    Examples:
        >>> round(effective_answers(3000, 0.5))
        180
    """
    best = best_questions(epsilon, most=_MOST_QUESTIONS)
    return n_people * information(epsilon, questions=best)
