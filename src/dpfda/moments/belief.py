"""What is believed of the groups' mean curves after the release: the belief of `PrivateMean`.

The mean of all people comes first, about the public center; what sets a group apart comes second,
about that mean. Where noise hides a group, its released curve is the mean of all; where it hides
that as well, the public center. Free: only released numbers are read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.shrinkage import posterior
from dpfda.moments.joint import JointAnswer

_UNSEEN = 1e6  # of a bound: deviation of the noise on a number that nobody asked for


class Belief(NamedTuple):
    """Of the groups' means.

    Attributes:
        mean: of coefficients about the public center, (groups, M).
        variance: of the same.
        left_out: variance of all further coefficients together, one a group.
    """

    mean: FloatArray
    variance: FloatArray
    left_out: FloatArray

    @property
    def error(self) -> FloatArray:
        """Expected squared errors of the means, in norm."""
        return np.asarray(self.variance.sum(axis=1) + self.left_out)


def believed(answer: JointAnswer, *, reach: float, most: int) -> Belief:
    """Means of groups under the belief of `posterior`.

    Args:
        answer: the release.
        reach: the public bound on the norm of a curve, or what was found instead.
        most: coefficients that a curve has, those that nobody asked for among them.
    """
    size, unit = len(answer.look.axes), answer.unit
    further, noise = np.zeros(most - size), np.full(most - size, (_UNSEEN * reach) ** 2)
    shift, variance = answer.pooled
    pooled = np.append(answer.look.center + shift * unit, further)
    common = posterior(pooled, np.append(variance * unit**2, noise), reach)
    if answer.look.groups == 1:
        means, variances = common.mean[None], common.variance[None]
    else:
        # A wrong size multiplies what the mean is away from the center of the look, 1 at most.
        wrong = answer.variances.shares[:, None] * np.minimum(answer.shift**2, 1.0)
        each = (answer.shift_variance + wrong / answer.share[:, None] ** 2) * unit**2
        found = []
        for values, own in zip(answer.shift * unit, each, strict=True):
            apart = np.append(answer.look.center + values, further) - common.mean
            apart[size:] = 0.0
            blur = np.append(own, noise)
            effect = posterior(apart, blur, reach)
            hidden = effect.variance / blur  # the part of the common mean that is left
            found.append((common.mean + effect.mean, effect.variance + hidden**2 * common.variance))
        means, variances = (np.stack(part) for part in zip(*found, strict=True))
    return Belief(means[:, :size], variances[:, :size], variances[:, size:].sum(axis=1))
