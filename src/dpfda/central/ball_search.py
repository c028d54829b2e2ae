"""The search for a center of the curves and a radius about it, before the main query.

The search starts from the public bound. If there is none, or if the bound is much wider than the
curves, a noisy bisection finds location and scale. The bisection uses a small share of the budget,
while a bound that is 100 times too wide would multiply the squared error by hundreds.
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

_FINEST = 2.0**-6.25  # smallest candidate radius, as a share of the bound
_LARGEST_WEIGHT = 61.0  # largest prior weight, as a power of two
_STEEPEST = 4.0  # largest exponent p of the prior R^-p over radii
MAGNITUDES = np.ldexp(1.0, np.arange(-32, 32))
"""Candidate norms if no bound is known; they are public and do not depend on the data."""
SEARCH_FROM = {False: 500, True: 1000}
"""Smallest n·ε at which a search is reliable; the key is whether ε is pure."""
_TELLING = 1 / 3
"""Largest error of a count, as a share of the curves, at which a bound that seems loose is searched
again. With a larger error the search loses more than it gains."""
_WITHIN = np.ldexp(1.0, np.arange(-62, 2))  # candidate norms, as shares of a public bound
_NEAR = 2.0 ** (np.arange(-29, 3) / 2)  # candidate distances from a guess, as shares of a norm
_CERTAIN = 4.0  # error of a count, in deviations of its noise, that is practically excluded
_MISLED = 0.01  # with pure ε: probability that some count of a search has a larger error
_SPARE = 2.0  # the estimated radius is multiplied by this, because some curves lie outside it
_MOST = 0.8  # share of the curves that counts as nearly all
_ROUNDED = 1e-9  # tolerance, as a share of the bound: curves that lie on it are inside
_GUESSED = 2  # number of coefficients of the guess: level and slope
_LOOSE = 8.0  # a bound that exceeds the radius by more than this factor is loose
FEW, _FEW_PURE = 0.02, 0.01  # shares of the curves left outside a radius for second moments
_DROWNED = (
    0.45  # share of the radius: with more noise in the center, the radius reflects that noise
)


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
        radius: radius about the center, along the axes, that contains most curves.
        coarse: the last mean over the whole bound, and the law of its noise.
        budget: the budget before the last mean, of which queries take shares.
        left: the remaining budget.
        outside: share of the curves that the radius should leave outside.
        loose: whether the bound is much wider than the curves.
        vague: posterior variance of each coefficient of the center.
        warnings: warnings about the public bound.
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
        axes: shape of the region that should contain most curves.
        first: budget share of the mean that becomes the center.
        search: budget share of the search for a radius.
        coarse: number of coefficients of this mean.
        certain: with δ > 0, the number of curves to leave outside the radius, in deviations of the
            counts' noise.
        doubt: factor on the noise variance when the mean is shrunk to a center.
        some: smallest share of the curves to leave outside the radius (`left_outside`).
    """

    axes: FloatArray
    first: float
    search: float
    coarse: int
    certain: float = 2.0
    doubt: float = 1.0
    some: float = FEW

    def questions(self, conversation: CurveConversation[Any]) -> Questions[FoundBall]:
        """Find a mean and a radius.

        If no bound is known, location and scale are searched first. If the bound turns out to be
        loose, they are searched afterwards and the mean and the radius are found again.
        """
        known = math.isfinite(conversation.bound)
        region = Region(np.zeros(len(self.axes)), conversation.bound, conversation.whole, ())
        if known:
            region = yield from count_beyond(conversation, region)
            found = yield from self._round(conversation, region)
            if not (
                found.loose and conversation.finds_bound and _can_search(conversation, found.left)
            ):
                return found
            region = region._replace(budget=found.left)
        region = yield from locate(conversation, region)
        return (yield from self._round(conversation, region))

    def _round(self, conversation: CurveConversation[Any], region: Region) -> Questions[FoundBall]:
        """The mean over the whole bound, shrunk to a center, and a radius about it."""
        budget, size = region.budget, len(self.axes)
        first, search = budget.part(self.first), budget.part(self.search)
        place = conversation.place(region.center[: self.coarse], np.ones(self.coarse))
        query = yield BallMean(cost=first, **place, radius=region.bound)
        variance = query.noise.variance
        estimate = posterior(query.values, self.doubt * variance, region.bound)
        place = conversation.place(region.center + padded(estimate.mean, size), self.axes)
        wanted: Any = {"bound": region.bound, "certain": self.certain, "some": self.some}
        radius = yield from find_radius(search, place, **wanted)
        noise = estimate.variance / self.axes[: self.coarse] ** 2
        return FoundBall(
            place=place,
            radius=radius,
            coarse=(region.center[: self.coarse] + query.values, query.noise),
            budget=budget,
            left=budget.rest(first, search),
            outside=left_outside(search, place, **wanted),
            loose=bool(noise.sum() > (_DROWNED * radius) ** 2 or radius < region.bound / _LOOSE),
            vague=padded(estimate.variance, size),
            warnings=region.warnings,
        )


def count_beyond(conversation: CurveConversation[Any], region: Region) -> Questions[Region]:
    """Count the curves beyond their public bound, to detect a bound that is too small.

    The mean alone is not enough: curves near one end of a range that is much too wide also have a
    mean at the edge of the bound.
    """
    budget, size = region.budget, len(region.center)
    check = price_of_a_count(budget, conversation.n)
    place = conversation.place(np.zeros(size), np.ones(size))
    inside = yield RadiusCount(cost=check, **place, radius=bound_of_a_count(region.bound))
    return region._replace(
        budget=budget.rest(check), warnings=bound_warnings(inside, conversation.n)
    )


def bound_of_a_count(bound: float) -> float:
    """The bound plus a tolerance for rounding, so that a curve on the bound is inside."""
    return bound * (1 + _ROUNDED)


def bound_warnings(inside: Answer, n: int) -> tuple[str, ...]:
    """Warnings about a public bound, from a noisy count of the curves inside it."""
    outside = n - float(inside.values[0])
    if not more_than_a_few(outside, n, inside.noise):
        return ()
    return (too_small("their public bound") if outside > _MOST * n else BEYOND,)


def locate(conversation: CurveConversation[Any], region: Region) -> Questions[Region]:
    """Find the region of the curves: their norm, a rough mean, and their distance from it.

    Args:
        conversation: the conversation.
        region: the public bound, if any, and the budget.
    """
    budget, size = region.budget, len(region.center)
    search = budget.part(_search_share(conversation, budget))
    left = _left(budget, search)
    nowhere, round_ = np.zeros(size), np.ones(size)
    known = math.isfinite(region.bound)
    norms = np.asarray(region.bound * _WITHIN) if known else MAGNITUDES
    norm, bound = yield from _magnitude(search, conversation.place(nowhere, round_), norms)
    warnings = region.warnings or (_outside(known),) * bool(norm >= norms[-1])
    bound = min(bound, region.bound)
    few = min(_GUESSED, size)
    query = yield BallMean(
        cost=search, **conversation.place(nowhere[:few], round_[:few]), radius=bound
    )
    guess = padded(query.values, size)
    _, near = yield from _magnitude(
        search, conversation.place(guess, round_), np.asarray(bound * _NEAR)
    )
    if near < bound:
        return Region(guess, near, left, warnings)
    return Region(nowhere, bound, left, warnings)


def _left(budget: Cost, search: Cost) -> Cost:
    """The budget that remains after three steps."""
    return budget.rest(search, search, search)


def _search_share(conversation: CurveConversation[Any], budget: Cost) -> float:
    """Budget share of each of the three steps, so that a count is accurate to a few percent."""
    if budget.pure:
        return min(0.2, max(0.05, 100 / conversation.strength))
    return min(0.05, max(0.005, (150 / (budget.mu * conversation.n)) ** 2))


def _magnitude(
    cost: Cost, place: Surroundings, rising: FloatArray
) -> Questions[tuple[float, float]]:
    """The smallest candidate radius that contains nearly all curves, and a larger, safer one."""
    outside = min(0.5, max(0.02, _count_error(cost, place["n"], rising)))
    found = yield from search_radius(cost, place, rising, wanted=(1 - outside) * place["n"])
    return found, found * (_SPARE if outside < 0.25 else 1.5 * _SPARE)


def _count_error(cost: Cost, n: int, rising: FloatArray) -> float:
    """A bound on the error of the counts of a search, as a share of the curves; rarely exceeded."""
    each = cost.part(Fraction(1, steps(rising)))
    if cost.pure:
        return math.log(steps(rising) / _MISLED) / (each.epsilon_spent * n)
    return _CERTAIN / (each.mu * n)


def _can_search(conversation: CurveConversation[Any], budget: Cost) -> bool:
    """Whether counts are accurate enough, for their share of the budget, to locate the curves."""
    search = budget.part(_search_share(conversation, budget))
    return _count_error(search, conversation.n, _WITHIN) <= _TELLING


def _outside(known: bool) -> str:
    """The warning about curves beyond all candidate radii."""
    if not known:
        return too_small(f"{MAGNITUDES[-1]:.1g}, the largest norm that is looked for")
    return OUTSIDE


def candidates(bound: float, axes: FloatArray) -> FloatArray:
    """Public candidate radii, in decreasing order, each 2^-1/4 times the one before.

    The distance of a curve within the bound τ from the center is at most 2τ in L², and thus at most
    2τ/min a along axes a. An additional factor √2 allows for curves beyond their bound.
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
    """A radius that contains most curves, by the exponential mechanism or, with δ > 0, bisection.

    The prior of the exponential mechanism favors small radii, which give less noise. Without it, a
    radius that contains every curve is chosen about once in a hundred releases. The prior has at
    most half of the weight of the evidence: for small n a steeper prior would choose the smallest
    radius for any curves.

    Args:
        cost: budget of the whole search.
        place: records, center and axes.
        bound: τ of the curves.
        certain: number of curves to leave outside, in deviations of the counts' noise; the share
            outside is larger if counts are noisy.
        some: smallest share of the curves to leave outside, even if counts are accurate.
        choice: the query of the exponential mechanism, if records are not rows of coefficients.
        count: the query of a count.
    """
    radii = candidates(bound, place["axes"])
    outside = left_outside(cost, place, bound=bound, certain=certain, some=some)
    wanted = (1 - outside) * place["n"]
    if not cost.pure:
        further = np.arange(
            len(radii), 1 << steps(radii)
        )  # a power of two: every bisection has the same number of queries
        radii = np.append(radii, radii[0] * 2.0 ** (-further / 4))
        return (yield from search_radius(cost, place, radii[::-1], wanted=wanted, count=count))
    evidence = wanted * cost.epsilon_spent / 2  # log odds of a good radius against a tiny one
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

    It is the smallest share that noisy counts can distinguish from 0, but at least `some`, which is
    capped at 1 % with pure ε. Second moments need `some` > 0, because their noise grows with the
    square of the radius. Means use `some` = 0: the bias of clipping does not decrease with n and ε,
    and would dominate the error of large samples.
    """
    if cost.pure:
        return min(0.5, max(min(some, _FEW_PURE), 10 / (cost.epsilon_spent * place["n"])))
    noticeable = (
        certain * math.sqrt(steps(candidates(bound, place["axes"]))) / (cost.mu * place["n"])
    )
    return min(0.5, max(some, noticeable))


def _prior(octaves: FloatArray) -> IntArray:
    """Integer weights 1024·2^octaves, scaled down if the largest would overflow an int64."""
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
    """The smallest candidate radius that contains enough records, by noisy bisection.

    Args:
        cost: budget of all counts, which share it equally.
        place: records, center and axes.
        rising: public candidate radii, in increasing order; their number is a power of two.
        wanted: number of records that the radius should contain.
        count: the query of a count.
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
    """Number of bisection steps that find one of the candidates."""
    return (len(rising) - 1).bit_length()
