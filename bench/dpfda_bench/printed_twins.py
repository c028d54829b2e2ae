"""Forms that the papers print and a correction refutes: audits must catch them.

Each makes the claim that was printed for it. `dpfda audit --twins` finds them through the entry
point `dpfda.twins`. A new one is one class here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.linear import ShrunkMean
from dpfda.checks.twins import Pairs, Twin
from dpfda.local.boosting.ensemble import Ensemble
from dpfda.local.boosting.shares import StatisticRequest
from dpfda.mechanisms.additive import Additive, Laplace
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import Source, discrete_gaussian
from dpfda.noise.uniform import coin_signs
from dpfda.privacy.calibration import gaussian_mu
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class MinMaxRescaling(Twin, name="min_max_rescaling"):
    """Min-Max rescaling of 000 before Laplace noise (C1)."""

    flaw = "Min-Max rescaling leaves [-1, 1], so the sensitivity 2 is false (C1)"

    def randomize(self, values: Any, source: Source) -> FloatArray:
        """Rescale each row by its own least and largest size, then add noise for width 2."""
        rows = np.asarray(values, dtype=np.float64)
        least = np.abs(rows).min(axis=1, keepdims=True)
        most = np.abs(rows).max(axis=1, keepdims=True)
        rescaled = (rows - least) / (most - least)
        sound = Laplace(epsilon=1.0, dimension=rows.shape[1])
        return np.asarray(rescaled + sound.randomize(np.zeros_like(rescaled), source))

    def worst_cases(self) -> Pairs:
        """Two nearly equal sizes and opposite signs: the rescaled value is far outside."""
        return [(np.array([[-1.0, 0.8]]), np.array([[1.0, -0.8]]))]


@dataclass(frozen=True)
class PerOrderGaussian(Twin, name="per_order_gaussian"):
    """Gaussian functional mechanism as printed in 002: every order with the whole budget (C7)."""

    flaw = "each order spends the full (ε, δ), and Λ2 is calibrated in spectral norm (C7)"

    _STEPS: ClassVar[int] = 1 << 16

    @property
    def guarantee(self) -> Guarantee:
        """The printed claim."""
        return Guarantee(epsilon=0.95, delta=0.001, model="central")

    def randomize(self, values: Any, source: Source) -> FloatArray:
        """Values are (Λ0, Λ1, svec Λ2) times N, each order divided by its printed noise level."""
        rows = np.asarray(values, dtype=np.float64)
        noise = discrete_gaussian(rows.size, sigma=self._STEPS, source=source).reshape(rows.shape)
        return (np.rint(rows * self._STEPS) + noise) / self._STEPS

    def worst_cases(self) -> Pairs:
        """y = 1 and y' = 0 at orthogonal x and x'."""
        classical = math.sqrt(2 * math.log(1.25 / self.guarantee.delta)) / self.guarantee.epsilon
        sigmas = classical * np.array([1.0, 4.0, 4.0, 1.0, 1.0, 1.0])
        one = np.array([[1.0, -2.0, 0.0, 1.0, 0.0, 0.0]])
        other = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
        return [(one / sigmas, other / sigmas)]


@dataclass(frozen=True)
class TiesInBothHalves(Twin, name="duchi_ties_in_both_halves"):
    """Duchi's mechanism for even d with t·v = 0 counted on both sides (C19)."""

    flaw = "corners with t·v = 0 belong to both halves: true ε is ln(1 + e^ε) (C19)"

    def randomize(self, values: Any, source: Source) -> FloatArray:
        """Pick a side with odds e^ε, then a uniform corner of that closed side."""
        rows = np.asarray(values, dtype=np.float64)
        corners = np.where(rows >= 0, 1.0, -1.0)
        own_side = RandomizedResponse(epsilon=1.0).randomize(np.ones(len(rows)), source)
        reports = np.empty(rows.shape)
        missing = np.arange(len(rows))
        while missing.size:
            proposal = coin_signs(missing.size * rows.shape[1], source).reshape(-1, rows.shape[1])
            fits = (proposal * corners[missing]).sum(axis=1) * own_side[missing] >= 0
            reports[missing[fits]] = proposal[fits]
            missing = missing[~fits]
        return reports

    def worst_cases(self) -> Pairs:
        """The corner (1, 1) is a tie for the first input and on the far side for the second."""
        return [(np.array([[1.0, -1.0]]), -np.ones((1, 2)))]


@dataclass(frozen=True)
class ClearLabel(Twin, name="clear_label"):
    """A noisy feature with its label in clear, as in 004's nearest centroid (C16)."""

    flaw = "the label travels beside the noisy features, unprotected (C16)"

    def randomize(self, values: Any, source: Source) -> FloatArray:
        """Perturb all columns but the last."""
        rows = np.asarray(values, dtype=np.float64)
        sound = Laplace(epsilon=1.0, dimension=rows.shape[1] - 1)
        return np.hstack([sound.randomize(rows[:, :-1], source), rows[:, -1:]])

    def worst_cases(self) -> Pairs:
        """Equal features, other label."""
        return [(np.array([[0.5, 1.0]]), np.array([[0.5, -1.0]]))]


def _mean_of_four(bound: float) -> ShrunkMean:
    one = np.ones(1)
    cost = Cost(epsilon=1.0)
    return ShrunkMean(cost=cost, n=4, bound=bound, factors=one, thresholds=0 * one, axes=one)


class _DataSets(Twin):
    """A curator's mean of four numbers; a row is a whole data set, in which one is replaced."""

    def randomize(self, values: Any, source: Source) -> FloatArray:
        """Means, one a row; equal data sets are summed up once."""
        data, places = np.unique(np.asarray(values, dtype=np.float64), axis=0, return_inverse=True)
        noisy = np.empty((len(values), 1))
        for number, row in enumerate(data):
            members = np.flatnonzero(places.reshape(-1) == number)
            look = self.look(row)
            exact = np.repeat(look.exact((row[:, None],), source)[None, :], members.size, axis=0)
            noisy[members] = self.noise(look).randomize(exact, source)
        return noisy

    def look(self, row: FloatArray) -> ShrunkMean:
        """What is asked."""
        return _mean_of_four(1.0)

    def noise(self, look: ShrunkMean) -> Additive:
        """What is added."""
        return look.mechanism

    def worst_cases(self) -> Pairs:
        """One number turned round, among small ones."""
        return [(np.array([[1.0, 0.1, 0.0, 0.0]]), np.array([[-0.1, 0.1, 0.0, 0.0]]))]


@dataclass(frozen=True)
class UnitVarianceMean(_DataSets, name="unit_variance_mean"):
    """A curator's mean with noise of variance one instead of scale one (C10, C25)."""

    flaw = "Theorem 4's σ: noise √2 too small for the mean's sensitivity (C10, C25)"

    def noise(self, look: ShrunkMean) -> Additive:
        """For a sensitivity divided by √2."""
        return replace(look.mechanism, sensitivity=look.mechanism.sensitivity / math.sqrt(2))

    def worst_cases(self) -> Pairs:
        """One number from end to end."""
        return [(np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[-1.0, 0.0, 0.0, 0.0]]))]


@dataclass(frozen=True)
class BoundFromData(_DataSets, name="bound_from_data"):
    """A curator's mean whose bound is the largest number of the data (C11)."""

    flaw = "the bound is read off the data: how large the noise is tells the largest (C11)"

    def look(self, row: FloatArray) -> ShrunkMean:
        """With a bound that depends on the data."""
        return _mean_of_four(float(np.abs(row).max()))


@dataclass(frozen=True)
class AbsoluteSumAssumed(Twin, name="absolute_sum_assumed"):
    """A mean of coefficients with ‖c‖₂ ≤ 1, with noise for Σ|c_j| ≤ 1, as in 003's code (C24)."""

    flaw = "noise for a bound on Σ|c_j|, while curves are bounded in norm (C24)"

    _COEFFICIENTS: ClassVar[int] = 4

    def randomize(self, values: Any, source: Source) -> FloatArray:
        """Sums of noisy mean coefficients; a row is a data set of two curves."""
        rows = np.asarray(values, dtype=np.float64)
        ones = np.ones(self._COEFFICIENTS)
        query = ShrunkMean(
            cost=Cost(epsilon=1.0), n=2, bound=1.0, factors=ones, thresholds=0 * ones, axes=ones
        )
        noise = replace(query.mechanism, sensitivity=2 * query.bound / query.n)  # max s_j/a_j = 1
        sets, places = np.unique(rows, axis=0, return_inverse=True)
        exact = [query.exact((row.reshape(2, -1),), source) for row in sets]
        noisy = noise.randomize(np.stack(exact)[places.reshape(-1)], source)
        return np.asarray(noisy.sum(axis=1, keepdims=True))

    def worst_cases(self) -> Pairs:
        """One curve with equal coefficients, turned round."""
        curve = np.full(self._COEFFICIENTS, self._COEFFICIENTS**-0.5)
        rest = np.zeros(self._COEFFICIENTS)
        return [(np.concatenate([curve, rest])[None], np.concatenate([-curve, rest])[None])]


@dataclass(frozen=True)
class SupportFromData(_DataSets, name="support_from_data"):
    """ICLP-AR that adds noise where the threshold left something (C12)."""

    flaw = "a coefficient that the threshold made 0 gets no noise: J* is read off the data (C12)"

    def look(self, row: FloatArray) -> ShrunkMean:
        """With a threshold."""
        return replace(_mean_of_four(1.0), thresholds=np.full(1, 0.2))

    def noise(self, look: ShrunkMean) -> Any:
        """On what is not 0."""
        return _OnSupport(look.mechanism)


@dataclass(frozen=True)
class _OnSupport:
    noise: Additive

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        return np.where(values == 0, 0.0, self.noise.randomize(values, source))


@dataclass(frozen=True)
class CorrelatedSites(Twin, name="correlated_sites"):
    """capeFM as printed in 002: noise of ten sites that cancels in the sum (C8)."""

    flaw = "the coordinator sees every message, not their sum alone: μ is √(2S/(S+1)) larger (C8)"

    _STEPS: ClassVar[int] = 1 << 16
    _SITES: ClassVar[int] = 10

    @property
    def guarantee(self) -> Guarantee:
        """That of the sum."""
        return Guarantee(epsilon=1.0, delta=0.01, model="central")

    def randomize(self, values: Any, source: Source) -> FloatArray:
        """What tells most about the first site, of the messages in clear."""
        rows = np.asarray(values, dtype=np.float64)
        size = 2 * rows.size
        noise = discrete_gaussian(size, sigma=self._STEPS, source=source) / self._STEPS
        e, g = noise.reshape(2, *rows.shape)
        noisy = e - e.mean(axis=1, keepdims=True) + g / math.sqrt(self._SITES)
        messages = rows + noisy / gaussian_mu(epsilon=1.0, delta=0.01)
        return np.asarray(messages.sum(axis=1, keepdims=True) + messages[:, :1])

    def worst_cases(self) -> Pairs:
        """One site's sum moves by its sensitivity."""
        return [(np.eye(self._SITES)[:1], np.zeros((1, self._SITES)))]


@dataclass(frozen=True)
class UnscaledTable(Twin, name="unscaled_table"):
    """An owner's cross table as printed in 004: not divided by a public bound (C17)."""

    flaw = "a cross table of four rows reaches from -4 to 4, noise is for [-1, 1] (C17)"

    def randomize(self, values: Any, source: Source) -> FloatArray:
        """Tables of owners whose four rows lie on one side of the threshold, by their labels."""
        labels, places = np.unique(np.asarray(values, dtype=np.int64), axis=0, return_inverse=True)
        request = StatisticRequest(
            epsilon=1.0,
            people=1,
            dimension=1,
            n_classes=2,
            n_rows=labels.shape[1],
            ensemble=Ensemble.empty([(-1.0, 1.0)], classes=2),
            mechanism_name="laplace",
            thresholds=np.zeros((1, 1)),
        )
        ones = np.ones(labels.shape)
        table = labels.shape[1] * request.share(ones[..., None], labels, ones)
        noise = request.mechanism.randomize(np.zeros((len(values), table.shape[1])), source)
        return np.asarray(table[places.reshape(-1)] + noise)

    def worst_cases(self) -> Pairs:
        """All labels turned round."""
        return [(np.ones((1, 4)), np.zeros((1, 4)))]
