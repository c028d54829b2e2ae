"""Every central mechanism survives an attack; two well-known mistakes do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.central.adaptive import (
    Adaptive,
    Schedule,
    bounded_mean,
    radii,
    radius_choice,
    radius_scores,
)
from dpfda.central.audit import ReleaseCase, audit_cases, broken_twins
from dpfda.central.basis import spline_basis
from dpfda.central.function_mechanism import FunctionMechanism, Task, ellipsoid_noise, noise_law
from dpfda.central.quadrature import as_grid
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import audit

CASES = audit_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_sound_releases_pass(case: ReleaseCase) -> None:
    result = audit(case, name=case.name, draws=2000, source=SimulationSource(1))
    assert result.passed


def test_every_mechanism_is_audited() -> None:
    audited = {case.name.split()[0].rstrip(",") for case in CASES}
    assert set(FunctionMechanism.members()) <= audited


@pytest.mark.parametrize("twin", broken_twins(), ids=lambda twin: twin.name)
def test_twins_are_caught(twin: ReleaseCase) -> None:
    result = audit(twin, name=twin.name, draws=8000, source=SimulationSource(2))
    assert result.lower_bound > 1.1
    assert not result.passed


class Transcript:
    """The three looks of the adaptive release, replayed on two data sets at the same outputs."""

    def __init__(self, task: Task, size: int) -> None:
        self.task, self.plan = task, Schedule.of(task, most=size)
        part = task.part
        self.first = ellipsoid_noise(
            part(self.plan.first), axes=np.ones(self.plan.coarse), radius=task.radius
        )
        self.choice = radius_choice(task.epsilon * self.plan.radius, steepness=self.plan.steepness)
        self.axes = np.arange(1, self.plan.fine + 1) ** -0.5

    def scores(self, rows: np.ndarray, centre: np.ndarray) -> np.ndarray:
        distances = np.linalg.norm((rows[:, : self.plan.fine] - centre) / self.axes, axis=1)
        return radius_scores(distances, self.task.bound, outside=self.plan.outside)

    def losses(self, here: np.ndarray, there: np.ndarray, source: SimulationSource) -> np.ndarray:
        """Privacy loss of each look, with outputs drawn from `here`."""
        plan, bound = self.plan, self.task.bound
        data = here, there
        means = [bounded_mean(rows[:, : plan.coarse], bound)[None] for rows in data]
        report = self.first.randomize(means[0], source)
        one = np.subtract(*[self.first.log_likelihood(report, mean) for mean in means])[0]
        centre = np.zeros(plan.fine)
        factor = monotone_shrinkage(report[0], noise_law(self.first).variance)
        centre[: plan.coarse] = factor * report[0]
        scores = [self.scores(rows, centre)[None] for rows in data]
        chosen = self.choice.randomize(scores[0], source)
        two = np.subtract(*[self.choice.log_likelihood(chosen, score) for score in scores])[0]
        radius = float(radii(bound)[int(chosen[0])])
        second = ellipsoid_noise(
            self.task.part(plan.second), axes=self.axes, radius=2 * radius / self.task.n
        )
        shifts = [
            bounded_mean(rows[:, : plan.fine] - centre, radius, axes=self.axes)[None]
            for rows in data
        ]
        last = second.randomize(shifts[0], source)
        three = np.subtract(*[second.log_likelihood(last, shift) for shift in shifts])[0]
        return np.array([one, two, three])


def test_no_transcript_of_the_adaptive_release_costs_more_than_its_budget() -> None:
    task = Task(n=40, bound=1.0, epsilon=6.0)
    replay = Transcript(task, size=12)
    plan, source, rng = replay.plan, SimulationSource(3), np.random.default_rng(4)
    budgets = task.epsilon * np.array([plan.first, plan.radius, plan.second])
    assert budgets.sum() == pytest.approx(task.epsilon, rel=1e-12)
    largest = np.zeros(3)
    for _ in range(300):
        here = rng.normal(size=(40, 12)) * rng.choice([0.05, 0.3, 5.0])
        there = here.copy()
        there[0] = rng.choice([-1, 0, 40]) * here[0] + rng.choice([0, 5]) * rng.normal(size=12)
        largest = np.maximum(largest, replay.losses(here, there, source))
    assert (largest <= budgets * (1 + 1e-9)).all()
    # The search gets near the budgets, so a wrong one would show.
    assert (largest >= 0.5 * budgets).all()


def test_a_lookalike_that_forgets_the_price_of_the_radius_is_seen() -> None:
    # Twice the exponent in the choice of the radius: the same search finds a loss above budget.
    task = Task(n=40, bound=1.0, epsilon=6.0)
    replay = Transcript(task, size=12)
    share = task.epsilon * replay.plan.radius
    replay.choice = radius_choice(3 * share, steepness=replay.plan.steepness)
    source, rng, largest = SimulationSource(3), np.random.default_rng(4), 0.0
    for _ in range(200):
        here = rng.normal(size=(40, 12)) * rng.choice([0.05, 0.3, 5.0])
        there = here.copy()
        there[0] = rng.choice([-1, 0, 40]) * here[0] + rng.choice([0, 5]) * rng.normal(size=12)
        largest = max(largest, replay.losses(here, there, source)[1])
    assert largest > share


def test_gaussian_shares_add_up_to_one_gaussian() -> None:
    task = Task(n=500, bound=1.0, epsilon=1.0, delta=1e-3)
    whole = ellipsoid_noise(task, axes=np.ones(3), radius=1.0)
    sigma = noise_law(whole).scales[0]
    squares = [
        (
            sigma
            / noise_law(ellipsoid_noise(task.part(share), axes=np.ones(3), radius=1.0)).scales[0]
        )
        ** 2
        for share in (0.2, 0.05, 0.75)
    ]
    # Each share buys (slightly less than, for rounding) its part of μ².
    assert 0.999 < sum(squares) <= 1.0


def test_the_adaptive_release_draws_what_the_transcript_says() -> None:
    # The estimator and the replay must describe the same steps: same words, same radius.
    rng = np.random.default_rng(5)
    grid = as_grid(np.linspace(0, 1, 12))
    records = rng.normal(size=(300, 12)) * 0.3
    task = Task(n=300, bound=1.0, epsilon=1.0)
    release = Adaptive().release(records, grid, task, SimulationSource(6))
    source, replay = SimulationSource(6), Transcript(task, size=12)
    rows = spline_basis(grid, size=12).project(records)
    mean = bounded_mean(rows[:, : replay.plan.coarse], 1.0)[None]
    report = replay.first.randomize(mean, source)[0]
    centre = np.zeros(replay.plan.fine)
    centre[: replay.plan.coarse] = report * monotone_shrinkage(
        report, noise_law(replay.first).variance
    )
    chosen = replay.choice.randomize(replay.scores(rows, centre)[None], source)[0]
    assert release.parameters["radius"] == pytest.approx(radii(1.0)[int(chosen)])
    assert math.isclose(release.sensitivity, 2 * release.parameters["radius"] / 300)
