"""The papers' simulations: curves with a known truth, drawn from a seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, finite, one_of, whole
from dpfda.curves.bases import CosineBasis
from dpfda.curves.basis import frozen
from dpfda.datasets.catalogue import Dataset, signs
from dpfda.errors import InvalidParameter

Seed = np.random.Generator | int

_TERMS = np.arange(1, 51)
_SIGNS = (-1.0) ** (_TERMS + 1)

#: β(t) = Σ 4 (−1)^{j+1} j^{−2} φ_j(t), as coefficients on the 50 cosine functions.
SLOPE_001: FloatArray = frozen(4 * _SIGNS / _TERMS**2)


def simulate_001(
    n: int,
    random_state: Seed = 0,
    *,
    slope: npt.ArrayLike | None = None,
    intercept: float = 0.1,
) -> Dataset:
    """Curves and labels of papers 000 and 001 (001 §6 and §6.1).

    X(t) = Σ_j ξ_j ζ_j φ_j(t), ξ_j uniform on (−√3, √3), ζ_j = (−1)^{j+1}/j, φ the 50 cosine
    functions, and P(y = 1) = 1/(1 + exp(−(0.1 + ∫ X β))).

    Args:
        n: number of people.
        random_state: a seed or a generator; the same seed gives the same people.
        slope: the 50 coefficients of β, by default `SLOPE_001`; 001 §6.2 uses other values for its
            servers.
        intercept: α_0.

    Examples:
        >>> data = simulate_001(500, random_state=1)
        >>> data.X.shape, sorted(set(data.y.tolist()))
        ((500, 101), [-1.0, 1.0])
    """
    generator = np.random.default_rng(random_state)
    beta = np.asarray(SLOPE_001 if slope is None else slope, dtype=np.float64)
    if beta.shape != _TERMS.shape or not np.all(np.isfinite(beta)):
        raise InvalidParameter("slope", "50 finite coefficients", f"shape {beta.shape}")
    grid = np.linspace(0, 1, 101)
    functions = CosineBasis(n_basis=len(_TERMS)).evaluate(grid)
    scores, labels = scores_001(
        (whole("n", n),), generator, slope=beta, intercept=finite("intercept", intercept)
    )
    return Dataset(
        name="simulation_001",
        description="A row is a person; y is drawn from a logistic model in ∫ X β.",
        X=scores @ functions.T,
        y=labels,
        grid_points=grid,
        truth={"slope": functions @ beta},
    )


def scores_001(
    shape: tuple[int, ...],
    generator: np.random.Generator,
    *,
    slope: FloatArray = SLOPE_001,
    intercept: float = 0.1,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients ξ_j ζ_j (*shape, 50) and labels of the people of `simulate_001`.

    Args:
        shape: (people,), or (studies, people) for several studies.
        generator: source of randomness.
        slope: coefficients of β, or (studies, 50) with one row per study.
        intercept: α_0.
    """
    scores = generator.uniform(-np.sqrt(3), np.sqrt(3), (*shape, len(_TERMS)))
    scores *= _SIGNS / _TERMS
    log_odds = intercept + (scores @ slope[..., None])[..., 0]  # the φ_j are orthonormal
    chance = (1 + np.tanh(log_odds / 2)) / 2  # logistic, no overflow
    return scores, signs(generator.random(shape) < chance)


def simulate_003(name: str, n: int, random_state: Seed = 0) -> Dataset:
    """Curves X_i = μ_0 + e_i of paper 003 §6.1, around the means S-1 to S-4.

    The errors are a Gaussian process with covariance exp(−(s − t)²/(2 ℓ²)); the paper does not
    give ℓ, which is 0.2 here. The 25 coefficients of S-4 do not depend on the seed.

    Args:
        name: "S-1" (one rise), "S-2" (two peaks), "S-3" (many peaks) or "S-4" (random).
        n: number of curves.
        random_state: a seed or a generator; the same seed gives the same curves.

    Examples:
        >>> data = simulate_003("S-2", 10, random_state=1)
        >>> data.X.shape, round(float(data.truth["mean"].max()), 2)
        ((10, 101), 5.59)
    """
    generator = np.random.default_rng(random_state)
    grid = np.linspace(0, 1, 101)
    mean = _mean(one_of("name", name, ("S-1", "S-2", "S-3", "S-4")), grid)
    distance = np.subtract.outer(grid, grid) / 0.2
    variances, directions = np.linalg.eigh(np.exp(-(distance**2) / 2))
    root = directions * np.sqrt(np.maximum(variances, 0))
    errors = generator.standard_normal((whole("n", n), len(grid))) @ root.T
    return Dataset(
        name=f"simulation_003_{name}",
        description="A row is a curve: the mean plus a smooth Gaussian error.",
        X=mean + errors,
        grid_points=grid,
        truth={"mean": mean},
    )


def _mean(name: str, t: FloatArray) -> FloatArray:
    if name == "S-1":
        return 10 * t * np.exp(-t)
    if name == "S-2":
        return 0.3 * _bell(t, 0.3, 0.05) + 0.7 * _bell(t, 0.8, 0.05)
    if name == "S-3":
        peaks = _bell(t, 0, 0.03) + _bell(t, 0.2, 0.05) + _bell(t, 0.5, 0.05) + _bell(t, 1, 0.03)
        return 0.2 * (peaks - _bell(t, 0.75, 0.03))
    mean: FloatArray = _matern_functions(t)[:, :25] @ np.random.default_rng(0).uniform(-1, 1, 25)
    return mean


def _bell(t: FloatArray, center: float, width: float) -> FloatArray:
    """Density of a normal distribution with this mean and standard deviation."""
    density: FloatArray = np.exp(-(((t - center) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    return density


def _matern_functions(t: FloatArray) -> FloatArray:
    """Eigenfunctions of the Matérn 3/2 kernel with ρ = 0.1, orthonormal under the trapezoid rule.

    An eigenfunction is unique up to its sign. Here each one is positive at 0, where none vanishes.
    (Some sums of values vanish, so their sign would depend on rounding.)
    """
    scaled = np.sqrt(3) * np.abs(np.subtract.outer(t, t)) / 0.1
    weights = np.gradient(t)
    weights[[0, -1]] /= 2
    root = np.sqrt(weights)
    _, vectors = np.linalg.eigh(root[:, None] * (1 + scaled) * np.exp(-scaled) * root)
    functions: FloatArray = vectors[:, ::-1] / root[:, None]
    functions *= np.sign(functions[0])
    return functions
