"""Send in which cell of a grid you are, times your label: the histogram of Berrett & Butucea."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive_laplace import AdditiveLaplace
from dpfda.noise import Source
from dpfda.protocol.task import Task, check_answerer

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

    dimension: int
    splits: int = 4
    handicap: float = 1.0
    positive: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("dimension", self.dimension)
        _validate.whole("splits", self.splits, least=2)
        if self.splits**self.dimension > _MOST_CELLS:
            rule = f"such that there are at most {_MOST_CELLS} cells"
            raise InvalidParameter("splits", rule, self.splits)
        if _validate.finite("handicap", self.handicap) < 1:
            raise InvalidParameter("handicap", "at least 1", self.handicap)

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

    def answer(self, features: FloatArray, labels: IntArray, rng: Source) -> FloatArray:
        """Noisy vectors, one entry a cell."""
        z, y = check_answerer(self, features, labels, columns=self.dimension)
        indicator = np.zeros((self.people, self.width))
        indicator[np.arange(self.people), self.cells(z)] = np.where(y == self.positive, 1.0, -1.0)
        return self.mechanism.randomize(indicator, rng)

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Any finite vector."""
        return np.ones(len(reply), dtype=bool)


def grid_cells(features: FloatArray, *, splits: int) -> IntArray:
    """Cell numbers of points in [-1, 1]^d, shape (..., d) -> (...)."""
    z = np.asarray(features)
    along = np.clip(((z + 1) / 2 * splits).astype(np.int64), 0, splits - 1)
    return np.asarray(along @ splits ** np.arange(z.shape[-1] - 1, -1, -1), dtype=np.int64)
