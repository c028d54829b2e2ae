"""What all noise on a curator's vector has in common: axes, a lattice, a stated law."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source
from dpfda.noise.lattice import whole_steps
from dpfda.noise.law import NoiseLaw

ROUNDING_STEPS = 2
"""How far rounding may move two neighboring coordinates apart: one step for the rounding itself,
and room for the floating-point error of the division and of whatever computed the value."""
LEAST_STEP, MOST_STEP = 1e-150, 1e140
"""Range of a lattice step, and of the sensitivity and axes that it is made of. Inside it, steps,
scales, variances and 2^52 steps are normal floats. Below it they lose digits and end as 0, where
the sign of a released zero is that of the value without noise; above it they overflow."""


@dataclass(frozen=True, kw_only=True)
class Additive(Mechanism):
    """Integer noise on a lattice, added to a vector whose neighbors lie close to each other.

    A subclass says how large the noise is (`scales`), draws it (`_integers`), and in which norm
    neighbors are close (`reach`); rounding, adding and worst cases are written once, here.

    Attributes:
        sensitivity: S; the caller answers for ``reach(h) <= S`` for neighbors that differ by h.
        axes: the a_j, all above 0; one entry for each coordinate.
    """

    model = "central"
    kind: ClassVar[Literal["laplace", "gaussian", "spherical"]]
    """Which law the noise has."""
    steps: ClassVar[int]
    """Lattice steps in one scale of the noise."""

    sensitivity: float
    axes: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        _in_range("sensitivity", _validate.positive("sensitivity", self.sensitivity))
        object.__setattr__(self, "axes", _checked_axes(self.axes))
        with np.errstate(all="ignore"):  # what overflows is refused
            steps = self.lattice_step
        for extreme in (steps.min(), steps.max()):
            _in_range("noise", float(extreme))

    @property
    @abstractmethod
    def scales(self) -> FloatArray:
        """Scale of the noise on each coordinate, enlarged by what rounding costs (C20)."""

    @property
    def law(self) -> NoiseLaw:
        """Everything public about the noise, as if it were continuous."""
        return NoiseLaw(law=self.kind, scales=self.scales)

    def reach(self, difference: FloatArray) -> float:
        """How far apart two vectors are, in the norm that `sensitivity` is measured in: ‖h/a‖₂."""
        return float(np.linalg.norm(difference / np.asarray(self.axes)))

    @abstractmethod
    def _integers(self, rows: int, source: Source) -> IntArray:
        """Noise in lattice steps, shape (rows, J)."""

    @cached_property
    def lattice_step(self) -> FloatArray:
        """Width of the lattice along each coordinate."""
        return self.scales / self.steps

    def lattice(self, values: FloatArray, *, clip: bool = True) -> IntArray:
        """Vectors as whole numbers of steps."""
        return whole_steps(values, self.lattice_step, clip=clip)

    def randomize(self, values: Any, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy vectors, shape (n, J); each row is a release of its own."""
        rows = _validate.batch("values", values, columns=len(self.axes))
        noise = self._integers(len(rows), source)
        return np.asarray((self.lattice(rows, clip=clip) + noise) * self.lattice_step)

    @property
    def depth_shape(self) -> float:
        """J where the density falls like e^{-‖x‖}; J/2 for Gaussian noise."""
        return len(self.axes) / (2 if self.kind == "gaussian" else 1)

    def variance(self, values: Any) -> FloatArray:
        """That of the continuous law; the lattice changes it by a relative 2^-40 at most."""
        return np.broadcast_to(self.law.variance, np.shape(values)).copy()

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """The whole difference in one coordinate, spread over all, and differently over each."""
        size = len(self.axes)
        first, spread = np.zeros((1, size)), self._worst_direction()[None, :]
        first[0, 0] = self.sensitivity * self.axes[0]
        ways = [spread, spread * np.linspace(-1.0, 1.0, size)] if size > 2 else [spread]
        halves = [way * (self.sensitivity / self.reach(way) / 2) for way in ways]
        return [(first, np.zeros_like(first)), *((half, -half) for half in halves)]

    def _worst_direction(self) -> FloatArray:
        return np.asarray(self.axes)

    def _distance(self, reports: FloatArray, values: Any) -> FloatArray:
        """Reports minus values, in scales."""
        reported, true = (
            np.rint(np.asarray(x) / self.lattice_step).astype(np.int64) for x in (reports, values)
        )
        return np.asarray((reported - true) / self.steps)


def _checked_axes(axes: Any) -> tuple[float, ...]:
    """Public axes as a tuple of finite numbers above 0."""
    checked = tuple(map(float, axes))
    if not checked:
        raise InvalidParameter("axes", "at least one number", axes)
    for extreme in (np.min(checked), np.max(checked)):  # NaN is the least of any
        _in_range("axes", _validate.positive("axes", float(extreme)))
    return checked


def _in_range(name: str, value: float) -> None:
    """Refuse a number that is outside the range of lattice steps; NaN is in no range."""
    if not LEAST_STEP <= value <= MOST_STEP:
        rule = f"from {LEAST_STEP:g} to {MOST_STEP:g} (choose other units of the data)"
        raise InvalidParameter(name, rule, value)
