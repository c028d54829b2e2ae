"""Symmetric matrices as vectors, and matrix products whose rows do not affect each other.

A symmetric matrix becomes a vector of equal norm: its upper triangle, with off-diagonal entries
times √2.

Libraries add products in an order that depends on the number of rows. A coefficient of a curve
would then depend on its chunk, and so would exact sums of rounded coefficients. Here both factors
are split into two parts with so few bits that every sum of products is exact (Ozaki, Ogita, Oishi &
Rump 2012). Only one addition per entry is rounded.
"""

from __future__ import annotations

import math

import numpy as np

from dpfda._validate import FloatArray, IntArray


def svec_weights(size: int) -> FloatArray:
    """1 on the diagonal, √2 off it, along the upper triangle: |svec M|₂ = |M|_F.

    Examples:
        >>> svec_weights(2).round(3)
        array([1.   , 1.414, 1.   ])
    """
    rows, columns = np.triu_indices(size)
    return np.where(rows == columns, 1.0, math.sqrt(2))


def unfold(triangle: FloatArray, size: int) -> FloatArray:
    """The symmetric matrix with this upper triangle.

    Examples:
        >>> unfold(np.array([1.0, 2.0, 3.0]), 2)
        array([[1., 2.],
               [2., 3.]])
    """
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return matrix + np.triu(matrix, 1).T


class Triangle:
    """The order of the entries of a symmetric matrix as a vector, largest axes first.

    Examples:
        >>> Triangle(np.ones(2)).vector(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3)
        array([1.   , 2.828, 3.   ])
    """

    def __init__(self, axes: FloatArray) -> None:
        rows, columns = np.triu_indices(axes.size)
        products = axes[rows] * axes[columns]
        order = np.argsort(-products, kind="stable")
        self.size = axes.size
        self.rows: IntArray = rows[order]
        self.columns: IntArray = columns[order]
        self.axes: FloatArray = products[order]
        self._factors = svec_weights(axes.size)[order]

    def vector(self, matrix: FloatArray) -> FloatArray:
        """Entries with ‖vector‖₂ = ‖matrix‖_F; the last two axes are the matrix."""
        return np.asarray(matrix[..., self.rows, self.columns] * self._factors)

    def squares(self, rows: FloatArray) -> FloatArray:
        """uuᵀ of each row u, as vectors."""
        return self.vector(rows[:, :, None] * rows[:, None, :])

    def matrix(self, vector: FloatArray) -> FloatArray:
        """The symmetric matrix of a vector, which is the last axis."""
        matrix = np.empty((*vector.shape[:-1], self.size, self.size))
        matrix[..., self.rows, self.columns] = vector / self._factors
        matrix[..., self.columns, self.rows] = vector / self._factors
        return matrix

    def variance(self, vector: FloatArray) -> FloatArray:
        """Variances of the entries of the matrix, from those of the vector."""
        return self.matrix(vector / self._factors)

    def products(self, functions: FloatArray) -> FloatArray:
        """φ_j ⊗ φ_k, symmetrized and of norm 1, on the product grid: (entries, T·T)."""
        left, right = functions[self.rows], functions[self.columns]
        outer = left[:, :, None] * right[:, None, :]
        both = (outer + outer.transpose(0, 2, 1)) / 2 * self._factors[:, None, None]
        return np.asarray(both.reshape(len(self.rows), -1))


def floored(matrix: FloatArray, floor: float = 0.0, *, inverted: bool = False) -> FloatArray:
    """The matrix, or its inverse, after eigenvalues were raised to `floor` (correction C9)."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, floor)
    return np.asarray((vectors * (1 / values if inverted else values)) @ vectors.T)


_MANTISSA = 53
_CACHED = 1 << 14  # numbers that are split at once


def row_product(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """rows (n, T) @ matrix (T, J), row by row; relative error about 2^-44.

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
    # infinite where the plain product is infinite
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), step):
            down, high, low = _pieces(rows[start : start + step], bits, axis=1)
            product = high @ top + (high @ rest + low @ top)
            found[start : start + step] = np.ldexp(product, down + across)
    return found


def _pieces(values: FloatArray, bits: int, *, axis: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Exponents of powers of 2 along the axis, and scaled entries as sums of two short parts."""
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
