"""How a row becomes features: public, and the same in training and in prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._registry import Portable
from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import own_grids
from dpfda.curves.ranges import Table
from dpfda.errors import InvalidData, InvalidParameter

_LEAST, _MIDDLING, _MOST = 4, 8, 16  # basis functions


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe(Portable):
    """A row of numbers, a record of a table or a curve, as the numbers that a regression is about.

    Attributes:
        names: of the features; numbers of the basis functions for curves.
        table: public columns: records are moved into their ranges, and these to [-1, 1].
        shift, scale: x is the feature (x - shift)/scale; 0 and 1 without a table.
        encoder: how curves become features.
        grid_points: where curves were known.

    Example:
        >>> recipe = Recipe.of_table(Table.of([(0, 10), (20, 80)]), centered=True)
        >>> recipe.features([[5, 95]]).tolist()
        [[0.0, 1.0]]
    """

    names: tuple[str, ...]
    table: Table | None = None
    shift: FloatArray
    scale: FloatArray
    encoder: CurveEncoder | None = None
    grid_points: FloatArray | None = None

    @classmethod
    def plain(cls, names: Any, **more: Any) -> Recipe:
        """Features that have no units of their own."""
        size = len(names)
        return cls(names=tuple(map(str, names)), shift=np.zeros(size), scale=np.ones(size), **more)

    @classmethod
    def of_table(cls, table: Table, *, centered: bool) -> Recipe:
        """Features in [-1, 1]; not centered, where a line must go through 0."""
        shift, scale = table.scaling(centered=centered)
        return cls(names=tuple(table.names), table=table, shift=shift, scale=scale)

    @property
    def boxed(self) -> bool:
        """Whether features lie in [-1, 1] by construction."""
        return self.table is not None or self.encoder is not None

    def features(self, X: Any, grid_points: Any = None, *, strict: bool = True) -> FloatArray:
        """Features (n, D) of private rows, tables or curves; `strict` as in `CurveEncoder`."""
        if self.encoder is not None:
            points = self.grid_points if grid_points is None else grid_points
            return self.encoder.encode(X, points, strict=strict)
        if self.table is not None:
            found = self.table.read(X)  # a copy
            found -= self.shift
            found /= self.scale
            return found
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise InvalidData("X", f"rows of {len(self.names)} features", f"shape {rows.shape}")
        return rows


def public_encoder(
    X: Any,
    grid_points: Any,
    *,
    value_range: Any,
    domain_range: Any,
    strength: float | None,
) -> CurveEncoder:
    """An encoder from what is public of curves: their ranges, and nε, the strength of a fit.

    B-splines, the more of them the more can be learnt; a middling number where n is not known.
    """
    size = _MIDDLING if strength is None else int(np.clip(0.6 * math.sqrt(strength), _LEAST, _MOST))
    if domain_range is None:
        domain_range = _domain(X, grid_points)
    return CurveEncoder(
        "bspline",
        n_basis=size,
        domain_range=_validate.interval("domain_range", domain_range),
        feature_ranges=_validate.interval("value_range", value_range),
    )


def _domain(X: Any, grid_points: Any) -> tuple[float, float]:
    """That of points which all curves share."""
    if hasattr(X, "data_matrix"):
        return tuple(map(float, X.domain_range[0]))  # type: ignore[return-value]
    if own_grids(X):
        raise InvalidParameter("domain_range", "given where curves have their own points", None)
    if grid_points is None:
        return 0.0, 1.0
    points = np.asarray(grid_points, dtype=np.float64)
    return float(points.min()), float(points.max())
