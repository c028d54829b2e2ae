"""First question of the two-stage release: where are the rows, and how far do they spread?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray
from dpfda.regression.fixed_point import BITS, ball, segment
from dpfda.regression.problem import Problem
from dpfda.regression.sensitivity import LOCATION_WEIGHT
from dpfda.regression.stage import Noisy, Stage

_TARGET_WEIGHT = 0.5
_LEAST_SPREAD = 0.01  # of mean |z|²; a radius of zero would clip everything
_LEAST_TARGET_SPREAD = 0.003
_RADIUS = (0.7, 2.5)  # clipping radius in root-mean-square distances: few rows, many rows
_FEW = 400.0  # nμ/√D: below, noise is what hurts; above, clipping is
_PRIOR = 1 / 3  # variance of a target mean that is anywhere in its public range
_TARGET_RADIUS = 2.5  # in standard deviations


@dataclass(frozen=True)
class Location:
    """Public estimates of centre and spread.

    Attributes:
        center, radius: where the second stage clips rows.
        spread: noisy estimate of the mean squared distance of rows from `center`.
        target_center, target_radius: where it clips targets.
        target_variance: noisy estimate.
    """

    center: FloatArray
    radius: float
    spread: float
    target_center: float
    target_radius: float
    target_variance: float


@dataclass(frozen=True, kw_only=True)
class LocationStage(Stage):
    """Σ (z, 1.6|z|², ½v, 0.8v²) with z, v the row and target in their public balls (methods 8.9).

    Privacy:
        Euclidean sensitivity √(2² + 1²): (z, 1.6|z|²) moves by at most 2, the squared norm rides
        free, and (½v, 0.8v²) = ½(v, 1.6v²) by at most 1. Sum of absolutes: 2√D + 1.6 and 1 + 0.8.
    """

    problem: Problem

    @property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        line, square = 2.0**-BITS, LOCATION_WEIGHT * 2.0 ** (-2 * BITS)
        ends = [square, _TARGET_WEIGHT * line, _TARGET_WEIGHT * square]
        return np.concatenate([np.full(self.problem.dimension, line), ends])

    @property
    def sensitivity(self) -> float:
        """√5 in ℓ2; in ℓ1 the parts add up."""
        if self.noise == "gaussian":
            return math.sqrt(4.0 + 4.0 * _TARGET_WEIGHT**2)
        rows = 2 * math.sqrt(self.problem.dimension) + LOCATION_WEIGHT
        return rows + _TARGET_WEIGHT * (2 + LOCATION_WEIGHT)

    def block(self, rows: FloatArray, targets: FloatArray) -> FloatArray:
        """Exact sums of z, |z|², v, v²."""
        z = ball(rows, center=self.problem.center, radius=self.problem.radius)
        v = segment(targets, center=self.problem.target_center, radius=self.problem.target_radius)
        return np.concatenate([np.ones(len(z)) @ z, [np.vdot(z, z), v.sum(), v @ v]])

    def read(self, answer: Noisy) -> Location:
        """Centre and spread from the noisy sums (free post-processing)."""
        problem, dimension = self.problem, self.problem.dimension
        mean, noise = answer.values / answer.n, answer.sigma / answer.n
        z = mean[:dimension]
        square = float(np.clip(mean[dimension] / LOCATION_WEIGHT, 0.0, 1.0))
        # The mean is shrunk to the public centre by its own noise: this matters for few rows only.
        v = mean[-2] / _TARGET_WEIGHT * _PRIOR / (_PRIOR + (noise / _TARGET_WEIGHT) ** 2)
        v = float(np.clip(v, -1.0, 1.0))
        v_square = float(np.clip(mean[-1] / (_TARGET_WEIGHT * LOCATION_WEIGHT), 0.0, 1.0))
        if problem.fit_intercept:
            shift, kept = shrink_to_mean(z, noise)
        else:
            shift, kept, v = np.zeros(dimension), 0.0, 0.0
        # E|z - c|², with the noise that z and c share taken out of their product
        shared = float(z @ shift) - kept * dimension * noise**2
        spread = max(square - 2 * shared + float(shift @ shift), _LEAST_SPREAD)
        variance = max(v_square - v * v, _LEAST_TARGET_SPREAD)
        target_radius = min(_TARGET_RADIUS * math.sqrt(variance), 1 + abs(v))
        return Location(
            center=problem.center + problem.radius * shift,
            radius=radius_factor(answer, dimension) * math.sqrt(spread) * problem.radius,
            spread=spread * problem.radius**2,
            target_center=problem.target_center + problem.target_radius * v,
            target_radius=target_radius * problem.target_radius,
            target_variance=variance * problem.target_radius**2,
        )


def radius_factor(answer: Noisy, dimension: int) -> float:
    """How many root-mean-square distances the second stage keeps: more, the less noise there is."""
    clarity = math.sqrt(5.0) * answer.n / (answer.sigma * math.sqrt(0.2 * dimension))
    low, high = _RADIUS
    return float(min(max(low * (clarity / _FEW) ** (1 / 3), low), high))


def shrink_to_mean(noisy: FloatArray, noise: float) -> tuple[FloatArray, float]:
    """A noisy vector shrunk to its average by its signal-to-noise ratio, inside the unit ball."""
    average = float(noisy.mean())
    signal = max(float(noisy.var()) - noise**2, 0.0)
    kept = signal / (signal + noise**2)
    shrunk = average + (noisy - average) * kept
    return np.asarray(shrunk / max(1.0, float(np.linalg.norm(shrunk)))), kept
