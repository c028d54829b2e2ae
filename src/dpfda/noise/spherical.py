"""Spherical Laplace noise on the integer lattice, exact: P(k) ∝ e^{-‖k‖₂/s} for k in Z^d.

By rejection from independent discrete Laplace numbers of scale t ≥ √d s: since ‖k‖₁ ≤ √d ‖k‖₂, the
ratio e^{-‖k‖₂/s + ‖k‖₁/t} never exceeds 1, and a proposal is accepted with that probability. The
coin compares a random word with the ratio in floating point, with a margin a thousand times the
largest rounding error; a word inside the margin (one in 2^30) is extended and compared in exact
arithmetic. The result has the required law for every floating-point rounding.

About one proposal in 1.3, 2.2, 6, 20 is accepted for d = 2, 4, 8, 12. Blocks of twelve coordinates
are cheap, and their variance is within 8 % of that of one large block.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.noise.discrete import discrete_laplace
from dpfda.noise.inversion import refined
from dpfda.noise.source import Source

MOST_DIMENSIONS = 16
_LARGEST_SCALE = 1 << 20  # ‖k‖² stays below 2^53 for |k| < 2^24.5 = 22 scales of 2^20, exactly
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
    scale = _validate.whole("scale", scale, most=_LARGEST_SCALE)
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
        kept = _keep(k.reshape(-1, dimension), scale, proposal_scale, source).reshape(-1, tries)
        done = np.flatnonzero(kept.any(axis=1))
        result[missing[done]] = k[done, kept[done].argmax(axis=1)]
        missing = np.delete(missing, done)
    return result


def _keep(k: IntArray, scale: int, proposal_scale: int, source: Source) -> FloatArray:
    """Coins with probability e^{-‖k‖₂/scale + ‖k‖₁/proposal_scale}."""
    words = source.words(len(k))
    numbers = k.astype(np.float64)
    # Each term is below 2^11 and correct to a few units in the last place, so the error of the #
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
    """Share of proposals kept: ratio of the two normalizing constants for a fine lattice."""
    log_ball = math.log(2) + dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2)
    log_box = dimension * math.log(2 * math.sqrt(dimension))
    return math.exp(log_ball + math.lgamma(dimension) - log_box)
