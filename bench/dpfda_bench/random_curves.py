"""Random curves in a public range: the law behind `dpfda bench honesty`.

A problem hides a shape (smooth, fast, spiky, heavy-tailed, discrete), its place in the public range
and how much of that range it fills. The number of curves, ε, δ and the grid are public. Errors are
relative to the squared half-width of the range, so that problems can be averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.stats import norm

from dpfda._validate import FloatArray

Shape = Literal["smooth", "fast", "spiky", "heavy", "discrete"]
Slack = Literal["right", "wide3", "wide10", "small3", "shifted"]

SHAPES: tuple[Shape, ...] = get_args(Shape)
HOLDING: tuple[Slack, ...] = ("right", "wide3", "wide10")
"""Ranges that hold nearly all values."""
WRONG: tuple[Slack, ...] = ("small3", "shifted")
"""Ranges that do not: only a warning can be asked for."""

_FILLED: dict[Slack, float] = {"right": 1.0, "wide3": 3.0, "wide10": 10.0, "small3": 1 / 3}
_LENGTHS = (12, 24, 50, 100, 168)  # points of a curve
_COVERED = 0.999  # share of all values that a right range holds
_ROUNDED_UP = 1.5  # by how much a careful curator rounds a norm bound up, at most
_ROUGH = 0.05  # deviation of what is independent at each point, in units of the spread
_LARGEST_LOG_RATE = 4.0  # of counts
_REFERENCE = 4000  # curves from which a right range is computed: of the population, not the sample


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveProblem:
    """Curves of n people and what is public about them.

    Attributes:
        shape: of the curves.
        slack: how the public range compares with the values.
        grid_points: where curves are known.
        curves: (n, points).
        population: mean curve of the population.
        value_range: the public range.
        norm_bound: public bound on the root mean square of a curve minus the center of the range.
        reference: other curves of the same population.
    """

    shape: Shape
    slack: Slack
    grid_points: FloatArray
    curves: FloatArray
    population: FloatArray
    value_range: tuple[float, float]
    norm_bound: float
    reference: FloatArray

    @property
    def half_width(self) -> float:
        """Half the width of the public range."""
        low, high = self.value_range
        return (high - low) / 2

    @property
    def right_width(self) -> float:
        """The width of a right range for the same curves."""
        return 2 * self.half_width / _FILLED.get(self.slack, 1.0)

    def error(self, curve: FloatArray, *, of: FloatArray | None = None) -> float:
        """Mean squared distance from the sample's mean (or another curve), over (half range)²."""
        truth = self.curves.mean(0) if of is None else of
        return float(np.mean((curve - truth) ** 2)) / self.half_width**2

    @property
    def center(self) -> FloatArray:
        """The center of the public range at every point: what is known without any data."""
        return np.full(self.grid_points.size, sum(self.value_range) / 2)


def problem(seed: int, *, shape: Shape, slack: Slack, n: int) -> CurveProblem:
    """Draw one problem; everything about it follows from the arguments."""
    rng = np.random.default_rng([seed, SHAPES.index(shape), n])
    t = np.linspace(0.0, 1.0, int(rng.choice(_LENGTHS)))
    mean, draw = _population(shape, t, rng)
    reference = draw(_REFERENCE)
    unit, origin = 10 ** rng.uniform(-3, 3), rng.normal()
    reference = unit * (reference + origin)
    low, high = np.quantile(reference, [(1 - _COVERED) / 2, (1 + _COVERED) / 2])
    curves = unit * (draw(n) + origin)
    value_range = public_range(float(low), float(high), slack, rng)
    norms = np.sqrt(np.mean((reference - (low + high) / 2) ** 2, axis=1))
    bound = float(np.quantile(norms, _COVERED)) * rng.uniform(1.0, _ROUNDED_UP)
    if slack in ("wide3", "wide10"):
        bound = (value_range[1] - value_range[0]) / 2  # the ball of a range that wide
    return CurveProblem(
        shape=shape,
        slack=slack,
        grid_points=t,
        curves=curves,
        population=unit * (mean + origin),
        value_range=value_range,
        norm_bound=bound / 3 if slack == "small3" else bound,
        reference=reference,
    )


def public_range(
    low: float, high: float, slack: Slack, rng: np.random.Generator
) -> tuple[float, float]:
    """A public range around (or beside) the values; where they lie in it is uniform."""
    width = high - low
    if slack == "shifted":
        by = width * rng.uniform(0.5, 1.0) * rng.choice([-1, 1])
        return low + by, high + by
    wide = width * _FILLED[slack]
    start = low + rng.uniform() * (width - wide)
    return start, start + wide


def _population(
    shape: Shape, t: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, Callable[[int], FloatArray]]:
    """The mean curve and a function that draws curves about it."""
    waves = np.arange(1, 6)
    smooth = np.cos(np.pi * waves[:, None] * t)
    decay = waves ** -rng.uniform(1.0, 2.0)
    level = rng.normal()
    body = level + (rng.normal(size=5) * decay) @ smooth
    spread = 10 ** rng.uniform(-1.0, 0.3)

    def scatter(n: int, tails: float = np.inf) -> FloatArray:
        scores = rng.normal(size=(n, 6))
        if np.isfinite(tails):
            scores /= np.sqrt(rng.chisquare(tails, size=(n, 1)) / tails)
        rough = _ROUGH * rng.normal(size=(n, t.size))
        return np.asarray(spread * (scores[:, :1] + (scores[:, 1:] * decay) @ smooth + rough))

    if shape == "fast":
        most = max(2, t.size // 5)
        turns = rng.integers(min(5, most), most + 1)
        body = body * 0.3 + 2 * np.sin(2 * np.pi * (turns * t + rng.uniform()))
    elif shape == "spiky":
        places, width = rng.uniform(size=(3, 1)), rng.uniform(0.01, 0.04)
        body = body * 0.3 + 3 * np.exp(-0.5 * ((t - places) / width) ** 2).sum(0)
    elif shape == "heavy":
        return body, lambda n: body + scatter(n, tails=3.0)
    elif shape == "discrete":
        scale = 10 ** rng.uniform(0.0, 2.0)

        def counts(n: int) -> FloatArray:
            rates = scale * np.exp(np.minimum(body + 0.5 * scatter(n), _LARGEST_LOG_RATE))
            return rng.poisson(rates).astype(np.float64)

        deviation = 0.5 * spread * np.sqrt(1 + ((decay[:, None] * smooth) ** 2).sum(0) + _ROUGH**2)
        return scale * _capped_lognormal_mean(body, deviation, _LARGEST_LOG_RATE), counts
    return body, lambda n: body + scatter(n)


def _capped_lognormal_mean(mean: FloatArray, deviation: FloatArray, cap: float) -> FloatArray:
    """Expectation of exp(min(Z, cap)) for normal Z."""
    below = norm.cdf((cap - mean - deviation**2) / deviation)
    above = norm.sf((cap - mean) / deviation)
    return np.asarray(np.exp(mean + deviation**2 / 2) * below + np.exp(cap) * above)
