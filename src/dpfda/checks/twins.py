"""Broken twins: mechanisms with a planted flaw that an audit must catch.

Each twin makes the claim of a correct mechanism and violates it by a flaw that occurred in
publications or software. An audit must detect all of them, so `dpfda audit --twins` runs them all.
Twins with flaws of the papers are part of dpfda-bench. A new twin is one class.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import ClassVar

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.base import box_corners
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.noise import Source, discrete_laplace
from dpfda.noise.uniform import below
from dpfda.privacy.guarantee import Guarantee

Pairs = list[tuple[FloatArray, FloatArray]]


class Twin(Registered, family="twin"):
    """A mechanism whose claim is false.

    Attributes:
        flaw: what is wrong, in one sentence.
    """

    flaw: ClassVar[str]

    @property
    def log_likelihood(self) -> None:
        """None, so that audits use the reports only."""
        return

    @property
    def guarantee(self) -> Guarantee:
        """The false claim."""
        return Guarantee(epsilon=1.0, model="local")

    @abstractmethod
    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """Reports that leak more than claimed."""

    @abstractmethod
    def worst_cases(self) -> Pairs:
        """Neighboring inputs at which the flaw can be detected."""


@dataclass(frozen=True)
class FloatLaplace(Twin, name="float_laplace"):
    """Laplace noise computed and added in floating point (Mironov 2012)."""

    flaw = "textbook floating-point noise: the low-order bits tell the inputs apart"

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """x + b ln(U₁/U₂) with double-precision uniforms."""
        rows = np.asarray(values, dtype=np.float64)
        uniforms = (source.words(2 * rows.size) >> np.uint64(11)).astype(np.float64) + 0.5
        one, other = uniforms.reshape(2, *rows.shape)
        return np.asarray(rows + 2.0 * np.log(one / other))

    def worst_cases(self) -> Pairs:
        """Inputs with different spacing of floats."""
        return [(np.zeros((1, 1)), np.ones((1, 1)))]


@dataclass(frozen=True)
class UnroundedSum(Twin, name="unrounded_sum"):
    """Lattice noise added to a value that is not on the lattice (C20)."""

    flaw = "the sum was not rounded: its fractional part passes through lattice noise (C20)"

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """Exact noise on multiples of 1/1024, added to an unrounded value."""
        rows = np.asarray(values, dtype=np.float64)
        noise = discrete_laplace(rows.size, scale=2048, source=source).reshape(rows.shape)
        return rows + noise / 1024

    def worst_cases(self) -> Pairs:
        """Inputs on the lattice and off it."""
        return [(np.zeros((1, 1)), np.full((1, 1), 1 / 3))]


@dataclass(frozen=True)
class WrongKeepProbability(Twin, name="wrong_keep_probability"):
    """Randomized response that keeps the bit with probability 1 - e^{-ε}/2."""

    flaw = "keep probability 1 - e^{-ε}/2 instead of e^ε/(1 + e^ε)"

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """Keep the bit too often."""
        bits = np.asarray(values, dtype=np.float64)
        parts = 1 << 30
        kept = below(parts, bits.size, source) < np.uint64(parts * (1 - math.exp(-1.0) / 2))
        return np.where(kept.reshape(bits.shape), bits, -bits)

    def worst_cases(self) -> Pairs:
        """The two bits."""
        return [(np.array([1.0]), np.array([-1.0]))]


class _Shared(Twin):
    """Laplace noise of the right size on four numbers of [-1, 1], some of it shared."""

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """Exact noise for ε = 1, some of it shared."""
        rows = np.rint(np.asarray(values, dtype=np.float64) * 1024)
        noise = discrete_laplace(rows.size, scale=8 * 1024, source=source)
        return np.asarray((rows + self.shared(noise.reshape(-1, 4))) / 1024)

    @staticmethod
    @abstractmethod
    def shared(noise: IntArray) -> IntArray:
        """Noise that coordinates partly share."""

    def worst_cases(self) -> Pairs:
        """Corners, and rows in general position."""
        return box_corners(4)


@dataclass(frozen=True)
class SharedByCoordinates(_Shared, name="shared_by_coordinates"):
    """Two of four numbers get the same noise."""

    flaw = "two of four coordinates share their noise: their difference has none"

    @staticmethod
    def shared(noise: IntArray) -> IntArray:
        """The second and the fourth coordinate share their noise."""
        return noise[:, [0, 1, 2, 1]]


@dataclass(frozen=True)
class SharedByPeople(_Shared, name="shared_by_people"):
    """Every second person gets the noise of the one before."""

    flaw = "two people share their noise: the difference of their reports has none"

    @staticmethod
    def shared(noise: IntArray) -> IntArray:
        """Pairs of rows share their noise."""
        return noise[np.arange(len(noise)) // 2 * 2]


@dataclass(frozen=True)
class ClassByClass(Twin, name="class_by_class"):
    """Separate reports of the residuals of three classes, each with the whole ε."""

    flaw = "another label changes the residuals of two classes, and each was reported with all of ε"

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """One codeword per class."""
        residuals = np.eye(3)[np.asarray(values, dtype=np.int64).ravel()] - 1 / 3
        report = CapIndex(epsilon=1.0, dimension=1, codewords=2)
        blocks = [report.debias(report.randomize(np.sign(r)[:, None], source)) for r in residuals.T]
        return np.concatenate(blocks, axis=1)

    def worst_cases(self) -> Pairs:
        """Two different labels."""
        return [(np.zeros((1, 1)), np.ones((1, 1)))]


def all_twins() -> dict[str, type[Twin]]:
    """All twins: those here, and those of other packages (entry points `dpfda.twins`)."""
    for entry in entry_points(group="dpfda.twins"):
        entry.load()
    return Twin.members()
