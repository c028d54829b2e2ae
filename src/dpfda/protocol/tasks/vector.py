"""Noisy vectors: the encoded curve with its label, or label times encoded curve.

The first is step 2 of 000 and 001, the second is described in docs/methods/moment-reports.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.composed import Joined
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import Source
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import CURVES_ARE_PUBLIC, LABELS_ARE_PUBLIC
from dpfda.protocol.fields import array, choice, number, whole
from dpfda.protocol.query import Answer, Records
from dpfda.protocol.task import Task, box_mechanisms


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorTask(Task, name="vector"):
    """Report z* through a mechanism of vectors and y = ±1 through randomized response.

    Privacy:
        ε_z + ε_y = ε for curve and label together (basic composition; both parts are exact).
        With ``protects="features"`` the label travels in clear and the curve gets all of ε; with
        ``protects="labels"`` it is the other way round. Both are assumptions that a person must
        have accepted.

    Attributes:
        dimension: d.
        mechanism_name: registered name of the mechanism of vectors.
        label_share: ε_y/ε; None is the papers' 1/(d+1).
        positive: the label numbers that count as +1, the others being -1.
        protects: what is private.

    Examples:
        >>> task = VectorTask(epsilon=5.0, people=1, dimension=4)
        >>> [part.epsilon for part in task.mechanism.parts]
        [4.0, 1.0]
    """

    dimension: int = whole(most=1 << 16)
    mechanism_name: str = choice(box_mechanisms, default="laplace")
    label_share: float | None = number(above=0, most=1 - 1e-9, optional=True, default=None)
    positive: IntArray = array("whole", "positives", least=0, most=1 << 20, default=(1,))
    protects: str = choice("both", "features", "labels", default="both")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That what is not protected is public anyway."""
        other = {"both": (), "features": (LABELS_ARE_PUBLIC,), "labels": (CURVES_ARE_PUBLIC,)}
        return other[self.protects]

    @cached_property
    def mechanism(self) -> Joined:
        """The mechanisms of what is protected: curve, label."""
        whole = Cost(epsilon=self.epsilon)
        given = self.label_share
        share = Fraction(1, self.dimension + 1) if given is None else given
        both = self.protects == "both"
        for_label = whole.part(share) if both else whole
        for_curve = whole.rest(for_label) if both else whole
        spent = {"epsilon": for_curve.epsilon_spent, "dimension": self.dimension}
        curve = Mechanism.from_dict({"name": self.mechanism_name, **spent})
        label = RandomizedResponse(epsilon=for_label.epsilon_spent)
        parts = {"both": (curve, label), "features": (curve,), "labels": (label,)}
        return Joined(parts=parts[self.protects])

    @property
    def width(self) -> int:
        """The curve's d numbers and the label."""
        return self.dimension + 1

    def exact(self, records: Records, source: Source) -> FloatArray:
        """Curve and ±1 label, as far as they are protected."""
        return self._protected(self._row(records))

    def answer(self, records: Records, source: Source) -> Answer:
        """Noisy curve and noisy ±1 label; what is public anyway travels as it is."""
        noisy = super().answer(records, source).values
        if self.protects == "both":
            return Answer(values=noisy, n=self.people)
        row = self._row(self.fitting(records))
        mine = slice(None, -1) if self.protects == "features" else slice(-1, None)
        row[:, mine] = noisy
        return Answer(values=row, n=self.people)

    def _row(self, records: Records) -> FloatArray:
        z, y = records
        signs = np.where(np.isin(y, self.positive), 1.0, -1.0)
        return np.column_stack([z[:, : self.dimension], signs])

    def _protected(self, row: FloatArray) -> FloatArray:
        if self.protects == "both":
            return row
        return row[:, :-1] if self.protects == "features" else row[:, -1:]

    def _sent(self, answer: Answer) -> FloatArray:
        return self._protected(answer.values)

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Any vector with a label of ±1."""
        return np.asarray(np.abs(reply[:, -1]) == 1)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two features, each mechanism."""
        return [
            cls(epsilon=1.0, people=1, dimension=2, mechanism_name=name)
            for name in box_mechanisms()
        ]


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
    mechanism_name: str = choice(box_mechanisms, default="piecewise")

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
            for name in box_mechanisms()
        ]
