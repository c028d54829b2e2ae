"""Random problems of two classes of curves: a law of what is hidden, and what is public of it.

A problem says how wide each of 14 cosine coefficients is, where its middle lies, which coefficients
tell the classes apart and by how much, how they go together, how heavy their tails are, how
frequent the classes are, and how many times too wide the public range is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._validate import FloatArray, IntArray

_POINTS, _COEFFICIENTS = 80, 14
_SHARES = (0.5, 0.5, 0.35, 0.2, 0.1)
_SLACKS = (1.1, 1.5, 3.0, 10.0, 30.0)
_NOISE = 0.03  # of single points
_REFERENCE = 4000  # curves that a right range holds


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveClasses:
    """One problem.

    Attributes:
        widths: standard deviation of each coefficient within a class.
        middles: between both classes.
        apart: half the distance between the classes, in widths.
        root: of the correlation within a class.
        heavy: whether tails are heavy.
        share: of class 1.
        slack: how many times too wide the public range is.
        shift: of its middle.
        seed: of the problem.
    """

    widths: FloatArray
    middles: FloatArray
    apart: FloatArray
    root: FloatArray
    heavy: bool
    share: float
    slack: float
    shift: float
    seed: int

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Curves and labels of so many people."""
        y = (rng.random(n) < self.share).astype(np.int64)
        errors = rng.normal(size=(n, _COEFFICIENTS)) @ self.root.T
        if self.heavy:
            errors *= np.sqrt(6 / rng.chisquare(6, size=(n, 1))) * 0.816
        scores = self.middles + self.widths * (errors + (2 * y[:, None] - 1) * self.apart)
        curves = scores @ waves(_COEFFICIENTS) + _NOISE * rng.normal(size=(n, _POINTS))
        return curves, y

    @cached_property
    def value_range(self) -> tuple[float, float]:
        """Public: holds nearly all curves, and is wider than that."""
        curves, _ = self.draw(_REFERENCE, np.random.default_rng(self.seed + 10**6))
        low, high = np.quantile(curves, [0.001, 0.999])
        half = (high - low) / 2
        middle = (low + high) / 2 + self.shift * (self.slack - 1) * half
        return float(middle - self.slack * half), float(middle + self.slack * half)


def curve_classes(seed: int) -> CurveClasses:
    """The problem of this number."""
    g, d = np.random.default_rng(seed), _COEFFICIENTS
    widths = (1.0 + np.arange(d)) ** -g.uniform(0, 2) * g.lognormal(0, 0.4, d)
    middles = widths * g.normal(0, g.choice([0, 1, 2, 4]), d)
    number = int(g.choice([1, 2, 4, d]))
    order = g.permutation(d) if g.random() < 0.5 else np.arange(d)
    apart = np.zeros(d)
    apart[order[:number]] = g.normal(0, 1, number)
    together = np.eye(d)
    if g.random() < 0.5:  # one common factor
        loads = g.uniform(-0.85, 0.85, d)
        together = np.outer(loads, loads)
        np.fill_diagonal(together, 1.0)
    apart *= g.uniform(0.8, 3.5) / 2 / np.sqrt(apart @ np.linalg.solve(together, apart))
    root = np.asarray(np.linalg.cholesky(together + 1e-9 * np.eye(d)), dtype=np.float64)
    share, heavy = float(g.choice(_SHARES)), bool(g.random() < 0.3)
    slack = float(g.choice(_SLACKS))
    shift = float(g.uniform(-0.4, 0.4))
    return CurveClasses(
        widths=widths,
        middles=middles,
        apart=apart,
        root=root,
        heavy=heavy,
        share=share,
        slack=slack,
        shift=shift,
        seed=seed,
    )


def waves(number: int) -> FloatArray:
    """Orthonormal cosines on the grid of the curves, one a row."""
    t = np.linspace(0, 1, _POINTS)
    rows = [np.ones(_POINTS), *(2**0.5 * np.cos(np.pi * j * t) for j in range(1, number))]
    return np.array(rows)
