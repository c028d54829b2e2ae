"""Symmetric matrices as vectors: what is where, and that lengths are kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.curves.matrices import Triangle, floored, svec_weights, unfold

ROOT = math.sqrt(2)
MATRIX = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])


def test_the_triangle_and_back() -> None:
    np.testing.assert_allclose(svec_weights(3), [1, ROOT, ROOT, 1, ROOT, 1], rtol=1e-15)
    np.testing.assert_array_equal(unfold(np.arange(1.0, 7.0), 3), MATRIX)


def test_entries_come_in_the_order_of_their_axes() -> None:
    """Axes 1, 4, 2: products 1, 4, 2 in the first row, 16 and 8 in the second, 4 in the third."""
    triangle = Triangle(np.array([1.0, 4.0, 2.0]))
    assert triangle.axes.tolist() == [16, 8, 4, 4, 2, 1]
    assert [*zip(triangle.rows.tolist(), triangle.columns.tolist(), strict=True)] == [
        (1, 1), (1, 2), (0, 1), (2, 2), (0, 2), (0, 0),
    ]  # fmt: skip
    vector = triangle.vector(MATRIX)
    np.testing.assert_allclose(vector, [4, 5 * ROOT, 2 * ROOT, 6, 3 * ROOT, 1], rtol=1e-15)
    assert np.linalg.norm(vector) == pytest.approx(np.linalg.norm(MATRIX), rel=1e-15)
    np.testing.assert_allclose(triangle.matrix(vector), MATRIX, rtol=1e-15)
    rows = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 4.0]])
    expected = [triangle.vector(np.outer(row, row)) for row in rows]
    np.testing.assert_allclose(triangle.squares(rows), expected, rtol=1e-15)


def test_products_of_functions_are_symmetric_and_of_norm_one() -> None:
    functions = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 3)))[0].T
    triangle = Triangle(np.array([1.0, 4.0, 2.0]))
    products = triangle.products(functions)
    assert products.shape == (6, 49)
    np.testing.assert_allclose(products @ products.T, np.eye(6), atol=1e-12)
    surface = np.tensordot(functions.T @ MATRIX, functions, axes=1)
    np.testing.assert_allclose(triangle.vector(MATRIX) @ products, surface.ravel(), atol=1e-12)


def test_eigenvalues_are_raised_to_the_floor() -> None:
    vectors = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    matrix = (vectors * [-2.0, 0.5, 4.0]) @ vectors.T
    for given, kept in (({}, [0.0, 0.5, 4.0]), ({"floor": 1.0}, [1.0, 1.0, 4.0])):
        np.testing.assert_allclose(
            floored(matrix, **given), (vectors * kept) @ vectors.T, atol=1e-12
        )
    inverse = floored(matrix, 0.25, inverted=True)
    np.testing.assert_allclose(inverse, (vectors * [4.0, 2.0, 0.25]) @ vectors.T, atol=1e-12)
