"""Send the encoded curve and the label, both perturbed (000 and 001, step 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import Source
from dpfda.protocol.plan import Protects
from dpfda.protocol.task import Task, check_answerer


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorTask(Task, name="vector"):
    """Report z* through a randomizer of vectors and y = ±1 through randomized response.

    Privacy:
        ε_z + ε_y = ε for curve and label together (basic composition; both parts are exact).
        With ``protects="features"`` the label travels in clear and the curve gets all of ε; with
        ``protects="labels"`` it is the other way round.

    Attributes:
        dimension: d.
        randomizer: registered name of the randomizer of vectors.
        label_share: ε_y/ε; None is the papers' 1/(d+1).
        positive: the label number that counts as +1, the others being -1.
        protects: what is private.

    Example:
        >>> task = VectorTask(epsilon=5.0, people=1, dimension=4)
        >>> task.label_epsilon, task.mechanism.epsilon
        (1.0, 4.0)
    """

    dimension: int
    randomizer: str = "laplace"
    label_share: float | None = None
    positive: int = 1
    protects: Protects = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("dimension", self.dimension)
        if self.label_share is not None:
            _validate.fraction("label_share", self.label_share)

    @property
    def label_epsilon(self) -> float:
        """ε_y."""
        if self.protects != "both":
            return self.epsilon
        share = 1 / (self.dimension + 1) if self.label_share is None else self.label_share
        return self.epsilon * share

    @cached_property
    def mechanism(self) -> Mechanism:
        """The randomizer of the curve."""
        left = self.epsilon if self.protects != "both" else self.epsilon - self.label_epsilon
        return Mechanism.from_dict(
            {"name": self.randomizer, "epsilon": left, "dimension": self.dimension}
        )

    @cached_property
    def label_mechanism(self) -> RandomizedResponse:
        """The randomizer of the label."""
        return RandomizedResponse(epsilon=self.label_epsilon)

    @property
    def width(self) -> int:
        """The curve's d numbers and the label."""
        return self.dimension + 1

    def answer(self, features: FloatArray, labels: IntArray, rng: Source) -> FloatArray:
        """Noisy curve and noisy ±1 label."""
        z, y = check_answerer(self, features, labels, columns=self.dimension)
        signs = np.where(y == self.positive, 1.0, -1.0)
        if self.protects != "labels":
            z = self.mechanism.randomize(z, rng)
        if self.protects != "features":
            signs = self.label_mechanism.randomize(signs, rng)
        return np.column_stack([z, signs])

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Any vector with a label of ±1."""
        return np.asarray(np.abs(reply[:, -1]) == 1)
