"""Kernel machines: a query whose answer is a minimizer, computed in a public number of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.cell_queries import Box, Cells
from dpfda.central.conversation import BoxConversation, too_small
from dpfda.central.functions import FunctionBasis, Kernel, Matern, eigenpairs
from dpfda.central.losses import Loss
from dpfda.central.queries import MOST_RECORDS, units
from dpfda.central.release import Release
from dpfda.central.shrinkage import Posterior, posterior
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.ellipsoid_laplace import l2_noise
from dpfda.noise.law import TARGET_LEVEL_ODDS
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import choice, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Answer, Records, Sums

CELLS = {1: 200, 2: 24}
_MOST_CELLS = 1 << 10
_SMALLEST = 1e-8  # as a share of the largest eigenvalue; smaller ones are dropped
_ACCURACY = 1e-9  # accuracy of a minimizer, in units of √(L₀/ψ), which bounds its norm
_LEAST_PSI = 1e-5  # smallest ψ, as a share of κ²: smaller ones need too many steps
_EDGE = 0.95  # as a share of the result if all targets were at one end of their range
_BLUR = 0.1  # in the same unit: no warning is given if the noise is larger


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelMachine(AdditiveQuery, name="kernel_machine"):
    """The coefficients of the f that minimizes mean L(y, f(x)) + ψ‖f‖² in a kernel's space.

    Inputs are rounded to a public grid. Integer counts at each grid point then determine the mean
    loss: the numbers of labels -1 and +1, or the number of pairs and the sum of their targets.

    Privacy:
        With f = ⟨w, r(·)⟩ and F(w) = mean L + ψ‖w‖², the minimizers of neighboring data sets are at
        most D/(2ψn) apart, where D = `Loss.widest` (003 Theorem 9 with C14, tightened). The
        released value is not the minimizer but the K-th iterate of Nesterov's method with constant
        steps, started from 0. With Q = (κ² max L'' + 2ψ)/(2ψ) and L₀ ≥ F(0),

            ψ‖w_K - w*‖² ≤ F(w_K) - F* ≤ (1 - 1/√Q)^K (F(0) - F* + ψ‖w*‖²) ≤ e^{-K/√Q} L₀,

        because F* ≥ ψ‖w*‖². After K = 2√Q log(2·10⁹) steps, a public number, ‖w_K - w*‖ is at most
        half of 10⁻⁹√(L₀/ψ); the other half covers rounding errors, which are much smaller. Twice
        10⁻⁹√(L₀/ψ) is added to the sensitivity, so that the guarantee does not depend on how easy
        the data are to fit. Noise is calibrated to the ball: coefficients h_j = w_j √λ_j are in
        ‖h/√λ‖₂ ≤ sensitivity.

        D is a maximum over slopes that a single w may not attain together. A numerical search
        attained the following shares of D: 1.00 for the hinge at any ψ; 1.00, .88 and .68 for
        logistic loss at ψ = 1, 0.1 and 0.01 κ²; .91, .62 and .30 for squared loss.

    Attributes:
        low: lower end of the box along each variable.
        high: upper end.
        along: number of grid points along each variable.
        kernel: kernel of the space.
        psi: ψ.
        loss: name of a registered loss.
        target_bound: Y with |y| ≤ Y, for squared loss; for other losses labels are signs.
    """

    attained: ClassVar[float | None] = 0.85
    linear: ClassVar[bool] = False

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    low: FloatArray = vector("variables", least=-1e50, most=1e50)
    high: FloatArray = vector("variables", least=-1e50, most=1e50)
    along: int = whole(least=2, most=1 << 14)
    kernel: Kernel = part(lambda: Kernel)
    psi: float = number(above=0.0, most=1e10)
    loss: str = choice("squared", "logistic", "smoothed_hinge")
    target_bound: float = number(least=1e-40, most=1e40, default=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.cells  # refuses too many
        least = _LEAST_PSI * self.space.kappa**2
        if self.psi < least:
            raise InvalidParameter("psi", f"at least {least:g} with this kernel", self.psi)

    @cached_property
    def cells(self) -> Cells:
        """One cell around each grid point."""
        return Cells(self.low, self.high, self.along, most=_MOST_CELLS)

    @cached_property
    def space(self) -> Space:
        """The kernel's space with the features of the grid points."""
        box = tuple(zip(self.low.tolist(), self.high.tolist(), strict=True))
        return Space.of(self.kernel, box, along=self.along)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise for the largest distance between two computed minimizers, in the kernel's norm."""
        sensitivity = self.space.reach(
            Loss.named(self.loss)(), n=self.n, psi=self.psi, target_bound=self.target_bound
        )
        return l2_noise(self.cost, sensitivity=sensitivity, axes=self.space.weights)

    @property
    def summed(self) -> Sums:
        """Two integers for each grid point, which `Loss.tally` defines."""
        columns, size = (*self.cells.columns, 0), 2 * self.cells.size
        return Sums(columns, size, units(self.n), self._tally, self._minimizer)

    def _tally(self, records: Records) -> IntArray:
        loss, bound = Loss.named(self.loss)(), self.target_bound
        targets = np.clip(records[1], -bound, bound)
        places, scale = self.cells.places(records[0]), units(self.n) / bound
        return loss.tally(places, targets, count=self.cells.size, units=scale)

    def _minimizer(self, totals: IntArray) -> FloatArray:
        loss = Loss.named(self.loss)()
        shares = totals.reshape(2, -1) / self.n
        if not loss.classification:
            shares[1] *= self.target_bound / units(self.n)
        table, psi = self.space.features, self.psi
        steep = loss.smoothness * self.space.kappa**2 + 2 * psi
        root = math.sqrt(steep / (2 * psi))
        momentum = (root - 1) / (root + 1)
        here = ahead = np.zeros(table.shape[1])
        for _ in range(math.ceil(2 * root * math.log(2 / _ACCURACY))):
            gradient = loss.total_slopes(table @ ahead, shares) @ table + 2 * psi * ahead
            before, here = here, ahead - gradient / steep
            ahead = here + momentum * (here - before)
        return np.asarray(here * self.space.weights)

    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """A pair that is replaced, and identical other pairs, which make f as large as possible."""
        x, y = super().trial(generator, size=size)
        x[2:], y[2:] = x[1], y[1]
        return x, y

    @classmethod
    def examples(cls) -> list[Self]:
        """Every loss, in a small space."""
        box: Any = {"low": np.zeros(1), "high": np.ones(1), "along": 6}
        kernel, deltas = Matern(nu=2.5, length=0.3), {"logistic": 0.05}
        return [
            cls(cost=Cost(epsilon=1.0, delta=deltas.get(loss, 0.0)), n=40, **box, kernel=kernel,
                psi=1.0, loss=loss)
            for loss in Loss.members()
        ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Space:
    """A kernel's space: eigenfunctions φ_j on a grid, weights √λ_j and features r_j = √λ_j φ_j."""

    basis: FunctionBasis
    weights: FloatArray

    @classmethod
    def of(cls, kernel: Kernel, box: Box, *, along: int) -> Self:
        """The space of a kernel C."""
        try:
            pairs = eigenpairs(kernel, tuple(np.linspace(*side, along) for side in box))
        except np.linalg.LinAlgError:  # a matrix of NaN
            raise InvalidParameter("kernel", "finite on the grid", kernel) from None
        weights = np.sqrt(pairs.eigenvalues)
        kept = int(np.sum(weights > _SMALLEST**0.5 * weights[0]))
        return cls(pairs.first(kept), weights[:kept])

    @cached_property
    def features(self) -> FloatArray:
        """(places, J)."""
        return np.ascontiguousarray(self.basis.functions.T * self.weights)

    @cached_property
    def gram(self) -> FloatArray:
        """Matrix of the kernel C between grid points."""
        return np.asarray(self.features @ self.features.T)

    @property
    def kappa(self) -> float:
        """κ = sup √C(x, x)."""
        return math.sqrt(float(np.diag(self.gram).max()))

    def reach(self, loss: Loss, *, n: int, psi: float, target_bound: float) -> float:
        """The largest distance between the iterates of neighboring data sets."""
        apart = loss.widest(self.features, psi=psi, target_bound=target_bound) / (2 * psi * n)
        inexact = 2 * _ACCURACY * math.sqrt(loss.at_zero(target_bound) / psi)
        return (apart + inexact) * (1 + 1e-9)

    def noise(self, cost: Cost) -> FloatArray:
        """Variance of the noise on each coefficient, for a sensitivity of 1."""
        return l2_noise(cost, sensitivity=1.0, axes=self.weights).law.variance

    def safe_psi(self, loss: Loss, cost: Cost, *, n: int, target_bound: float) -> float:
        """The ψ of least noise plus smoothing bias; both are known without data.

        The bias is assumed to be ψ times the squared norm of a slightly varying function of size
        `target_bound`, which is six times that of a constant.
        """
        bias = 6 * (target_bound / self.kappa) ** 2
        noise = float(self.noise(cost).sum())
        candidates = np.geomspace(1e-4, 10.0, 41)
        risks = [
            noise * self.reach(loss, n=n, psi=psi, target_bound=target_bound) ** 2 + bias * psi
            for psi in candidates
        ]
        return float(candidates[int(np.argmin(risks))])

    def posterior(self, answer: Answer, query: KernelMachine) -> Posterior:
        """Posterior of the minimizer, given its noisy release.

        For uniform inputs, each coefficient of the minimizer is approximately a coefficient of the
        mean of the targets times a gain, which decreases with the penalty. The prior of this mean
        is that of mean curves, with the bound of the targets. Only the prior of the level differs:
        it has more weight near the center.
        """
        loss, bound = Loss.named(query.loss)(), query.target_bound
        volume = float(self.basis.weights.sum())
        steepest = abs(float(loss.slope(bound, np.zeros(1))[0]))
        density = self.weights**2 / volume
        gains = steepest * density / (loss.smoothness * density + 2 * query.psi)
        scaled = answer.values / gains, answer.noise.variance / gains**2
        found = posterior(*scaled, math.sqrt(volume), level_odds=TARGET_LEVEL_ODDS)
        return Posterior(gains * found.mean, gains**2 * found.variance)

    def doubt(self, estimate: Posterior) -> float:
        """Expected squared error, divided by that of a constant function."""
        functions, weights = self.basis.functions, self.basis.weights
        values = estimate.mean @ functions
        error = float(estimate.variance @ (functions**2 @ weights))
        signal = float((values - values @ weights / weights.sum()) ** 2 @ weights)
        return error / max(error + signal, 1e-300)


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelMachineRelease(BoxConversation, name="kernel_machine"):
    """A conversation of one query about n pairs: see `KernelMachine`.

    Attributes:
        psi: ψ; if None, it is chosen from n, ε and the kernel.
    """

    summary: ClassVar[str] = "kernel machine"

    loss: str = "squared"
    target_bound: float = 1.0
    kernel: Kernel
    psi: float | None = None
    along: int | None = None

    @property
    def _points(self) -> int:
        return CELLS[len(self.box)] if self.along is None else self.along

    @cached_property
    def _space(self) -> Space:
        return Space.of(self.kernel, self.box, along=self._points)

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """Gaussian noise if it is smaller on every coefficient, because smooth ones matter most."""
        smaller = self._space.noise(gaussian) <= self._space.noise(pure)
        return gaussian if smaller.all() else pure

    @cached_property
    def query(self) -> KernelMachine:
        """The query."""
        loss, bound, psi = Loss.named(self.loss)(), self.target_bound, self.psi
        if psi is None:
            psi = self._space.safe_psi(loss, self.whole, n=self.n, target_bound=bound)
        own: Any = {"kernel": self.kernel, "loss": self.loss, "target_bound": bound}
        return KernelMachine(**self.place, cost=self.whole, **own, along=self._points, psi=psi)

    def questions(self) -> Questions[Release]:
        """Query the noisy minimizer and compute its posterior mean."""
        query, space = self.query, self.query.space
        answer = yield query
        estimate = space.posterior(answer, query)
        return self.conclude(
            space.basis,
            answer.values,
            answer.noise,
            shrunk=estimate.mean,
            sensitivity=query.mechanism.sensitivity,
            psi=query.psi,
            kappa=space.kappa,
            doubt=space.doubt(estimate),
        )

    def doubts(self, release: Release) -> tuple[str, ...]:
        """A warning if nearly all targets seem to be at one end of their range."""
        query = self.query
        if Loss.named(self.loss).classification:
            return ()
        mean = release.basis.functions.mean(axis=1)
        points = np.stack(np.meshgrid(*release.basis.grid, indexing="ij"), -1)
        points = points.reshape(-1, len(self.box))
        full: Any = query.block((points, np.full(len(points), self.target_bound)))
        most = float(query.statistic(full * (self.n / len(points))) @ mean)
        noise = math.sqrt(sum(float(law.variance @ mean**2) for law in release.noise))
        seen = noise <= _BLUR * most and abs(float(release.noisy @ mean)) >= _EDGE * most
        return (too_small("an end of their range", "targets"),) * seen

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Data sets that differ in the sign of one target."""
        x = self.anywhere(n)
        y = np.where(np.arange(n) % 2, -self.target_bound, self.target_bound)
        there = y.copy()
        there[0] = -y[0]
        return (x, y), (x, there)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every loss on a grid of eight points, with ψ chosen and given."""
        shared: Any = {"epsilon": epsilon, "delta": delta, "n": n, "box": ((0.0, 1.0),)}
        kernel = Matern(nu=2.5, length=0.3)
        return [
            cls(**shared, loss=loss, kernel=kernel, psi=psi, along=8)
            for loss, psi in (("squared", None), ("logistic", 0.1), ("smoothed_hinge", 0.1))
        ]
