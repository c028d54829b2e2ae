"""Functions that solve a linear system of released moments, and bands about them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import msgspec
import numpy as np

from dpfda._registry import plain
from dpfda._validate import FloatArray
from dpfda.curves.band import PATHS, between
from dpfda.curves.matrices import Triangle
from dpfda.noise.law import (
    NoiseLaw,
    belief,
    drawn_systems,
    hidden_columns,
    least_variances,
    plausible_solutions,
    possible_systems,
    variances,
)

_MOST_NUMBERS = 1 << 23  # of all functions that are drawn: 64 MB, held a few times
_FEWEST = 200  # draws of a band

Numbers = list[float | list[float]]


class NoiseBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The law of noise in a document."""

    law: Literal["laplace", "gaussian", "spherical"]
    scales: Numbers
    blocks: tuple[tuple[int, int], ...]
    mixing: list[list[float]] | None

    @classmethod
    def of(cls, law: NoiseLaw) -> dict[str, Any]:
        """A law as it is written."""
        return {part.name: plain(getattr(law, part.name)) for part in fields(law)}

    def read(self) -> NoiseLaw:
        """The law."""
        return NoiseLaw(
            law=self.law,
            scales=np.array(self.scales),
            blocks=self.blocks,
            mixing=None if self.mixing is None else np.array(self.mixing),
        )


class SolvedBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Solved` in a document."""

    matrix: list[list[float]]
    vectors: list[list[float]]
    combinations: list[list[float]]
    matrix_noise: NoiseBody
    vector_noise: NoiseBody
    bound: float
    limit: float | None
    steepest: list[float]
    constant: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """Coefficients C T1⁻¹ T2 of functions, from moments T1 and T2 with known noise.

    Attributes:
        matrix: the released T1, (p, p), symmetric.
        vectors: the released T2, (p, J).
        combinations: C, (rows, p): from solutions to the coefficients that are told.
        matrix_noise: law of the noise on T1, its triangle as a vector (`Triangle`).
        vector_noise: law of the noise on T2, row by row.
        bound: on the norm of the curves; a public bound on how far the functions reach.
        limit: public bound on the values of curves about their center, where there is one.
        steepest: how large the values of each told function are at most, over those of curves, if
            lines stay within the public range of curves for all covariates in theirs.
        constant: whether the last row of T1 is of a constant, whose square is known to be 1.
    """

    matrix: FloatArray
    vectors: FloatArray
    combinations: FloatArray
    matrix_noise: NoiseLaw
    vector_noise: NoiseLaw
    bound: float
    limit: float | None
    steepest: FloatArray
    constant: bool

    def interval(
        self, level: float, functions: FloatArray, *, simultaneous: bool, size: int
    ) -> tuple[FloatArray, FloatArray]:
        """Ends (rows, points) of a band about the functions (J, points): see `noise.plausible`.

        Where noise hides how covariates vary, the band ends at what is believed to be possible:
        lines that stay within the public range of curves for all covariates in theirs.

        Args:
            level: probability of the band.
            functions: the basis at the points.
            simultaneous: for all points and rows at once; otherwise for each by itself.
            size: how many times noise is drawn again, at most; fewer times for many functions of
                many points, all of which are held at once.
        """
        held = len(self.combinations) * max(functions.shape)
        size = min(size, PATHS, max(_FEWEST, _MOST_NUMBERS // held))
        generator = np.random.default_rng(0)
        errors = self._triangle.matrix(self.matrix_noise.draw(size, generator))
        if self.constant:
            errors[:, -1, -1] = 0.0
        most = 1.0 + self.constant  # covariates are in the unit ball
        systems = drawn_systems(self.matrix, errors, most=most)
        varies = variances(systems, most=most, constant=self.constant)
        least = least_variances(self._variance, most=most)
        noise = self.vector_noise.draw(size, generator).reshape(size, *self.vectors.shape)
        found = plausible_solutions(
            possible_systems(systems, most=most),
            self.vectors,
            vector_errors=noise,
            vector_covariance=np.diag(
                self.vector_noise.variance.reshape(self.vectors.shape).mean(axis=1)
            ),
            prior=belief(np.maximum(varies, least), self.bound**2),
            generator=generator,
        )
        paths = self.combinations @ found @ functions
        band = between(paths, level=level, simultaneous=simultaneous)
        # Of a function in the span with that norm; and of one with these values.
        highest = self.bound * np.sqrt((functions**2).sum(axis=0))
        if self.limit is not None:
            highest = np.minimum(highest, self.limit)
        most_of_all = np.outer(self.steepest, highest)
        return np.maximum(band.low, -most_of_all), np.minimum(band.high, most_of_all)

    def hidden(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Columns whose variation noise hides."""
        return hidden_columns(self.matrix, self._variance, names)

    @property
    def _variance(self) -> FloatArray:
        found = self._triangle.variance(self.matrix_noise.variance)
        if self.constant:
            found[-1, -1] = 0.0
        return found

    @property
    def _triangle(self) -> Triangle:
        return Triangle(np.ones(len(self.matrix)))

    def document(self) -> dict[str, Any]:
        """As it is written."""
        laws = {name: NoiseBody.of(getattr(self, name)) for name in _LAWS}
        named = (*_ARRAYS, "bound", "limit", "constant")
        return {name: plain(getattr(self, name)) for name in named} | laws

    @classmethod
    def read(cls, body: SolvedBody) -> Solved:
        """From a document."""
        arrays: dict[str, Any] = {name: np.array(getattr(body, name)) for name in _ARRAYS}
        laws = {name: getattr(body, name).read() for name in _LAWS}
        known = {name: getattr(body, name) for name in ("bound", "limit", "constant")}
        return cls(**arrays, **laws, **known)


_ARRAYS = ("matrix", "vectors", "combinations", "steepest")
_LAWS = ("matrix_noise", "vector_noise")
