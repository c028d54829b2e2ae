"""Additive noise: Laplace for a person's vector, Laplace and Gaussian for a curator's vector.

All noise is drawn as integers on a lattice. A curator's noise has axes, which scale its
coordinates, and a stated law, with which the error of the release is computed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.base import BoxMechanism, Mechanism
from dpfda.noise import Source, discrete_gaussian, discrete_laplace
from dpfda.noise.discrete import fine_step, whole_steps
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.calibration import gaussian_epsilon, gaussian_mu, lattice_charge
from dpfda.privacy.events import Event, GaussianEvent, LaplaceEvent, PureEvent
from dpfda.privacy.guarantee import Guarantee

ROUNDING_STEPS = 2
"""Largest distance in steps that rounding can add between two neighboring coordinates: one step for
the rounding, and a margin for the floating-point error of the division and of the computation of
the value."""
LEAST_STEP, MOST_STEP = 1e-150, 1e140
"""Range of a lattice step, and of the sensitivity and axes from which it is computed. Inside this
range, steps, scales, variances and 2^52 steps are normal floats. Below it they lose digits and
become 0, and the sign of a released zero would reveal the sign of the value without noise. Above it
they overflow."""


@dataclass(frozen=True, kw_only=True)
class Additive(Mechanism):
    """Integer noise on a lattice, added to a vector of bounded sensitivity.

    A subclass defines the size of the noise (`scales`), its draw (`_integers`) and the norm of the
    sensitivity (`reach`). Rounding, adding and worst cases are implemented here.

    Attributes:
        sensitivity: S; the caller guarantees ``reach(h) <= S`` for neighbors that differ by h.
        axes: the a_j, all above 0, one for each coordinate.
    """

    model = "central"
    kind: ClassVar[Literal["laplace", "gaussian", "spherical"]]
    """The law of the noise."""
    steps: ClassVar[int]
    """Lattice steps in one scale of the noise."""

    sensitivity: float
    axes: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        _in_range("sensitivity", _validate.positive("sensitivity", self.sensitivity))
        object.__setattr__(self, "axes", _checked_axes(self.axes))
        with np.errstate(all="ignore"):  # an overflow is refused
            steps = self.lattice_step
        for extreme in (steps.min(), steps.max()):
            _in_range("noise", float(extreme))

    @property
    @abstractmethod
    def scales(self) -> FloatArray:
        """Scale of the noise on each coordinate, enlarged to cover rounding (C20)."""

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise in its continuous approximation."""
        return NoiseLaw(law=self.kind, scales=self.scales)

    def reach(self, difference: FloatArray) -> float:
        """Distance of two vectors in the norm of `sensitivity`: ‖h/a‖₂."""
        return float(np.linalg.norm(difference / np.asarray(self.axes)))

    @abstractmethod
    def _integers(self, rows: int, source: Source) -> IntArray:
        """Noise in lattice steps, shape (rows, J)."""

    @cached_property
    def lattice_step(self) -> FloatArray:
        """Width of the lattice along each coordinate."""
        return self.scales / self.steps

    def lattice(self, values: FloatArray, *, clip: bool = True) -> IntArray:
        """Vectors as integer numbers of steps."""
        return whole_steps(values, self.lattice_step, clip=clip)

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy vectors, shape (n, J); each row is a release of its own."""
        rows = _validate.batch("values", values, columns=len(self.axes))
        noise = self._integers(len(rows), source)
        return np.asarray((self.lattice(rows, clip=clip) + noise) * self.lattice_step)

    @property
    def depth_shape(self) -> float:
        """J for a density ∝ e^{-‖x‖}; J/2 for Gaussian noise."""
        return len(self.axes) / (2 if self.kind == "gaussian" else 1)

    def variance(self, values: ArrayLike) -> FloatArray:
        """Variance of the continuous law; the lattice changes it by at most a relative 2^-40."""
        return np.broadcast_to(self.law.variance, np.shape(values)).copy()

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Differences in one coordinate only, spread evenly, and spread unevenly."""
        size = len(self.axes)
        first, spread = np.zeros((1, size)), self._worst_direction()[None, :]
        first[0, 0] = self.sensitivity * self.axes[0]
        ways = [spread, spread * np.linspace(-1.0, 1.0, size)] if size > 2 else [spread]
        halves = [way * (self.sensitivity / self.reach(way) / 2) for way in ways]
        return [(first, np.zeros_like(first)), *((half, -half) for half in halves)]

    def _worst_direction(self) -> FloatArray:
        return np.asarray(self.axes)

    def _distance(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Reports minus values, in units of the scale."""
        reported, true = (
            np.rint(np.asarray(x) / self.lattice_step).astype(np.int64) for x in (reports, values)
        )
        return np.asarray((reported - true) / self.steps)


def _checked_axes(axes: Iterable[float]) -> tuple[float, ...]:
    """Public axes as a tuple of finite numbers above 0."""
    checked = tuple(map(float, axes))
    if not checked:
        raise InvalidParameter("axes", "at least one number", axes)
    for extreme in (np.min(checked), np.max(checked)):  # the minimum with a NaN is NaN
        _in_range("axes", _validate.positive("axes", float(extreme)))
    return checked


def _in_range(name: str, value: float) -> None:
    """Refuse a number that is outside the range of lattice steps; NaN is in no range."""
    if not LEAST_STEP <= value <= MOST_STEP:
        rule = f"from {LEAST_STEP:g} to {MOST_STEP:g} (choose other units of the data)"
        raise InvalidParameter(name, rule, value)


@dataclass(frozen=True, kw_only=True)
class AdditiveLaplace(Additive, name="additive_laplace"):
    """Add Laplace noise of scale a_j S/ε to coordinate j, where Σ |h_j|/a_j ≤ S for neighbors.

    With equal axes this is the Laplace mechanism in ℓ1. With axes √λ_j it is the ICLP mechanism in
    the norm ‖·‖_{1,C} of 003.

    Privacy:
        ε-DP for any release whose neighbors differ by h with Σ |h_j|/a_j ≤ S. Noise is discrete
        Laplace on a lattice of 2^26 steps per scale. The scale is enlarged to cover what rounding
        the values to the lattice can add to S (C20). The caller guarantees S.

    Examples:
        >>> AdditiveLaplace(epsilon=0.5, sensitivity=1.0, axes=(1.0, 2.0)).scales.round(3)
        array([2., 4.])
    """

    # Values up to 2^25 noise scales fit the lattice; rounding costs 3e-8 of ε each.
    kind = "laplace"
    steps: ClassVar[int] = 1 << 26

    @cached_property
    def scales(self) -> FloatArray:
        """The scale b_j of each coordinate."""
        # Σ (|h_j| + r b_j/2^26)/b_j ≤ ε  with  b_j = a_j S / (ε - r J/2^26).
        left = self.epsilon - ROUNDING_STEPS * len(self.axes) / self.steps
        _validate.positive("epsilon minus the cost of rounding", left)
        return np.asarray(self.axes) * (self.sensitivity / left)

    def reach(self, difference: FloatArray) -> float:
        """The weighted ℓ1 norm Σ |h_j|/a_j of a difference."""
        return float((np.abs(difference) / np.asarray(self.axes)).sum())

    def _integers(self, rows: int, source: Source) -> IntArray:
        size = len(self.axes)
        return discrete_laplace(rows * size, scale=self.steps, source=source).reshape(rows, size)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each noisy vector."""
        constant = math.log(math.tanh(1 / (2 * self.steps)))
        return np.asarray((constant - np.abs(self._distance(reports, values))).sum(axis=1))

    @classmethod
    def examples(cls) -> list[Self]:
        """Equal and unequal axes."""
        return [
            cls(epsilon=1.0, sensitivity=2.0),
            cls(epsilon=0.5, sensitivity=0.1, axes=(1.0, 0.5, 0.1)),
        ]


@dataclass(frozen=True, kw_only=True)
class Gaussian(Additive, name="gaussian"):
    """Add Gaussian noise of standard deviation a_j S/μ to coordinate j, where ‖h/a‖₂ ≤ S.

    Releases with μ_1, μ_2, ... compose to one with μ² = Σ μ_i².

    Privacy:
        μ-Gaussian DP for any release whose neighbors differ by h with √Σ(h_j/a_j)² ≤ S, which is
        (ε, δ)-DP with the ε that `guarantee` states (Balle & Wang 2018). S is enlarged to cover
        rounding to the lattice (C20). Noise is discrete Gaussian on a lattice of 2^24 steps per
        standard deviation. The caller guarantees S.

    Attributes:
        mu: μ, the budget of this release.
        delta: the δ at which `guarantee` states ε.

    Examples:
        >>> Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0).scales.round(2)
        array([3.73])
    """

    kind = "gaussian"
    steps: ClassVar[int] = 1 << 24

    epsilon: float = field(init=False)
    mu: float
    delta: float = 1e-5

    def __post_init__(self) -> None:
        _validate.positive("mu", self.mu)
        _validate.fraction("delta", self.delta)
        epsilon = gaussian_epsilon(delta=self.delta, multiplier=1 / self.mu)
        object.__setattr__(self, "epsilon", max(epsilon, 1e-6))
        super().__post_init__()

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: float,
        axes: tuple[float, ...] = (1.0,),
    ) -> Self:
        """The smallest noise that is (ε, δ)-DP."""
        mu = gaussian_mu(epsilon=epsilon, delta=delta)
        return cls(mu=mu, delta=delta, sensitivity=sensitivity, axes=axes)

    @cached_property
    def scales(self) -> FloatArray:
        """The standard deviation of the noise on each coordinate."""
        # ‖h/a‖ + r √J σ/2^24 ≤ σ (μ - what discreteness costs).
        size = len(self.axes)
        rounding = ROUNDING_STEPS * math.sqrt(size) / self.steps
        rounding += lattice_charge(coordinates=size, steps=self.steps, mu=self.mu)
        left = _validate.positive("mu minus the cost of rounding", self.mu - rounding)
        return np.asarray(self.axes) * (self.sensitivity / left)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release, with its δ."""
        return replace(super().guarantee, delta=self.delta)

    @property
    def event(self) -> Event:
        """Gaussian noise with the multiplier 1/μ, which includes the cost of rounding."""
        return GaussianEvent(multiplier=1 / self.mu)

    def _integers(self, rows: int, source: Source) -> IntArray:
        size = len(self.axes)
        return discrete_gaussian(rows * size, sigma=self.steps, source=source).reshape(rows, size)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each noisy vector."""
        constant = -math.log(self.steps * math.sqrt(2 * math.pi))
        return np.asarray((constant - self._distance(reports, values) ** 2 / 2).sum(axis=1))

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate and three."""
        return [
            cls.calibrated(epsilon=1.0, delta=1e-2, sensitivity=1.0),
            cls.calibrated(epsilon=0.5, delta=0.05, sensitivity=2.0, axes=(1.0, 0.5, 0.1)),
        ]


_MOST_EPSILON = float(1 << 30)  # per coordinate; beyond it, ±1 is too many lattice steps from 0


@dataclass(frozen=True, kw_only=True)
class Laplace(BoxMechanism, name="laplace"):
    """Add Laplace noise of scale 2d/ε to each coordinate (000 and 001, §3.1).

    Privacy:
        ε-LDP for one vector in [-1, 1]^d: two vectors are at most 2d apart in ℓ1. Noise is discrete
        Laplace on a lattice that contains ±1, so rounding does not stretch the box (C20), and its
        scale is rounded up to whole lattice steps.

    Examples:
        >>> Laplace(epsilon=1.0, dimension=4).scale
        8.0
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        most = _MOST_EPSILON * self.dimension
        if self.epsilon > most:
            raise InvalidParameter("epsilon", f"at most {most:g}", self.epsilon)

    @cached_property
    def step(self) -> float:
        """The lattice step: reports are multiples of it."""
        return fine_step(2 * self.dimension / self.epsilon, most=1.0)

    @cached_property
    def _steps(self) -> int:
        # Computed with fractions, so that the scale is never below 2d/ε.
        return math.ceil(2 * self.dimension / Fraction(self.epsilon) / Fraction(self.step))

    @property
    def scale(self) -> float:
        """Scale of the noise on each coordinate."""
        return self._steps * self.step

    @property
    def event(self) -> Event:
        """A single number is priced as Laplace noise, several by their total ε."""
        if self.dimension == 1:
            return LaplaceEvent(ratio=self.epsilon)
        return PureEvent(epsilon=self.epsilon)

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy vectors, shape (n, d)."""
        rows = _validate.batch("values", values, columns=self.dimension, bound=1.0, clip=clip)
        noise = discrete_laplace(rows.size, scale=self._steps, source=source)
        noisy = whole_steps(rows, self.step) + noise.reshape(rows.shape)
        return np.asarray(noisy * self.step, dtype=np.float64)

    def variance(self, values: ArrayLike) -> FloatArray:
        """Variance of the discrete Laplace distribution, the same for every value."""
        # 2q/(1-q)² with q = e^{-1/s} equals 1/(2 sinh²(1/(2s))), which does not cancel.
        steps = 1 / (2 * math.sinh(1 / (2 * self._steps)) ** 2)
        return np.full(np.shape(values), steps * self.step**2)

    @property
    def depth_shape(self) -> float:
        """The dimension d."""
        return float(self.dimension)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each noisy vector."""
        sent, true = (whole_steps(np.asarray(x), self.step, clip=True) for x in (reports, values))
        constant = math.log(math.tanh(1 / (2 * self._steps)))
        return np.asarray((constant - np.abs(sent - true) / self._steps).sum(axis=-1))

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate and four."""
        return [cls(epsilon=1.0), cls(epsilon=0.1), cls(epsilon=2.0, dimension=4)]
