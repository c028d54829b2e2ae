"""Released moments behind the coefficients of a line, and coefficients that agree with them.

The document of a regression, as it is written and read.
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
"""Columns of which intervals are computed: each draw of the noise is a system of so many."""
_FEWEST_DRAWS = 200  # behind an interval: its probability is then right to 2 %
_WORK = 5e8  # draws times columns³: seconds
_MOST = 1.0  # squared length of a row in its clipping radius, the constant feature included


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
    """Noisy moments M and b of rows and targets in their clipping radii; M w = b.

    Attributes:
        matrix: mean of xxᵀ, (p, p), the constant feature last where there is one.
        vector: mean of xy, (p,).
        matrix_variance: of the noise on the entries of `matrix`.
        vector_sigma: standard deviation of the noise on the entries of `vector`.
        constant: whether the last feature is constant.
        combinations: from w to the slopes of features, (D, p).
        target_variance: of the targets in units of their clipping radius, or a bound on it.
        residual_variance: what a line leaves of it; None where this is not known.
        center_sigma, target_center_sigma: how far the points that rows and targets are taken about
            may be from their means, where no constant feature makes up for it; standard deviations
            along each feature, and of targets.
        rows: how many.
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
        """How many times noise is drawn again behind an interval: fewer for many columns."""
        return max(_FEWEST_DRAWS, min(PATHS, int(_WORK / len(self.vector) ** 3)))

    def slopes(
        self, size: int, *, sampling: bool = False, sizes: FloatArray | None = None
    ) -> FloatArray:
        """Plausible slopes of the features, (size, D): see `noise.plausible`.

        Args:
            size: how many times noise is drawn again; the seed is public and fixed.
            sampling: count the error that is there because others might have been asked, too.
            sizes: belief that slopes have these relative sizes and explain the targets together;
                otherwise each may be large by itself.
        """
        return _drawn(self, size, sampling, None if sizes is None else tuple(sizes.tolist()))

    def _slopes(self, size: int, *, sampling: bool, sizes: FloatArray | None) -> FloatArray:
        generator, width = np.random.default_rng(0), len(self.vector)
        covariance = self.vector_sigma**2 * np.eye(width)
        if sampling and self.residual_variance is not None:
            # Var of the mean of x·residual; weights of rows are 1 at most.
            each = self.residual_variance / self.rows
            covariance = covariance + each * floored(self.matrix)
        errors = NoiseLaw.normal(covariance).draw(size, generator)
        noise = symmetric_errors(self.matrix_variance, size, generator)
        # About a point that is d from the mean row and s from the mean target, M holds d dᵀ and
        # b holds s d besides what is about the means.
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
        """Standard deviations of w before anything is released, for each of the systems, (S, p)."""
        varies = variances(systems, most=_MOST, constant=self.constant)
        least = least_variances(self.matrix_variance, most=_MOST)
        found = belief(np.maximum(varies, least), self.target_variance)
        if sizes is not None:
            together, few = (each[..., : len(sizes)] @ sizes**2 for each in (varies, least))
            whole = np.sqrt(self.target_variance / np.maximum(together, few))
            found[:, : len(sizes)] = sizes * whole[:, None]
        return found

    def hidden(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the features whose variation noise hides, as far as it has directions."""
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
    """Slopes, computed once: a verdict, warnings and bands of one fit all ask for them."""
    given = None if sizes is None else np.array(sizes)
    found = released._slopes(size, sampling=sampling, sizes=given)
    found.flags.writeable = False
    return found


Label = str | int | float | bool
ModelLink = Literal["linear", "logistic", "discriminant"]


class FitBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Fitted` in a document; a radius of null is infinite. K classes have K slopes."""

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
    """A coefficient in the units of its feature; its 95 % interval, where that is known."""

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
    """The document of a `RegressionModel`; from `intercept` on it is for readers."""

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
