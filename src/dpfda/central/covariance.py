"""A covariance surface, and principal components, under differential privacy."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda._validate import FloatArray
from dpfda.central.adaptive import Schedule, bounded_mean, choose_radius
from dpfda.central.basis import FunctionBasis, spline_basis
from dpfda.central.function_mechanism import Task, ellipsoid_noise, noise_law
from dpfda.central.quadrature import norm_bound
from dpfda.central.records import clip_rows, exact_mean, public_centre, read_records
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.central.sources import source_for
from dpfda.central.symmetric import Triangle, floored
from dpfda.errors import InvalidParameter
from dpfda.noise import Source

_FEW = 1000  # nε below which the first centre is so rough that its error must be released too
_USEFUL = 200  # nε below which the surface is mostly noise, and is pulled towards zero as a whole


@dataclass(frozen=True, kw_only=True, eq=False)
class _Look:
    """Residual coefficients about a released centre, a released radius, the budget left."""

    residuals: FloatArray
    radius: float
    share: float
    shift: FloatArray


class PrivateCovariance(BaseEstimator):  # type: ignore[misc]
    """Release the covariance surface of curves held by a trusted curator; private FPCA for free.

    Products of coefficients are averaged about a centre that is released first, and clipped at a
    radius that is released too; below nε = 200 about the public centre, clipped at the public
    bound.

    Privacy:
        (ε, δ)-DP for replacing one curve. With residuals u in ‖u/a‖₂ ≤ R two products uuᵀ differ
        by at most √2 R² in the norm with axes a_j a_k; j ≤ k only is released (C23). The budgets of
        centre, radius and products add up. Eigenfunctions are post-processing.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        bound: public bound τ on the norm √(average of X(t)² over the domain) of a curve minus the
            centre.
        centre: public curve (or number) to subtract first.
        unit: whose data one row is.
        random_state: None for exact noise, or a seed for simulations.

    The error is about (R²/nε)² times the fourth power of the number of functions: with a few
    hundred curves expect little more than the leading component, and compare
    ``release_.parameters["noise"]`` (root mean squared norm of the noise) with the variance
    expected.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> curves = rng.normal(size=(5000, 1)) * np.sin(np.pi * np.linspace(0, 1, 30))
        >>> fitted = PrivateCovariance(epsilon=2.0, bound=2.0, random_state=0).fit(curves)
        >>> fitted.covariance_.shape, bool(fitted.explained_variance_[0] > 0.3)
        ((30, 30), True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bound: float | None = None,
        delta: float = 0.0,
        centre: Any = 0.0,
        domain_range: tuple[float, float] | None = None,
        unit: str = "person",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bound = bound
        self.delta = delta
        self.centre = centre
        self.domain_range = domain_range
        self.unit = unit
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Missing points are welcome: they are filled along the curve."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, curves: Any, y: Any = None, *, grid_points: Any = None) -> Self:
        """Release the covariance of `curves`, (n, T), an ``FDataGrid`` or pairs (t, x)."""
        if self.bound is None:
            raise InvalidParameter("bound", "given: a public bound on the norm of a curve", None)
        records, grid = read_records(curves, grid_points, domain_range=self.domain_range)
        if len(grid) != 1:
            raise InvalidParameter("grid_points", "of one variable", f"{len(grid)} variables")
        bound = norm_bound(self.bound, grid)
        task = Task(
            n=len(records), bound=bound, epsilon=self.epsilon, delta=self.delta, unit=self.unit
        )
        if task.n * task.epsilon < _USEFUL:
            warnings.warn(
                f"n·epsilon is below {_USEFUL}: a surface of zeros may be as close",
                stacklevel=2,
            )
        source = source_for(self.random_state)
        basis = spline_basis(grid, size=grid[0].size)
        rows = basis.project(records - public_centre(self.centre, records.shape[1]))
        self.release_ = _release(rows, basis, task, source)
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = records.shape[1]
        size = int(self.release_.parameters["components"])
        triangle = Triangle(_axes(size))
        values, vectors = np.linalg.eigh(triangle.matrix(self.release_.coefficients))
        self.explained_variance_: FloatArray = np.maximum(values[::-1], 0.0)
        self.components_: FloatArray = vectors[:, ::-1].T @ basis.functions[:size]
        return self

    @property
    def covariance_(self) -> FloatArray:
        """The released surface on the grid of the data, (T, T)."""
        check_is_fitted(self, "release_")
        return self.release_.values()


def _release(rows: FloatArray, basis: FunctionBasis, task: Task, source: Source) -> Release:
    size = min(basis.size, math.ceil(1.2 * (task.n * task.epsilon) ** 0.25))
    axes = _axes(size)
    look = _look(rows, axes, task, source)
    inside = clip_rows(look.residuals, look.radius, axes=axes)
    triangle = Triangle(axes)
    # a_j ≤ 1, so every product is at most √2 R² in absolute value.
    reach = math.sqrt(2) * look.radius**2
    products = triangle.vector(inside[:, :, None] * inside[:, None, :])
    mean = exact_mean(products, bound=reach)
    mechanism = ellipsoid_noise(task.part(look.share), axes=triangle.axes, radius=reach / task.n)
    noisy = mechanism.randomize(mean[None, :], source)[0]
    law = noise_law(mechanism)
    # The products are about the released centre: take off the rest of the mean.
    noisy = noisy - triangle.vector(np.outer(look.shift, look.shift))
    shrunk = monotone_shrinkage(noisy, law.variance) * noisy
    cleaned = triangle.vector(floored(triangle.matrix(shrunk)))
    noise = float(law.variance.sum())
    if task.n * task.epsilon < _USEFUL:
        # James & Stein: without it a radius that came out too large would be taken at its word.
        cleaned *= max(0.0, 1 - noise / max(float(cleaned @ cleaned), noise))
    surface = FunctionBasis(
        basis.grid * 2, triangle.products(basis.functions[:size]), np.ones(noisy.size)
    )
    unit = norm_bound(1.0, basis.grid)  # to say everything in the norm that bounds are given in
    return Release(
        summary="covariance",
        coefficients=cleaned,
        noisy=noisy,
        noise=(law,),
        basis=surface,
        centre=np.zeros(surface.weights.size),
        guarantee=task.guarantee.drawn_from(source),
        sensitivity=reach / task.n,
        parameters={
            "n": task.n,
            "bound": task.bound / unit,
            "components": size,
            "radius": look.radius / unit,
            "noise": math.sqrt(noise) / unit**2,
        },
    )


def _look(rows: FloatArray, axes: FloatArray, task: Task, source: Source) -> _Look:
    """Centre and radius, and for few curves how far the mean still is from the centre."""
    size = axes.size
    few = task.n * task.epsilon < _FEW
    first_share, radius_share, shift_share = (0.25, 0.15, 0.15) if few else (0.2, 0.15, 0.0)
    first = ellipsoid_noise(task.part(first_share), axes=np.ones(size), radius=task.radius)
    noisy = first.randomize(bounded_mean(rows[:, :size], task.bound)[None], source)[0]
    centre = monotone_shrinkage(noisy, noise_law(first).variance) * noisy
    residuals = rows[:, :size] - centre
    distances = np.sqrt(((residuals / axes) ** 2).sum(axis=1))
    plan = Schedule.of(task, most=rows.shape[1])
    radius = choose_radius(distances, task.part(radius_share), plan, source)
    shift = np.zeros(size)
    if few:
        step = ellipsoid_noise(task.part(shift_share), axes=axes, radius=2 * radius / task.n)
        mean = bounded_mean(residuals, radius, axes=axes)
        shift = step.randomize(mean[None], source)[0]
        shift *= monotone_shrinkage(shift, noise_law(step).variance)
    left = 1 - first_share - radius_share - shift_share
    return _Look(residuals=residuals, radius=radius, share=left, shift=shift)


def _axes(size: int) -> FloatArray:
    return np.arange(1, size + 1, dtype=np.float64) ** -0.5
