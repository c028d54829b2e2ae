"""What the solution of a linear system may be when its released numbers carry known noise.

Released are Ã = A + E, symmetric, and b̃ = b + e; wanted is a linear combination aᵀβ of the solution
of A β = b. Its interval is the range of aᵀβ over all systems (A', b') within `radius` standard
deviations of the released one:

    Σ_{j≤k} (Ã - A')²_jk / Var E_jk + Σ_j (b̃ - b')²_j / Var e_j ≤ radius².

For normal noise the left side, minimized over all systems that have a given aᵀβ, is twice the
log-likelihood ratio of that value, and `radius`² is a quantile of χ² with one degree of freedom.
The interval holds aᵀβ with at least its probability however ill-conditioned A is (Guggenberger,
Kleibergen, Mavroeidis & Chen 2012, for noise with one variance), where a standard error of a
regularized solution does not. If a singular system lies within the radius, nothing bounds aᵀβ and
the interval is infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray

_STEPS = 200  # at most; a well-conditioned system takes about ten
_DAMPED_FROM = 4  # steps from which the mean of the last two is taken: it stops oscillations
_TOLERANCE = 1e-7  # of the width of an interval, at which steps end


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearSystem:
    """Released equations Ã β = b̃, one right-hand side for each of m linear combinations of β.

    Attributes:
        matrix: Ã, (p, p), symmetric.
        vectors: b̃, (m, p).
        matrix_variance: of the noise on the entries of Ã, (p, p).
        vector_variance: of the noise on the entries of b̃, (m, p).
        combinations: a, (m, p).

    Examples:
        >>> one = np.ones((1, 1))
        >>> known = {"matrix": one, "vectors": one, "combinations": one}
        >>> system = LinearSystem(**known, matrix_variance=one / 100, vector_variance=0 * one)
        >>> [round(float(end[0]), 3) for end in system.interval(2.0)]  # 1/1.2 and 1/0.8
        [0.833, 1.25]
        >>> system.interval(10.0)
        (array([-inf]), array([inf]))
    """

    matrix: FloatArray
    vectors: FloatArray
    matrix_variance: FloatArray
    vector_variance: FloatArray
    combinations: FloatArray

    @property
    def distance(self) -> float:
        """Standard deviations of noise between the matrix and one that is singular; or below 0.

        Var wᵀEw ≤ max(Var E_jj, 2 Var E_jk) for |w| = 1. Moments are positive semidefinite: if the
        released ones are not, nothing says how far those without noise are from singular.
        """
        largest = 2 * self.matrix_variance
        np.fill_diagonal(largest, np.diag(self.matrix_variance))
        least = float(np.linalg.eigvalsh(self.matrix)[0])
        return least / math.sqrt(max(float(largest.max()), 1e-300))

    def spread(self) -> FloatArray:
        """Standard deviation of each solution's combination, to first order, (m,)."""
        beta, u = self._solved(self.matrix, slice(None))
        return self._steepest(beta, u, slice(None))[2]

    def interval(self, radius: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Least and largest aᵀβ, (m,) each; infinite where nothing bounds it.

        Args:
            radius: in standard deviations, one number or one for each combination.
        """
        count = len(self.vectors)
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), count)
        low, high = np.full(count, -math.inf), np.full(count, math.inf)
        bounded = np.flatnonzero(radii < self.distance)
        if bounded.size:
            low[bounded] = self._extreme(bounded, -radii[bounded])
            high[bounded] = self._extreme(bounded, radii[bounded])
        return low, high

    def _extreme(self, rows: Any, radii: FloatArray) -> FloatArray:
        """One end: steps to where the edge of the ellipsoid of systems is steepest."""
        shift = np.zeros((len(rows), *self.matrix.shape))
        drift, last = np.zeros((len(rows), len(self.matrix))), np.full(len(rows), np.nan)
        for step in range(_STEPS):
            beta, u = self._solved(self.matrix - shift, rows, drift)
            value = (self.combinations[rows] * beta).sum(axis=-1)
            across, along, length = self._steepest(beta, u, rows)
            if np.all(np.abs(value - last) <= _TOLERANCE * (np.abs(radii) * length + abs(value))):
                break
            last, weight = value, 0.5 if step >= _DAMPED_FROM else 1.0
            size = radii / np.maximum(length, 1e-300)
            shift += weight * (size[:, None, None] * across - shift)
            drift += weight * (size[:, None] * along - drift)
        return np.asarray(value)

    def _solved(
        self, matrix: FloatArray, rows: Any, drift: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """β = M⁻¹ (b̃ - drift) and u = M⁻¹ a, (m, p) each."""
        sides = np.stack([self.vectors[rows] - drift, self.combinations[rows]], axis=-1)
        found = np.linalg.solve(np.broadcast_to(matrix, (len(sides), *matrix.shape[-2:])), sides)
        return found[..., 0], found[..., 1]

    def _steepest(
        self, beta: FloatArray, u: FloatArray, rows: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The noise (E, e) that moves aᵀβ most for its size, and by how much if its size is one.

        d(aᵀβ) = uᵀ E β - uᵀ e: entry j < k of E counts u_j β_k + u_k β_j, one on the diagonal
        u_j β_j.
        """
        products = u[:, :, None] * beta[:, None, :]
        slopes = products + np.swapaxes(products, 1, 2)
        diagonal = np.arange(u.shape[1])
        slopes[:, diagonal, diagonal] /= 2
        across, along = self.matrix_variance * slopes, -self.vector_variance[rows] * u
        squared = np.triu(across * slopes).sum(axis=(1, 2)) - (along * u).sum(axis=1)
        return across, along, np.sqrt(squared)
