"""The shipped contract of mechanisms catches a broken one, whatever is broken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpfda import checks
from dpfda._validate import FloatArray
from dpfda.checks import mechanisms as contract
from dpfda.checks.mechanisms import check_bad_input, check_bad_parameters
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import Laplace
from dpfda.mechanisms.piecewise import Duchi
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import SimulationSource, Source

# Twins with one planted flaw each. They are not registered: a subclass without `name=`.


@dataclass(frozen=True, kw_only=True)
class Biased(Laplace):
    def debias(self, reports: FloatArray) -> FloatArray:
        return reports + 0.5


@dataclass(frozen=True, kw_only=True)
class WrongVariance(Laplace):
    def variance(self, values: Any) -> FloatArray:
        return 1.1 * super().variance(values)


@dataclass(frozen=True, kw_only=True)
class TooLittleNoise(Laplace):
    """Noise for sensitivity √2 d instead of 2d (C10)."""

    @property
    def _steps(self) -> int:  # type: ignore[override]
        return int(super()._steps / math.sqrt(2))


@dataclass(frozen=True, kw_only=True)
class WrongLikelihood(RandomizedResponse):
    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        q = self.keep_probability - 0.05
        return np.where(reports == np.asarray(values), math.log(q), math.log1p(-q))


@dataclass(frozen=True, kw_only=True)
class Dishonest(RandomizedResponse):
    """States the likelihood of ε and draws with more."""

    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        return RandomizedResponse(epsilon=1.2 * self.epsilon).randomize(values, rng)


@dataclass(frozen=True, kw_only=True)
class TiesInBothHalves(Duchi):
    """C19: ties t·v = 0 get the high weight too."""

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        agree = (np.sign(reports) * np.asarray(values)).sum(axis=1)
        return np.where(agree >= 0, 0.0, -self.epsilon) + np.where(agree == 0, 0.5, 0.0)


@dataclass(frozen=True, kw_only=True)
class Forgetful(Laplace):
    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"dimension": 7}


@dataclass(frozen=True, kw_only=True)
class Unseeded(Laplace):
    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        return super().randomize(values, SimulationSource(0), clip=clip)


@dataclass(frozen=True, kw_only=True)
class Chatty(Laplace):
    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        try:
            return super().randomize(values, rng, clip=clip)
        except ValueError as error:
            error.args = (f"{error} {values}",)
            raise


@dataclass(frozen=True, kw_only=True)
class Lenient(Laplace):
    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        return super().randomize(values, rng, clip=True)


@dataclass(frozen=True, kw_only=True)
class Unclipped(Laplace):
    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        return super().randomize(np.asarray(values) / (3 if clip else 1) / 1, rng) + clip


@dataclass(frozen=True, kw_only=True)
class AnyEpsilon(Laplace):
    def __post_init__(self) -> None:
        pass

    @classmethod
    def from_dict(cls, data: Any) -> AnyEpsilon:
        return AnyEpsilon(**{key: value for key, value in data.items() if key != "name"})


@pytest.mark.parametrize(
    ("twin", "check", "message"),
    [
        (Biased(epsilon=4.0), contract.check_moments, "unbiased"),
        (WrongVariance(epsilon=1.0), contract.check_moments, "variance"),
        (TooLittleNoise(epsilon=1.0), contract.check_promise, "as likely"),
        (WrongLikelihood(epsilon=1.0), contract.check_likelihood, "normalized"),
        (Dishonest(epsilon=1.0), contract.check_likelihood, "normalized"),
        (Dishonest(epsilon=1.0), contract.check_moments, "unbiased"),
        (TiesInBothHalves(epsilon=1.0, dimension=2), contract.check_likelihood, "add up to 1"),
        (TiesInBothHalves(epsilon=1.0, dimension=2), contract.check_promise, "as likely"),
        (Forgetful(epsilon=1.0), contract.check_description, "from_dict"),
        (Unseeded(epsilon=1.0), contract.check_repeatable, "another seed"),
        (Unclipped(epsilon=1.0), contract.check_clipping, "clip=True"),
        (Chatty(epsilon=1.0), check_bad_input, "private value"),
        (Lenient(epsilon=1.0), check_bad_input, "must be refused"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Mechanism) else "",
)
def test_a_broken_twin_is_caught(twin: Mechanism, check: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(twin)


def test_a_mechanism_that_takes_any_epsilon_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mechanism, "from_dict", AnyEpsilon.from_dict)
    with pytest.raises(AssertionError, match="epsilon = 0 must be refused"):
        check_bad_parameters(AnyEpsilon(epsilon=1.0))


def test_check_all_names_the_culprit(monkeypatch: pytest.MonkeyPatch) -> None:
    guilty = checks.Case("mechanism", Biased(epsilon=4.0), contract.check_moments)
    monkeypatch.setattr(checks, "cases", lambda: [guilty])
    with pytest.raises(AssertionError, match=r"mechanism: Biased\(epsilon=4.0, .*unbiased"):
        checks.check_all()
