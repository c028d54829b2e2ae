"""The one interface of mechanisms that release a density, and the conversation they hold."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.central.cell_looks import Box
from dpfda.central.conversation import CentralConversation
from dpfda.central.release import Release
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records


@dataclass(frozen=True, kw_only=True)
class DensityMechanism(Registered, family="density mechanism"):
    """Releases the density of points in a public box; a new one fills in `questions`."""

    @abstractmethod
    def questions(self, density: DensityRelease) -> Questions[Release]:
        """What is asked about n points in a box."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks and audits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DensityRelease(CentralConversation, name="density"):
    """The questions behind the density of n points.

    Attributes:
        box: public range of each variable.
        mechanism: which questions are asked.
    """

    box: Box
    mechanism: DensityMechanism

    def questions(self) -> Questions[Release]:
        """The mechanism's."""
        return self.mechanism.questions(self)

    @property
    def asked(self) -> dict[str, Any]:
        """What all looks at cells have in common."""
        return {
            "unit": self.unit,
            "cost": self.whole,
            "n": self.n,
            "low": np.array([side[0] for side in self.box]),
            "high": np.array([side[1] for side in self.box]),
        }

    def neighbours(self, n: int) -> tuple[Records, Records]:
        """One point at either end of the box."""
        low, high = (np.array([side[end] for side in self.box]) for end in (0, 1))
        here = low + (high - low) * np.random.default_rng(0).uniform(size=(n, len(self.box)))
        there = here.copy()
        here[0], there[0] = low, high
        return (here,), (there,)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every mechanism, on a line."""
        return [
            cls(epsilon=epsilon, delta=delta, n=n, box=((0.0, 1.0),), mechanism=mechanism)
            for member in DensityMechanism.members().values()
            for mechanism in member.examples()
        ]


def midpoints(side: tuple[float, float], *, size: int) -> FloatArray:
    """Midpoints of `size` equal cells."""
    low, high = side
    return low + (high - low) * (np.arange(size) + 0.5) / size
