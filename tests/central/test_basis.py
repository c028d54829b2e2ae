"""Kernels, eigenpairs and splines are what they say, on any grid."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.central.functions import (
    Cosines,
    Kernel,
    Matern,
    as_grid,
    eigenpairs,
    norms,
    spline_basis,
    trapezoid,
)
from dpfda.central.linear import QuadraticRegularization
from dpfda.errors import InvalidParameter
from dpfda.estimators.private_mean import PrivateMean

KERNELS = [kernel for member in Kernel.members().values() for kernel in member.examples()]
GRIDS = {
    "uniform": as_grid(np.linspace(0, 1, 60)),
    "shifted": as_grid(np.linspace(-5, 20, 40)),
    "uneven": as_grid(np.sort(np.random.default_rng(0).uniform(size=50))),
    "surface": as_grid((np.linspace(0, 1, 9), np.linspace(-1, 1, 12))),
}


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_eigenpairs_are_orthonormal_and_rebuild_the_kernel(kernel: Kernel, grid: tuple) -> None:
    basis = eigenpairs(kernel, grid)
    np.testing.assert_allclose(basis.gram, np.eye(basis.size), atol=1e-9)
    assert (np.diff(basis.eigenvalues) <= 0).all()
    assert basis.eigenvalues[-1] > 1e-12 * basis.eigenvalues[0]
    rebuilt = np.einsum("j,jp,jq->pq", basis.eigenvalues, basis.functions, basis.functions)
    length = np.prod([axis[-1] - axis[0] for axis in grid])
    tables = []
    for axis in grid:
        unit = (axis - axis[0]) / (axis[-1] - axis[0])
        tables.append(kernel.between(unit, unit))
    expected = tables[0] if len(tables) == 1 else np.kron(*tables)
    # The kernel lives on [0, 1]: functions of norm 1 on a longer domain are smaller by √length.
    np.testing.assert_allclose(rebuilt * length, expected, atol=1e-6)


def test_general_matern_meets_the_closed_forms() -> None:
    s, t = np.linspace(0, 1, 20), np.linspace(0, 1, 15)
    for nu in (0.5, 1.5, 2.5):
        close = Matern(nu=nu + 1e-9, length=0.3).between(s, t)
        np.testing.assert_allclose(close, Matern(nu=nu, length=0.3).between(s, t), atol=1e-6)


def test_given_eigenpairs_serve_a_mean() -> None:
    t = np.linspace(0, 1, 65)
    kernel = Cosines(exponent=2.5, terms=6)
    basis = eigenpairs(kernel, as_grid(t))
    np.testing.assert_allclose(basis.eigenvalues, np.arange(1, 7) ** -2.5, rtol=1e-9)
    # A cosine that is among them is released up to its factor 1/(1 + ψ λ^-η) and the noise.
    curves = np.tile(np.cos(2 * np.pi * t), (500, 1))
    mechanism = QuadraticRegularization(kernel=Cosines.from_dict(kernel.to_dict()), psi=1e-6)
    mean = PrivateMean(200.0, value_range=(-2, 2), mechanism=mechanism, random_state=0).fit(curves)
    assert mean.release_.parameters["kernel"] == {"name": "cosines", "exponent": 2.5, "terms": 6}
    deviation = float(np.sqrt(mean.release_.variance_along(basis.functions)).max())
    assert deviation < 0.01
    np.testing.assert_allclose(mean.mean_, curves[0], atol=6 * deviation)


def test_eigenpairs_are_cached() -> None:
    grid = as_grid(np.linspace(0, 1, 30))
    assert eigenpairs(Matern(), grid) is eigenpairs(Matern(), as_grid(np.linspace(0, 1, 30)))


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_splines_are_orthonormal_and_start_with_a_line(grid: tuple) -> None:
    size = min(12, int(np.prod([axis.size for axis in grid])))
    basis = spline_basis(grid, size=size)
    np.testing.assert_allclose(basis.gram, np.eye(size), atol=1e-9)
    assert np.ptp(basis.functions[0]) < 1e-9
    if len(grid) == 1:
        slopes = np.diff(basis.functions[1]) / np.diff(grid[0])
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-6)


def test_a_smooth_curve_needs_few_splines() -> None:
    grid = as_grid(np.linspace(0, 1, 101))
    curve = 10 * grid[0] * np.exp(-grid[0])
    basis = spline_basis(grid, size=6)
    rest = curve - basis.expand(basis.project(curve))
    assert norms(rest, trapezoid(grid)) < 0.05


def test_two_and_three_points_are_enough() -> None:
    for size in (2, 3):
        basis = spline_basis(as_grid(np.linspace(0, 1, size)), size=10)
        assert basis.size == size
        np.testing.assert_allclose(basis.gram, np.eye(size), atol=1e-9)


def test_reading_off_on_another_grid() -> None:
    basis = eigenpairs(Matern(nu=2.5, length=0.5), as_grid(np.linspace(0, 2, 80))).first(4)
    np.testing.assert_allclose(basis.at(basis.grid[0]), basis.functions, atol=1e-9)
    fine = basis.at(np.linspace(0, 2, 311))
    between = np.array(
        [np.interp(np.linspace(0, 2, 311), basis.grid[0], f) for f in basis.functions]
    )
    assert np.abs(fine - between).max() < 0.01
    with pytest.raises(InvalidParameter, match="inside the domain"):
        basis.at([0.0, 2.5])


@pytest.mark.parametrize("bad", [[0.0], [0.0, 0.0], [1.0, 0.0], [0.0, np.nan], "text", [[0, 1]]])
def test_bad_grids(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="grid_points"):
        as_grid(bad)
