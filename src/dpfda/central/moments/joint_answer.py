"""The noisy answer to the joint query: means, shares, second moments, posterior means of groups.

Units are those of the query: u = (coefficient - center)/unit, clipped to the unit ball. Everything
here is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.moments.moment_query import JointMoments
from dpfda.central.shrinkage import FurtherCoefficients, posterior
from dpfda.curves.matrices import floored
from dpfda.noise.law import NoiseLaw

BELIEVED = 1.0  # eigenvalue floor of a covariance, in noise deviations
_FAR = 6.0  # half-width of the range of considered sizes, in noise deviations
_SHARES = 201  # number of considered sizes


class Parts(NamedTuple):
    """The parts of a joint vector: sums of u, of 1, of products and of remainders, each over n."""

    means: FloatArray  # (..., G, M)
    shares: FloatArray  # (..., G), or empty if there is one group
    products: FloatArray  # (..., tables, entries)
    rests: FloatArray  # (..., tables)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JointAnswer:
    """Estimates of all groups from one answer.

    Attributes:
        query: the public query.
        noisy: the noisy answer.
    """

    query: JointMoments
    noisy: FloatArray

    @property
    def n(self) -> int:
        """Number of people (public)."""
        return self.query.n

    @cached_property
    def sizes(self) -> FloatArray:
        """Noisy numbers of people in each group, at least 1; with one group, all people."""
        if self.query.groups == 1:
            return np.array([float(self.n)])
        return np.maximum(self.answer.shares * self.n, 1.0)

    @property
    def unit(self) -> FloatArray:
        """The unit of u."""
        return self.query.radius * self.query.axes

    @cached_property
    def answer(self) -> Parts:
        """The parts of the noisy vector, with shares that are corrected to add up to 1."""
        found = self.parts(self.noisy / self._scale)
        if not found.shares.size:
            return found
        return found._replace(shares=found.shares + (1 - found.shares.sum()) / self.query.groups)

    @cached_property
    def law(self) -> NoiseLaw:
        """The law of the noise."""
        return self.query.mechanism.law.times(1 / self._scale)

    @cached_property
    def share(self) -> FloatArray:
        """The divisor of the sums S of a group: E[s²]/E[s], where s is its share of all people.

        The expectation is over the posterior of s, which is between 1/n and 1 and has known noise.
        If s is known well, the divisor is s. Otherwise it avoids a mean that is much too large: the
        mean S E[s]/E[s²] is the linear estimate of least error.
        """
        if self.query.groups == 1:
            return np.ones(1)
        noise, raw = np.sqrt(self.variances.shares), self.answer.shares
        low, high = (np.clip(raw + far * noise, 1 / self.n, 1.0) for far in (-_FAR, _FAR))
        shares = np.linspace(low, high, _SHARES)
        away = ((shares - raw) / noise) ** 2 / 2
        weights = np.exp(away.min(axis=0) - away)
        return np.asarray((weights * shares**2).sum(axis=0) / (weights * shares).sum(axis=0))

    @property
    def pooled(self) -> tuple[FloatArray, FloatArray]:
        """Mean of u over all people, and the variance of its noise; it does not depend on sizes."""
        common = self.query.weights.mixing(self.query.groups)[1]
        noise = self._cut(self.law.variance).means.sum(axis=0) / common**2
        return np.asarray(self.answer.means.sum(axis=0)), np.asarray(noise)

    @cached_property
    def shift(self) -> FloatArray:
        """Means of u, (groups, M)."""
        return np.asarray(self.answer.means / self.share[:, None])

    @cached_property
    def shift_variance(self) -> FloatArray:
        """Variances of the noise on `shift`."""
        return np.asarray(self.variances.means / self.share[:, None] ** 2)

    @cached_property
    def variances(self) -> Parts:
        """Variances of the noise on the parts of the answer."""
        cut = self._cut(self.law.variance)
        own, common = self.query.weights.mixing(self.query.groups)
        alike = 1 / self.query.groups
        return cut._replace(
            means=cut.means * ((1 - alike) / own**2 + alike / common**2),
            shares=cut.shares * (1 - alike),
        )

    @cached_property
    def products(self) -> FloatArray:
        """Noisy covariances of the first J entries of u, (tables, J, J), without a floor."""
        few, triangle = self.query.second, self.query.triangle
        found = []
        for table, weight in enumerate(self._weights):
            mean = self.shift[:, :few]
            own = np.diag(weight @ self.shift_variance[:, :few])  # the bias of squared noisy means
            raw = triangle.matrix(self.answer.products[table] / self._people(table))
            found.append(raw - (mean.T * weight) @ mean + own)
        return np.stack(found)

    @cached_property
    def rests(self) -> FloatArray:
        """Sum of the variances of all further entries of u, one for each table."""
        squares = (self.shift**2 - self.shift_variance)[:, self.query.second :].sum(axis=1)
        raw = [rest / self._people(table) for table, rest in enumerate(self.answer.rests)]
        return np.asarray(np.array(raw) - self._weights @ squares)

    def covariance_in(self, table: int = 0, *, floor: float = BELIEVED) -> FloatArray:
        """Covariance of the coefficients, (M, M), with eigenvalues of at least `floor` deviations.

        For coefficients beyond those with released products only the sum of the variances is known.
        It is distributed in proportion to the squared axes.
        """
        many, few = len(self.query.axes), self.query.second
        full = np.zeros((many, many))
        full[:few, :few] = floored(self.products[table], floor * self.product_noise(table))
        beyond = np.arange(few, many)
        full[beyond, beyond] = max(float(self.rests[table]), 0.0) / max(1, many - few)
        return np.asarray(full * np.outer(self.unit, self.unit))

    def product_noise(self, table: int = 0) -> float:
        """Standard deviation of the noise on an entry of `products`."""
        variance = self.variances.products[table]
        return math.sqrt(float(variance.mean())) / self._people(table)

    def parts(self, vectors: FloatArray) -> Parts:
        """Split joint vectors (..., size) into their parts, group by group."""
        return self._cut(self.query.mixed(vectors, back=True))

    def _cut(self, vectors: FloatArray) -> Parts:
        (groups, width), (tables, entries) = self.query.shapes
        cut = groups * width
        first = vectors[..., :cut].reshape(*vectors.shape[:-1], groups, width)
        second = vectors[..., cut:].reshape(*vectors.shape[:-1], tables, entries)
        many = len(self.query.axes)
        shares = first[..., many] if width > many else first[..., :0, 0]
        return Parts(first[..., :many], shares, second[..., :-1], second[..., -1])

    @cached_property
    def _scale(self) -> FloatArray:
        """The factor of each entry of the joint vector."""
        return np.asarray(self.query.noise_axes * self.query.part_weights)

    @cached_property
    def _weights(self) -> FloatArray:
        """The weight of each group in a table of products, (tables, groups)."""
        if self.query.blocks > 1:
            return np.eye(len(self.sizes))
        return np.asarray(self.sizes / self.sizes.sum())[None, :]

    def _people(self, table: int) -> float:
        """The share of all people whose products are in a table."""
        return float(self.share[table]) if self.query.blocks > 1 else 1.0


_UNSEEN = 1e6  # noise deviation of coefficients that were not queried, as a multiple of the bound


class GroupMeans(NamedTuple):
    """Posterior of the group means.

    Attributes:
        mean: posterior means of the coefficients about the public center, (groups, M).
        variance: posterior variances of the coefficients.
        left_out: expected squared norm of all further coefficients, one for each group.
        most: upper bound on this squared norm that bands account for.
    """

    mean: FloatArray
    variance: FloatArray
    left_out: FloatArray
    most: FloatArray

    @property
    def error(self) -> FloatArray:
        """Expected squared errors of the means, in norm."""
        return np.asarray(self.variance.sum(axis=1) + self.left_out)


def posterior_means(answer: JointAnswer, *, reach: float, size: int, most: int) -> GroupMeans:
    """Posterior means of the groups, with the prior of `posterior`.

    Args:
        answer: the release; entries after `size` measure the omitted part (`Layout`).
        reach: the public bound on the norm of a curve, or the bound that was found.
        size: number of released coefficients.
        most: number of all coefficients of a curve.
    """
    unit, beyond = answer.unit, most - size
    none, noise = np.zeros(beyond), np.full(beyond, (_UNSEEN * reach) ** 2)
    shift, variance = answer.pooled
    row, blur = answer.query.center + shift * unit, variance * unit**2
    common = posterior(np.append(row[:size], none), np.append(blur[:size], noise), reach)
    usual = highest = float(common.variance[size:].sum())
    if row.size > size:
        folds = row.size - size - 1
        found = FurtherCoefficients(row[size:], blur[size:], folds=folds, beyond=beyond).left_out(
            reach
        )
        usual, highest = found.likely**2, found.most**2
    if answer.query.groups == 1:
        means, variances = common.mean[None], common.variance[None]
        further = np.zeros(1)
    else:
        apart = _apart(answer, common.mean, noise)
        effects = [posterior(*one, reach) for one in apart]
        effect = np.stack([one.variance for one in effects])
        means = common.mean + np.stack([one.mean for one in effects])
        # A group that is hidden by noise also has the uncertainty of the overall mean.
        variances = effect + (effect / np.stack([own for _, own in apart])) ** 2 * common.variance
        further = effect[:, size:].sum(axis=1)
    return GroupMeans(means[:, :size], variances[:, :size], usual + further, highest + further)


def _apart(
    answer: JointAnswer, common: FloatArray, noise: FloatArray
) -> list[tuple[FloatArray, FloatArray]]:
    """Estimated difference of each group from the overall mean, and the variance of its noise.

    An error of the group size scales the difference between the mean and the center of the query,
    which is at most 1.
    """
    size = common.size - noise.size
    wrong = answer.variances.shares[:, None] * np.minimum(answer.shift**2, 1.0)
    blur = (answer.shift_variance + wrong / answer.share[:, None] ** 2) * answer.unit**2
    away = (answer.query.center + answer.shift * answer.unit)[:, :size] - common[:size]
    none = np.zeros(noise.size)
    return [
        (np.append(one, none), np.append(own[:size], noise))
        for one, own in zip(away, blur, strict=True)
    ]
