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

BELIEVED = 1.0  # noise deviations below which no eigenvalue of a covariance is believed
_FAR = 6.0  # deviations of noise within which sizes are looked for
_SHARES = 201  # sizes that are looked at


class Parts(NamedTuple):
    """A joint vector cut into its parts, each over n: sums of u, of 1, of products, of the rest."""

    means: FloatArray  # (..., G, M)
    shares: FloatArray  # (..., G), or empty where there is one group
    products: FloatArray  # (..., tables, entries)
    rests: FloatArray  # (..., tables)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JointAnswer:
    """Estimates of all groups from one answer.

    Attributes:
        query: the public question.
        noisy: the answer.
    """

    query: JointMoments
    noisy: FloatArray

    @property
    def n(self) -> int:
        """How many people (public)."""
        return self.query.n

    @cached_property
    def sizes(self) -> FloatArray:
        """People in each group: noisy, at least one; with one group, all."""
        if self.query.groups == 1:
            return np.array([float(self.n)])
        return np.maximum(self.answer.shares * self.n, 1.0)

    @property
    def unit(self) -> FloatArray:
        """The unit of u."""
        return self.query.radius * self.query.axes

    @cached_property
    def answer(self) -> Parts:
        """The noisy vector; shares add up to 1, as everybody is in some group."""
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
        """The divisor of a group's sums: its share s of all people, as E[s²]/E[s].

        s is between one person and all; the noise on it is known. That is s where s is known well,
        keeps 1/s from being far too large where it is not, and makes the mean S E[s]/E[s²] the
        linear one of least error.
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
        """Mean of u over all people, and the variance of its noise: no size is needed for it."""
        common = self.query.weights.mixing(self.query.groups)[1]
        noise = self._cut(self.law.variance).means.sum(axis=0) / common**2
        return np.asarray(self.answer.means.sum(axis=0)), np.asarray(noise)

    @cached_property
    def shift(self) -> FloatArray:
        """Means of u, (groups, M)."""
        return np.asarray(self.answer.means / self.share[:, None])

    @cached_property
    def shift_variance(self) -> FloatArray:
        """Of the noise on them."""
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
        """Covariances of the first u, (tables, J, J), as they came out of the noise."""
        few, triangle = self.query.second, self.query.triangle
        found = []
        for table, weight in enumerate(self._weights):
            mean = self.shift[:, :few]
            own = np.diag(weight @ self.shift_variance[:, :few])  # noise that squared means carry
            raw = triangle.matrix(self.answer.products[table] / self._people(table))
            found.append(raw - (mean.T * weight) @ mean + own)
        return np.stack(found)

    @cached_property
    def rests(self) -> FloatArray:
        """Sums of the variances of all further u, one a table."""
        squares = (self.shift**2 - self.shift_variance)[:, self.query.second :].sum(axis=1)
        raw = [rest / self._people(table) for table, rest in enumerate(self.answer.rests)]
        return np.asarray(np.array(raw) - self._weights @ squares)

    def covariance_in(self, table: int = 0, *, floor: float = BELIEVED) -> FloatArray:
        """Covariance of coefficients, (M, M), eigenvalues at least `floor` deviations of noise.

        Beyond the coefficients whose products were released only the sum of variances is known; it
        is spread along the axes.
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
        """Joint vectors (..., size) in their parts, group by group."""
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


_UNSEEN = 1e6  # of a bound: deviation of the noise on a coefficient that was not queried


class GroupMeans(NamedTuple):
    """Posterior of the group means.

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


def posterior_means(answer: JointAnswer, *, reach: float, size: int, most: int) -> GroupMeans:
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
        # Where noise hides a group, it is as uncertain as the mean of all besides.
        variances = effect + (effect / np.stack([own for _, own in apart])) ** 2 * common.variance
        further = effect[:, size:].sum(axis=1)
    return GroupMeans(means[:, :size], variances[:, :size], usual + further, highest + further)


def _apart(
    answer: JointAnswer, common: FloatArray, noise: FloatArray
) -> list[tuple[FloatArray, FloatArray]]:
    """Estimated difference of each group from the overall mean, and the variance of its noise.

    A wrong size multiplies what a mean is away from the center of the query, 1 at most.
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
