"""Symmetric matrices as vectors of equal length: the triangle, off-diagonal entries times √2."""

from __future__ import annotations

import math

import numpy as np

from dpfda._validate import FloatArray, IntArray


class Triangle:
    """The order in which the entries of a symmetric matrix are written, large axes first.

    Example:
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
        self._factors = np.where(self.rows == self.columns, 1.0, math.sqrt(2))

    def vector(self, matrix: FloatArray) -> FloatArray:
        """Entries with ‖vector‖₂ = ‖matrix‖_F; the last two axes are the matrix."""
        return np.asarray(matrix[..., self.rows, self.columns] * self._factors)

    def squares(self, rows: FloatArray) -> FloatArray:
        """uuᵀ of each row u, as vectors."""
        return self.vector(rows[:, :, None] * rows[:, None, :])

    def matrix(self, vector: FloatArray) -> FloatArray:
        """The symmetric matrix again."""
        matrix = np.empty((self.size, self.size))
        matrix[self.rows, self.columns] = vector / self._factors
        matrix[self.columns, self.rows] = vector / self._factors
        return matrix

    def products(self, functions: FloatArray) -> FloatArray:
        """φ_j ⊗ φ_k, symmetrised and of norm 1, on the product grid: (entries, T·T)."""
        left, right = functions[self.rows], functions[self.columns]
        outer = left[:, :, None] * right[:, None, :]
        both = (outer + outer.transpose(0, 2, 1)) / 2 * self._factors[:, None, None]
        return np.asarray(both.reshape(len(self.rows), -1))


def floored(matrix: FloatArray, floor: float = 0.0) -> FloatArray:
    """The matrix with eigenvalues raised to `floor` at least."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)
