"""Released moments of a linear fit, plausible coefficients given these moments, and the documents.

The last part of the file defines the document of a regression.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal

import msgspec
import numpy as np

from dpfda._registry import plain
from dpfda._validate import FloatArray
from dpfda.curves.band import PATHS
from dpfda.curves.matrices import floored
from dpfda.curves.ranges import PublicColumns
from dpfda.noise.law import (
    NoiseLaw,
    belief,
    drawn_systems,
    hidden_columns,
    least_variances,
    plausible_solutions,
    possible_systems,
    symmetric_errors,
    variances,
)
from dpfda.report.documents import Body

WIDEST = 256
"""Largest number of columns with intervals, because each draw solves a system of this size."""
_FEWEST_DRAWS = 200  # smallest number of draws: coverage probabilities are then accurate to 2 %
_WORK = 5e8  # largest product of draws and columns³, which takes seconds
_MOST = 1.0  # largest squared length of a row over its radius, including the constant feature


class ReleasedBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Released` in a document."""

    matrix: list[list[float]]
    vector: list[float]
    matrix_variance: list[list[float]]
    vector_sigma: float
    constant: bool
    combinations: list[list[float]]
    target_variance: float
    residual_variance: float | None
    center_sigma: float
    target_center_sigma: float
    rows: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Released:
    """Noisy moments M and b of rows and targets, in units of their clipping radii; M w = b.

    Attributes:
        matrix: mean of xxᵀ, (p, p); a constant feature is last.
        vector: mean of xy, (p,).
        matrix_variance: variances of the noise on the entries of `matrix`.
        vector_sigma: standard deviation of the noise on the entries of `vector`.
        constant: whether the last feature is constant.
        combinations: matrix that maps w to the slopes of the features, (D, p).
        target_variance: variance of the targets in units of their clipping radius, or a bound on
            it.
        residual_variance: residual variance of the fit; None if it is unknown.
        center_sigma, target_center_sigma: standard deviations of the errors of the centers of rows
            (along each feature) and targets; 0 if a constant feature corrects for them.
        rows: number of rows.
    """

    matrix: FloatArray
    vector: FloatArray
    matrix_variance: FloatArray
    vector_sigma: float
    constant: bool
    combinations: FloatArray
    target_variance: float = 1.0
    residual_variance: float | None = None
    center_sigma: float = 0.0
    target_center_sigma: float = 0.0
    rows: int

    @property
    def draws(self) -> int:
        """Number of noise simulations for an interval; it is smaller for many columns."""
        return max(_FEWEST_DRAWS, min(PATHS, int(_WORK / len(self.vector) ** 3)))

    def slopes(
        self, size: int, *, sampling: bool = False, sizes: FloatArray | None = None
    ) -> FloatArray:
        """Plausible slopes of the features, (size, D): see `noise.law.plausible_solutions`.

        Args:
            size: number of noise simulations; their seed is public and fixed.
            sampling: whether to include the sampling error.
            sizes: relative prior sizes of the slopes, which together explain the targets; by
                default each slope may be large independently of the others.
        """
        return _drawn(self, size, sampling, None if sizes is None else tuple(sizes.tolist()))

    def _slopes(self, size: int, *, sampling: bool, sizes: FloatArray | None) -> FloatArray:
        generator, width = np.random.default_rng(0), len(self.vector)
        covariance = self.vector_sigma**2 * np.eye(width)
        if sampling and self.residual_variance is not None:
            # Variance of the mean of x·residual; weights of rows are at most 1.
            each = self.residual_variance / self.rows
            covariance = covariance + each * floored(self.matrix)
        errors = NoiseLaw.normal(covariance).draw(size, generator)
        noise = symmetric_errors(self.matrix_variance, size, generator)
        # If the center is off by d from the mean row and by s from the mean target, then M contains
        # an additional d dᵀ and b an additional s d.
        away = self.center_sigma * generator.standard_normal((size, width))
        off = self.target_center_sigma * generator.standard_normal((size, 1))
        noise += away[:, :, None] * away[:, None, :]
        errors += off * away
        systems = drawn_systems(self.matrix, noise, most=_MOST)
        found = plausible_solutions(
            possible_systems(systems, most=_MOST),
            self.vector[:, None],
            vector_errors=errors[..., None],
            vector_covariance=covariance,
            prior=self.beliefs(systems, sizes),
            generator=generator,
        )
        return np.asarray(found[..., 0] @ self.combinations.T)

    def beliefs(self, systems: FloatArray, sizes: FloatArray | None = None) -> FloatArray:
        """Prior standard deviations of w for each of the systems, (S, p)."""
        varies = variances(systems, most=_MOST, constant=self.constant)
        least = least_variances(self.matrix_variance, most=_MOST)
        found = belief(np.maximum(varies, least), self.target_variance)
        if sizes is not None:
            together, few = (each[..., : len(sizes)] @ sizes**2 for each in (varies, least))
            whole = np.sqrt(self.target_variance / np.maximum(together, few))
            found[:, : len(sizes)] = sizes * whole[:, None]
        return found

    def hidden(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the features whose variation is hidden by noise."""
        known = (*names, "the intercept")[: len(self.vector)]
        return hidden_columns(self.matrix, self.matrix_variance, known)

    def document(self) -> dict[str, Any]:
        """The values as written in a document."""
        return {part.name: plain(getattr(self, part.name)) for part in fields(self)}

    @classmethod
    def read(cls, body: ReleasedBody) -> Released:
        """Read the values from a document."""
        given = msgspec.structs.asdict(body)
        arrays = {name: np.array(one) for name, one in given.items() if isinstance(one, list)}
        return cls(**(given | arrays))


@lru_cache(maxsize=8)
def _drawn(
    released: Released, size: int, sampling: bool, sizes: tuple[float, ...] | None
) -> FloatArray:
    """Plausible slopes, cached because the verdict, the warnings and the bands all need them."""
    given = None if sizes is None else np.array(sizes)
    found = released._slopes(size, sampling=sampling, sizes=given)
    found.flags.writeable = False
    return found


Label = str | int | float | bool
ModelLink = Literal["linear", "logistic", "discriminant"]


class FitBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Fitted` in a document; a null radius is infinite, and K classes have K slopes."""

    slope: list[float | list[float]]
    offset: float | list[float]
    center: list[float]
    radius: float | None
    clips: bool
    released: ReleasedBody | None
    explained: float | None
    clarity: float | None
    spread: float | None
    warnings: tuple[str, ...]


class Coefficient(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A coefficient in the units of its feature, with its 95 % interval if it is known."""

    feature: str
    value: float
    low: float | None
    high: float | None


class RecipeBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Recipe` in a document."""

    names: tuple[str, ...]
    table: PublicColumns | None
    kept: tuple[int, ...]
    shift: list[float]
    scale: list[float]
    encoder: dict[str, Any] | None
    grid_points: list[float] | None


class RegressionBody(Body):
    """The document of a `RegressionModel`.

    `intercept`, `coefficients`, `notes` and `warnings` are for readers; they are not read back.
    """

    link: ModelLink
    mechanism: str
    rows: int
    stages: int
    classes: tuple[Label, ...] | None
    target_range: tuple[float, float] | None
    recipe: RecipeBody
    fit: FitBody
    intercept: float | list[float]
    coefficients: list[Coefficient]
    notes: list[str]
    warnings: tuple[str, ...]
    weight_bound: float | None = None
