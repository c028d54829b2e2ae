"""Kernel density releases of 003 (§4.3 with C13): ICLP-QR, FRL and Bernstein on a kernel estimate.

Points are rounded to the cells of a public grid; what one point can change is then known exactly by
comparing all pairs of cells, instead of Theorem 8's bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.bernstein import Bernstein
from dpfda.central.cell_looks import Box, NearestMean
from dpfda.central.density import DensityMechanism, DensityRelease
from dpfda.central.functions import FunctionBasis, eigenpairs
from dpfda.central.kernels import Kernel, Matern, SquaredExponential
from dpfda.central.release import Release
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import choice, flag, number, whole

_CELLS = {1: 256, 2: 24}


@dataclass(frozen=True, kw_only=True)
class KernelDensity(DensityMechanism, name="kernel"):
    """A kernel estimate with noise from the same kernel: f̂ = mean of K^η_h(x_i, ·).

    Privacy:
        ε-DP with Δ = (1/n) max over cells x, x' of Σ_j |k_j(x) - k_j(x')|/a_j. Axes are √λ_j
        (``iclp_qr``), ones on the first M coefficients (``frl``) or on lattice values
        (``bernstein``).

    Attributes:
        kind: which mechanism.
        eta: η, the power of the noise kernel used for the estimate.
        bandwidth: h in units of the box's side; 0.2 n^{-1/(4+d)} by default (PSS).
        components: M of FRL, or K of Bernstein.
        rough: use the exponential kernel (the paper's choice in two variables).

    Examples:
        >>> round(KernelDensity(kind="iclp_qr").bandwidth_for(1024, 1), 4)
        0.05
    """

    kind: str = choice("iclp_qr", "frl", "bernstein", default="iclp_qr")
    eta: float = number(above=0.0, default=1.25)
    bandwidth: float | None = number(above=0.0, optional=True, default=None)
    components: int = whole(default=12)
    rough: bool = flag(default=False)

    def bandwidth_for(self, n: int, variables: int) -> float:
        """h, given or by the rule."""
        if self.bandwidth is not None:
            return self.bandwidth
        return float(0.2 * n ** (-1 / (4 + variables)))

    def questions(self, density: DensityRelease) -> Questions[Release]:
        """Noisy kernel estimate."""
        basis, features, axes = self.layout(density.box, density.n)
        along = basis.grid[0].size
        look = NearestMean(**density.asked, along=along, features=features, axes=axes)
        return density.one_look(
            look,
            basis,
            mechanism=self.kind,
            eta=self.eta,
            bandwidth=self.bandwidth_for(density.n, len(density.box)),
            components=len(axes),
        )

    def layout(
        self, box: Box, n: int, *, whole: bool = False
    ) -> tuple[FunctionBasis, FloatArray, FloatArray]:
        """Functions, what a point in each cell adds (cells, J), and axes."""
        size = _CELLS[len(box)]
        grid = tuple(np.linspace(*side, size) for side in box)
        h = self.bandwidth_for(n, len(box))
        # K^η has about bandwidth h if K has length h/√η (exactly so for Gaussian kernels).
        kernel: Kernel = (
            Matern(nu=0.5, length=h) if self.rough else SquaredExponential(length=h / self.eta**0.5)
        )
        pairs = eigenpairs(kernel, grid)
        power = pairs.eigenvalues**self.eta
        middle = pairs.functions[:, pairs.weights.size // 2 + (size // 2 if len(box) == 2 else 0)]
        mass = float((power * middle * (pairs.functions @ pairs.weights)).sum())
        features = (pairs.functions * power[:, None] / mass).T
        if self.kind == "iclp_qr" or whole:
            return pairs, features, np.sqrt(pairs.eigenvalues)
        if self.kind == "frl":
            few = pairs.first(self.components)
            return few, features[:, : few.size], np.ones(few.size)
        return _bernstein(pairs, features, self.components)

    @classmethod
    def examples(cls) -> list[Self]:
        """The three kinds."""
        return [cls(kind=kind, components=4) for kind in ("iclp_qr", "frl", "bernstein")]


def _bernstein(
    pairs: FunctionBasis, features: FloatArray, order: int
) -> tuple[FunctionBasis, FloatArray, FloatArray]:
    lattice = tuple(np.linspace(axis[0], axis[-1], order + 1) for axis in pairs.grid)
    values = features @ pairs.at(lattice if len(lattice) > 1 else lattice[0])
    basis = Bernstein(order=order).basis(pairs.grid)
    return basis, values, np.ones(basis.size)
