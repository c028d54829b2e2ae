"""Public lattices: the only places where released numbers live.

A float carries its history in its low-order bits (Mironov 2012). So values are first rounded to
the multiples of a public power of two, noise is drawn as an integer multiple of the same step, and
their sum is an integer: nothing but the sum can be read off the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter

# Noise scales are at least 2^20 steps, so rounding costs under one part in a million.
_FINENESS = 20
LARGEST_STEPS = 1 << 51
"""How far from 0 a float still says on which lattice point it lies, to a quarter of a step."""


@dataclass(frozen=True)
class Lattice:
    """The multiples of `step`, a power of two.

    Example:
        >>> lattice = Lattice.finer_than(0.75, bits=2)
        >>> lattice.step, lattice.round(np.array([0.3, -1.0]))
        (0.125, array([ 2, -8]))
    """

    step: float

    def __post_init__(self) -> None:
        mantissa, _ = math.frexp(_validate.positive("step", self.step))
        if mantissa != 0.5:
            raise InvalidParameter("step", "a power of two", self.step)

    @classmethod
    def finer_than(cls, scale: float, *, bits: int = _FINENESS, most: float = math.inf) -> Lattice:
        """The lattice with at least 2^bits steps in `scale`, and a step of at most `most`."""
        _, exponent = math.frexp(_validate.positive("scale", scale))
        return cls(min(math.ldexp(1.0, exponent - 1 - bits), most))

    def round(self, values: FloatArray) -> IntArray:
        """The nearest lattice points, as integers. Division by a power of two is exact."""
        return np.rint(values / self.step).astype(np.int64)

    def values(self, integers: IntArray) -> FloatArray:
        """Lattice points as floats."""
        return np.asarray(integers, dtype=np.float64) * self.step

    def steps_above(self, length: Fraction) -> int:
        """The smallest whole number of steps that is no shorter than `length`, exactly."""
        return math.ceil(length / Fraction(self.step))


def whole_steps(values: FloatArray, step: FloatArray | float, *, clip: bool = False) -> IntArray:
    """Private values of any size as whole numbers of steps, the nearest ones.

    Beyond `LARGEST_STEPS` the division errs by more than rounding is accounted for, and further out
    an integer overflows: neighbors would no longer be neighbors. Such values are refused, or
    clipped if the caller asked for it.

    Example:
        >>> whole_steps(np.array([0.3, -1.0]), 0.25)
        array([ 1, -4])
    """
    with np.errstate(over="ignore"):  # a quotient of infinity is refused or clipped as well
        steps = np.rint(values / step)
    if clip:
        steps = np.clip(steps, -LARGEST_STEPS, LARGEST_STEPS)
    elif np.any(np.abs(steps) > LARGEST_STEPS):
        raise InvalidData("values", "within 2^51 lattice steps of 0 (or pass clip=True)")
    return np.asarray(steps.astype(np.int64))
