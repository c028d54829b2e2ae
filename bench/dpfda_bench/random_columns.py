"""Random problems of tables and of several classes: a law of what is hidden and what is public.

Behind the columns of a table are normal numbers that go together by a few common factors. A third
of the columns show them skewed, as counts or as yes/no. Classes differ in the means of some of
these numbers; a number that is to be predicted is linear in some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dpfda._validate import FloatArray
from dpfda_bench.random_problems import waves

Kind = Literal["tables", "classes", "numbers"]

_COLUMNS = (4, 6, 8, 12, 16, 24, 40)
_WAVES = 14
_SLACKS = (1.0, 1.5, 3.0, 10.0)
_SHARES = (0.5, 0.5, 0.35, 0.2)
_CLASSES = (3, 4, 6, 10)
_REFERENCE = 4000  # people that a right range holds
_NOISE = 0.03  # of single points of a curve


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnProblem:
    """One problem.

    Attributes:
        kind: what is predicted: one of two classes, of several, or a number.
        curves: whether people hold curves instead of rows.
        shares: of the classes.
        means: of the normal numbers behind columns, by class, shape (K, d).
        root: of their covariance within a class.
        shapes: of each column: what shows of the normal number behind it.
        slope: of a number that is predicted, in the normal numbers; noise has variance 1.
        heavy: whether tails are heavy.
        slack: how many times too wide the public ranges are.
        seed: of the problem.
    """

    kind: Kind
    curves: bool
    shares: FloatArray
    means: FloatArray
    root: FloatArray
    shapes: tuple[Callable[[FloatArray], FloatArray], ...]
    slope: FloatArray
    heavy: bool
    slack: float
    seed: int

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, Any]:
        """Rows or curves of so many people, and what is predicted of them."""
        labels = rng.choice(len(self.shares), p=self.shares, size=n)
        normal = rng.normal(size=(n, len(self.root))) @ self.root.T
        if self.heavy:
            normal *= np.sqrt(6 / rng.chisquare(6, size=(n, 1))) * 0.816
        normal = normal + self.means[labels]
        rows = np.column_stack([shape(x) for shape, x in zip(self.shapes, normal.T, strict=True)])
        if self.kind == "numbers":
            return rows, normal @ self.slope + rng.normal(size=n)
        if self.curves:
            points = waves(_WAVES).shape[1]
            rows = rows @ waves(_WAVES) + _NOISE * rng.normal(size=(n, points))
        return rows, labels.astype(np.int64)

    @cached_property
    def public(self) -> dict[str, Any]:
        """Ranges of columns or curves, and of a number: right ones, or wider."""
        rng = np.random.default_rng(self.seed + 10**6)
        rows, targets = self.draw(_REFERENCE, rng)

        def ends(values: FloatArray, *, from_0: bool = False) -> tuple[float, float]:
            low, high = np.quantile(values, [0.001, 0.999])
            if from_0:
                return 0.0, float(self.slack * high)
            half, shift = (high - low) / 2, rng.uniform(-0.4, 0.4)
            middle = (low + high) / 2 + shift * (self.slack - 1) * half
            return float(middle - self.slack * half), float(middle + self.slack * half)

        if self.curves:
            return {"value_range": ends(rows)}
        ranges = []
        for column in rows.T:
            if set(np.unique(column)) <= {0.0, 1.0}:
                ranges.append((0.0, 1.0))
            else:
                ranges.append(ends(column, from_0=column.min() >= 0))
        found: dict[str, Any] = {"feature_ranges": ranges}
        if self.kind == "numbers":
            found["target_range"] = ends(targets)
        return found


def column_problem(kind: Kind, seed: int) -> ColumnProblem:
    """The problem of this number."""
    g = np.random.default_rng([seed, ("tables", "classes", "numbers").index(kind)])
    curves = kind == "classes" and bool(g.random() < 0.5)
    d = _WAVES if curves else int(g.choice(_COLUMNS))
    factors = int(g.choice([0, 1, 3]))
    loads = g.normal(size=(d, factors)) * g.uniform(0.3, 1.2)
    together = loads @ loads.T + np.eye(d)
    widths = np.sqrt(np.diag(together))
    together = together / np.outer(widths, widths)
    number = min(int(g.choice([1, 3, d // 2, d])), d)
    matter = (np.arange(d) if curves and g.random() < 0.5 else g.permutation(d))[:number]
    classes = {"tables": 2, "numbers": 1}.get(kind) or int(g.choice(_CLASSES))
    means = np.zeros((classes, d))
    means[:, matter] = g.normal(size=(classes, number))
    if classes == 2:
        means[0] = -means[1]
    solved = np.linalg.solve(together, means.T)
    # Two classes are so many deviations apart; of several, the mean over all pairs of them.
    apart = g.uniform(0.8, 3.5) if classes == 2 else g.uniform(1.5, 5.0)
    means *= apart / 2 / np.sqrt(max(np.mean(np.sum(means.T * solved, axis=0)), 1e-12))
    slope = np.zeros(d)
    if kind == "numbers":
        means[:] = 0.0
        slope[matter] = g.normal(size=number)
        explained = g.uniform(0.2, 0.9)
        slope *= np.sqrt(explained / (1 - explained) / (slope @ together @ slope))
    root = np.linalg.cholesky(together + 1e-9 * np.eye(d))
    if curves:
        widths = (1.0 + np.arange(d)) ** -g.uniform(0, 2) * g.lognormal(0, 0.4, d)
        middles = widths * g.normal(0, g.choice([0, 1, 2, 4]), d)
        shapes = [_moved(m, w) for m, w in zip(middles, widths, strict=True)]
    else:
        shapes = [_shape(g) for _ in range(d)]
    shares = np.ones(classes) / classes
    if classes == 2:
        share = float(g.choice(_SHARES))
        shares = np.array([1 - share, share])
    elif classes > 2 and g.random() < 0.5:
        shares = g.dirichlet(np.full(classes, 4.0))
    return ColumnProblem(
        kind=kind,
        curves=curves,
        shares=shares,
        means=means,
        root=np.asarray(root, dtype=np.float64),
        shapes=tuple(shapes),
        slope=slope,
        heavy=bool(g.random() < 0.3),
        slack=float(g.choice(_SLACKS)),
        seed=seed,
    )


def _moved(middle: float, width: float) -> Callable[[FloatArray], FloatArray]:
    return lambda x: middle + width * x


def _shape(g: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
    """Two thirds of columns are normal, the others skewed, counts or yes/no."""
    middle, unit, at = g.normal(0, 3), 10 ** g.uniform(-2, 2), g.normal(0, 0.7)
    kind = g.choice(["normal", "skewed", "count", "yes"], p=[2 / 3, 1 / 9, 1 / 9, 1 / 9])
    if kind == "skewed":
        return lambda x: unit * np.exp(0.7 * x)
    if kind == "count":
        return lambda x: np.floor(2 * np.exp(0.7 * x))
    if kind == "yes":
        return lambda x: np.asarray(x > at, dtype=np.float64)
    return _moved(unit * middle, unit)
