"""Functions that solve a linear system of released moments, and bands about them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import msgspec
import numpy as np
from scipy.special import ndtri

from dpfda._registry import plain
from dpfda._validate import FloatArray
from dpfda.curves.symmetric import Triangle
from dpfda.noise.law import NoiseLaw
from dpfda.noise.linear_system import LinearSystem

Numbers = list[float | list[float]]
_NAMED = 0.2  # of the squared length of the weakest direction: what takes part in it by that much


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """Coefficients C T1⁻¹ T2 of functions, from moments T1 and T2 with known noise.

    Attributes:
        matrix: the released T1, (p, p), symmetric.
        vectors: the released T2, (p, J).
        combinations: C, (rows, p): from solutions to the coefficients that are told.
        matrix_noise: law of the noise on T1, its triangle as a vector (`Triangle`).
        vector_noise: law of the noise on T2, row by row.
    """

    matrix: FloatArray
    vectors: FloatArray
    combinations: FloatArray
    matrix_noise: NoiseLaw
    vector_noise: NoiseLaw

    def interval(
        self, level: float, functions: FloatArray, *, simultaneous: bool, size: int
    ) -> tuple[FloatArray, FloatArray]:
        """Ends (rows, points) of a band about the functions (J, points); see `linear_system`.

        Args:
            level: probability of the band.
            functions: the basis at the points.
            simultaneous: for all points and rows at once; otherwise for each by itself.
            size: how many simulated noise paths say how many deviations such a band needs.
        """
        rows, points = len(self.combinations), functions.shape[1]
        system = self._system(functions)
        if system.distance <= 0:
            return np.full((rows, points), -np.inf), np.full((rows, points), np.inf)
        paths = (self._errors(size) @ functions).reshape(size, -1)
        ratio = np.abs(paths) / np.maximum(system.spread(), 1e-300)
        radius = np.quantile(ratio, level, axis=0)
        if simultaneous:
            radius = np.quantile(ratio.max(axis=1), level)
        low, high = system.interval(radius)
        return low.reshape(rows, points), high.reshape(rows, points)

    def _system(self, functions: FloatArray) -> LinearSystem:
        """The equations of each row at each point."""
        rows, points = len(self.combinations), functions.shape[1]
        variance = self.vector_noise.variance.reshape(self.vectors.shape) @ functions**2
        return LinearSystem(
            matrix=self.matrix,
            vectors=np.tile((self.vectors @ functions).T, (rows, 1)),
            matrix_variance=self._triangle.variance(self.matrix_noise.variance),
            vector_variance=np.tile(variance.T, (rows, 1)),
            combinations=np.repeat(self.combinations, points, axis=0),
        )

    def hidden(self, names: tuple[str, ...], level: float = 0.95) -> tuple[str, ...]:
        """Which columns noise makes look alike or constant, so that no band has an end."""
        if self._system(np.zeros((self.vectors.shape[1], 1))).distance > ndtri((1 + level) / 2):
            return ()
        weakest = np.linalg.eigh(self.matrix)[1][:, 0] ** 2
        taking = [name for name, part in zip(names, weakest, strict=True) if part >= _NAMED]
        return tuple(taking)

    @property
    def _triangle(self) -> Triangle:
        return Triangle(np.ones(len(self.matrix)))

    def _errors(self, size: int) -> FloatArray:
        """Simulated errors (size, rows, J) of the coefficients, to first order."""
        generator = np.random.default_rng(0)
        beta = np.linalg.solve(self.matrix, self.vectors)
        weights = np.linalg.solve(self.matrix, self.combinations.T).T
        across = self._triangle.matrix(self.matrix_noise.draw(size, generator))
        along = self.vector_noise.draw(size, generator).reshape(size, *self.vectors.shape)
        return np.asarray(weights @ (along - across @ beta))

    def document(self) -> dict[str, Any]:
        """As it is written."""
        laws = {name: NoiseBody.of(getattr(self, name)) for name in _LAWS}
        return {name: plain(getattr(self, name)) for name in _ARRAYS} | laws

    @classmethod
    def read(cls, body: SolvedBody) -> Solved:
        """From a document."""
        arrays: dict[str, Any] = {name: np.array(getattr(body, name)) for name in _ARRAYS}
        return cls(**arrays, **{name: getattr(body, name).read() for name in _LAWS})


_ARRAYS = ("matrix", "vectors", "combinations")
_LAWS = ("matrix_noise", "vector_noise")
