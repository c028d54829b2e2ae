"""A basis of your own: a table of values, or any functions turned into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from dpfda._validate import FloatArray, interval, whole
from dpfda.curves.basis import Basis
from dpfda.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class CustomBasis(Basis, name="custom"):
    """Functions given by their values on a grid, straight lines in between.

    The table *is* the basis: it travels with the study's public description, so that everybody
    encodes with the same functions. Python functions cannot travel; `from_functions` tabulates
    them.

    Args:
        points: the grid (T,), increasing; its ends are the domain.
        values: a table (T, d), one column per function, linearly independent.

    Examples:
        >>> hats = CustomBasis(points=(0, 1, 2), values=[(1, 0), (0, 1), (1, 0)])
        >>> hats.evaluate([0.5, 2.0]).tolist()
        [[0.5, 0.5], [1.0, 0.0]]
        >>> CustomBasis.from_functions([np.ones_like, np.square], domain_range=(0, 2)).n_basis
        2
    """

    points: Sequence[float] = field(repr=False)
    values: Sequence[Sequence[float]] = field(repr=False)
    n_basis: int = field(init=False)
    domain_range: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        points, values = _numbers("points", self.points), _numbers("values", self.values)
        if points.ndim != 1 or points.size < 2 or np.any(np.diff(points) <= 0):
            found = f"an array of shape {points.shape}"
            raise InvalidParameter("points", "two or more increasing numbers", found)
        if values.ndim != 2 or values.shape[0] != points.size or values.shape[1] == 0:
            rule = f"a table with one row for each of the {points.size} points"
            raise InvalidParameter("values", rule, f"an array of shape {values.shape}")
        rank = int(np.linalg.matrix_rank(values))
        if rank < values.shape[1]:
            found = f"rank {rank} of {values.shape[1]}"
            raise InvalidParameter("values", "linearly independent columns", found)
        self._settle(
            points=tuple(points.tolist()),
            values=tuple(map(tuple, values.tolist())),
            n_basis=values.shape[1],
            domain_range=(float(points[0]), float(points[-1])),
        )

    @classmethod
    def from_functions(
        cls,
        functions: Sequence[Callable[[FloatArray], FloatArray]],
        *,
        domain_range: tuple[float, float] = (0.0, 1.0),
        n_points: int = 257,
    ) -> Self:
        """Tabulate vectorized functions on `n_points` equidistant points."""
        points = np.linspace(
            *interval("domain_range", domain_range), whole("n_points", n_points, least=2)
        )
        columns = [np.broadcast_to(function(points), points.shape) for function in functions]
        return cls(points=points.tolist(), values=np.column_stack(columns).tolist())

    @classmethod
    def examples(cls) -> list[Self]:
        """A hand-written table and tabulated functions."""
        hats = cls(points=(0.0, 0.5, 2.0), values=((1.0, 0.0), (0.0, 1.0), (1.0, 0.0)))
        return [hats, cls.from_functions([np.ones_like, np.exp, np.sin])]

    def _quadrature(self) -> tuple[FloatArray, int]:
        return np.array(self.points), 2  # exact: products of two straight lines have degree 2

    def _functions(self, t: FloatArray) -> FloatArray:
        points, values = np.array(self.points), np.array(self.values)
        left = np.clip(np.searchsorted(points, t, side="right") - 1, 0, points.size - 2)
        share = ((t - points[left]) / (points[left + 1] - points[left]))[:, None]
        return np.asarray((1 - share) * values[left] + share * values[left + 1])


def _numbers(name: str, table: Any) -> FloatArray:
    try:
        array = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not np.all(np.isfinite(array)):
        raise InvalidParameter(name, "a rectangular table of finite numbers", type(table).__name__)
    return array
