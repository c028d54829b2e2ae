"""How far the codewords nearest to a direction point along it: sums over caps of a sphere."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainc, betaln

from dpfda._validate import FloatArray

_NODES = 200


def limit_gain(dimension: int, epsilon: float, *, buckets: int = 1) -> float:
    """Gain of infinitely many codewords, best cap (docs/methods/codeword-reports.md).

    Examples:
        >>> [round(limit_gain(8, epsilon) ** 2, 2) for epsilon in (1.0, 5.0)]
        [0.17, 2.91]
    """
    return limit_cap(dimension, epsilon, buckets=buckets)[1]


@lru_cache(maxsize=1024)
def limit_cap(dimension: int, epsilon: float, *, buckets: int = 1) -> tuple[float, float]:
    """The share of infinitely many codewords in the best cap, and its gain."""
    more = math.expm1(epsilon)
    share, first = _caps(dimension)
    gains = first * more / (share * more + buckets)
    best = int(gains.argmax())
    return float(share[best]), float(gains[best])


@lru_cache(maxsize=1 << 14)
def cap_sums(dimension: int, half: int, cap: int) -> tuple[float, float]:
    """E of Σ t and Σ t² over the s largest of B/2 sizes t of projections on a line.

    One of them is among the s largest if at most s - 1 of the B/2 - 1 others exceed it.
    """
    if dimension == 1:  # all have size 1
        return float(cap), float(cap)
    # Where many are compared, they are told apart within steps of 1/√B.
    t, above, mass = _projections(dimension, _NODES + 16 * math.isqrt(half))
    # A cap that holds everything has no others below it.
    among = 1 - betainc(cap, half - cap, above) if cap < half else np.ones(len(t))
    return float(among @ (t * mass)) * half, float(among @ (t * t * mass)) * half


@lru_cache(maxsize=64)
def _caps(dimension: int) -> tuple[FloatArray, FloatArray]:
    """Shares of all codewords in caps of many sizes, and E of the projection t over each cap."""
    if dimension == 1:
        return np.array([0.5]), np.array([0.5])
    sines, _, _ = _angles(8 * _NODES)
    other = (dimension - 1) / 2
    share = betainc(other, 0.5, sines**2) / 2
    # ∫ √D cos θ over the density of θ, in closed form.
    logs = 2 * other * np.log(sines) - betaln(0.5, other)
    return share, np.exp(logs) * (math.sqrt(dimension) / (2 * other))


@lru_cache(maxsize=64)
def _projections(dimension: int, nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sizes of projections of a codeword, how likely larger ones are, and each one's mass.

    They are √D cos θ with density sin^(D-2) θ, θ in [0, π/2], D > 1.
    """
    sines, cosines, steps = _angles(nodes)
    other = (dimension - 1) / 2
    logs = (dimension - 2) * np.log(sines) - betaln(0.5, other)
    above = betainc(other, 0.5, sines**2)
    return math.sqrt(dimension) * cosines, above, 2 * np.exp(logs) * steps


@lru_cache(maxsize=64)
def _angles(nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """sin θ, cos θ and the weights of a rule of integration over θ in [0, π/2].

    What counts lies at θ = 0 for small caps and at π/2 for large D: the nodes of the double
    exponential rule (Takahasi & Mori 1974) are dense at both ends. The error of sums over caps is
    below 1e-8 of them.
    """
    x = np.linspace(-3.0, 3.0, nodes)
    y = math.pi / 2 * np.sinh(x)
    steps = (x[1] - x[0]) * (math.pi / 2) ** 2 * np.cosh(x) / (2 * np.cosh(y) ** 2)
    sines, cosines = (np.sin(math.pi / 2 / (1 + np.exp(2 * sign * y))) for sign in (-1, 1))
    return sines, cosines, steps
