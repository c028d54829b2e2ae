"""Public lattices: the only places where released numbers live.

A float carries its history in its low-order bits (Mironov 2012). So values are first rounded to
the multiples of a public power of two, noise is drawn as an integer multiple of the same step, and
their sum is an integer: nothing but the sum can be read off the result.
"""

from __future__ import annotations

import math

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData

# Noise scales are at least 2^20 steps, so rounding costs under one part in a million.
_FINENESS = 20
LARGEST_STEPS = 1 << 51
"""How far from 0 a float still says on which lattice point it lies, to a quarter of a step."""


def fine_step(scale: float, *, bits: int = _FINENESS, most: float = math.inf) -> float:
    """A power of two that fits at least 2^bits times into `scale`, and is at most `most`.

    Examples:
        >>> fine_step(0.75, bits=2)
        0.125
    """
    _, exponent = math.frexp(_validate.positive("scale", scale))
    return min(math.ldexp(1.0, exponent - 1 - bits), most)


def whole_steps(values: FloatArray, step: FloatArray | float, *, clip: bool = False) -> IntArray:
    """Private values of any size as whole numbers of steps, the nearest ones.

    Beyond `LARGEST_STEPS` the division errs by more than rounding is accounted for, and further out
    an integer overflows: neighbors would no longer be neighbors. Such values are refused, or
    clipped if the caller asked for it.

    Examples:
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
