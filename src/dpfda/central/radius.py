"""The search for a radius that holds most curves: noisy counts within public radii."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self, TypedDict

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.looks import BallLook
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.exponential import Exponential
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import array, number, vector, whole
from dpfda.protocol.query import Records

RADII = 32  # candidates 2τ 2^{(2-k)/4}, from 2.8 τ down to τ/76
SEARCH_STEPS = 5  # halvings that find one of 32 radii


class Place(TypedDict):
    """Where curves are looked at: whose, how many, about which center, along which axes."""

    unit: str
    n: int
    center: FloatArray
    axes: FloatArray


_PLACE: Place = {"unit": "person", "n": 5, "center": np.zeros(2), "axes": np.ones(2)}


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusChoice(BallLook, name="radius_choice"):
    """Which of some public radii leaves about `target` records inside: an exponential mechanism.

    Privacy:
        A record moves each count, and so each score |count - target|, by at most 1.
    """

    linear: ClassVar[bool] = False
    sensitivity = 1.0

    radii: FloatArray = vector("radii", least=1e-100)
    target: int = whole(least=0)
    prior: IntArray = array("whole", "radii", least=1)

    @cached_property
    def mechanism(self) -> Mechanism:
        """A choice with prior odds."""
        return Exponential(epsilon=self.cost.epsilon_spent, prior=tuple(map(int, self.prior)))

    @property
    def size(self) -> int:
        """One count a radius."""
        return len(self.radii)

    def block(self, records: Records) -> IntArray:
        """How many records lie within each radius."""
        ordered = np.sort(self.distances(records[0]))
        return np.asarray(np.searchsorted(ordered, self.radii, side="right"))

    def statistic(self, totals: IntArray) -> FloatArray:
        """Scores, low is good."""
        return np.abs(totals - self.target).astype(np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """Four radii, a steep prior."""
        radii, prior = np.array([4.0, 2.0, 1.0, 0.5]), np.array([1, 2, 4, 8])
        return [cls(cost=Cost(epsilon=1.0), **_PLACE, target=4, radii=radii, prior=prior)]


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusCount(BallLook, name="radius_count"):
    """How many records lie within a public radius.

    Privacy:
        A neighbor moves the count by 1.
    """

    sensitivity, size = 1.0, 1

    radius: float = number(least=1e-100)

    def block(self, records: Records) -> IntArray:
        """The count."""
        return np.array([np.sum(self.distances(records[0]) <= self.radius)])

    def statistic(self, totals: IntArray) -> FloatArray:
        """As a float."""
        return totals.astype(np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure, and a hundredth of a Gaussian budget."""
        shares = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [cls(cost=cost, **_PLACE, radius=1.0) for cost in shares]


def outermost(bound: float) -> float:
    """The largest radius that is tried; curves within the bound lie within 2 of it in L²."""
    return 2 * bound * 2**0.5


def find_radius(
    cost: Cost, place: Place, *, bound: float, outside: float, steepness: float
) -> Questions[float]:
    """A radius that holds most curves: one choice, or with a δ a few noisy halvings.

    Args:
        cost: for the whole search.
        place: where curves are looked at.
        bound: τ of the curves.
        outside: share of the curves that the radius should leave outside.
        steepness: p of the prior R^-p over radii.
    """
    candidates = outermost(bound) * 2.0 ** (-np.arange(RADII) / 4)  # public, largest first
    wanted = (1 - outside) * place["n"]
    if cost.pure:
        choice = RadiusChoice(
            cost=cost,
            **place,
            radii=candidates,
            target=round(wanted),
            prior=np.rint(1024 * 2 ** (steepness * np.arange(RADII) / 4)).astype(np.int64),
        )
        chosen = yield choice
        return float(candidates[int(chosen.values[0])])
    return (yield from halved(cost, place, candidates[::-1], wanted=wanted))


def halved(cost: Cost, place: Place, rising: FloatArray, *, wanted: float) -> Questions[float]:
    """The smallest of some rising radii that holds as many records as wanted, by noisy halvings.

    Args:
        cost: for all counts, which share it equally.
        place: where curves are looked at.
        rising: public radii, a power of two of them.
        wanted: how many records it should hold.
    """
    count = cost.part(Fraction(1, steps(rising)))
    low, high = 0, len(rising) - 1
    while low < high:
        middle = (low + high) // 2
        inside = yield RadiusCount(cost=count, **place, radius=float(rising[middle]))
        if inside.values[0] >= wanted:
            high = middle
        else:
            low = middle + 1
    return float(rising[high])


def steps(rising: FloatArray) -> int:
    """How many halvings find one of them."""
    return len(rising).bit_length() - 1
