"""A probability density under differential privacy: mechanisms, their questions, an estimator."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.central.conversation import BoxConversation, too_small
from dpfda.central.estimator import HeldRecords
from dpfda.central.points import PointEstimator
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


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateDensity(PointEstimator):
    """Release the density of numbers or of points in the plane held by a trusted curator.

    Privacy:
        (ε, δ)-DP for replacing one point (pure ε with ``delta=0``, and where that has less
        noise). Points outside the public
        `feature_ranges` are moved to its border; n is public.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        feature_ranges: public range (low, high), or one range a variable, or column → (low, high).
        mechanism: ``"histogram"`` (default), ``"kernel"``, or an instance with parameters.
        project: make the released function a density: not negative, of integral 1.
        unit: whose data one point is.
        ledger: budget of the data over all releases: spent before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Examples:
        >>> import numpy as np
        >>> ages = np.random.default_rng(0).beta(8, 2, size=2000) * 100
        >>> density = PrivateDensity(epsilon=1.0, feature_ranges=(0, 100), random_state=0).fit(ages)
        >>> int(np.argmax(density.release_.values(np.arange(101)))) in range(80, 95)
        True
    """

    mechanism: str | DensityMechanism = "histogram"
    project: bool = True

    def _conversation(self, read: HeldRecords, n: int) -> DensityRelease:
        chosen = self.mechanism
        mechanism = DensityMechanism.named(chosen)() if isinstance(chosen, str) else chosen
        known: dict[str, Any] = {**self._budget, "n": n, "box": self._box}
        return DensityRelease(**known, mechanism=mechanism, either=True)

    def _keep(self, asked: Any, read: HeldRecords, found: Release) -> Self:
        return super()._keep(asked, read, replace(found, density=bool(self.project)))

    @property
    def density_(self) -> FloatArray:
        """The released density on the release's grid."""
        return self.release_.values()
