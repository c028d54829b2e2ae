"""The adaptive release of a mean: look coarsely, learn how far curves scatter, look again (8.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.basis import FunctionBasis, spline_basis
from dpfda.central.function_mechanism import (
    FunctionMechanism,
    Task,
    additive,
    ellipsoid_noise,
    noise_law,
)
from dpfda.central.quadrature import Grid, norm_bound
from dpfda.central.records import clip_rows, exact_mean
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.mechanisms.base import Mechanism
from dpfda.mechanisms.exponential import Exponential
from dpfda.noise import Source
from dpfda.noise.law import NoiseLaw

_RADII = 32  # candidates 2τ 2^{(2-k)/4}, from 2.8 τ down to τ/76
ONE_LOOK = 200  # nε below which a second look is not worth its budget
_SEARCH_STEPS = 5  # halvings that find one of 32 radii


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How a budget is shared among the steps: public, from n, ε and the number of functions alone.

    Attributes:
        first: share of the first look.
        radius: share of the search for a radius.
        coarse: coefficients of the first look.
        fine: coefficients of the second look.
        outside: share of the curves that the radius should leave outside.
        steepness: p of the prior R^-p over radii.

    Example:
        >>> Schedule.of(Task(n=1000, bound=1.0, epsilon=1.0), most=60).fine
        32
    """

    first: float
    radius: float
    coarse: int
    fine: int
    outside: float
    steepness: float = 2.0

    @property
    def second(self) -> float:
        """Share of the second look: the rest."""
        return 1 - self.first - self.radius

    @classmethod
    def of(cls, task: Task, *, most: int) -> Schedule:
        """Rules in the manner of methods.md 8.5, for pure ε and for (ε, δ).

        The prior prefers small radii: those are cheap, and without it a radius that holds every
        curve wins once in a hundred releases. It may weigh half as much as the evidence: a
        steeper one would choose the smallest radius whatever the curves when n is small.
        """
        strength = task.n * task.epsilon
        fine = min(most, math.ceil(math.sqrt(strength)))
        if task.delta:
            spread = noise_law(_count(task.part(0.05))).scales[0]
            outside = min(0.5, max(0.02, 2 * float(spread) / task.n))
            return cls(first=0.2, radius=0.05, coarse=fine, fine=fine, outside=outside)
        radius = min(0.15, max(0.05, 90 / strength))
        outside = min(0.5, max(0.01, 10 / (strength * radius)))
        evidence = (1 - outside) * strength * radius / 2  # of a good radius against a tiny one
        range_of_radii = (_RADII - 1) / 4 * math.log(2)
        return cls(
            first=0.2,
            radius=radius,
            coarse=min(fine, max(2, math.ceil(0.2 * strength / 16))),
            fine=fine,
            outside=outside,
            steepness=min(4.0, 0.5 * evidence / range_of_radii),
        )


@dataclass(frozen=True, kw_only=True)
class Adaptive(FunctionMechanism, name="adaptive"):
    """Three private looks at the same curves; the default for means.

    1. A coarse mean from all of ‖X‖ ≤ τ, shrunk into a centre c.
    2. A radius R that holds most curves around c, by the exponential mechanism.
    3. The mean of the curves' differences from c, clipped at R: noise falls from τ to R.
    4. For free: both looks combined by inverse variance, then shrunk.

    Privacy:
        ε-DP by adaptive composition: the three budgets add up to ε. (ε, δ) with Gaussian noise:
        shares of μ² add up to that of one Gaussian mechanism. Below nε = 200 a single look. Every
        choice is a function of n, ε, the grid and earlier releases.

    Attributes:
        tilt: a_j = j^-tilt, the shape of the clipping region.
        components: most coefficients ever used; None leaves it to the grid.

    Example:
        >>> Adaptive().name
        'adaptive'
    """

    tilt: float = 0.5
    components: int | None = None

    def release(self, records: FloatArray, grid: Grid, task: Task, source: Source) -> Release:
        """Noisy mean."""
        most = int(np.prod([axis.size for axis in grid]))
        size = min(most, self.components or most)
        basis = spline_basis(grid, size=size)
        coefficients = basis.project(records)
        if task.n * task.epsilon < ONE_LOOK:
            return self._one_look(coefficients, basis, task, source)
        return self._two_looks(coefficients, basis, task, source)

    def _one_look(
        self, rows: FloatArray, basis: FunctionBasis, task: Task, source: Source
    ) -> Release:
        size = min(basis.size, math.ceil((task.n * task.epsilon) ** 0.4))
        mechanism = ellipsoid_noise(task, axes=np.ones(size), radius=task.radius)
        noisy = mechanism.randomize(bounded_mean(rows[:, :size], task.bound)[None], source)[0]
        return _finish(
            noisy, (noise_law(mechanism),), basis, task, source, stages=1, radius=task.bound
        )

    def _two_looks(
        self, rows: FloatArray, basis: FunctionBasis, task: Task, source: Source
    ) -> Release:
        plan = Schedule.of(task, most=basis.size)
        # First look.
        first = ellipsoid_noise(
            task.part(plan.first), axes=np.ones(plan.coarse), radius=task.radius
        )
        mean = bounded_mean(rows[:, : plan.coarse], task.bound)
        coarse = _padded(first.randomize(mean[None], source)[0], plan.fine)
        coarse_law = noise_law(first)
        coarse_variance = _padded(coarse_law.variance, plan.fine, fill=math.inf)
        centre = coarse * _padded(
            monotone_shrinkage(coarse[: plan.coarse], coarse_law.variance), plan.fine
        )
        # How far curves lie from it.
        axes = np.arange(1, plan.fine + 1, dtype=np.float64) ** -float(self.tilt)
        residuals = rows[:, : plan.fine] - centre
        distances = np.sqrt(((residuals / axes) ** 2).sum(axis=1))
        radius = choose_radius(distances, task.part(plan.radius), plan, source)
        # Second look.
        second = ellipsoid_noise(task.part(plan.second), axes=axes, radius=2 * radius / task.n)
        shift = bounded_mean(residuals, radius, axes=axes)
        fine = centre + second.randomize(shift[None], source)[0]
        fine_law = noise_law(second)
        # Combine: weights are public, so the noise of the sum is known.
        weight = 1 / (1 + fine_law.variance / coarse_variance)
        noisy = weight * fine + (1 - weight) * coarse
        laws = (fine_law.times(weight), _widened(coarse_law, plan.fine).times(1 - weight))
        return _finish(noisy, laws, basis, task, source, stages=2, radius=radius)

    @classmethod
    def examples(cls) -> list[Self]:
        """The default and a flat region."""
        return [cls(), cls(tilt=0.0)]


def bounded_mean(rows: FloatArray, radius: float, *, axes: FloatArray | float = 1.0) -> FloatArray:
    """Mean of rows clipped to ‖row/a‖₂ ≤ radius, with a_j ≤ 1, added exactly."""
    return exact_mean(clip_rows(rows, radius, axes=axes), bound=radius)


def radii(bound: float) -> FloatArray:
    """Public candidates for the radius, largest first."""
    return np.asarray(2 * bound * 2.0 ** ((2 - np.arange(_RADII)) / 4))


def radius_choice(epsilon: float, *, steepness: float) -> Exponential:
    """Exponential mechanism over the radii with prior ∝ R^-steepness."""
    prior = tuple(round(1024 * 2 ** (steepness * k / 4)) for k in range(_RADII))
    return Exponential(epsilon=epsilon, prior=prior)


def radius_scores(distances: FloatArray, bound: float, *, outside: float) -> FloatArray:
    """How far each candidate is from leaving a share `outside` of the curves outside; integers."""
    target = round((1 - outside) * distances.size)
    within = np.searchsorted(np.sort(distances), radii(bound), side="right")
    return np.abs(within - target).astype(np.float64)


def choose_radius(distances: FloatArray, task: Task, plan: Schedule, source: Source) -> float:
    """A radius that holds most of the distances, for the task's share of the budget."""
    candidates = radii(task.bound)
    if not task.delta:
        scores = radius_scores(distances, task.bound, outside=plan.outside)
        choice = radius_choice(task.epsilon * task.share, steepness=plan.steepness)
        return float(candidates[int(choice.randomize(scores[None], source)[0])])
    wanted = (1 - plan.outside) * task.n
    rising = candidates[::-1]
    low, high = 0, _RADII - 1
    while low < high:  # `_SEARCH_STEPS` noisy halvings
        middle = (low + high) // 2
        inside = float(np.sum(distances <= rising[middle]))
        if _count(task).randomize([[inside]], source)[0, 0] >= wanted:
            high = middle
        else:
            low = middle + 1
    return float(rising[high])


def _count(task: Task) -> Mechanism:
    """Noise on one of the counts that share the task's budget; a neighbour moves each by 1."""
    return additive(task.part(task.share / _SEARCH_STEPS), sensitivity=1.0, axes=np.ones(1))


def _finish(
    noisy: FloatArray,
    laws: tuple[NoiseLaw, ...],
    basis: FunctionBasis,
    task: Task,
    source: Source,
    *,
    stages: int,
    radius: float,
) -> Release:
    variance = np.asarray(sum(law.variance for law in laws))
    return Release(
        summary="mean",
        coefficients=monotone_shrinkage(noisy, variance) * noisy,
        noisy=noisy,
        noise=laws,
        basis=basis.first(noisy.size),
        centre=np.zeros(basis.weights.size),
        guarantee=task.guarantee.drawn_from(source),
        sensitivity=2 * radius / task.n,
        parameters={
            "mechanism": "adaptive",
            "components": noisy.size,
            "stages": stages,
            "radius": radius / norm_bound(1.0, basis.grid),  # in the norm that bounds are given in
        },
    )


def _widened(law: NoiseLaw, size: int) -> NoiseLaw:
    """The same law with zero noise on further coefficients."""
    known = law.scales.size
    blocks = (*law.blocks, (known, size)) if law.blocks and size > known else law.blocks
    return replace(law, scales=_padded(law.scales, size), blocks=blocks)


def _padded(values: FloatArray, size: int, *, fill: float = 0.0) -> FloatArray:
    return np.concatenate([values, np.full(size - values.size, fill)])
