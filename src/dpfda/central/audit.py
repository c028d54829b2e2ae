"""Central releases as an audit sees them: two neighbouring data sets, and what comes out of each.

`audit_cases` covers every mechanism for functions and densities; `broken_twins` are two well-known
mistakes that an audit must catch: Theorem 4's factor √2 (C10), and τ read off the data (C11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.bernstein import Bernstein
from dpfda.central.function_mechanism import FunctionMechanism, Task, ellipsoid_noise
from dpfda.central.histogram_density import HistogramDensity
from dpfda.central.linear import FiniteLaplace, LinearMechanism, QuadraticRegularization
from dpfda.central.quadrature import Grid, as_grid
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee

_POINTS = 9
_CURVES = 4


@dataclass(frozen=True, kw_only=True)
class ReleaseCase:
    """A release between data and noise: a summary, the additive mechanism, neighbouring data sets.

    A row given to `randomize` is a whole data set, written as one vector.

    Example:
        >>> case = audit_cases()[0]
        >>> [data.shape for data in case.worst_cases()[0]]
        [(1, 36), (1, 36)]
    """

    name: str
    summarise: Callable[[FloatArray], FloatArray]
    noise: Callable[[FloatArray], Mechanism]
    guarantee: Guarantee
    neighbours: tuple[tuple[FloatArray, FloatArray], ...]

    def randomize(self, values: Any, rng: Source) -> FloatArray:
        """Releases, one a row; equal data sets are summarised once."""
        rows = np.asarray(values, dtype=np.float64)
        unique, places = np.unique(rows, axis=0, return_inverse=True)
        places = places.reshape(-1)
        parts = np.empty((len(rows), self.summarise(unique[0]).size))
        for number, row in enumerate(unique):
            members = np.flatnonzero(places == number)
            repeated = np.repeat(self.summarise(row)[None, :], members.size, axis=0)
            parts[members] = self.noise(row).randomize(repeated, rng)
        return parts

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """As the additive mechanism states it, at the summary of the (one) data set."""
        row = np.asarray(values, dtype=np.float64)[0]
        size = len(np.asarray(values))
        summaries = np.repeat(self.summarise(row)[None, :], max(size, len(reports)), axis=0)
        return self.noise(row).log_likelihood(reports, summaries[: len(reports)])

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """The neighbouring data sets."""
        return list(self.neighbours)


class Twin(ReleaseCase):
    """A release whose claim is false; it does not confess, so an audit sees what comes out only."""

    log_likelihood = None  # type: ignore[assignment]


def audit_cases(*, epsilon: float = 1.0, delta: float = 0.05) -> list[ReleaseCase]:
    """Every linear mechanism, Bernstein, one look of the adaptive release, and the histogram."""
    grid = as_grid(np.linspace(0.0, 1.0, _POINTS))
    task = Task(n=_CURVES, bound=1.0, epsilon=epsilon)
    cases = []
    for name, member in FunctionMechanism.members().items():
        for number, mechanism in enumerate(member.examples()):
            own = replace(task, delta=delta) if member.needs_delta else task
            title = f"{name} {number}"
            if isinstance(mechanism, LinearMechanism):
                cases.append(_linear(title, mechanism, grid, own))
            elif isinstance(mechanism, Bernstein):
                cases.append(_bernstein(title, mechanism, grid, own))
    return [*cases, _one_look(grid, task), _histogram(task)]


def broken_twins(*, epsilon: float = 1.0) -> list[Twin]:
    """Releases that claim ε and do not keep it."""
    grid = as_grid(np.linspace(0.0, 1.0, _POINTS))
    task = Task(n=_CURVES, bound=1.0, epsilon=epsilon)
    mechanism = FiniteLaplace(components=1)
    sound = _linear("sound", mechanism, grid, task)
    plan = mechanism.plan(grid, task)
    too_quiet = replace(plan, sensitivity=plan.sensitivity / math.sqrt(2)).mechanism

    def by_data(row: FloatArray) -> Mechanism:
        largest = np.linalg.norm(plan.basis.project(row.reshape(_CURVES, _POINTS)), axis=1).max()
        scaled = plan.sensitivity * float(largest) / task.bound
        return replace(plan, sensitivity=max(scaled, 1e-3 * plan.sensitivity)).mechanism

    flaws = {"variance one instead of scale one": lambda row: too_quiet, "bound from data": by_data}
    return [
        Twin(
            name=f"twin: {flaw}",
            summarise=sound.summarise,
            noise=noise,
            guarantee=sound.guarantee,
            neighbours=sound.neighbours,
        )
        for flaw, noise in flaws.items()
    ]


def _linear(name: str, mechanism: LinearMechanism, grid: Grid, task: Task) -> ReleaseCase:
    plan = mechanism.plan(grid, task)
    noise = plan.mechanism
    # Cauchy–Schwarz is attained by the curve with coefficients ∝ s_j/a_j.
    pull = plan.factors / plan.axes
    curve = (pull / np.linalg.norm(pull)) @ plan.basis.functions
    return ReleaseCase(
        name=name,
        summarise=lambda row: plan.summary(row.reshape(_CURVES, _POINTS)),
        noise=lambda row: noise,
        guarantee=task.guarantee,
        neighbours=_neighbours(curve),
    )


def _bernstein(name: str, mechanism: Bernstein, grid: Grid, task: Task) -> ReleaseCase:
    noise = mechanism.mechanism(grid, task)
    return ReleaseCase(
        name=name,
        summarise=lambda row: mechanism.summary(row.reshape(_CURVES, _POINTS), grid, task),
        noise=lambda row: noise,
        guarantee=task.guarantee,
        neighbours=_neighbours(np.ones(_POINTS)),
    )


def _one_look(grid: Grid, task: Task) -> ReleaseCase:
    plan = QuadraticRegularization().plan(grid, task)
    noise = ellipsoid_noise(task, axes=np.ones(plan.basis.size), radius=task.radius)
    flat = replace(plan, factors=np.ones(plan.basis.size))
    curve = np.ones(plan.basis.size) / math.sqrt(plan.basis.size) @ plan.basis.functions
    return ReleaseCase(
        name="adaptive, one look",
        summarise=lambda row: flat.summary(row.reshape(_CURVES, _POINTS)),
        noise=lambda row: noise,
        guarantee=task.guarantee,
        neighbours=_neighbours(curve),
    )


def _histogram(task: Task) -> ReleaseCase:
    noise = HistogramDensity(size=4).mechanism(task, 4)
    here = np.array([[0.1, 0.1, 0.4, 0.9]])
    there = np.array([[0.6, 0.1, 0.4, 0.9]])
    return ReleaseCase(
        name="histogram",
        summarise=lambda row: np.bincount((row * 4).astype(int), minlength=4).astype(np.float64),
        noise=lambda row: noise,
        guarantee=task.guarantee,
        neighbours=((here, there),),
    )


def _neighbours(curve: FloatArray) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """One curve turned to its negative, and to zero; the others are zero, or large."""
    quiet, loud = np.zeros((_CURVES, _POINTS)), np.tile(10 * curve, (_CURVES, 1))
    pairs = []
    for others in (quiet, loud):
        for value in (-curve, 0 * curve):
            first, second = others.copy(), others.copy()
            first[0], second[0] = curve, value
            pairs.append((first.reshape(1, -1), second.reshape(1, -1)))
    return tuple(pairs)
