"""The search for a radius that holds most curves: noisy counts within public radii."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self, TypedDict

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.queries import BallQuery
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.exponential import Exponential
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import array, number, vector, whole
from dpfda.protocol.query import Records

_FINEST = 2.0**-6.25  # of a bound: the smallest radius that is tried
_LARGEST_WEIGHT = 61.0  # of a prior, as a power of two
_STEEPEST = 4.0  # p of the prior R^-p over radii, where evidence allows it


class Place(TypedDict):
    """Where curves are looked at: whose, how many, about which center, along which axes."""

    unit: str
    n: int
    center: FloatArray
    axes: FloatArray


_PLACE: Place = {"unit": "person", "n": 5, "center": np.zeros(2), "axes": np.ones(2)}


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusChoice(BallQuery, name="radius_choice"):
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

    @property
    def largest(self) -> int:
        """A record counts once."""
        return 1

    def block(self, records: Records) -> IntArray:
        """How many records lie within each radius; the largest holds those beyond it too.

        All of them are clipped to it: where it held nobody, all radii would be as good.
        """
        ordered = np.sort(np.minimum(self.distances(records[0]), self.radii.max()))
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
class RadiusCount(BallQuery, name="radius_count"):
    """How many records lie within a public radius.

    Privacy:
        A neighbor moves the count by 1.
    """

    sensitivity, size, largest = 1.0, 1, 1

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


def candidates(bound: float, axes: FloatArray) -> FloatArray:
    """Public radii, largest first, each a fourth of an octave below the last.

    Curves within the bound lie within twice of it in L², and so within 2τ/min a along axes a,
    however fast they vary; a factor √2 is for curves that do not keep to their bound.
    """
    octaves = np.log2(2 * 2**0.5 / (_FINEST * axes.min()))
    steps = np.arange(int(np.ceil(4 * octaves - 1e-9)) + 1)
    return np.asarray(2 * 2**0.5 * bound / axes.min() * 2.0 ** (-steps / 4))


def find_radius(
    cost: Cost,
    place: Place,
    *,
    bound: float,
    certain: float,
    some: bool = True,
    choice: type[RadiusChoice] = RadiusChoice,
    count: type[RadiusCount] = RadiusCount,
) -> Questions[float]:
    """A radius that holds most curves: one choice, or with a δ a few noisy halvings.

    The prior of the choice prefers small radii: those are cheap, and without it a radius that holds
    every curve wins once in a hundred releases. It may weigh half as much as the evidence: a
    steeper one would choose the smallest radius whatever the curves when n is small.

    Args:
        cost: for the whole search.
        place: where curves are looked at.
        bound: τ of the curves.
        certain: deviations of noise that curves outside are worth: many of them are left outside
            where a count says little.
        some: whether a few are left outside also where counts could tell them.
        choice: the query of a choice, where records are not rows of coefficients.
        count: the query of a count.
    """
    radii = candidates(bound, place["axes"])
    outside = left_outside(cost, place, bound=bound, certain=certain, some=some)
    wanted = (1 - outside) * place["n"]
    if not cost.pure:
        further = np.arange(len(radii), 1 << steps(radii))  # so that all halvings are asked for
        radii = np.append(radii, radii[0] * 2.0 ** (-further / 4))
        return (yield from halved(cost, place, radii[::-1], wanted=wanted, count=count))
    evidence = wanted * cost.epsilon_spent / 2  # of a good radius against a tiny one
    steepness = min(_STEEPEST, 0.5 * evidence / np.log(radii[0] / radii[-1]))
    octaves = np.arange(len(radii)) / 4
    chosen = yield choice(
        cost=cost,
        **place,
        radii=radii,
        target=round(wanted),
        prior=_prior(steepness * octaves),
    )
    return float(radii[int(chosen.values[0])])


def left_outside(
    cost: Cost, place: Place, *, bound: float, certain: float, some: bool = True
) -> float:
    """Share of the curves that a radius should leave outside; arguments as in `find_radius`.

    So many as noisy counts can tell from none. Where `some` are to be outside, one in a hundred at
    least (two with a δ): noise on second moments grows with the square of the radius. Of a mean
    that would be most of the error of many curves, because it does not fall with n and ε.
    """
    if cost.pure:
        return min(0.5, max(0.01 * some, 10 / (cost.epsilon_spent * place["n"])))
    told = certain * math.sqrt(steps(candidates(bound, place["axes"]))) / (cost.mu * place["n"])
    return min(0.5, max(0.02 * some, told))


def _prior(octaves: FloatArray) -> IntArray:
    """Whole weights 1024·2^octaves; where the largest would be no int64, all are smaller."""
    room = min(0.0, _LARGEST_WEIGHT - 10 - float(octaves[-1]))
    return np.asarray(np.maximum(np.rint(2.0**room * 1024 * 2**octaves), 1), dtype=np.int64)


def halved(
    cost: Cost,
    place: Place,
    rising: FloatArray,
    *,
    wanted: float,
    count: type[RadiusCount] = RadiusCount,
) -> Questions[float]:
    """The smallest of some rising radii that holds as many records as wanted, by noisy halvings.

    Args:
        cost: for all counts, which share it equally.
        place: where curves are looked at.
        rising: public radii, a power of two of them.
        wanted: how many records it should hold.
        count: the query.
    """
    each = cost.part(Fraction(1, steps(rising)))
    low, high = 0, len(rising) - 1
    while low < high:
        middle = (low + high) // 2
        inside = yield count(cost=each, **place, radius=float(rising[middle]))
        if inside.values[0] >= wanted:
            high = middle
        else:
            low = middle + 1
    return float(rising[high])


def steps(rising: FloatArray) -> int:
    """How many halvings find one of them."""
    return (len(rising) - 1).bit_length()
