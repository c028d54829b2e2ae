"""Linear releases of a mean: FRL, ICLP with either penalty, optimal allocation, Gaussian process.

All take coefficients in the eigenbasis of a kernel, clip each curve to ‖X‖ ≤ τ, shrink their mean
by public factors and add independent noise along public axes. Sensitivities are the tight ones
(Cauchy–Schwarz, methods.md 8.3); ``published=True`` uses the larger bounds of 003 instead.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.basis import FunctionBasis, eigenpairs
from dpfda.central.function_mechanism import FunctionMechanism, Plan, Task
from dpfda.central.kernels import Kernel, Matern
from dpfda.central.quadrature import Grid
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.noise import Source


@dataclass(frozen=True, kw_only=True)
class LinearMechanism(FunctionMechanism):
    """A mechanism whose every parameter is fixed before it sees data.

    Attributes:
        kernel: covariance kernel of the noise, or eigenpairs on the data's grid.
        published: use the published, larger sensitivity bound.
    """

    kernel: Kernel | FunctionBasis = field(default_factory=Matern)
    published: bool = False

    @abstractmethod
    def plan(self, grid: Grid, task: Task) -> Plan:
        """Factors, axes and sensitivity."""

    def release(self, records: FloatArray, grid: Grid, task: Task, source: Source) -> Release:
        """Noisy shrunken mean."""
        self.check(task)
        return self.plan(grid, task).release(records, source)

    def basis(self, grid: Grid) -> FunctionBasis:
        """Eigenpairs on the data's grid."""
        if isinstance(self.kernel, Kernel):
            return eigenpairs(self.kernel, grid)
        same = len(grid) == len(self.kernel.grid) and all(
            np.array_equal(a, b) for a, b in zip(grid, self.kernel.grid, strict=True)
        )
        if not same:
            raise InvalidParameter("kernel", "eigenpairs on the grid of the data", "another grid")
        return self.kernel

    @property
    def decay(self) -> float:
        """β of the kernel; given eigenpairs are taken for Matérn 3/2's."""
        return self.kernel.decay if isinstance(self.kernel, Kernel) else 4.0

    def _choices(self, **chosen: float) -> dict[str, object]:
        kernel = self.kernel.to_dict() if isinstance(self.kernel, Kernel) else "given eigenpairs"
        bound = "published" if self.published else "tight"
        return {"mechanism": self.name, "kernel": kernel, "calibration": bound, **chosen}


@dataclass(frozen=True, kw_only=True)
class FiniteLaplace(LinearMechanism, name="frl"):
    """FRL (003 §2.3): the first M coefficients, equal Laplace noise on each.

    Privacy:
        ε-DP with Δ₁ = 2τ√M/n (published: 2τM/n). M is ⌊n^{1/3}⌋ unless given, the upper end of
        the paper's range; its own choice of M within the range looks at the true error.

    Example:
        >>> FiniteLaplace(components=4).components
        4
    """

    components: int | None = None

    def plan(self, grid: Grid, task: Task) -> Plan:
        """M coefficients with equal axes."""
        basis = self.basis(grid)
        size = self.components or max(1, math.floor(task.n ** (1 / 3) + 1e-9))
        size = min(_validate.whole("components", size), basis.size)
        spread = size if self.published else math.sqrt(size)
        return Plan(
            basis=basis.first(size),
            factors=np.ones(size),
            axes=np.ones(size),
            sensitivity=task.radius * spread,
            task=task,
            parameters=self._choices(components=size),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """Tight and published."""
        return [cls(components=3), cls(components=3, published=True)]


@dataclass(frozen=True, kw_only=True)
class AbsoluteRegularization(LinearMechanism, name="iclp_ar"):
    """ICLP-AR (003, Theorem 6.2 as corrected in C12): soft-thresholded mean, noise axes √λ_j.

    Privacy:
        ε-DP: coefficients from J* on are 0 whatever the data, thresholding is a contraction, so
        Δ = (2τ/n)(Σ_{j<J*} 1/λ_j)^{1/2} (published: the sum of 1/√λ_j). ψ is chosen from n, ε and
        the kernel: the J* of least noise plus ψ.

    Example:
        >>> AbsoluteRegularization(eta=1.0).name
        'iclp_ar'
    """

    eta: float = 1.0
    psi: float | None = None

    def plan(self, grid: Grid, task: Task) -> Plan:
        """Thresholds ψ/(2 λ_j^{η/2}), axes √λ_j."""
        basis = self.basis(grid)
        roots = basis.eigenvalues ** (self.eta / 2)
        psi = self.psi or self._safe_psi(basis.eigenvalues, task)
        threshold = _validate.positive("psi", psi) / (2 * roots)
        size = int(np.sum(threshold < task.bound))
        if size == 0:
            raise InvalidParameter("psi", "small enough to keep one coefficient", psi)
        spread = _spread(1 / np.sqrt(basis.eigenvalues[:size]), self.published)
        return Plan(
            basis=basis.first(size),
            factors=np.ones(size),
            axes=np.sqrt(basis.eigenvalues[:size]),
            sensitivity=task.radius * spread,
            task=task,
            threshold=threshold[:size],
            parameters=self._choices(eta=self.eta, psi=psi, components=size),
        )

    def _safe_psi(self, eigenvalues: FloatArray, task: Task) -> float:
        edges = 2 * task.bound * eigenvalues[1:] ** (self.eta / 2)  # ψ at which J* = 2, 3, ...
        inverse = np.cumsum(1 / eigenvalues)[:-1]
        noise = 2 * (task.radius / task.epsilon) ** 2 * inverse * np.cumsum(eigenvalues)[:-1]
        return float(edges[np.argmin(noise + edges)])

    @classmethod
    def examples(cls) -> list[Self]:
        """Tight and published."""
        return [cls(), cls(published=True)]


@dataclass(frozen=True, kw_only=True)
class QuadraticRegularization(LinearMechanism, name="iclp_qr"):
    """ICLP-QR (003, Theorem 6.3): factors λ^η/(λ^η + ψ), noise axes √λ_j.

    Privacy:
        ε-DP with Δ = (2τ/n)‖s_j/√λ_j‖₂ (published: its ℓ1 norm). Coefficient j gets
        Lap(Δ√λ_j/ε), the paper's Algorithm 1; Theorem 4's σ would be √2 ε-DP (C10). PSS: ψ = 1/n,
        η = 1 + 2/β.

    Example:
        >>> QuadraticRegularization(eta=1.5).smoothing(Task(n=100, bound=1.0, epsilon=1.0))
        (1.5, 0.01)
    """

    eta: float | None = None
    psi: float | None = None

    def smoothing(self, task: Task) -> tuple[float, float]:
        """η and ψ, given or by privacy-safe selection."""
        eta = self.eta or max(1.01, 1 + 2 / self.decay)
        return _validate.positive("eta", eta), _validate.positive("psi", self.psi or 1 / task.n)

    def factors(self, basis: FunctionBasis, task: Task) -> FloatArray:
        """s_j."""
        eta, psi = self.smoothing(task)
        power = basis.eigenvalues**eta
        return np.asarray(power / (power + psi))

    def plan(self, grid: Grid, task: Task) -> Plan:
        """Factors s_j, axes √λ_j."""
        basis = self.basis(grid)
        factors, axes = self.factors(basis, task), np.sqrt(basis.eigenvalues)
        return self._plan(basis, factors, axes, _spread(factors / axes, self.published), task)

    def _plan(
        self, basis: FunctionBasis, factors: FloatArray, axes: FloatArray, spread: float, task: Task
    ) -> Plan:
        eta, psi = self.smoothing(task)
        return Plan(
            basis=basis,
            factors=factors,
            axes=axes,
            sensitivity=task.radius * spread,
            task=task,
            parameters=self._choices(eta=eta, psi=psi),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """Tight and published."""
        return [cls(), cls(published=True)]


@dataclass(frozen=True, kw_only=True)
class OptimalAllocation(QuadraticRegularization, name="allocation"):
    """ICLP-QR's summary with the axes of least total noise, √s_j (methods.md 8.4).

    Privacy:
        ε-DP: Σ s_j|c_j|/√s_j ≤ ‖c‖ (Σ s_j)^{1/2}, so Δ = (2τ/n)(Σ s_j)^{1/2}; attained.

    Example:
        >>> OptimalAllocation().name
        'allocation'
    """

    def plan(self, grid: Grid, task: Task) -> Plan:
        """Factors s_j, axes √s_j."""
        basis = self.basis(grid)
        factors = self.factors(basis, task)
        kept = factors > 1e-12 * factors[0]
        basis, factors = basis.first(int(kept.sum())), factors[kept]
        axes = np.sqrt(factors)
        return self._plan(basis, factors, axes, _spread(factors / axes, self.published), task)

    @classmethod
    def examples(cls) -> list[Self]:
        """One."""
        return [cls()]


@dataclass(frozen=True, kw_only=True)
class GaussianProcess(QuadraticRegularization, name="gaussian_process"):
    """Gaussian process noise for (ε, δ) (Mirshani et al. 2019), with σ_j ∝ s_j.

    Privacy:
        (ε, δ)-DP: ‖s_j c_j/a_j‖₂ ≤ 2τ/n for axes a = s. Published: axes √λ_j, for which the
        norm is at most (2τ/n) max s_j/√λ_j. σ is calibrated exactly.

    Example:
        >>> GaussianProcess.needs_delta
        True
    """

    needs_delta = True

    def plan(self, grid: Grid, task: Task) -> Plan:
        """Factors s_j, axes s_j (or √λ_j)."""
        basis = self.basis(grid)
        factors = self.factors(basis, task)
        kept = factors > 1e-12 * factors[0]
        basis, factors = basis.first(int(kept.sum())), factors[kept]
        axes = np.sqrt(basis.eigenvalues) if self.published else factors
        return self._plan(basis, factors, axes, float((factors / axes).max()), task)

    @classmethod
    def examples(cls) -> list[Self]:
        """Tight and published."""
        return [cls(), cls(published=True)]


def _spread(weights: FloatArray, published: bool) -> float:
    """sup Σ w_j|c_j| over ‖c‖₂ ≤ 1, or the published sum of the w_j."""
    return float(np.abs(weights).sum() if published else np.linalg.norm(weights))
