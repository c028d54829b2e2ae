"""What every basis must do, and what each one promises."""

import json

import numpy as np
import pytest
from scipy.interpolate import BSpline

from dpfda.curves import (
    Basis,
    BSplineBasis,
    CosineBasis,
    CustomBasis,
    FourierBasis,
    IdentityBasis,
    SmoothBasis,
)
from dpfda.curves.bases import demmler_reinsch
from dpfda.errors import InvalidData, InvalidParameter


def test_the_registry_holds_the_shipped_bases():
    assert {"bspline", "cosine", "custom", "fourier", "identity"} <= set(Basis.members())


def test_survives_json_and_hashes_alike(basis):
    twin = Basis.from_dict(json.loads(json.dumps(basis.to_dict())))
    assert twin == basis
    assert hash(twin) == hash(basis)


def test_evaluates_on_points_of_any_shape(functional_basis):
    low, high = functional_basis.domain_range
    points = np.linspace(low, high, 12)
    flat = functional_basis.evaluate(points)
    assert flat.shape == (12, functional_basis.n_basis)
    np.testing.assert_array_equal(
        functional_basis.evaluate(points.reshape(3, 4)).reshape(12, -1), flat
    )
    assert functional_basis.evaluate([]).shape == (0, functional_basis.n_basis)


def test_gram_agrees_with_dense_quadrature(functional_basis):
    low, high = functional_basis.domain_range
    n = 400_000
    middle = low + (np.arange(n) + 0.5) * (high - low) / n
    values = functional_basis.evaluate(middle)
    dense = values.T @ values * (high - low) / n
    # The midpoint rule is off by h²/24 ∫f'', below 1e-9 here, and for steps (order 1) by one
    # cell at each of two knots, (high - low)/n each.
    tolerance = 2 * (high - low) / n if getattr(functional_basis, "order", 4) == 1 else 1e-8
    np.testing.assert_allclose(functional_basis.gram(), dense, atol=tolerance)


def test_gram_is_shared_and_read_only():
    gram = BSplineBasis().gram()
    assert gram is BSplineBasis().gram()
    with pytest.raises(ValueError, match="read-only"):
        gram[0, 0] = 2.0


def test_refuses_points_outside_the_domain(functional_basis):
    low, high = functional_basis.domain_range
    with pytest.raises(InvalidData, match="inside the domain"):
        functional_basis.evaluate([low, high + 0.01 * (high - low)])
    with pytest.raises(InvalidData, match="inside the domain"):
        functional_basis.evaluate([np.nan])


def test_forgives_the_rounding_of_a_last_grid_point():
    end = BSplineBasis().evaluate([1 + 1e-12])
    np.testing.assert_array_equal(end, [[0, 0, 0, 1]])


def test_bsplines_equal_scipys_on_the_textbook_knots():
    t = np.linspace(2, 5, 40)
    knots = np.r_[[2.0] * 4, 3.0, 4.0, [5.0] * 4]
    expected = np.column_stack([BSpline(knots, row, 3)(t) for row in np.eye(6)])
    basis = BSplineBasis(n_basis=6, domain_range=(2, 5))
    np.testing.assert_allclose(basis.evaluate(t), expected, atol=1e-14)
    np.testing.assert_allclose(basis.evaluate(t).sum(axis=1), 1.0)
    assert BSplineBasis(knots=(3, 4), domain_range=(2, 5)).n_basis == 6


def test_fourier_orders_sine_before_cosine_and_stays_orthonormal():
    basis = FourierBasis(n_basis=5, domain_range=(0, 2))
    t = np.array([0.3])
    s = 2 * np.pi * t / 2
    expected = [1 / np.sqrt(2), np.sin(s)[0], np.cos(s)[0], np.sin(2 * s)[0], np.cos(2 * s)[0]]
    np.testing.assert_allclose(basis.evaluate(t)[0], expected)


def test_cosine_is_the_basis_of_the_question_reports():
    t = np.linspace(0, 1, 7)
    expected = np.column_stack([np.ones(7), np.sqrt(2) * np.cos(np.pi * t)])
    np.testing.assert_allclose(CosineBasis(n_basis=2).evaluate(t), expected)


def test_custom_functions_are_tabulated_exactly_at_the_table():
    t = np.linspace(0, 2, 33)
    basis = CustomBasis.from_functions([np.ones_like, np.exp], domain_range=(0, 2), n_points=33)
    np.testing.assert_allclose(basis.evaluate(t), np.column_stack([np.ones(33), np.exp(t)]))
    assert "points" not in repr(basis)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BSplineBasis(n_basis=3), "n_basis must be an integer, 4 or above, got 3"),
        (lambda: BSplineBasis(order=0), "order must be"),
        (lambda: BSplineBasis(knots=(0.5, 0.5)), "knots must be increasing"),
        (lambda: BSplineBasis(knots=(0.0, 0.5)), "knots must be increasing"),
        (lambda: BSplineBasis(knots=(0.5,), n_basis=6), "n_basis must be an integer from 5 to 5"),
        (lambda: FourierBasis(domain_range=(1, 1)), "domain_range must be a pair"),
        (lambda: CosineBasis(n_basis=0), "n_basis must be"),
        (lambda: IdentityBasis(n_basis=True), "n_basis must be"),
        (lambda: CustomBasis(points=(0, 0), values=((1,), (1,))), "points must be two or more"),
        (lambda: CustomBasis(points=(0, 1), values=((1,),)), "values must be a table"),
        (lambda: CustomBasis(points=(0, 1), values=((1, 2), (1, 2))), "linearly independent"),
        (lambda: CustomBasis(points=(0, 1), values=((1,), (np.nan,))), "finite numbers"),
        (lambda: CustomBasis(points=(0, 1), values=((1,), (1, 2))), "rectangular"),
    ],
)
def test_wrong_parameters_are_named(build, message):
    with pytest.raises(InvalidParameter, match=message.replace("(", r"\(")):
        build()


def test_plain_vectors_have_no_functions():
    with pytest.raises(InvalidParameter, match="functions of t"):
        IdentityBasis(n_basis=2).evaluate([0.5])


def test_smooth_functions_are_orthonormal_and_free_at_their_ends():
    basis = SmoothBasis(n_basis=64, domain_range=(1.0, 4.0))
    np.testing.assert_allclose(basis.gram(), np.eye(64), atol=1e-12)
    end = basis.evaluate([4.0])[0] * np.sqrt(3)
    np.testing.assert_allclose(end, [1, np.sqrt(3)] + [2] * 62, atol=1e-12)
    h = 1e-3  # second and third derivatives are 0 there: a line up to h⁴
    near = SmoothBasis(n_basis=6).evaluate([0.0, h, 2 * h])
    np.testing.assert_allclose(near[0] - 2 * near[1] + near[2], 0, atol=1e-6)


def test_smooth_functions_are_those_of_growing_roughness():
    axis = np.linspace(0, 1, 401)
    table = demmler_reinsch(axis)[:8].T  # by eigenvalues, up to the grid
    table *= np.sign(table[-1])
    np.testing.assert_allclose(SmoothBasis(n_basis=8).evaluate(axis), table, atol=2e-3)
