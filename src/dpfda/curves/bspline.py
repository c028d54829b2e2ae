"""B-splines: local bumps that add up to 1, the papers' default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, finite, interval, whole
from dpfda.curves.basis import Basis
from dpfda.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class BSplineBasis(Basis, name="bspline"):
    """Clamped B-splines on equidistant or given knots.

    Args:
        n_basis: number of functions; 0 takes the fewest that order and knots allow.
        order: polynomial degree plus one; 4 is cubic.
        knots: interior knots, strictly inside the domain and increasing; None spaces them evenly.
        domain_range: the interval on which curves live.

    Examples:
        >>> BSplineBasis(n_basis=5).evaluate([0.0, 0.5, 1.0]).tolist()
        [[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.25, 0.5, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
        >>> BSplineBasis(knots=(0.2, 0.9)).n_basis
        6
    """

    n_basis: int = 0
    order: int = 4
    knots: Sequence[float] | None = None
    domain_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        order = whole("order", self.order)
        domain_range = interval("domain_range", self.domain_range)
        if self.knots is None:
            n_basis = whole("n_basis", self.n_basis or order, least=order)
            knots = None
        else:
            knots = tuple(finite("knots", knot) for knot in self.knots)
            ends = (domain_range[0], *knots, domain_range[1])
            if np.any(np.diff(ends) <= 0):
                raise InvalidParameter("knots", "increasing and strictly inside the domain", knots)
            fewest = order + len(knots)
            n_basis = whole("n_basis", self.n_basis or fewest, least=fewest, most=fewest)
        self._settle(n_basis=n_basis, order=order, knots=knots, domain_range=domain_range)

    @classmethod
    def examples(cls) -> list[Self]:
        """Cubic, with a knot, given knots, steps, and a domain of years."""
        return [
            cls(),
            cls(n_basis=6),
            cls(knots=(0.1, 0.15, 0.8)),
            cls(order=1, n_basis=3),
            cls(n_basis=7, order=3, domain_range=(1.0, 18.0)),
        ]

    def _quadrature(self) -> tuple[FloatArray, int]:
        low, high = self.domain_range
        if self.knots is None:
            ends = np.linspace(low, high, self.n_basis - self.order + 2)
        else:
            ends = np.array([low, *self.knots, high])
        return ends, self.order  # exact: products of two pieces have degree 2(order - 1)

    def _functions(self, t: FloatArray) -> FloatArray:
        # Imported here because it takes longer than the rest of the package together, and a
        # server or a ledger that only reads an encoder never evaluates a spline.
        from scipy.interpolate import BSpline

        ends, _ = self._quadrature()
        degree = self.order - 1
        clamped = np.concatenate([[ends[0]] * degree, ends, [ends[-1]] * degree])
        return np.asarray(BSpline.design_matrix(t, clamped, degree).toarray())
