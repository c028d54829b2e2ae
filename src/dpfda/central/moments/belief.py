"""What is believed of the groups' mean curves after the release: the belief of `PrivateMean`.

The mean of all people comes first, about the public center; what sets a group apart comes second,
about that mean. Where noise hides a group, its released curve is the mean of all; where it hides
that as well, the public center. Free: only released numbers are read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.left_out import Further
from dpfda.central.moments.joint import JointAnswer
from dpfda.central.shrinkage import posterior

_UNSEEN = 1e6  # of a bound: deviation of the noise on a number that nobody asked for


class Belief(NamedTuple):
    """Of the groups' means.

    Attributes:
        mean: of coefficients about the public center, (groups, M).
        variance: of the same.
        left_out: expected square of all further coefficients together, one a group.
        most: of the same, the square that a band allows for.
    """

    mean: FloatArray
    variance: FloatArray
    left_out: FloatArray
    most: FloatArray

    @property
    def error(self) -> FloatArray:
        """Expected squared errors of the means, in norm."""
        return np.asarray(self.variance.sum(axis=1) + self.left_out)


def believed(answer: JointAnswer, *, reach: float, size: int, most: int) -> Belief:
    """Means of groups under the belief of `posterior`.

    Args:
        answer: the release; beyond `size`, its vectors say how much is left out (`Layout`).
        reach: the public bound on the norm of a curve, or what was found instead.
        size: coefficients that were released.
        most: coefficients that a curve has.
    """
    unit, beyond = answer.unit, most - size
    none, noise = np.zeros(beyond), np.full(beyond, (_UNSEEN * reach) ** 2)
    shift, variance = answer.pooled
    row, blur = answer.look.center + shift * unit, variance * unit**2
    common = posterior(np.append(row[:size], none), np.append(blur[:size], noise), reach)
    usual = highest = float(common.variance[size:].sum())
    if row.size > size:
        folds = row.size - size - 1
        found = Further(row[size:], blur[size:], folds=folds, beyond=beyond).left_out(reach)
        usual, highest = found.likely**2, found.most**2
    if answer.look.groups == 1:
        means, variances = common.mean[None], common.variance[None]
        further = np.zeros(1)
    else:
        apart = _apart(answer, common.mean, noise)
        effects = [posterior(*one, reach) for one in apart]
        effect = np.stack([one.variance for one in effects])
        means = common.mean + np.stack([one.mean for one in effects])
        # Where noise hides a group, it is as uncertain as the mean of all besides.
        variances = effect + (effect / np.stack([own for _, own in apart])) ** 2 * common.variance
        further = effect[:, size:].sum(axis=1)
    return Belief(means[:, :size], variances[:, :size], usual + further, highest + further)


def _apart(
    answer: JointAnswer, common: FloatArray, noise: FloatArray
) -> list[tuple[FloatArray, FloatArray]]:
    """How far each group seems to be from the mean of all, and the variance of the noise on it.

    A wrong size multiplies what a mean is away from the center of the look, 1 at most.
    """
    size = common.size - noise.size
    wrong = answer.variances.shares[:, None] * np.minimum(answer.shift**2, 1.0)
    blur = (answer.shift_variance + wrong / answer.share[:, None] ** 2) * answer.unit**2
    away = (answer.look.center + answer.shift * answer.unit)[:, :size] - common[:size]
    none = np.zeros(noise.size)
    return [
        (np.append(one, none), np.append(own[:size], noise))
        for one, own in zip(away, blur, strict=True)
    ]
