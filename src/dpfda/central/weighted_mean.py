"""The mean of curves with private weights: a mean of weighted curves over a mean weight.

A record is a pair (u, v): v in [0, 1] is the share of a public bound that a private weight is, and
u = v·x is the curve about the public center times this share. The weighted mean is Σu/Σv.

Privacy:
    A curve x in the public ball, ‖x‖ ≤ R, gives ‖u‖ ≤ R, because v ≤ 1. A weighted curve is thus
    one of the curves that `MeanRelease` is calibrated for, and its questions about u have the
    sensitivity that they have without weights: the mean of u moves by 2R/n at most when all of a
    record, its weight included, is replaced, and no other weight changes. Queries clip u to the
    ball once more, so this does not rest on how u was made. The mean of v moves by 1/n
    (`MeanWeight`). Both spend shares of one budget; their quotient is post-processing.
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
"""Share of the budget for the mean of weighted curves. An error of the mean weight moves the result
along one function, the mean itself, and the noise of curves along all."""
_HIDDEN = 4.0  # deviations of the noise: a mean weight below says little
_WEIGHTS = (
    "noise hides the mean of the weights: nearly all of them are far below weight_bound, and the "
    "band does not hold. Give a smaller public bound, allow a larger epsilon or ask more people"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanWeight(AdditiveQuery, name="mean_weight"):
    """The mean of one number of each record, moved into [0, 1].

    Privacy:
        A neighbor moves the mean by 1/n.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise on one number."""
        return l2_noise(self.cost, sensitivity=1 / self.n, axes=np.ones(1))

    @property
    def summed(self) -> Sums:
        """Weights, beside curves that are not read."""
        per_bound = units(self.n)

        def weights(records: Records) -> IntArray:
            return integer_sums(shares(records[1])[:, None], 1.0, per_bound)

        def mean(totals: IntArray) -> FloatArray:
            return mean_of(totals, 1.0, self.n)

        return Sums((1, 0), 1, per_bound, weights, mean)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure, and a tenth of a Gaussian budget."""
        costs = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(Fraction(1, 10))
        return [cls(cost=cost, n=5) for cost in costs]


def shares(weights: FloatArray) -> FloatArray:
    """Numbers in [0, 1], whatever they were."""
    return np.asarray(np.clip(weights, 0.0, 1.0))


def weighted_curves(
    curves: FloatArray, weights: FloatArray, *, bound: float, grid: Grid, largest: bool
) -> FloatArray:
    """Curves about a public center, pulled into their ball and multiplied by weights in [0, 1].

    Args:
        curves: on the grid, (n, points).
        weights: (n,).
        bound: on the average norm, or on the largest absolute value.
        grid: where curves are known.
        largest: whether it is on the latter.
    """
    if largest:
        pulled = np.clip(curves, -bound, bound)
    else:
        axes = 1 / np.sqrt(trapezoid(grid))
        pulled = clip_rows(curves, norm_bound(bound, grid), axes=axes)
    return np.asarray(pulled * shares(weights)[:, None])


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedMean(CentralConversation[Release], name="weighted_mean"):
    """The questions behind the weighted mean of n curves.

    Attributes:
        mean: the questions about weighted curves, for `OF_CURVES` of the same budget.
        weight_bound: the public bound on weights, for the record.
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
        """Whether no question uses δ: both are asked in the same way."""
        return self.mean.pure

    def among_sites(self) -> Self:
        """Gaussian noise where a δ is given."""
        return replace(self, mean=self.mean.among_sites())

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the mean; weights that are normalized would change with other records."""
        return (*self.mean.assumptions, WEIGHTS_ARE_INDIVIDUAL)

    def questions(self) -> Questions[Release]:
        """The mean weight, and all questions about the mean of weighted curves."""
        inner = self.mean.questions()
        first = next(inner)  # what is refused is refused before anything is asked
        whole = Cost(epsilon=self.epsilon, delta=0.0 if self.pure else self.delta)
        cost = whole.part(1 - OF_CURVES)
        weight = yield MeanWeight(cost=cost, unit=self.unit, n=self.n)
        place = {"channel": 0, "channels": 1, "numbers": 1}
        return self._divided((yield from about_channel(inner, first, **place)), weight)

    def _divided(self, release: Release, weight: Answer) -> Release:
        """The quotient, and its errors to first order in that of the mean weight."""
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
        """Weighted curves as the questions need them, and weights in [0, 1]."""
        return (*self.mean.records(weighted), weights)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One curve at either end of what is allowed, with the largest weight and none."""
        (here,), (there,) = self.mean.neighbors(n)
        full = np.ones(n)
        return (here, full), (there, np.where(np.arange(n) == 0, 0.0, full))

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Means of a known bound, by mechanisms with several questions and with one."""
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
