"""The interface of all mechanisms."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._registry import Registered
from dpfda._validate import ArrayLike, FloatArray
from dpfda.errors import InvalidParameter
from dpfda.noise import Source
from dpfda.privacy.events import Event, PureEvent
from dpfda.privacy.guarantee import Guarantee, Model

_SMALLEST_EPSILON = 1e-6  # for a smaller ε, 30-bit weights cannot represent the odds


@dataclass(frozen=True, kw_only=True)
class Mechanism(Registered, family="mechanism"):
    """Turns a batch of private values into a batch of reports that can be published.

    A mechanism is a frozen, public description; private values are arguments, never fields. Rows
    are independent people. To add a mechanism, write a subclass with ``name=`` and the abstract
    methods; `dpfda.checks` and `dpfda audit` find it by its registration.

    Attributes:
        epsilon: the privacy budget ε of one row.
    """

    model: ClassVar[Model] = "local"
    """Who adds the noise."""

    epsilon: float

    def __new__(cls, *_: object, **__: object) -> Self:
        """Refuse to construct the abstract family."""
        if cls is Mechanism:
            known = ", ".join(cls.members())
            rule = 'Mechanism.named("laplace")(epsilon=1.0, dimension=4)'
            raise TypeError(f"Mechanism is a family; choose a member, like {rule}. Known: {known}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon)
        if self.epsilon < _SMALLEST_EPSILON:
            raise InvalidParameter("epsilon", f"at least {_SMALLEST_EPSILON:g}", self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one report; `Guarantee.drawn_from` adds the source of the noise."""
        return Guarantee(epsilon=self.epsilon, model=self.model)

    @property
    def event(self) -> Event:
        """The privacy event that a ledger records."""
        return PureEvent(epsilon=self.epsilon)

    @abstractmethod
    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Randomize each row of `values`.

        Args:
            values: private values, one row per person.
            source: the source of randomness.
            clip: clip values to the bound instead of refusing those outside.
        """

    @abstractmethod
    def variance(self, values: ArrayLike) -> FloatArray:
        """Exact variance of ``debias(randomize(values))``, entry by entry."""

    @abstractmethod
    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Exact log-probability of each report, given the row of `values`."""

    @property
    def depth_shape(self) -> float | None:
        """Shape of the Gamma law of `depths`; None if the mechanism does not add noise."""
        return None

    def depths(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Maximum log-density minus that of each report, and `depth_shape`, as two columns.

        For noise with density ∝ e^{-‖x‖} or e^{-‖x‖²/2} this difference is Gamma distributed with
        rate 1. Audits use it to test whether the noise has its stated size.
        """
        true = np.broadcast_to(np.asarray(values), np.shape(reports))
        depth = self.log_likelihood(true, true) - self.log_likelihood(reports, true)
        return np.stack([depth, np.full(len(depth), self.depth_shape or 0.0)], axis=1)

    @abstractmethod
    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Pairs of neighboring rows at which a violation would be largest, for audits."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """Instances that cover the range of the parameters, for checks and audits."""

    def target(self, values: ArrayLike) -> FloatArray:
        """The estimand of ``debias``: the values, unless overridden."""
        return np.asarray(values, dtype=np.float64)

    def debias(self, reports: FloatArray) -> FloatArray:
        """An unbiased estimate of ``target(values)``: the reports, unless overridden."""
        return reports


@dataclass(frozen=True, kw_only=True)
class BoxMechanism(Mechanism):
    """A mechanism of vectors in the box [-1, 1]^d.

    Attributes:
        dimension: d.
    """

    dimension: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("dimension", self.dimension)

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Opposite corners of the box."""
        return box_corners(self.dimension)


def box_corners(dimension: int) -> list[tuple[FloatArray, FloatArray]]:
    """Neighboring rows of [-1, 1]^d that differ most: opposite corners, corner and center.

    Also two rows whose coordinates all differ by different amounts, which reveal shared noise.
    """
    corner = np.ones((1, dimension))
    alternating = np.where(np.arange(dimension) % 2, -1.0, 1.0)[None, :]
    first = np.zeros((1, dimension))
    first[0, 0] = 1.0
    rising = np.linspace(-1.0, 1.0, dimension)[None, :]  # a different value in each coordinate
    return [
        (corner, -corner),
        (corner, np.zeros((1, dimension))),
        (alternating, -alternating),
        (first, -first),
        *[(rising, -rising)] * (dimension > 2),
    ]
