"""Symmetric matrices as vectors of equal length: the triangle, off-diagonal entries times √2."""

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
    """The order in which the entries of a symmetric matrix are written, large axes first.

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
        """The symmetric matrix again; the last axis is the vector."""
        matrix = np.empty((*vector.shape[:-1], self.size, self.size))
        matrix[..., self.rows, self.columns] = vector / self._factors
        matrix[..., self.columns, self.rows] = vector / self._factors
        return matrix

    def variance(self, vector: FloatArray) -> FloatArray:
        """Variances of the matrix' entries, where those of the vector's are given."""
        return self.matrix(vector / self._factors)

    def products(self, functions: FloatArray) -> FloatArray:
        """φ_j ⊗ φ_k, symmetrized and of norm 1, on the product grid: (entries, T·T)."""
        left, right = functions[self.rows], functions[self.columns]
        outer = left[:, :, None] * right[:, None, :]
        both = (outer + outer.transpose(0, 2, 1)) / 2 * self._factors[:, None, None]
        return np.asarray(both.reshape(len(self.rows), -1))


def floored(matrix: FloatArray, floor: float = 0.0, *, inverted: bool = False) -> FloatArray:
    """The matrix, or its inverse, with eigenvalues raised to `floor` first (C9)."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, floor)
    return np.asarray((vectors * (1 / values if inverted else values)) @ vectors.T)


def lowered(matrix: FloatArray, most: float) -> FloatArray:
    """The nearest matrix without negative eigenvalues whose trace is at most `most`.

    Examples:
        >>> lowered(np.diag([3.0, 1.0, 1.0]), 3.5).round(3)
        array([[2.5, 0. , 0. ],
               [0. , 0.5, 0. ],
               [0. , 0. , 0.5]])
    """
    values, vectors = np.linalg.eigh(matrix)
    falling = np.maximum(values[::-1], 0.0)
    if falling.sum() <= most:
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
    # All are lowered alike, those that would fall below 0 to 0.
    by = (np.cumsum(falling) - most) / np.arange(1, falling.size + 1)
    return np.asarray((vectors * np.maximum(values - by.max(), 0.0)) @ vectors.T)
