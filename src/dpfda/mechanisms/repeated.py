"""The same mechanism on each of several rows of one person, who pays for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.base import Mechanism
from dpfda.mechanisms.laplace import Laplace
from dpfda.mechanisms.piecewise import Piecewise
from dpfda.noise import Source
from dpfda.privacy.events import ComposedEvent, Event
from dpfda.privacy.price import compose, rounded_up


@dataclass(frozen=True, kw_only=True)
class Repeated(Mechanism, name="repeated"):
    """N reports side by side, one for each of a person's N rows, drawn independently.

    Privacy:
        ε = N ε_1 for everything the person holds (basic composition), ε_1 for a single row.

    Attributes:
        part: the mechanism of one row.
        times: N.

    Examples:
        >>> Repeated(part=Piecewise(epsilon=0.5, dimension=3), times=4).epsilon
        2.0
    """

    epsilon: float = field(init=False)
    part: Mechanism
    times: int

    def __post_init__(self) -> None:
        self._revive("part", Mechanism.from_dict)
        if not isinstance(self.part, Mechanism) or self.part.worst_cases()[0][0].ndim != 2:
            raise InvalidParameter("part", "a mechanism of vectors", self.part)
        _validate.whole("times", self.times, most=1 << 16)
        object.__setattr__(self, "epsilon", rounded_up(compose([self.event]).epsilon))
        super().__post_init__()

    @property
    def event(self) -> Event:
        """All N reports."""
        return ComposedEvent(events=(self.part.event,), repeated=self.times)

    def randomize(self, values: Any, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy rows, all people's in one batch."""
        width = int(np.size(self.part.worst_cases()[0][0]))
        rows = _validate.batch("values", values, columns=self.times * width)
        return self._joined(self.part.randomize(self._single(rows), source, clip=clip))

    def variance(self, values: Any) -> FloatArray:
        """Row by row."""
        return self._joined(self.part.variance(self._single(values)))

    @property
    def depth_shape(self) -> float | None:
        """The sum over rows."""
        single = self.part.depth_shape
        return None if single is None else self.times * single

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """The sum over rows."""
        true = np.broadcast_to(np.asarray(values), (len(reports), np.shape(values)[1]))
        single = self.part.log_likelihood(self._single(reports), self._single(true))
        return np.asarray(single.reshape(len(reports), -1).sum(axis=1))

    def debias(self, reports: FloatArray) -> FloatArray:
        """Row by row."""
        return self._joined(self.part.debias(self._single(reports)))

    def target(self, values: Any) -> FloatArray:
        """Row by row."""
        return self._joined(self.part.target(self._single(values)))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Every row at its worst at once, and the first alone."""
        one, other = self.part.worst_cases()[0]
        here, there = np.tile(one, (1, self.times)), np.tile(other, (1, self.times))
        alone = here.copy()
        alone[:, : one.shape[1]] = other
        return [(here, there), (here, alone)]

    @classmethod
    def examples(cls) -> list[Self]:
        """One row, and several."""
        return [
            cls(part=Piecewise(epsilon=0.5, dimension=2), times=2),
            cls(part=Laplace(epsilon=1.0, dimension=1), times=3),
        ]

    def _single(self, rows: Any) -> FloatArray:
        table = np.asarray(rows, dtype=np.float64)
        return table.reshape(len(table) * self.times, -1)

    def _joined(self, rows: FloatArray) -> FloatArray:
        return rows.reshape(len(rows) // self.times, -1)
