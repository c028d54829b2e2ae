"""Matrix products that do to each row the same, to the last bit, whatever rows stand beside it.

A library multiplies many rows in another order than one, so that a coefficient of a curve would
depend on the chunk it came in, and with it, after rounding, an exact sum of whole numbers. Here
both factors are cut into two pieces of so few bits that every sum of their products is exact
(Ozaki, Ogita, Oishi & Rump 2012); what is left to round is one addition for each entry.
"""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray, IntArray

_MANTISSA = 53
_CACHED = 1 << 14  # numbers that are cut at a time


def row_product(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """rows (n, T) @ matrix (T, J), each row by itself; right to 2^-44 or so of its largest terms.

    Examples:
        >>> rows, matrix = np.random.default_rng(0).normal(size=(2, 100, 30))
        >>> whole = row_product(rows, matrix.T)
        >>> all((row_product(rows[k : k + 1], matrix.T) == whole[k]).all() for k in range(100))
        True
    """
    bits = (_MANTISSA - (matrix.shape[0] - 1).bit_length()) // 2  # 2^bits · 2^bits · T ≤ 2^53
    across, top, rest = _pieces(matrix, bits, axis=0)
    found = np.empty((len(rows), matrix.shape[1]))
    step = max(1, _CACHED // matrix.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):  # as the plain product would be infinite
        for start in range(0, len(rows), step):
            down, high, low = _pieces(rows[start : start + step], bits, axis=1)
            product = high @ top + (high @ rest + low @ top)
            found[start : start + step] = np.ldexp(product, down + across)
    return found


def _pieces(values: FloatArray, bits: int, *, axis: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Powers of 2 along the axis, and entries over them as two addends of `bits` bits each."""
    largest = np.abs(values).max(axis=axis, keepdims=True, initial=0.0)
    exponent = np.frexp(largest)[1]
    high = np.ldexp(values, -exponent)
    low = high.copy()
    np.rint(np.multiply(high, 2.0**bits, out=high), out=high)
    high *= 2.0**-bits
    low -= high
    np.rint(np.multiply(low, 4.0**bits, out=low), out=low)
    low *= 4.0**-bits
    return exponent, high, low
