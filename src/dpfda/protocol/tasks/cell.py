"""Send in which cell of a grid you are, times your label: the histogram of Berrett & Butucea."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive_laplace import AdditiveLaplace
from dpfda.noise import Source
from dpfda.protocol.fields import number, whole
from dpfda.protocol.query import Records
from dpfda.protocol.task import Task

_MOST_CELLS = 1 << 20


@dataclass(frozen=True, kw_only=True, eq=False)
class CellTask(Task, name="cell"):
    """Report y·1{z* in cell j} + Laplace noise, for every cell j of a grid on [-1, 1]^d.

    Privacy:
        ε-LDP for curve and label together. One entry of the vector is ±1 and the others are 0, so
        two people differ by at most 2 in ℓ1 and Lap(2/ε) suffices; the published Lap(2^{d+1}/ε) is
        `handicap` = 2^d (C22).

    Attributes:
        dimension: d.
        splits: cells along each axis; there are splits^d cells in all.
        handicap: the noise is this many times what ε needs.
        positive: the label number that counts as y = +1.

    Example:
        >>> task = CellTask(epsilon=1.0, people=2, dimension=2, splits=4)
        >>> task.width, task.cells(np.array([[-1.0, -1.0], [1.0, 0.1]])).tolist()
        (16, [0, 14])
    """

    dimension: int = whole(most=64)
    splits: int = whole(least=2, most=1024, default=4)
    handicap: float = number(least=1, default=1.0)
    positive: int = whole(least=0, default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.splits**self.dimension > _MOST_CELLS:
            rule = f"such that there are at most {_MOST_CELLS} cells"
            raise InvalidParameter("splits", rule, self.splits)

    @cached_property
    def mechanism(self) -> AdditiveLaplace:
        """Laplace noise on each cell."""
        return AdditiveLaplace(
            epsilon=self.epsilon, sensitivity=2.0 * self.handicap, axes=(1.0,) * self.width
        )

    @property
    def width(self) -> int:
        """The number of cells."""
        return int(self.splits**self.dimension)

    def cells(self, features: FloatArray) -> IntArray:
        """The cell of each encoded curve, as one number."""
        return grid_cells(features, splits=self.splits)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """One entry a cell: ±1 in mine, 0 elsewhere."""
        z, y = records
        indicator = np.zeros((self.people, self.width))
        mine = self.cells(z[:, : self.dimension])
        indicator[np.arange(self.people), mine] = np.where(y == self.positive, 1.0, -1.0)
        return indicator

    @classmethod
    def examples(cls) -> list[Self]:
        """Four cells."""
        return [cls(epsilon=1.0, people=1, dimension=2, splits=2)]


def grid_cells(features: FloatArray, *, splits: int) -> IntArray:
    """Cell numbers of points in [-1, 1]^d, shape (..., d) -> (...)."""
    z = np.asarray(features)
    along = np.clip(((z + 1) / 2 * splits).astype(np.int64), 0, splits - 1)
    return np.asarray(along @ splits ** np.arange(z.shape[-1] - 1, -1, -1), dtype=np.int64)
