"""What a holder of rows and targets is asked: sums of whole numbers, plus noise."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.regression.fixed_point import BLOCK, MOST_ROWS, ONE
from dpfda.central.regression.problem import Problem
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.budgeted import l1_noise, l2_noise
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import part
from dpfda.protocol.query import AdditiveLook, Look, Records, finite, in_rows

_ROWS = 256  # of a block, at least


@dataclass(frozen=True, kw_only=True, eq=False)
class RowLook(Look):
    """A look at rows (n, D) and targets (n,) that may spend a share of a budget.

    Gaussian noise where the budget has a δ, for a sensitivity `l2`; otherwise Laplace noise, for
    `l1`. A look that states one of them only is refused with the other kind of budget.

    Attributes:
        cost: what it may spend.
    """

    cost: Cost = part(lambda: Cost)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # refuses a budget that it cannot keep, before anybody is asked

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Width of the rows."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of the answer."""

    @property
    def l2(self) -> float:
        """Euclidean sensitivity to replacing one row."""
        raise InvalidParameter("delta", f"0 for {self.name}", self.cost.delta)

    @property
    def l1(self) -> float:
        """Sensitivity in the sum of absolutes."""
        raise InvalidParameter("delta", f"above 0 for {self.name}", self.cost.delta)

    @cached_property
    def mechanism(self) -> Additive:
        """The same noise on every number."""
        axes = np.ones(self.size)
        if self.cost.pure:
            return l1_noise(self.cost, sensitivity=self.l1, axes=axes)
        return l2_noise(self.cost, sensitivity=self.l2, axes=axes)

    @property
    def columns(self) -> tuple[int, ...]:
        """Rows and targets."""
        return (self.dimension, 0)

    def count(self, n: int, *, part: bool = False) -> None:
        """Refuse more rows than 64-bit sums have room for, in however many chunks they come."""
        if n > MOST_ROWS:
            raise InvalidData("X", f"at most {MOST_ROWS} rows")
        super().count(n, part=part)

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes, and of finite numbers."""
        return tuple(map(finite, self.shaped(records)))

    def shaped(self, records: Records) -> Records:
        """Rows and targets; other shapes are refused: they are public.

        A third column, which marks rows outside their ranges, is for `OutsideCount` alone.
        """
        shapes = tuple(column.shape for column in records)
        n = shapes[0][0] if shapes and shapes[0] else 0
        if n > MOST_ROWS:
            raise InvalidData("X", f"at most {MOST_ROWS} rows")
        if shapes[:2] != ((n, self.dimension), (n,)) or shapes[2:] not in ((), ((n,),)):
            raise ProtocolError(
                f"{self.name} asks for rows of {self.dimension} numbers and a target"
            )
        return records[:2]


@dataclass(frozen=True, kw_only=True, eq=False)
class ProblemLook(RowLook):
    """A look that is about a problem's loss and balls.

    Attributes:
        problem: which.
    """

    problem: Problem = part(lambda: Problem)

    @property
    def dimension(self) -> int:
        """D."""
        return self.problem.dimension

    @property
    def size(self) -> int:
        """One number for each coefficient."""
        return self.problem.size


@dataclass(frozen=True, kw_only=True, eq=False)
class RowSums(RowLook, AdditiveLook):
    """A weighted sum over all rows, exact in whole numbers until noise is added."""

    @property
    @abstractmethod
    def weights(self) -> FloatArray:
        """What each exact integer sum is multiplied by; sensitivities are measured after that."""

    @property
    def size(self) -> int:
        """One for each weight."""
        return len(self.weights)

    @property
    def largest(self) -> int:
        """The product of two numbers of the unit ball, in grid steps."""
        return int(ONE) ** 2

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes; `sums` makes their numbers finite."""
        return self.shaped(records)

    def sums(self, records: Records) -> IntArray:
        """Exact sums over the rows, in blocks that fit a processor's cache.

        The pass then costs little more than reading, also where it looks for NaN.
        """
        rows, targets = records
        total = np.zeros(self.size, dtype=np.int64)
        step = max(_ROWS, BLOCK // self.dimension)
        for start in range(0, len(rows), step):
            block = in_rows((rows, targets), slice(start, start + step))
            total += self.block(tuple(map(finite, block))).astype(np.int64)
        return total

    def statistic(self, totals: IntArray) -> FloatArray:
        """The weighted sum."""
        return np.asarray(totals * self.weights)
