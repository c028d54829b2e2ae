"""Linear releases of a mean: FRL, ICLP with either penalty, optimal allocation, Gaussian process.

Each mechanism asks one query, `ShrunkMean`. The query takes coefficients in the eigenbasis of a
kernel, clips each curve to ‖X‖ ≤ τ, shrinks the mean by public factors and adds independent noise
along public axes. Sensitivities are tight (Cauchy–Schwarz); with ``published=True`` they are the
larger bounds of 003.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.conversation import EDGE, far_apart, too_small
from dpfda.central.functions import FunctionBasis, Grid, Kernel, Matern, eigenpairs
from dpfda.central.mean import CHOSEN_BY_DATA, FunctionMechanism, MeanRelease
from dpfda.central.queries import MOST_RECORDS, independent_noise, mean_of, vector_mean
from dpfda.central.records import clip_rows
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import flag, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Records, Sums


@dataclass(frozen=True, kw_only=True, eq=False)
class ShrunkMean(AdditiveQuery, name="shrunk_mean"):
    """Mean of coefficients with ‖c‖₂ ≤ τ, soft-thresholded and multiplied by public factors.

    Privacy:
        Soft-thresholding is a contraction of each coordinate. The results of neighboring data sets
        thus differ by h with |h_j| ≤ s_j|d_j| and ‖d‖₂ ≤ 2τ/n. For Laplace noise,
        Σ|h_j|/a_j ≤ (2τ/n)‖s/a‖₂ (Cauchy–Schwarz); for Gaussian noise,
        ‖h/a‖₂ ≤ (2τ/n) max s_j/a_j. Both bounds are attained. The bound of 003 for Laplace noise
        (Theorem 6), Σ s_j/a_j, is up to √J times larger than ‖s/a‖₂, and no pair of curves attains
        it.

    Attributes:
        bound: τ.
        factors: s_j.
        thresholds: soft thresholds of the mean coefficients; 0 for none.
        axes: a_j, shape of the noise.
        published: calibrate the noise to the published, larger bound.
    """

    linear: ClassVar[bool] = False  # thresholded means of sites do not add up to that of all rows

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    bound: float = number(least=1e-40, most=1e40)
    factors: FloatArray = vector("coefficients", least=1e-40, most=1e10)
    thresholds: FloatArray = vector("coefficients", least=0.0)
    axes: FloatArray = vector("coefficients", least=1e-25, most=1e10)
    published: bool = flag(default=False)

    @property
    def attained(self) -> float | None:  # type: ignore[override]
        """1/√2 for the published bound, because the example has two equal ratios s_j/a_j."""
        return 0.7 if self.published else 0.99

    @cached_property
    def mechanism(self) -> Additive:
        """Independent noise for the image of the ball under shrinkage, measured along the axes."""
        ratios = self.factors / self.axes
        order = 1 if self.published else 2
        spread = float(np.linalg.norm(ratios, order) if self.cost.pure else ratios.max())
        sensitivity = 2 * self.bound * spread / self.n
        return independent_noise(self.cost, sensitivity=sensitivity, axes=self.axes)

    @property
    def summed(self) -> Sums:
        """The shrunk mean of clipped coefficients."""
        columns = (len(self.factors),)
        sums = vector_mean(columns, self._clipped, n=self.n, reach=self.bound, axes=self.axes)
        return sums._replace(statistic=self._statistic)

    def _clipped(self, records: Records) -> FloatArray:
        return clip_rows(records[0][:, : len(self.factors)], self.bound)

    def _statistic(self, totals: IntArray) -> FloatArray:
        return self.shrunk(mean_of(totals, self.bound, self.n))

    def shrunk(self, mean: FloatArray) -> FloatArray:
        """Mean coefficients: thresholded, then multiplied by the factors."""
        soft = np.sign(mean) * np.maximum(np.abs(mean) - self.thresholds, 0.0)
        return np.asarray(self.factors * soft)

    @classmethod
    def examples(cls) -> list[Self]:
        """Equal axes; decreasing axes with a small threshold; Gaussian; the published bound."""
        ones, steep = np.ones(3), np.array([1.0, 0.3, 0.05])
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        none = np.zeros(3)
        return [
            cls(cost=pure, n=4, bound=1.5, factors=ones, thresholds=none, axes=ones),
            cls(cost=pure, n=4, bound=2.0, factors=steep, thresholds=1e-4 * ones, axes=steep**0.5),
            cls(cost=gaussian, n=4, bound=1.0, factors=steep, thresholds=none, axes=steep),
            cls(
                cost=pure,
                n=4,
                bound=1.0,
                factors=ones[:2],
                thresholds=none[:2],
                axes=ones[:2],
                published=True,
            ),
        ]


_FALSE_ALARMS = 0.001  # largest probability of a warning caused by noise alone
_SMALLEST_FACTOR = 1e-12  # as a share of the largest; smaller ones are dropped


@dataclass(frozen=True, kw_only=True)
class LinearMechanism(FunctionMechanism):
    """Base of the mechanisms whose parameters are all fixed before the query.

    Attributes:
        kernel: covariance kernel of the noise.
        published: use the published, larger sensitivity bound.
        chosen_by_data: whether parameters were chosen from the data; the guarantee then says so.
    """

    kernel: Kernel = part(lambda: Kernel, default=Matern())
    published: bool = flag(default=False)
    chosen_by_data: bool = flag(default=False)

    @abstractmethod
    def choices(self, mean: MeanRelease) -> dict[str, Any]:
        """Parameters, given or by privacy-safe selection, as they are recorded in the release."""

    @abstractmethod
    def query(self, mean: MeanRelease) -> ShrunkMean:
        """The only query, with the factors, axes and thresholds of the used coefficients."""

    def _shrunk(
        self,
        mean: MeanRelease,
        factors: FloatArray,
        *,
        axes: FloatArray,
        thresholds: FloatArray | None = None,
    ) -> ShrunkMean:
        return ShrunkMean(
            unit=mean.unit,
            cost=mean.whole,
            n=mean.n,
            bound=mean.bound,
            factors=factors,
            thresholds=np.zeros_like(axes) if thresholds is None else thresholds,
            axes=axes,
            published=self.published,
        )

    def rows(self, records: FloatArray, mean: MeanRelease) -> FloatArray:
        """Coefficients."""
        return self.basis(mean.grid).project(records)

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """Noisy shrunken mean."""
        query = self.query(mean)
        basis = self.basis(mean.grid).first(query.size)
        return mean.one_query(
            query,
            basis,
            mechanism=self.name,
            kernel=self.kernel.to_dict(),
            calibration="published" if self.published else "tight",
            **self.choices(mean),
        )

    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """Coefficients proportional to s_j/a_j, which attain the Cauchy–Schwarz bound."""
        query = self.query(mean)
        return far_apart(mean.n, query.factors / query.axes, mean.bound)

    def basis(self, grid: Grid) -> FunctionBasis:
        """Eigenpairs of the kernel on the grid of the data."""
        return eigenpairs(self.kernel, grid)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """A statement that parameters were chosen from the data, if they were."""
        return (CHOSEN_BY_DATA,) if self.chosen_by_data else ()

    @classmethod
    def examples(cls) -> list[Self]:
        """With the tight and with the published bound."""
        return [cls(), cls(published=True)]


@dataclass(frozen=True, kw_only=True)
class FiniteLaplace(LinearMechanism, name="frl"):
    """FRL (003 §2.3): the first M coefficients, with Laplace noise of equal scale on each.

    Privacy:
        ε-DP with Δ₁ = 2τ√M/n (published: 2τM/n). By default M is ⌊n^{1/3}⌋, the upper end of the
        paper's range. The paper chooses M within the range by the true error, which is not private.

    Examples:
        >>> FiniteLaplace(components=4).components
        4
    """

    components: int | None = whole(optional=True, default=None)

    def choices(self, mean: MeanRelease) -> dict[str, Any]:
        """M."""
        size = self.components
        if size is None:
            size = max(1, math.floor(mean.n ** (1 / 3) + 1e-9))
        return {"components": min(size, self.basis(mean.grid).size)}

    def query(self, mean: MeanRelease) -> ShrunkMean:
        """M coefficients with equal axes."""
        ones = np.ones(self.choices(mean)["components"])
        return self._shrunk(mean, ones, axes=ones)

    @classmethod
    def examples(cls) -> list[Self]:
        """With the tight and with the published bound."""
        return [cls(components=3), cls(components=3, published=True)]


@dataclass(frozen=True, kw_only=True)
class AbsoluteRegularization(LinearMechanism, name="iclp_ar"):
    """ICLP-AR (003, Theorem 6.2 as corrected in C12): soft-thresholded mean, noise axes √λ_j.

    Privacy:
        ε-DP. Coefficients from J* on are 0 for any data, and thresholding is a contraction, so
        Δ = (2τ/n)(Σ_{j<J*} 1/λ_j)^{1/2} (published: the sum of 1/√λ_j). By default ψ minimizes the
        noise plus ψ; it depends on n, ε and the kernel only.

    Examples:
        >>> AbsoluteRegularization(eta=1.0).name
        'iclp_ar'
    """

    eta: float = number(above=0.0, default=1.0)
    psi: float | None = number(above=0.0, optional=True, default=None)

    def choices(self, mean: MeanRelease) -> dict[str, Any]:
        """η, ψ and J*."""
        eigenvalues = self.basis(mean.grid).eigenvalues
        psi = self._safe_psi(eigenvalues, mean) if self.psi is None else self.psi
        size = int(np.sum(self._thresholds(eigenvalues, psi) < mean.bound))
        if size == 0:
            raise InvalidParameter("psi", "small enough that at least one coefficient is kept", psi)
        return {"eta": self.eta, "psi": psi, "components": size}

    def query(self, mean: MeanRelease) -> ShrunkMean:
        """Thresholds ψ/(2 λ_j^{η/2}), axes √λ_j."""
        chosen = self.choices(mean)
        kept = self.basis(mean.grid).eigenvalues[: chosen["components"]]
        thresholds = self._thresholds(kept, chosen["psi"])
        return self._shrunk(mean, np.ones(kept.size), axes=np.sqrt(kept), thresholds=thresholds)

    def at_the_bound(self, mean: MeanRelease, release: Release) -> tuple[str, ...]:
        """Warn if the mean is near its bound; thresholds are added back to nonzero coefficients."""
        (law,) = release.noise
        blur = math.log(law.scales.size / _FALSE_ALARMS) * law.scales  # bound on the Laplace noise
        least = np.maximum(np.abs(release.noisy) - blur, 0.0)
        least += (least > 0) * self.query(mean).thresholds
        long = float(least @ least) >= (EDGE * mean.bound) ** 2
        return (too_small("their public bound"),) * long

    def _thresholds(self, eigenvalues: FloatArray, psi: float) -> FloatArray:
        return np.asarray(psi / (2 * eigenvalues ** (self.eta / 2)))

    def _safe_psi(self, eigenvalues: FloatArray, mean: MeanRelease) -> float:
        if eigenvalues.size == 1:
            return float(mean.bound * eigenvalues[0] ** (self.eta / 2))
        edges = 2 * mean.bound * eigenvalues[1:] ** (self.eta / 2)  # ψ at which J* = 2, 3, ...
        inverse = np.cumsum(1 / eigenvalues)[:-1]
        noise = 2 * (2 * mean.bound / mean.strength) ** 2 * inverse
        noise *= np.cumsum(eigenvalues)[:-1]
        return float(edges[np.argmin(noise + edges)])


@dataclass(frozen=True, kw_only=True)
class QuadraticRegularization(LinearMechanism, name="iclp_qr"):
    """ICLP-QR (003, Theorem 6.3): factors λ^η/(λ^η + ψ), noise axes √λ_j.

    Privacy:
        ε-DP with Δ = (2τ/n)‖s_j/√λ_j‖₂ (published: its ℓ1 norm). Coefficient j has noise
        Lap(Δ√λ_j/ε), as in Algorithm 1 of the paper; the σ of its Theorem 4 would give √2 ε-DP
        (C10). Privacy-safe selection gives ψ = 1/n and η = 1 + 2/β.

    Examples:
        >>> QuadraticRegularization(eta=1.5).smoothing(100)
        (1.5, 0.01)
    """

    eta: float | None = number(above=0.0, optional=True, default=None)
    psi: float | None = number(above=0.0, optional=True, default=None)

    def smoothing(self, n: int) -> tuple[float, float]:
        """η and ψ, given or by privacy-safe selection."""
        eta = max(1.01, 1 + 2 / self.kernel.decay) if self.eta is None else self.eta
        return eta, 1 / n if self.psi is None else self.psi

    def choices(self, mean: MeanRelease) -> dict[str, Any]:
        """η and ψ."""
        eta, psi = self.smoothing(mean.n)
        return {"eta": eta, "psi": psi}

    def factors(self, mean: MeanRelease) -> FloatArray:
        """s_j."""
        eta, psi = self.smoothing(mean.n)
        power = self.basis(mean.grid).eigenvalues ** eta
        return np.asarray(power / (power + psi))

    def large(self, mean: MeanRelease) -> FloatArray:
        """The factors without those that are negligible compared with the first."""
        factors = self.factors(mean)
        return np.asarray(factors[factors > _SMALLEST_FACTOR * factors[0]])

    def query(self, mean: MeanRelease) -> ShrunkMean:
        """Factors s_j, axes √λ_j."""
        axes = np.sqrt(self.basis(mean.grid).eigenvalues)
        return self._shrunk(mean, self.factors(mean), axes=axes)


@dataclass(frozen=True, kw_only=True)
class OptimalAllocation(QuadraticRegularization, name="allocation"):
    """The summary of ICLP-QR, with the axes of least total noise, √s_j.

    Privacy:
        ε-DP: Σ s_j|c_j|/√s_j ≤ ‖c‖ (Σ s_j)^{1/2}, so Δ = (2τ/n)(Σ s_j)^{1/2}, which is attained.

    Examples:
        >>> OptimalAllocation().name
        'allocation'
    """

    def query(self, mean: MeanRelease) -> ShrunkMean:
        """Factors s_j, axes √s_j."""
        factors = self.large(mean)
        return self._shrunk(mean, factors, axes=np.sqrt(factors))

    @classmethod
    def examples(cls) -> list[Self]:
        """The default instance."""
        return [cls()]


@dataclass(frozen=True, kw_only=True)
class GaussianProcess(QuadraticRegularization, name="gaussian_process"):
    """Gaussian process noise for (ε, δ) (Mirshani et al. 2019), with σ_j ∝ s_j.

    Privacy:
        (ε, δ)-DP: ‖s_j c_j/a_j‖₂ ≤ 2τ/n for axes a = s. The published variant has axes √λ_j, for
        which the norm is at most (2τ/n) max s_j/√λ_j. σ is calibrated exactly.

    Examples:
        >>> GaussianProcess.needs_delta
        True
    """

    needs_delta: ClassVar[bool] = True

    def query(self, mean: MeanRelease) -> ShrunkMean:
        """Factors s_j, axes s_j (or √λ_j)."""
        factors = self.large(mean)
        published = np.sqrt(self.basis(mean.grid).eigenvalues[: factors.size])
        return self._shrunk(mean, factors, axes=published if self.published else factors)
