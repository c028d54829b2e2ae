"""Curves of known mean, of four kinds: Gaussian, heavy tails, skewed, very skewed."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray

T = np.linspace(0, 1, 60)
MEAN = np.sin(2 * np.pi * T) + T
RANGE = (-12.0, 12.0)  # public, as a careful curator would state it
_WAVES = 12
_SHAPES = np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(_WAVES), T))
_SHAPES[0] = 1.0
_SPREAD = np.arange(1, _WAVES + 1) ** -1.2
FAMILIES = ("gaussian", "t3", "exponential", "lognormal")


def curves(family: str, n: int, seed: int, *, factor: float = 1.0) -> FloatArray:
    """n curves about `MEAN`; `factor` times as far from it."""
    rng = np.random.default_rng([FAMILIES.index(family), n, seed])
    scores = _scores(family, rng, n) * _SPREAD
    return np.asarray(MEAN + factor * scores @ _SHAPES)


def _scores(family: str, rng: np.random.Generator, n: int) -> FloatArray:
    """Of mean 0 and variance 1."""
    shape = n, _WAVES
    if family == "t3":
        return np.asarray(rng.standard_t(3, size=shape) / np.sqrt(3))
    if family == "exponential":
        return np.asarray(rng.exponential(size=shape) - 1)
    if family == "lognormal":  # σ = ½: mean e^{1/8}, variance (e^{1/4} - 1)e^{1/4}
        raw = np.exp(0.5 * rng.standard_normal(shape)) - np.exp(0.125)
        return np.asarray(raw / np.sqrt((np.exp(0.25) - 1) * np.exp(0.25)))
    return rng.standard_normal(shape)
