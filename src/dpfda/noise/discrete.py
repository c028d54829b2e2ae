"""Discrete Laplace, Gaussian and spherical Laplace noise, exact and vectorized.

*Lattices.* The low-order bits of a floating-point result reveal its operands (Mironov 2012). Values
are therefore first rounded to multiples of a public power of two, noise is drawn as an integer
multiple of the same step, and the result is an integer that reveals only the sum.

*Geometric numbers by digits.* If P(G = g) ∝ q^g, then the digits of G in any base are independent,
digit i having P(d) ∝ q^{d base^i}. A geometric number of any size is therefore a few table
look-ups, each an exact inversion (`Thresholds`). The last digit is unbounded; beyond the end of its
table the distribution is memoryless, so the length of the table is added and the digit is drawn
again.

*Gaussian by rejection* from discrete Laplace (Canonne, Kamath & Steinke 2020, Algorithm 3). The
acceptance probability e^{-N/(2σ²)}, N an integer, is a product over the digits of N, so the
coin is again a few exact table coins.

*Spherical Laplace noise*, P(k) ∝ e^{-‖k‖₂/s} for k in Z^d, by rejection from independent discrete
Laplace numbers of scale t ≥ √d s: since ‖k‖₁ ≤ √d ‖k‖₂, the ratio e^{-‖k‖₂/s + ‖k‖₁/t} never
exceeds 1, and a proposal is accepted with that probability. The coin compares a random word with
the ratio in floating point, with a margin a thousand times the largest rounding error; a word
inside the margin (one in 2^30) is extended and compared in exact arithmetic. The result has the
required law for every floating-point rounding.

About one proposal in 1.3, 2.2, 6, 20 is accepted for d = 2, 4, 8, 12. Blocks of twelve coordinates
are cheap, and their variance is within 8 % of that of one large block.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData
from dpfda.noise.inversion import Thresholds, refined
from dpfda.noise.source import Source
from dpfda.noise.uniform import coin_signs

Integers = npt.NDArray[np.int64]

_DIGIT_BITS = 8
_BASE = 1 << _DIGIT_BITS
_LARGEST_SCALE = 1 << 48  # keeps |noise| below 2^63 unless a variable exceeds 2^14 scales
_LARGEST_SIGMA = 1 << 25  # keeps (|y| - σ)² below 2^64 for |y| < 128 σ


def discrete_laplace(size: int, *, scale: int, source: Source) -> Integers:
    """`size` integers with P(k) ∝ e^{-|k|/scale}, for an integer scale ≥ 1.

    Examples:
        >>> from dpfda.noise import SimulationSource
        >>> discrete_laplace(5, scale=10, source=SimulationSource(0)).shape
        (5,)
    """
    scale = _validate.whole("scale", scale, most=_LARGEST_SCALE)
    magnitude = _geometric(size, scale, source)
    signed = magnitude * coin_signs(size, source)
    # Zero occurs with both signs: one of the two is rejected and drawn again.
    again = (magnitude == 0).nonzero()[0]
    if again.size:
        again = again[coin_signs(again.size, source) < 0]
        if again.size:
            signed[again] = discrete_laplace(again.size, scale=scale, source=source)
    return signed


def discrete_gaussian(size: int, *, sigma: int, source: Source) -> Integers:
    """`size` integers with P(k) ∝ e^{-k²/(2 sigma²)}, for an integer sigma ≥ 1.

    Examples:
        >>> from dpfda.noise import SimulationSource
        >>> discrete_gaussian(5, sigma=10, source=SimulationSource(0)).shape
        (5,)
    """
    sigma = _validate.whole("sigma", sigma, most=_LARGEST_SIGMA)
    result = np.empty(size, dtype=np.int64)
    missing = np.arange(size)
    while missing.size:
        proposal = discrete_laplace(missing.size, scale=sigma, source=source)
        accepted = _gaussian_coin(np.abs(proposal), sigma, source)
        result[missing[accepted]] = proposal[accepted]
        missing = missing[~accepted]
    return result


def _geometric(size: int, scale: int, source: Source) -> Integers:
    """Integers g ≥ 0 with P(g) ∝ e^{-g/scale}, digit by digit."""
    *digits, last = _geometric_digits(scale)
    total = np.zeros(size, dtype=np.int64)
    for position, table in enumerate(digits):
        total += table.count_below(size, source) << (_DIGIT_BITS * position)
    return total + (_unbounded_digit(size, last, source) << (_DIGIT_BITS * len(digits)))


def _unbounded_digit(size: int, table: Thresholds, source: Source) -> Integers:
    digit = table.count_below(size, source)
    beyond = (digit == _BASE).nonzero()[0]
    if beyond.size:
        digit[beyond] += _unbounded_digit(beyond.size, table, source)
    return digit


@lru_cache(maxsize=256)
def _geometric_digits(scale: int) -> tuple[Thresholds, ...]:
    """The tables of a geometric variable's digits, the last one for an unbounded digit."""
    bounded = 0
    while _BASE ** (bounded + 1) <= scale:
        bounded += 1
    tables = [_digit_table(_BASE**position, scale, closed=True) for position in range(bounded)]
    return (*tables, _digit_table(_BASE**bounded, scale, closed=False))


def _digit_table(step: int, scale: int, *, closed: bool) -> Thresholds:
    """P(digit < k) = (1 - ρ^k) / (1 - ρ^base), ρ = e^{-step/scale}; no denominator if unbounded."""

    def cumulative(context: Context) -> list[Decimal]:
        powers = _powers(step, scale, context)
        total = 1 - powers[-1] if closed else Decimal(1)
        last = _BASE if closed else _BASE + 1
        return [(1 - power) / total for power in powers[1:last]]

    return Thresholds(cumulative)


def _gaussian_coin(magnitude: Integers, sigma: int, source: Source) -> npt.NDArray[np.bool_]:
    """True with probability e^{-(magnitude - sigma)² / (2 sigma²)}."""
    distance = np.abs(magnitude - sigma)
    heads = distance < 1 << 32  # otherwise the probability is below e^{-8000}
    exponent = distance.astype(np.uint64) ** np.uint64(2)
    tables = _coin_digits(sigma)
    alive = heads.nonzero()[0]
    for position in reversed(range(len(tables))):  # most significant digit first: it decides most
        digit = (exponent[alive] >> np.uint64(_DIGIT_BITS * position)) & np.uint64(_BASE - 1)
        tossed = digit.nonzero()[0]  # a digit 0 contributes e^0 = 1: no coin
        if not tossed.size:
            continue
        lost = alive[tossed][~tables[position].exceed_uniform(_descending(digit[tossed]), source)]
        heads[lost] = False
        alive = alive[heads[alive]]
    return heads


def _descending(digit: npt.NDArray[np.uint64]) -> Integers:
    """Position of e^{-digit ...} in a table of increasing thresholds."""
    return (_BASE - 1) - digit.astype(np.int64)


@lru_cache(maxsize=64)
def _coin_digits(sigma: int) -> tuple[Thresholds, ...]:
    """For each digit of N: the coins e^{-n base^i / (2σ²)}, n = base-1, ..., 1 (increasing)."""

    def table(position: int) -> Thresholds:
        def coins(context: Context) -> list[Decimal]:
            return _powers(_BASE**position, 2 * sigma * sigma, context)[_BASE - 1 : 0 : -1]

        return Thresholds(coins)

    return tuple(table(position) for position in range(64 // _DIGIT_BITS))


def _powers(numerator: int, denominator: int, context: Context) -> list[Decimal]:
    """ρ^0, ..., ρ^base for ρ = e^{-numerator/denominator}."""
    ratio = (-Decimal(numerator) / Decimal(denominator)).exp(context)
    powers = [Decimal(1)]
    for _ in range(_BASE):
        powers.append(powers[-1] * ratio)
    return powers


# Noise scales are at least 2^20 steps, so rounding costs under one part in a million.
_FINENESS = 20
LARGEST_STEPS = 1 << 51
"""Largest distance from 0 at which a float determines its lattice point to a quarter of a step."""


def fine_step(scale: float, *, bits: int = _FINENESS, most: float = math.inf) -> float:
    """A power of two that is at most `most` and at most `scale` / 2^bits.

    Examples:
        >>> fine_step(0.75, bits=2)
        0.125
    """
    _, exponent = math.frexp(_validate.positive("scale", scale))
    return min(math.ldexp(1.0, exponent - 1 - bits), most)


def whole_steps(values: FloatArray, step: FloatArray | float, *, clip: bool = False) -> IntArray:
    """Round private values of any size to the nearest integer numbers of steps.

    Above `LARGEST_STEPS` the error of the division exceeds the margin for rounding, and still
    larger values overflow 64-bit integers. The results for neighbors could then differ by more than
    the sensitivity. Such values are refused, or clipped if the caller asks for it.

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


MOST_DIMENSIONS = 16
# ‖k‖² stays below 2^53, and thus exact, for |k| < 2^24.5, which is 22 scales of 2^20.
_LARGEST_SPHERICAL_SCALE = 1 << 20
_MARGIN = 2.0**-30
_WORD = 2.0**-64


def spherical_laplace(size: int, *, dimension: int, scale: int, source: Source) -> IntArray:
    """`size` integer vectors with P(k) ∝ e^{-‖k‖₂/scale}, shape (size, dimension).

    Examples:
        >>> from dpfda.noise import SimulationSource
        >>> spherical_laplace(5, dimension=3, scale=100, source=SimulationSource(0)).shape
        (5, 3)
    """
    dimension = _validate.whole("dimension", dimension, most=MOST_DIMENSIONS)
    scale = _validate.whole("scale", scale, most=_LARGEST_SPHERICAL_SCALE)
    if dimension == 1:
        return discrete_laplace(size, scale=scale, source=source)[:, None]
    proposal_scale = math.isqrt(dimension * scale * scale - 1) + 1  # √d s, rounded up
    result = np.empty((size, dimension), dtype=np.int64)
    missing = np.arange(size)
    tries = math.ceil(1 / _acceptance(dimension)) + 1
    while missing.size:
        count = missing.size * tries
        k = discrete_laplace(count * dimension, scale=proposal_scale, source=source)
        k = k.reshape(missing.size, tries, dimension)
        heads = _accepted(k.reshape(-1, dimension), scale, proposal_scale, source)
        accepted = heads.reshape(-1, tries)
        done = np.flatnonzero(accepted.any(axis=1))
        result[missing[done]] = k[done, accepted[done].argmax(axis=1)]
        missing = np.delete(missing, done)
    return result


def _accepted(k: IntArray, scale: int, proposal_scale: int, source: Source) -> FloatArray:
    """True for each row k with probability e^{-‖k‖₂/scale + ‖k‖₁/proposal_scale}."""
    words = source.words(len(k))
    numbers = k.astype(np.float64)
    # Each term is below 2^11 and correct to a few units in the last place, so the error of the
    # exponent, and of the probability, is below 2^-38.
    exponent = np.sqrt((numbers**2).sum(axis=1)) / scale - np.abs(numbers).sum(axis=1) / (
        proposal_scale
    )
    difference = np.exp(-exponent) - words * _WORD
    heads = np.asarray(difference > 0)
    unsafe = (np.abs(difference) < _MARGIN) | (np.abs(numbers).max(axis=1) > 2.0**30)
    for row in np.flatnonzero(unsafe):
        heads[row] = _exact_coin(k[row].tolist(), scale, proposal_scale, int(words[row]), source)
    return heads


def _exact_coin(k: list[int], scale: int, proposal_scale: int, word: int, source: Source) -> bool:
    square, total = sum(x * x for x in k), sum(abs(x) for x in k)

    def chance(context: Context) -> list[Decimal]:
        exponent = Decimal(square).sqrt() / scale - Decimal(total) / proposal_scale
        return [(-exponent).exp()]

    return not refined(chance, word, source)


def _acceptance(dimension: int) -> float:
    """Acceptance probability: ratio of the two normalizing constants on a fine lattice."""
    log_ball = math.log(2) + dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2)
    log_box = dimension * math.log(2 * math.sqrt(dimension))
    return math.exp(log_ball + math.lgamma(dimension) - log_box)
