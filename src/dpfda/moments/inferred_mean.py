"""A mean with its sampling error: what ``PrivateMean(inference=True)`` asks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda.central.adaptive import Adaptive, combined
from dpfda.central.mean import MeanRelease
from dpfda.central.quadrature import norm_bound
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.moments.joint_looks import FOR_BANDS, joint, sizes, too_few
from dpfda.noise.law import NoiseLaw
from dpfda.protocol.conversation import Questions

UNSURE = 1.08
"""By how much a variance may be larger than the one released: of rough functions only the sum is
known, and clipping takes some of a tail. Without it bands that are nearly all sampling error held
the mean of the population too rarely; chosen on lognormal and exponential curves of `dpfda bench
bands`."""


@dataclass(frozen=True, kw_only=True)
class Inferred(Adaptive, name="moments"):
    """Looks of the adaptive mean, the last of which holds second moments too.

    Second moments ride on the mean for nothing (`JointMoments`): they say how far the mean of other
    people might lie, so that a band holds the mean of the population.

    Privacy:
        That of `Adaptive`: the budgets of all looks add up.

    Examples:
        >>> Inferred().name
        'moments'
    """

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """A center, a radius and a joint look, however few curves there are."""
        basis = self.basis(mean.grid)
        size, second = sizes(mean, most=basis.size)
        found = yield from joint(
            mean,
            FOR_BANDS,
            size=size,
            most=basis.size,
            second=second,
            separate=False,
            emphasis="means",
        )
        answer, look = found.answer, found.answer.look
        fine = look.center + answer.shift[0] * answer.unit
        law = answer.law.first(size).times(answer.unit)
        noisy, laws = combined((fine, law), found.coarse)
        variance = np.asarray(sum(law.variance for law in laws))
        return mean.conclude(
            basis.first(size),
            noisy,
            *laws,
            shrunk=monotone_shrinkage(noisy, variance) * noisy,
            sampling=(NoiseLaw.normal(UNSURE * answer.covariance_in() / mean.n),),
            sensitivity=look.sensitivity * look.radius,
            warnings=(*found.warnings, *too_few(mean)),
            mechanism="moments",
            components=size,
            stages=2,
            radius=look.radius / norm_bound(1.0, mean.grid),  # in the norm that bounds are given in
        )
