"""A probability density under differential privacy: mechanisms, their questions, an estimator."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from dpfda._registry import Registered
from dpfda.central.conversation import BoxConversation, too_small
from dpfda.central.release import Release
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import Declared
from dpfda.protocol.query import Records

_RIM = 50  # a fiftieth of the range at either end
_PILED = 0.2  # of all points there: more than a density has
_CLEAR = 0.5  # noise above which nothing can be told


@dataclass(frozen=True, kw_only=True)
class DensityMechanism(Registered, Declared, family="density mechanism"):
    """Releases the density of points in a public box; a new one fills in `questions`."""

    def budget(self, cost: Cost) -> Cost:
        """What it spends of a budget: all of it, or pure ε where that has less noise."""
        return cost

    @abstractmethod
    def questions(self, density: DensityRelease) -> Questions[Release]:
        """What is asked about n points in a box."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks and audits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DensityRelease(BoxConversation, name="density"):
    """The questions behind the density of n points.

    Attributes:
        mechanism: which questions are asked.
        either: whether noise may be pure although a δ is given, where that is smaller: for one
            curator; sites that add up their noise need Gaussian noise.
    """

    summary: ClassVar[str] = "density"

    mechanism: DensityMechanism
    either: bool = False

    @property
    def whole(self) -> Cost:
        """The budget: Gaussian, or pure ε where the mechanism is better with it."""
        whole = super().whole
        return self.mechanism.budget(whole) if self.either else whole

    def among_sites(self) -> Self:
        """With Gaussian noise where a δ is given."""
        return replace(self, either=False)

    def doubts(self, release: Release) -> tuple[str, ...]:
        """Mass that piles up where points outside the range are moved to."""
        noise = float(
            np.sqrt(release.variance_along(release.basis.functions) @ release.basis.weights)
        )
        mass = (release.values() * release.basis.weights.reshape(release.values().shape)).clip(0)
        mass = mass / max(float(mass.sum()), 1e-12)
        for axis in range(mass.ndim):
            along = np.moveaxis(mass, axis, 0).reshape(len(mass), -1).sum(axis=1)
            rim = max(1, len(along) // _RIM)
            if noise < _CLEAR and max(along[:rim].sum(), along[-rim:].sum()) > _PILED:
                return (too_small("the ends of feature_ranges", "points"),)
        return ()

    def questions(self) -> Questions[Release]:
        """The mechanism's."""
        return self.mechanism.questions(self)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One point at either end of the box."""
        here, there = self.anywhere(n), self.anywhere(n)
        here[0], there[0] = self.asked["low"], self.asked["high"]
        return (here,), (there,)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every mechanism, on a line."""
        return [
            cls(
                epsilon=epsilon,
                delta=delta,
                n=n,
                box=((0.0, 1.0),),
                mechanism=mechanism,
                either=True,
            )
            for member in DensityMechanism.members().values()
            for mechanism in member.examples()
        ]
