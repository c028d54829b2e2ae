"""A mean with its sampling error: what ``PrivateMean(inference=True)`` asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpfda.central.adaptive import Adaptive, combined, concluded
from dpfda.central.left_out import Layout, clipped_away
from dpfda.central.mean import MeanRelease
from dpfda.central.moments.joint_queries import AFTER, FOR_BANDS, joint, sizes, whole_ball
from dpfda.central.release import Release
from dpfda.noise.law import NoiseLaw
from dpfda.protocol.conversation import Questions

UNSURE = 1.08
"""By how much a variance may be larger than the one released: of rough functions only the sum is
known, and clipping takes some of a tail. Without it bands that are nearly all sampling error held
the mean of the population too rarely; chosen on lognormal and exponential curves of `dpfda bench
bands`."""


@dataclass(frozen=True, kw_only=True)
class MeanWithInference(Adaptive, name="moments"):
    """Looks of the adaptive mean, the last of which holds second moments too.

    Second moments ride on the mean for nothing (`JointMoments`): they say how far the mean of other
    people might lie, so that a band holds the mean of the population.

    Privacy:
        That of `Adaptive`: the budgets of all looks add up.

    Examples:
        >>> MeanWithInference().name
        'moments'
    """

    def layout(self, mean: MeanRelease) -> Layout:
        """Coefficients, and the norm of all others."""
        basis, plan = self.basis(mean.grid), self.plan(mean)
        size = sizes(mean, most=basis.size)[0] if plan.first else plan.size
        plan = replace(plan, size=size)
        return Layout(basis=basis, size=size, folds=plan.folds, rest=plan.rest(mean.n))

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """A joint look, with a center and a radius before it where that is worth it."""
        layout = self.layout(mean)
        asked: dict[str, Any] = {
            "second": min(layout.size, sizes(mean, most=layout.basis.size)[1]),
            "separate": False,
            "emphasis": "means",
        }
        if self.plan(mean).first:
            axes = layout.axes(FOR_BANDS.tilt)
            found = yield from joint(mean, FOR_BANDS, axes, most=layout.basis.size, **asked)
        else:
            found = yield from whole_ball(mean, size=layout.width, **asked)
        answer, look = found.answer, found.answer.look
        noisy = look.center + answer.shift[0] * answer.unit
        laws: tuple[NoiseLaw, ...] = (answer.law.first(layout.width).times(answer.unit),)
        if found.coarse is not None:
            noisy, laws = combined((noisy, *laws), found.coarse)
        sampling = UNSURE * answer.covariance_in()[: layout.size, : layout.size]
        return concluded(
            mean,
            layout,
            noisy,
            laws,
            stages=1 if found.coarse is None else 2,
            radius=look.radius,
            clipped=clipped_away(look.radius, AFTER * found.outside, mean.n),
            sampling=(NoiseLaw.normal(sampling / mean.n),),
            warnings=found.warnings,
            mechanism="moments",
        )
