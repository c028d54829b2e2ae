"""Randomized response on one bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source
from dpfda.noise.uniform import below, odds
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
        """Weight of the truth, against `_DENOMINATOR` for the lie."""
        return odds(self.epsilon, denominator=_DENOMINATOR)

    @property
    def keep_probability(self) -> float:
        """Probability of sending the truth."""
        return self._keep / (self._keep + _DENOMINATOR)

    @property
    def event(self) -> Event:
        """Priced exactly."""
        return RandomizedResponseEvent(epsilon=self.epsilon)

    def randomize(self, values: Any, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy bits of the same shape; every entry is a person's only bit."""
        bits = _validate.signs("values", values)
        coins = below(self._keep + _DENOMINATOR, bits.size, source).reshape(bits.shape)
        return np.where(coins < np.uint64(self._keep), bits, -bits)

    def debias(self, reports: FloatArray) -> FloatArray:
        """Divide by 2q - 1."""
        return np.asarray(reports / (2 * self.keep_probability - 1))

    def variance(self, values: Any) -> FloatArray:
        """1/(2q-1)² - 1 for either bit."""
        return np.full(np.shape(values), (2 * self.keep_probability - 1) ** -2 - 1)

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each bit."""
        q = self.keep_probability
        return np.where(reports == np.asarray(values), math.log(q), math.log1p(-q))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """The two bits."""
        return [(np.array([1.0]), np.array([-1.0]))]

    @classmethod
    def examples(cls) -> list[Self]:
        """Small, medium and large ε."""
        return [cls(epsilon=0.1), cls(epsilon=1.0), cls(epsilon=5.0)]
