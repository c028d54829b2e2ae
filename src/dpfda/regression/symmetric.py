"""Symmetric matrices: as vectors of the same norm, and inverted with a floor on eigenvalues."""

from __future__ import annotations

import math

import numpy as np

from dpfda._validate import FloatArray


def svec_weights(dimension: int) -> FloatArray:
    """1 on the diagonal, √2 off it: |svec M|₂ = |M|_F.

    Example:
        >>> svec_weights(2).round(3)
        array([1.   , 1.414, 1.   ])
    """
    rows, columns = np.triu_indices(dimension)
    return np.where(rows == columns, 1.0, math.sqrt(2))


def upper(matrix: FloatArray) -> FloatArray:
    """The upper triangle, row by row."""
    return matrix[np.triu_indices(len(matrix))]


def unfold(triangle: FloatArray, dimension: int) -> FloatArray:
    """The symmetric matrix with this upper triangle.

    Example:
        >>> unfold(np.array([1.0, 2.0, 3.0]), 2)
        array([[1., 2.],
               [2., 3.]])
    """
    matrix = np.zeros((dimension, dimension))
    matrix[np.triu_indices(dimension)] = triangle
    return matrix + np.triu(matrix, 1).T


def floored_inverse(matrix: FloatArray, floor: float) -> FloatArray:
    """The inverse with every eigenvalue below `floor` raised to it (C9; post-processing)."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T)
