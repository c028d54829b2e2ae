"""The mean of curves with private weights: the mean weighted curve divided by the mean weight.

A record is a pair (u, v). v in [0, 1] is the private weight divided by its public bound, and
u = v·x, where x is the curve minus the public center. The weighted mean is Σu/Σv.

Privacy:
    For a curve x in the public ball, ‖x‖ ≤ R, also ‖u‖ ≤ R, because v ≤ 1. The queries of
    `MeanRelease` about u thus have the same sensitivity as without weights. If one record is
    replaced, including its weight, and no other weight changes, the mean of u changes by at most
    2R/n. Queries clip u to the ball again, so the guarantee does not depend on how u was computed.
    The mean of v changes by at most 1/n (`MeanWeight`). Both spend shares of one budget, and their
    quotient is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.channels import about_channel
from dpfda.central.conversation import CentralConversation
from dpfda.central.functions import Grid, norm_bound, trapezoid
from dpfda.central.mean import MeanRelease
from dpfda.central.queries import MOST_RECORDS, integer_sums, mean_of, units
from dpfda.central.records import clip_rows
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.ellipsoid_laplace import l2_noise
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import WEIGHTS_ARE_INDIVIDUAL
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import part, whole
from dpfda.protocol.query import AdditiveQuery, Answer, Records, Sums

OF_CURVES = Fraction(9, 10)
"""Budget share of the mean of weighted curves. It is large because the noise of the weighted curves
affects all coefficients, while an error of the mean weight only scales the result."""
_HIDDEN = 4.0  # a mean weight below this many deviations of its noise causes a warning
_WEIGHTS = (
    "noise hides the mean of the weights: nearly all of them are far below weight_bound, and the "
    "band does not hold. Give a smaller public bound, allow a larger epsilon or ask more people"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanWeight(AdditiveQuery, name="mean_weight"):
    """The mean of one number of each record, clipped to [0, 1].

    Privacy:
        Replacing a record changes the mean by at most 1/n.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise on one number."""
        return l2_noise(self.cost, sensitivity=1 / self.n, axes=np.ones(1))

    @property
    def summed(self) -> Sums:
        """Sums of the weights; the curves of the records are not read."""
        per_bound = units(self.n)

        def weights(records: Records) -> IntArray:
            return integer_sums(shares(records[1])[:, None], 1.0, per_bound)

        def mean(totals: IntArray) -> FloatArray:
            return mean_of(totals, 1.0, self.n)

        return Sums((1, 0), 1, per_bound, weights, mean)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure noise, and a tenth of a Gaussian budget."""
        costs = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(Fraction(1, 10))
        return [cls(cost=cost, n=5) for cost in costs]


def shares(weights: FloatArray) -> FloatArray:
    """Clip numbers to [0, 1]."""
    return np.asarray(np.clip(weights, 0.0, 1.0))


def weighted_curves(
    curves: FloatArray, weights: FloatArray, *, bound: float, grid: Grid, largest: bool
) -> FloatArray:
    """Clip curves about a public center to their ball, and multiply them by weights in [0, 1].

    Args:
        curves: curves on the grid minus the center, (n, points).
        weights: weights, (n,).
        bound: bound on the average norm or on the largest absolute value.
        grid: grid of the curves.
        largest: whether the bound is on the largest absolute value.
    """
    if largest:
        pulled = np.clip(curves, -bound, bound)
    else:
        axes = 1 / np.sqrt(trapezoid(grid))
        pulled = clip_rows(curves, norm_bound(bound, grid), axes=axes)
    return np.asarray(pulled * shares(weights)[:, None])


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedMean(CentralConversation[Release], name="weighted_mean"):
    """The conversation that releases the weighted mean of n curves.

    Attributes:
        mean: the conversation about weighted curves, with a share `OF_CURVES` of the budget.
        weight_bound: the public bound on weights, which is recorded in the release.
    """

    summary: ClassVar[str] = "mean"

    mean: MeanRelease
    weight_bound: float

    def __post_init__(self) -> None:
        super().__post_init__()
        mean = self.mean
        if (mean.n, mean.epsilon, mean.delta, mean.unit) != (
            self.n, self.epsilon, self.delta, self.unit
        ):  # fmt: skip
            raise InvalidParameter("mean", "about the same records, for the same budget", mean.n)
        if mean.share != OF_CURVES:
            raise InvalidParameter("share", f"{OF_CURVES} of the budget", str(mean.share))

    @property
    def pure(self) -> bool:
        """Whether no query uses δ; this is the same for curves and weights."""
        return self.mean.pure

    def among_sites(self) -> Self:
        """The same conversation for sites: Gaussian noise if δ > 0."""
        return replace(self, mean=self.mean.among_sites())

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the mean, and that the weight of a person does not depend on other records."""
        return (*self.mean.assumptions, WEIGHTS_ARE_INDIVIDUAL)

    def questions(self) -> Questions[Release]:
        """Query the mean weight, then the mean of the weighted curves."""
        inner = self.mean.questions()
        first = next(inner)  # invalid parameters raise here, before the first query is answered
        whole = Cost(epsilon=self.epsilon, delta=0.0 if self.pure else self.delta)
        cost = whole.part(1 - OF_CURVES)
        weight = yield MeanWeight(cost=cost, unit=self.unit, n=self.n)
        place = {"channel": 0, "channels": 1, "numbers": 1}
        return self._divided((yield from about_channel(inner, first, **place)), weight)

    def _divided(self, release: Release, weight: Answer) -> Release:
        """The quotient, with noise that is linearized in the error of the mean weight."""
        found, sigma = float(weight.values[0]), weight.sigma
        mean = max(found, sigma)
        noisy = release.noisy / mean
        of_weight = replace(weight.noise, scales=weight.noise.scales / mean, mixing=noisy[None, :])
        scales = (law.times(np.full(_size(law), 1 / mean)) for law in release.noise)
        hidden = (_WEIGHTS,) * (found < _HIDDEN * sigma)
        known = {"weight_bound": self.weight_bound, "mean_weight": mean * self.weight_bound}
        return replace(
            release,
            coefficients=release.coefficients / mean,
            noisy=noisy,
            noise=(*scales, of_weight),
            unseen=release.unseen / mean,
            guarantee=self.guarantee,
            parameters={**release.parameters, **known},
            warnings=(*hidden, *release.warnings),
        )

    def records(self, weighted: FloatArray, weights: FloatArray) -> Records:
        """Weighted curves in the form that the queries need, and weights in [0, 1]."""
        return (*self.mean.records(weighted), weights)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Data sets that differ in one record: opposite curves, with the largest weight and 0."""
        (here,), (there,) = self.mean.neighbors(n)
        full = np.ones(n)
        return (here, full), (there, np.where(np.arange(n) == 0, 0.0, full))

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Means with a known bound, by mechanisms with several queries and with one."""
        known: dict[str, Any] = {"n": n, "epsilon": epsilon, "delta": delta}
        means = {
            mean.mechanism.name: mean
            for mean in MeanRelease.examples(**known)
            if mean.mechanism.name in ("adaptive", "iclp_qr") and mean.bound == 1.0
        }
        return [
            cls(**known, mean=replace(mean, share=OF_CURVES), weight_bound=20.0)
            for mean in means.values()
        ]


def _size(law: Any) -> int:
    return int((law.scales if law.mixing is None else law.mixing).shape[-1])
