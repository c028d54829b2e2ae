"""Composed mechanisms: several on the columns of one row, or one on each of several rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from dpfda import _validate
from dpfda._registry import revive
from dpfda._validate import ArrayLike, FloatArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Laplace
from dpfda.mechanisms.base import Mechanism
from dpfda.mechanisms.piecewise import Piecewise
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import Source
from dpfda.privacy.events import ComposedEvent, Event
from dpfda.privacy.price import compose, rounded_up


@dataclass(frozen=True, kw_only=True)
class Joined(Mechanism, name="joined"):
    """One report composed of several, for example a noisy curve and a noisy label.

    Privacy:
        ε = Σ ε_i for the whole row (basic composition of independent reports).

    Attributes:
        parts: the mechanisms, in the order of their columns; each returns as many numbers as it
            is given.

    Examples:
        >>> label = RandomizedResponse(epsilon=0.2)
        >>> both = Joined(parts=(Laplace(epsilon=0.8, dimension=2), label))
        >>> both.epsilon, both.widths
        (1.0, (2, 1))
    """

    epsilon: float = field(init=False)
    parts: tuple[Mechanism, ...]

    def __post_init__(self) -> None:
        made = tuple(
            Mechanism.from_dict(part) if isinstance(part, Mapping) else part for part in self.parts
        )
        if not made or not all(isinstance(part, Mechanism) for part in made):
            raise InvalidParameter("parts", "one mechanism at least", self.parts)
        object.__setattr__(self, "parts", made)
        total: Fraction = compose([part.event for part in made]).epsilon
        object.__setattr__(self, "epsilon", rounded_up(total))
        super().__post_init__()

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each part."""
        return tuple(int(np.size(part.worst_cases()[0][0])) for part in self.parts)

    @property
    def event(self) -> Event:
        """The composition of all parts."""
        return ComposedEvent(events=tuple(part.event for part in self.parts))

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy rows: each part randomizes its own columns."""
        rows = _validate.batch("values", values, columns=sum(self.widths))
        return self._joined(
            part.randomize(block, source, clip=clip) for part, block in self._blocks(rows)
        )

    def variance(self, values: ArrayLike) -> FloatArray:
        """Variances, column by column."""
        return self._joined(part.variance(block) for part, block in self._blocks(values))

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Sum of the log-likelihoods of the parts."""
        pairs = zip(self._blocks(reports), self._blocks(values), strict=True)
        return np.asarray(sum(part.log_likelihood(sent, true) for (part, sent), (_, true) in pairs))

    def debias(self, reports: FloatArray) -> FloatArray:
        """Unbiased estimates of `target`."""
        return self._joined(part.debias(block) for part, block in self._blocks(reports))

    def target(self, values: ArrayLike) -> FloatArray:
        """The estimands of the parts, side by side."""
        return self._joined(part.target(block) for part, block in self._blocks(values))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Worst cases of all parts at once, and of each part alone."""
        firsts = [part.worst_cases()[0] for part in self.parts]
        here = self._joined(pair[0] for pair in firsts)
        there = self._joined(pair[1] for pair in firsts)
        cases, start = [(here, there)], 0
        for width in self.widths:
            other = here.copy()
            other[:, start : start + width] = there[:, start : start + width]
            cases.append((here, other))
            start += width
        return cases

    @classmethod
    def examples(cls) -> list[Self]:
        """The report of 000: a curve and a label."""
        label = RandomizedResponse(epsilon=0.2)
        return [cls(parts=(Laplace(epsilon=0.8, dimension=2), label))]

    def _blocks(self, rows: ArrayLike) -> list[tuple[Mechanism, FloatArray]]:
        """Each part with its columns, in the shape that it accepts."""
        table, found, start = np.asarray(rows), [], 0
        for part, width in zip(self.parts, self.widths, strict=True):
            block = table[:, start : start + width]
            single = np.ndim(part.worst_cases()[0][0]) == 1
            found.append((part, block[:, 0] if single else block))
            start += width
        return found

    @staticmethod
    def _joined(blocks: Iterable[FloatArray]) -> FloatArray:
        return np.concatenate([np.reshape(block, (len(block), -1)) for block in blocks], axis=1)


@dataclass(frozen=True, kw_only=True)
class Repeated(Mechanism, name="repeated"):
    """N independent reports, one for each of a person's N rows.

    Privacy:
        ε = N ε_1 for all rows of the person (basic composition), ε_1 for a single row.

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
        revive(self, "part", Mechanism.from_dict)
        if not isinstance(self.part, Mechanism) or self.part.worst_cases()[0][0].ndim != 2:
            raise InvalidParameter("part", "a mechanism of vectors", self.part)
        _validate.whole("times", self.times, most=1 << 16)
        object.__setattr__(self, "epsilon", rounded_up(compose([self.event]).epsilon))
        super().__post_init__()

    @property
    def event(self) -> Event:
        """The composition of all N reports."""
        return ComposedEvent(events=(self.part.event,), repeated=self.times)

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy rows of all people in one batch."""
        width = int(np.size(self.part.worst_cases()[0][0]))
        rows = _validate.batch("values", values, columns=self.times * width)
        return self._joined(self.part.randomize(self._single(rows), source, clip=clip))

    def variance(self, values: ArrayLike) -> FloatArray:
        """Variances, row by row."""
        return self._joined(self.part.variance(self._single(values)))

    @property
    def depth_shape(self) -> float | None:
        """N times the `depth_shape` of one report."""
        single = self.part.depth_shape
        return None if single is None else self.times * single

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Sum of the log-likelihoods of the rows."""
        true = np.broadcast_to(np.asarray(values), (len(reports), np.shape(values)[1]))
        single = self.part.log_likelihood(self._single(reports), self._single(true))
        return np.asarray(single.reshape(len(reports), -1).sum(axis=1))

    def debias(self, reports: FloatArray) -> FloatArray:
        """Unbiased estimates, row by row."""
        return self._joined(self.part.debias(self._single(reports)))

    def target(self, values: ArrayLike) -> FloatArray:
        """The estimands, row by row."""
        return self._joined(self.part.target(self._single(values)))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Worst cases of all rows at once, and of the first row alone."""
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

    def _single(self, rows: ArrayLike) -> FloatArray:
        table = np.asarray(rows, dtype=np.float64)
        return table.reshape(len(table) * self.times, -1)

    def _joined(self, rows: FloatArray) -> FloatArray:
        return rows.reshape(len(rows) // self.times, -1)
