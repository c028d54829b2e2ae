"""What leaves a holder: noisy numbers, and everything public about their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpfda._validate import FloatArray
from dpfda.errors import ProtocolError
from dpfda.noise.law import NoiseLaw


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """A public reply to a query.

    Attributes:
        values: with noise: a vector, or one row a person where a task asks many.
        n: how many records were asked (public).
        law: of the noise that was added; None where nothing was added (a choice, a response).
    """

    values: FloatArray
    n: int
    law: NoiseLaw | None = None

    @property
    def noise(self) -> NoiseLaw:
        """The law, where noise was added."""
        if self.law is None:
            raise ProtocolError("no noise was added to this answer: it is a choice or a response")
        return self.law

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, where it is the same on every number."""
        return math.sqrt(float(self.noise.variance[0]))
