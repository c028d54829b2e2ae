"""A probability density under differential privacy: mechanisms, their questions, an estimator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.central.cell_looks import Box
from dpfda.central.conversation import BoxConversation
from dpfda.central.estimator import CentralEstimator
from dpfda.central.release import Release
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import Declared
from dpfda.protocol.query import Records


@dataclass(frozen=True, kw_only=True)
class DensityMechanism(Registered, Declared, family="density mechanism"):
    """Releases the density of points in a public box; a new one fills in `questions`."""

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
    """

    summary: ClassVar[str] = "density"

    mechanism: DensityMechanism

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
            cls(epsilon=epsilon, delta=delta, n=n, box=((0.0, 1.0),), mechanism=mechanism)
            for member in DensityMechanism.members().values()
            for mechanism in member.examples()
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateDensity(CentralEstimator):
    """Release the density of numbers or of points in the plane held by a trusted curator.

    Privacy:
        (ε, δ)-DP for replacing one point (pure ε with ``delta=0``). Points outside the public
        `domain_range` are moved to its border; n is public.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        domain_range: public range (low, high), or one range a variable: ((low, high), (low, high)).
        mechanism: ``"histogram"`` (default), ``"kernel"``, or an instance with parameters.
        project: make the released function a density: not negative, of integral 1.
        unit: whose data one point is.
        ledger: budget of the data over all releases: spent before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Example:
        >>> ages = np.random.default_rng(0).beta(8, 2, size=2000) * 100
        >>> density = PrivateDensity(epsilon=1.0, domain_range=(0, 100), random_state=0).fit(ages)
        >>> int(np.argmax(density.release_.values(np.arange(101)))) in range(80, 95)
        True
    """

    domain_range: Any = None
    mechanism: str | DensityMechanism = "histogram"
    project: bool = True

    def fit(self, points: Any, y: Any = None) -> Self:
        """Release the density of `points`, shape (n,), (n, 1) or (n, 2)."""
        box = as_box(self.domain_range)
        inside = read_points(points, box)
        chosen = self.mechanism
        density = DensityRelease(
            **self._budget,
            n=len(inside),
            box=box,
            mechanism=DensityMechanism.named(chosen)() if isinstance(chosen, str) else chosen,
        )
        self._ask(density, (inside,), public={"domain_range": box}, density=bool(self.project))
        self.n_features_in_ = len(box)
        return self

    @property
    def density_(self) -> FloatArray:
        """The released density on the release's grid."""
        return self._values()


def as_box(domain_range: Any) -> Box:
    """One or two public ranges."""
    if domain_range is None:
        raise InvalidParameter("domain_range", "given: the public range of the points", None)
    nested = isinstance(domain_range, Collection) and any(
        isinstance(side, Collection) for side in domain_range
    )
    sides = tuple(domain_range) if nested else (domain_range,)
    if len(sides) > 2:
        raise InvalidParameter("domain_range", "one or two ranges", domain_range)
    return tuple(_validate.interval("domain_range", side) for side in sides)


def read_points(points: Any, box: Box, *, least: int = 2) -> FloatArray:
    """Private points as rows inside a public box."""
    try:
        single = isinstance(points, (list, tuple, np.ndarray)) and np.ndim(points) == 1
    except ValueError:  # rows of unequal length, which `batch` refuses in its own words
        single = False
    if single:
        rows = _validate.vector("points", points)[:, None]
    else:
        rows = _validate.batch("points", points, columns=len(box))
    if rows.shape[1] != len(box):
        raise InvalidData("points", f"points of {len(box)} numbers", f"shape {rows.shape}")
    if len(rows) < least:
        raise InvalidData("points", f"at least {least} points", f"{len(rows)}")
    return np.clip(rows, [side[0] for side in box], [side[1] for side in box])
