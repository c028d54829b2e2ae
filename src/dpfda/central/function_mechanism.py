"""The one interface of mechanisms that release a mean function."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.central.basis import FunctionBasis
from dpfda.central.quadrature import Grid
from dpfda.central.records import clip_rows, exact_mean
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.additive_laplace import AdditiveLaplace
from dpfda.mechanisms.base import Mechanism
from dpfda.mechanisms.ellipsoid_laplace import EllipsoidLaplace
from dpfda.mechanisms.gaussian import Gaussian
from dpfda.noise import Source
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.calibration import gaussian_mu
from dpfda.privacy.guarantee import Guarantee


@dataclass(frozen=True, kw_only=True)
class Task:
    """The public side of one release: how many curves, how large they may be, what it may cost.

    `share` is what one step of several may spend: a part of ε, or of μ² when there is a δ (Gaussian
    releases with μ_i compose to μ² = Σ μ_i²). `bound` is on √∫X² (`quadrature.norm_bound`), or on
    the largest |X(t)| for a mechanism that says so.

    Example:
        >>> Task(n=100, bound=1.0, epsilon=1.0).radius
        0.02
    """

    n: int
    bound: float
    epsilon: float
    delta: float = 0.0
    share: float = 1.0
    unit: str = "person"

    def __post_init__(self) -> None:
        _validate.whole("n", self.n, least=2)
        _validate.positive("bound", self.bound)
        _validate.positive("epsilon", self.epsilon)
        if self.delta:
            _validate.fraction("delta", self.delta)
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise InvalidParameter("unit", "a word for whose data one row is", self.unit)

    @property
    def radius(self) -> float:
        """2τ/n: how far one replaced curve can move the mean."""
        return 2 * self.bound / self.n

    def part(self, share: float) -> Task:
        """The same task for a step that may spend `share` of the budget."""
        return replace(self, share=share)

    @property
    def guarantee(self) -> Guarantee:
        """The promise of a release that spends everything."""
        return Guarantee(epsilon=self.epsilon, delta=self.delta, model="central", unit=self.unit)


@dataclass(frozen=True, kw_only=True)
class FunctionMechanism(Registered, family="function mechanism"):
    """Releases the mean of curves; a new one is one file that fills in `release`."""

    needs_delta: ClassVar[bool] = False
    bounds_largest: ClassVar[bool] = False  # its bound is on the largest |X(t)|, not on the norm

    @abstractmethod
    def release(self, records: FloatArray, grid: Grid, task: Task, source: Source) -> Release:
        """Noisy mean of records (n, points), which are clipped here."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks and audits."""

    def check(self, task: Task) -> None:
        """Refuse a task with a δ that would be ignored, or without one that is needed."""
        if self.needs_delta and not task.delta:
            raise InvalidParameter("delta", f"above 0 for the {self.name} mechanism", task.delta)
        if task.delta and not self.needs_delta:
            raise InvalidParameter("delta", f"0 for the {self.name} mechanism", task.delta)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A linear release, laid out before any data: shrink, add noise along axes.

    Attributes:
        basis: where coefficients are taken.
        factors: s_j, multiplied to the mean coefficients.
        axes: a_j, shape of the noise.
        sensitivity: S with Σ|h_j|/a_j ≤ S (Laplace) or ‖h/a‖₂ ≤ S (Gaussian) for neighbours.
        threshold: soft threshold applied to the mean coefficients; zeros for none.
        parameters: public choices, for the record.
    """

    basis: FunctionBasis
    factors: FloatArray
    axes: FloatArray
    sensitivity: float
    task: Task
    threshold: FloatArray | float = 0.0
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def mechanism(self) -> Mechanism:
        """The exact noise on the coefficients."""
        return additive(self.task, sensitivity=self.sensitivity, axes=self.axes)

    @property
    def noise(self) -> NoiseLaw:
        """Law of the noise on each coefficient."""
        return noise_law(self.mechanism)

    @property
    def privacy_error(self) -> float:
        """E‖noise‖², known before any data."""
        return float(self.noise.variance.sum())

    def summary(self, records: FloatArray) -> FloatArray:
        """What would be released without noise: clipped, averaged, shrunk coefficients (J,)."""
        rows = clip_rows(self.basis.project(records), self.task.bound)
        return self.shrink(exact_mean(rows, bound=self.task.bound))

    def shrink(self, mean: FloatArray) -> FloatArray:
        """Soft threshold, then factors."""
        soft = np.sign(mean) * np.maximum(np.abs(mean) - self.threshold, 0.0)
        return np.asarray(self.factors * soft)

    def release(self, records: FloatArray, source: Source) -> Release:
        """Add the noise."""
        noisy = self.mechanism.randomize(self.summary(records)[None, :], source)[0]
        return Release(
            summary="mean",
            coefficients=noisy,
            noisy=noisy,
            noise=(self.noise,),
            basis=self.basis,
            centre=np.zeros(self.basis.weights.size),
            guarantee=self.task.guarantee.drawn_from(source),
            sensitivity=self.sensitivity,
            parameters=self.parameters,
        )


def additive(task: Task, *, sensitivity: float, axes: FloatArray) -> Mechanism:
    """Laplace noise for pure ε, Gaussian noise when the task allows a δ; for the task's share."""
    shape = tuple(float(axis) for axis in axes)
    if not task.delta:
        return AdditiveLaplace(
            epsilon=task.epsilon * task.share, sensitivity=sensitivity, axes=shape
        )
    mu = gaussian_mu(epsilon=task.epsilon, delta=task.delta) * task.share**0.5
    return Gaussian(mu=mu, delta=task.delta, sensitivity=sensitivity, axes=shape)


def ellipsoid_noise(task: Task, *, axes: FloatArray, radius: float) -> Mechanism:
    """Exact noise for neighbours that differ by d with ‖d/a‖₂ ≤ radius, for the task's share."""
    if task.delta:
        return additive(task, sensitivity=radius, axes=axes)
    return EllipsoidLaplace(
        epsilon=task.epsilon * task.share,
        sensitivity=radius,
        axes=tuple(float(axis) for axis in axes),
    )


def noise_law(mechanism: Mechanism) -> NoiseLaw:
    """The law that an additive mechanism adds."""
    assert isinstance(mechanism, Additive)
    return mechanism.law
