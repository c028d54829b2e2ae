"""Send label times encoded curve as one noisy vector (docs/methods/moment-reports.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms import Mechanism
from dpfda.noise import Source
from dpfda.protocol.fields import array, choice, whole
from dpfda.protocol.query import Records
from dpfda.protocol.task import BOX_MECHANISMS, Task


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentTask(Task, name="moment"):
    """Report y z* through one mechanism with the whole budget.

    Privacy:
        ε-LDP for curve and label together: y z* lies in the same box as z*, so nothing is split.

    Attributes:
        dimension: d.
        mechanism_name: registered name of the mechanism of vectors.
        positive: the label number that counts as +1, shape (n,).

    Examples:
        >>> MomentTask(epsilon=1.0, people=1, dimension=4, positive=[1]).mechanism.dimension
        4
    """

    dimension: int = whole(most=1 << 16)
    positive: IntArray = array("whole", "people", least=0, most=1 << 20)
    mechanism_name: str = choice(*BOX_MECHANISMS, default="piecewise")

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism of the moment vector."""
        return Mechanism.from_dict(
            {"name": self.mechanism_name, "epsilon": self.epsilon, "dimension": self.width}
        )

    @property
    def width(self) -> int:
        """The d products."""
        return self.dimension

    def exact(self, records: Records, source: Source) -> FloatArray:
        """y z*."""
        z, y = records
        signs = np.where(y == self.positive, 1.0, -1.0)[:, None]
        return np.asarray(signs * z[:, : self.dimension])

    @classmethod
    def examples(cls) -> list[Self]:
        """Two features, each mechanism."""
        return [
            cls(epsilon=1.0, people=1, dimension=2, positive=[1], mechanism_name=name)  # type: ignore[arg-type]
            for name in BOX_MECHANISMS
        ]
