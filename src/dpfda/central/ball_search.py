"""The search for a center of the curves and a radius about it, before the main query.

A public bound says where to begin. Where nothing is known, or where the bound turns out to be far
wider than the curves, location and scale are found by noisy halvings: a bound that is 100 times too
wide would cost hundreds of times the squared error, the search costs little.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.conversation import (
    BEYOND,
    OUTSIDE,
    CurveConversation,
    more_than_a_few,
    price_of_a_count,
    too_small,
)
from dpfda.central.queries import BallMean, Place, RadiusChoice, RadiusCount, Surroundings
from dpfda.central.shrinkage import posterior
from dpfda.noise.law import NoiseLaw, padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Answer, Query

_FINEST = 2.0**-6.25  # of a bound: the smallest radius that is tried
_LARGEST_WEIGHT = 61.0  # of a prior, as a power of two
_STEEPEST = 4.0  # p of the prior R^-p over radii, where evidence allows it
MAGNITUDES = np.ldexp(1.0, np.arange(-32, 32))
"""Norms that are tried where nothing is known: public and fixed, whatever the data."""
SEARCH_FROM = {False: 500, True: 1000}
"""n·ε from which a search finds what it looks for, by whether ε is pure."""
_TELLING = 1 / 3
"""Of the curves: where counts may err by more, a search about a bound that seems loose loses more
than it finds."""
_WITHIN = np.ldexp(1.0, np.arange(-62, 2))  # of a public bound: norms that are tried below it
_NEAR = 2.0 ** (np.arange(-29, 3) / 2)  # of a norm: how far curves may lie from a guess
_CERTAIN = 4.0  # deviations of noise that a count must be wrong by to mislead a search
_MISLED = 0.01  # and with pure ε, the probability that some count of a search does
_SPARE = 2.0  # by how much a radius that was found is widened: some curves were left outside
_MOST = 0.8  # of the curves: so many are nearly all
_ROUNDED = 1e-9  # of a bound: curves that lie on it are not beyond
_GUESSED = 2  # coefficients of the guess: level and slope
_LOOSE = 8.0  # a bound that many times a radius
FEW, _FEW_PURE = 0.02, 0.01  # of the curves: left outside of a radius for second moments
_DROWNED = 0.45  # of a radius: a center that is noisier makes the radius by itself


class Region(NamedTuple):
    """The estimated region of the curves, and the budget that is left to refine it."""

    center: FloatArray
    bound: float
    budget: Cost
    warnings: tuple[str, ...]


class FoundBall(NamedTuple):
    """The result of the search.

    Attributes:
        place: center and axes for the queries that follow.
        radius: holds most curves about the center, along the axes.
        coarse: the last mean of what the bound allows, and the law of its noise.
        budget: what there was before it, of which shares are taken.
        left: what is left now.
        outside: share of the curves that the radius should leave outside.
        loose: whether the bound is far wider than the curves.
        vague: variance that noise leaves in the center, along each axis.
        warnings: what is wrong with the public bound.
    """

    place: Place
    radius: float
    coarse: tuple[FloatArray, NoiseLaw]
    budget: Cost
    left: Cost
    outside: float
    loose: bool
    vague: FloatArray
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class BallSearch:
    """Settings of the search for a center and a radius; all are public.

    Attributes:
        axes: shape of the region that is to hold most curves.
        first: share of the mean that becomes the center.
        search: share of the search for a radius.
        coarse: coefficients of the mean.
        certain: deviations of noise that curves outside the radius are worth, with a δ.
        doubt: how many times its variance noise counts where a mean is shrunk into a center.
        some: share of the curves that is left outside the radius in any case (`left_outside`).
    """

    axes: FloatArray
    first: float
    search: float
    coarse: int
    certain: float = 2.0
    doubt: float = 1.0
    some: float = FEW

    def questions(self, asked: CurveConversation[Any]) -> Questions[FoundBall]:
        """A mean and a radius; a search before, if no bound is known, and after, if it is loose."""
        known = math.isfinite(asked.bound)
        region = Region(np.zeros(len(self.axes)), asked.bound, asked.whole, ())
        if known:
            region = yield from count_beyond(asked, region)
            found = yield from self._round(asked, region)
            if not (found.loose and asked.finds_bound and _can_search(asked, found.left)):
                return found
            region = region._replace(budget=found.left)
        region = yield from locate(asked, region)
        return (yield from self._round(asked, region))

    def _round(self, asked: CurveConversation[Any], region: Region) -> Questions[FoundBall]:
        """A mean of what the bound allows, shrunk into a center; a radius about it."""
        budget, size = region.budget, len(self.axes)
        first, search = budget.part(self.first), budget.part(self.search)
        place = asked.place(region.center[: self.coarse], np.ones(self.coarse))
        query = yield BallMean(cost=first, **place, radius=region.bound)
        variance = query.noise.variance
        believed = posterior(query.values, self.doubt * variance, region.bound)
        place = asked.place(region.center + padded(believed.mean, size), self.axes)
        wanted: Any = {"bound": region.bound, "certain": self.certain, "some": self.some}
        radius = yield from find_radius(search, place, **wanted)
        noise = believed.variance / self.axes[: self.coarse] ** 2
        return FoundBall(
            place=place,
            radius=radius,
            coarse=(region.center[: self.coarse] + query.values, query.noise),
            budget=budget,
            left=budget.rest(first, search),
            outside=left_outside(search, place, **wanted),
            loose=bool(noise.sum() > (_DROWNED * radius) ** 2 or radius < region.bound / _LOOSE),
            vague=padded(believed.variance, size),
            warnings=region.warnings,
        )


def count_beyond(asked: CurveConversation[Any], region: Region) -> Questions[Region]:
    """How many curves are longer than their public bound: whether it is too small.

    A mean at the edge of a bound does not tell: curves at one end of a range that is far too wide
    are there as well.
    """
    budget, size = region.budget, len(region.center)
    check = price_of_a_count(budget, asked.n)
    place = asked.place(np.zeros(size), np.ones(size))
    inside = yield RadiusCount(cost=check, **place, radius=bound_of_a_count(region.bound))
    return region._replace(budget=budget.rest(check), warnings=bound_warnings(inside, asked.n))


def bound_of_a_count(bound: float) -> float:
    """The bound with room for rounding: a curve on it is inside."""
    return bound * (1 + _ROUNDED)


def bound_warnings(inside: Answer, n: int) -> tuple[str, ...]:
    """Warnings about a public bound, from a noisy count of the curves inside it."""
    outside = n - float(inside.values[0])
    if not more_than_a_few(outside, n, inside.noise):
        return ()
    return (too_small("their public bound") if outside > _MOST * n else BEYOND,)


def locate(asked: CurveConversation[Any], region: Region) -> Questions[Region]:
    """Where curves lie: their norm, a guess at their mean, their distance from it.

    Args:
        asked: the conversation.
        region: a public bound, if any, and what may be spent.
    """
    budget, size = region.budget, len(region.center)
    search = budget.part(_search_share(asked, budget))
    left = _left(budget, search)
    nowhere, round_ = np.zeros(size), np.ones(size)
    known = math.isfinite(region.bound)
    norms = np.asarray(region.bound * _WITHIN) if known else MAGNITUDES
    norm, bound = yield from _magnitude(search, asked.place(nowhere, round_), norms)
    warnings = region.warnings or (_outside(known),) * bool(norm >= norms[-1])
    bound = min(bound, region.bound)
    few = min(_GUESSED, size)
    query = yield BallMean(cost=search, **asked.place(nowhere[:few], round_[:few]), radius=bound)
    guess = padded(query.values, size)
    _, near = yield from _magnitude(search, asked.place(guess, round_), np.asarray(bound * _NEAR))
    if near < bound:
        return Region(guess, near, left, warnings)
    return Region(nowhere, bound, left, warnings)


def _left(budget: Cost, search: Cost) -> Cost:
    """After three steps."""
    return budget.rest(search, search, search)


def _search_share(asked: CurveConversation[Any], budget: Cost) -> float:
    """Share of each of three steps, so that a count is exact to a few percent."""
    if budget.pure:
        return min(0.2, max(0.05, 100 / asked.strength))
    return min(0.05, max(0.005, (150 / (budget.mu * asked.n)) ** 2))


def _magnitude(
    cost: Cost, place: Surroundings, rising: FloatArray
) -> Questions[tuple[float, float]]:
    """The smallest of some radii that holds nearly all curves, and the same with some room."""
    outside = min(0.5, max(0.02, _count_error(cost, place["n"], rising)))
    found = yield from search_radius(cost, place, rising, wanted=(1 - outside) * place["n"])
    return found, found * (_SPARE if outside < 0.25 else 1.5 * _SPARE)


def _count_error(cost: Cost, n: int, rising: FloatArray) -> float:
    """Share of the curves by which the counts of a search hardly ever err more."""
    each = cost.part(Fraction(1, steps(rising)))
    if cost.pure:
        return math.log(steps(rising) / _MISLED) / (each.epsilon_spent * n)
    return _CERTAIN / (each.mu * n)


def _can_search(asked: CurveConversation[Any], budget: Cost) -> bool:
    """Whether counts for a part of the budget can tell where curves lie."""
    search = budget.part(_search_share(asked, budget))
    return _count_error(search, asked.n, _WITHIN) <= _TELLING


def _outside(known: bool) -> str:
    """The warning about curves beyond all radii that were tried."""
    if not known:
        return too_small(f"{MAGNITUDES[-1]:.1g}, the largest norm that is looked for")
    return OUTSIDE


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
    place: Surroundings,
    *,
    bound: float,
    certain: float,
    some: float = FEW,
    choice: Callable[..., Query] = RadiusChoice,
    count: Callable[..., Query] = RadiusCount,
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
        some: share that is left outside also where counts could tell it.
        choice: the query of a choice, where records are not rows of coefficients.
        count: the query of a count.
    """
    radii = candidates(bound, place["axes"])
    outside = left_outside(cost, place, bound=bound, certain=certain, some=some)
    wanted = (1 - outside) * place["n"]
    if not cost.pure:
        further = np.arange(len(radii), 1 << steps(radii))  # so that all halvings are asked for
        radii = np.append(radii, radii[0] * 2.0 ** (-further / 4))
        return (yield from search_radius(cost, place, radii[::-1], wanted=wanted, count=count))
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
    cost: Cost, place: Surroundings, *, bound: float, certain: float, some: float = FEW
) -> float:
    """Share of the curves that a radius should leave outside; arguments as in `find_radius`.

    So many as noisy counts can tell from none, and `some` at least (with pure ε, no more than one
    in a hundred): noise on second moments grows with the square of the radius. Of a mean that would
    be most of the error of many curves, because it does not fall with n and ε.
    """
    if cost.pure:
        return min(0.5, max(min(some, _FEW_PURE), 10 / (cost.epsilon_spent * place["n"])))
    noticeable = (
        certain * math.sqrt(steps(candidates(bound, place["axes"]))) / (cost.mu * place["n"])
    )
    return min(0.5, max(some, noticeable))


def _prior(octaves: FloatArray) -> IntArray:
    """Whole weights 1024·2^octaves; where the largest would be no int64, all are smaller."""
    room = min(0.0, _LARGEST_WEIGHT - 10 - float(octaves[-1]))
    return np.asarray(np.maximum(np.rint(2.0**room * 1024 * 2**octaves), 1), dtype=np.int64)


def search_radius(
    cost: Cost,
    place: Surroundings,
    rising: FloatArray,
    *,
    wanted: float,
    count: Callable[..., Query] = RadiusCount,
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
