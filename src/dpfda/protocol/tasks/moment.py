"""Send the product of label and encoded curve, perturbed as one vector (methods 8.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms import Mechanism
from dpfda.noise import Source
from dpfda.protocol.task import Task, check_answerer


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentTask(Task, name="moment"):
    """Report y z* through one randomizer with the whole budget.

    Privacy:
        ε-LDP for curve and label together: y z* lies in the same box as z*, so nothing is split.

    Attributes:
        dimension: d.
        randomizer: registered name of the randomizer of vectors.
        positive: the label number that counts as +1, shape (n,).

    Example:
        >>> MomentTask(epsilon=1.0, people=1, dimension=4, positive=[1]).mechanism.dimension
        4
    """

    dimension: int
    positive: IntArray
    randomizer: str = "piecewise"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("dimension", self.dimension)

    @classmethod
    def _arrays(cls) -> dict[str, str]:
        return {"positive": "whole"}

    @cached_property
    def mechanism(self) -> Mechanism:
        """The randomizer of the moment vector."""
        return Mechanism.from_dict(
            {"name": self.randomizer, "epsilon": self.epsilon, "dimension": self.width}
        )

    @property
    def width(self) -> int:
        """The d products."""
        return self.dimension

    def answer(self, features: FloatArray, labels: IntArray, rng: Source) -> FloatArray:
        """Noisy y z*."""
        z, y = check_answerer(self, features, labels, columns=self.dimension)
        signs = np.where(y == self.positive, 1.0, -1.0)[:, None]
        return self.mechanism.randomize(signs * z, rng)

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Any finite vector: what one liar can do is bounded by the server's clipping."""
        return np.ones(len(reply), dtype=bool)
