"""Plain vectors: people hold d numbers instead of a curve, and these are the coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, whole
from dpfda.curves.basis import Basis
from dpfda.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class IdentityBasis(Basis, name="identity"):
    """No functions and no grid: a vector of `n_basis` numbers stands for itself.

    Examples:
        >>> IdentityBasis(n_basis=2).gram().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    n_basis: int

    functional: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._settle(n_basis=whole("n_basis", self.n_basis))

    @classmethod
    def examples(cls) -> list[Self]:
        """One number and several."""
        return [cls(n_basis=1), cls(n_basis=3)]

    def gram(self) -> FloatArray:
        """The identity."""
        return np.eye(self.n_basis)

    def evaluate(self, points: object) -> FloatArray:
        """Refused: a vector has no t."""
        raise InvalidParameter("basis", "made of functions of t to be evaluated", self.name)

    def _functions(self, t: FloatArray) -> FloatArray:
        return self.evaluate(t)
