"""003 as its authors ran it: the settings of their public R code, in closed form.

Each mechanism is a curve plus independent noise with known variances, so that expected errors need
no simulation of the noise. Three things differ from the text of the paper:

* the bounds τ₂ (L² norm), τ₁ (sum of absolute coefficients) and τ_∞ are the data's own maxima;
* ICLP-QR has the sensitivity max_j s_j/√λ_j · 2τ₁/n, which needs τ₁ and not Theorem 6's τ₂ (C24);
* the noise of ICLP-QR has variance (Δ/ε)²λ_j, half of what ε needs (C25).

`Run` with public bounds and ``right_scale=True`` is the same method made sound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import binom

from dpfda._validate import FloatArray
from dpfda.central.functions import Kernel, Matern, norms, trapezoid
from dpfda.datasets.loaders import load_adelaide_demand, load_dti

_FOLDS = 10
_MULTIPLES = 15  # of ψ, from 0.1 to 10
_TINY = 1e-300

PURE = ("FRL", "Bernstein", "ICLP-AR", "ICLP-QR")
READING = (
    "The authors' R code: eigenvectors of K/T times √T; FRL with the M of least noise (tables) or "
    "of least error (simulations) in ⌈n^(1/2h) - 1⌉…⌊n^(1/3)⌋; ICLP-AR with η = 2 + 2/h, "
    "ψ = τ₂/n and threshold √2 ψ/λ^(η/2); ICLP-QR with η = 1 + 1/(2h), sensitivity "
    "max_j s_j/√λ_j · 2τ₁/n and noise variance (Δ/ε)²λ_j; h = 2."
)
TRUE_EPSILON = (
    "ICLP-QR: √2 ε if τ₁ were public (C24, C25); others: ε if their bounds were public; none of "
    "these with the data's own maxima (C11)"
)


class Bounds(NamedTuple):
    """Largest Σ|c_j|, ‖c‖₂ and |X(t)|: the data's own, or public ones.

    Attributes:
        absolute: τ₁.
        norm: τ₂.
        height: τ_∞.
    """

    absolute: float
    norm: float
    height: float


class Noisy(NamedTuple):
    """A curve on the grid, and the independent noise that is added to it.

    Attributes:
        curve: without noise.
        functions: (J, T), what each noisy number multiplies.
        variance: of each number's noise.
    """

    curve: FloatArray
    functions: FloatArray
    variance: FloatArray

    def error(self, target: FloatArray) -> float:
        """E‖μ̃ - target‖², with weights 1/T."""
        return float(np.mean((self.curve - target) ** 2)) + self.noise

    @property
    def noise(self) -> float:
        """E‖noise‖²."""
        return float(self.variance @ np.mean(self.functions**2, axis=1))

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One release, with Laplace noise."""
        scales = np.sqrt(self.variance / 2)
        return np.asarray(self.curve + rng.laplace(scale=scales) @ self.functions)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvectors of K/T times √T on T equidistant points: orthonormal with weights 1/T."""

    grid: FloatArray
    eigenvalues: FloatArray
    functions: FloatArray

    def coefficients(self, curves: FloatArray) -> FloatArray:
        """(n, T) to (n, J)."""
        return np.asarray(curves @ self.functions.T / self.grid.size)


@lru_cache
def spectrum(kernel: Kernel, size: int, low: float = 0.0, high: float = 1.0) -> Spectrum:
    """Of a kernel on [low, high]."""
    grid = np.linspace(low, high, size)
    values, vectors = np.linalg.eigh(kernel.between(grid, grid))
    return Spectrum(grid, np.abs(values[::-1]) / size, vectors[:, ::-1].T * math.sqrt(size))


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """All mechanisms on one sample.

    Attributes:
        curves: (n, T).
        pairs: eigenpairs.
        epsilon: as claimed.
        h: decay of the eigenvalues over 2.
        factor: of ψ in ICLP-QR, 2 in Table 2 and 1 in the simulations.
        order: K of the Bernstein polynomials.
        bounds: public ones, to which curves are then cut; None takes the data's own maxima.
        right_scale: noise of ICLP-QR with the variance that ε needs.
        quadratic_bound: ``absolute`` for the authors' sensitivity of ICLP-QR; ``norm`` for the
            one that follows from ‖X‖ ≤ τ₂ (Cauchy-Schwarz).
    """

    curves: FloatArray
    pairs: Spectrum
    epsilon: float = 1.0
    h: int = 2
    factor: float = 1.0
    order: int = 20
    bounds: Bounds | None = None
    right_scale: bool = False
    quadratic_bound: Literal["absolute", "norm"] = "absolute"

    @property
    def n(self) -> int:
        """Number of curves."""
        return len(self.curves)

    def release(self, name: str, parameter: float | None = None) -> Noisy:
        """FRL (parameter: M), ICLP-AR or ICLP-QR (parameter: a multiple of ψ), or Bernstein."""
        if name == "Bernstein":
            return self._bernstein()
        if parameter is None:
            parameter = self._sizes()[0] if name == "FRL" else 1.0  # least noise: the smallest M
        mean, bounds = self._mean_coefficients(self._bounded_by(name))
        variance = self._variance(name, parameter, bounds)
        curve = self._fitted(name, parameter, mean, bounds) @ self.pairs.functions
        return Noisy(curve, self.pairs.functions, variance)

    def in_hindsight(self, name: str, target: FloatArray, *, wide: bool = False) -> Noisy:
        """The release of least error, which nobody knows without `target`."""
        tried = [self.release(name, value) for value in self.candidates(name, wide=wide)]
        return min(tried, key=lambda one: one.error(target))

    def cross_validated(self, name: str) -> Noisy:
        """Private cross-validation of the text: error on held-out curves plus the known noise."""
        mean, bounds = self._mean_coefficients(self._bounded_by(name))
        folds = np.array_split(np.random.default_rng(0).permutation(self.n), _FOLDS)
        held = np.stack([self._coefficients[fold].mean(axis=0) for fold in folds])
        sizes = np.array([[len(fold)] for fold in folds])
        rest = (self.n * mean - sizes * held) / (self.n - sizes)

        def risk(value: float) -> float:
            fitted = self._fitted(name, value, rest, bounds)
            noise = self._variance(name, value, bounds).sum()
            return float(((fitted - held) ** 2).sum(axis=1).mean() + noise)

        return self.release(name, min(self.candidates(name, wide=True), key=risk))

    def candidates(self, name: str, *, wide: bool = False) -> list[float]:
        """Every M that Corollary 1 allows (three more on either side if wide), or ψ's multiples."""
        if name == "FRL":
            first, last = self._sizes()
            more = 3 * wide
            return [float(size) for size in range(max(1, first - more), last + more + 1)]
        return [float(value) for value in np.geomspace(0.1, 10, _MULTIPLES)]

    def errors(self, target: FloatArray, *, hindsight: bool) -> dict[str, float]:
        """E‖μ̃ - target‖² of the four pure mechanisms.

        Args:
            target: on the grid.
            hindsight: FRL's M by the error itself (simulations), not by the noise (tables).
        """
        found = {name: self.release(name) for name in PURE}
        if hindsight:
            found["FRL"] = self.in_hindsight("FRL", target)
        return {name: one.error(target) for name, one in found.items()}

    def _sizes(self) -> tuple[int, int]:
        first = max(1, math.ceil(self.n ** (1 / (2 * self.h)) - 1))
        return first, max(first, math.floor(self.n ** (1 / 3) + 1e-9))

    def _bounded_by(self, name: str) -> str:
        return self.quadratic_bound if name == "ICLP-QR" else "norm"

    def _fitted(self, name: str, parameter: float, mean: FloatArray, bounds: Bounds) -> FloatArray:
        """Mean coefficients, (..., J), cut off, softly thresholded or shrunk."""
        if name == "FRL":
            return np.asarray(np.where(np.arange(mean.shape[-1]) < parameter, mean, 0.0))
        if name == "ICLP-AR":
            rest = np.abs(mean) - self._thresholds(parameter, bounds)
            return np.asarray(np.sign(mean) * np.maximum(rest, 0.0))
        return np.asarray(self._factors(parameter, bounds) * mean)

    def _variance(self, name: str, parameter: float, bounds: Bounds) -> FloatArray:
        """Of the noise on every coefficient."""
        values, share = self.pairs.eigenvalues, 2 / (self.n * self.epsilon)
        places = np.arange(values.size)
        if name == "FRL":
            return np.where(places < parameter, 2 * (share * bounds.norm * parameter) ** 2, 0.0)
        if name == "ICLP-AR":
            size = int(np.argmax(bounds.norm <= self._thresholds(parameter, bounds))) + 1
            axes = np.where(places < size, np.sqrt(values / 2), 0.0)
            most = share * bounds.norm * float((1 / axes[:size]).sum())
            return np.asarray(2 * (most * axes) ** 2)
        ratios = self._factors(parameter, bounds) / np.sqrt(np.maximum(values, _TINY))
        if self.quadratic_bound == "absolute":
            sensitivity = share * ratios.max() * bounds.absolute
        else:
            sensitivity = share * float(np.linalg.norm(ratios)) * bounds.norm
        return np.asarray((2 if self.right_scale else 1) * sensitivity**2 * values)

    def _thresholds(self, multiple: float, bounds: Bounds) -> FloatArray:
        weights = np.sqrt(self.pairs.eigenvalues ** (2 + 2 / self.h) / 2)
        return np.asarray(multiple * bounds.norm / self.n / np.maximum(weights, _TINY))

    def _factors(self, multiple: float, bounds: Bounds) -> FloatArray:
        eta = 1 + 1 / (2 * self.h)
        psi = multiple * self.factor * (self.n / bounds.norm) ** -eta
        power = self.pairs.eigenvalues**eta
        return np.asarray(power / (power + psi))

    def _bernstein(self) -> Noisy:
        """Values of the mean at K + 1 points, each with noise."""
        size, grid = self.order + 1, self.pairs.grid
        height = self._maxima.height if self.bounds is None else self.bounds.height
        functions = binom.pmf(np.arange(size), self.order, grid[:, None]).T
        places = [int(np.argmin(np.abs(place / self.order - grid))) for place in range(size)]
        values = np.clip(self.curves[:, places], -height, height).mean(axis=0)
        scale = 2 * height * size / (self.n * self.epsilon)
        return Noisy(values @ functions, functions, np.full(size, 2 * scale**2))

    @cached_property
    def _coefficients(self) -> FloatArray:
        return self.pairs.coefficients(self.curves)

    @cached_property
    def _maxima(self) -> Bounds:
        return Bounds(*(float(length.max()) for length in _lengths(self.curves, self.pairs)))

    def _mean_coefficients(self, by: str) -> tuple[FloatArray, Bounds]:
        """Mean coefficients and bounds; public bounds cut each curve that exceeds them."""
        coefficients = self._coefficients
        if self.bounds is None:
            return coefficients.mean(axis=0), self._maxima
        lengths = _lengths(self.curves, self.pairs)[by == "norm"]
        most = self.bounds.norm if by == "norm" else self.bounds.absolute
        kept = coefficients * np.minimum(1.0, most / np.maximum(lengths, 1e-300))[:, None]
        return kept.mean(axis=0), self.bounds


def public_bounds(curves: FloatArray, pairs: Spectrum, *, level: float = 0.999) -> Bounds:
    """Quantiles of the three lengths in curves of another simulation: known without these data."""
    return Bounds(*(float(np.quantile(length, level)) for length in _lengths(curves, pairs)))


def _lengths(curves: FloatArray, pairs: Spectrum) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Σ|c_j|, ‖c‖₂ and sup |X|, of every curve."""
    coefficients = np.abs(pairs.coefficients(curves))
    norms_ = np.sqrt((coefficients**2).sum(axis=1))
    return coefficients.sum(axis=1), norms_, np.abs(curves).max(axis=1)


@lru_cache
def standardized(name: str) -> FloatArray:
    """376 complete scans, or 508 Mondays: each minus its mean, divided by its L² deviation."""
    if name == "scans":
        rows = load_dti().X
        rows = rows[~np.isnan(rows).any(axis=1)]
    else:
        data = load_adelaide_demand()
        rows = data.X[data.extra["weekday"] == 1]
    grid = (np.linspace(0, 1, rows.shape[1]),)
    weights = trapezoid(grid)
    centered = rows - (rows @ weights)[:, None]
    return np.asarray(centered / norms(centered, weights)[:, None])


def table_run(name: str, nu: float, epsilon: float) -> Run:
    """A line of Table 2; the grid of the kernel ends at .001 and .999."""
    curves = standardized(name)
    pairs = spectrum(Matern(nu=nu), curves.shape[1], 0.001, 0.999)
    return Run(curves=curves, pairs=pairs, epsilon=epsilon, factor=2.0)
