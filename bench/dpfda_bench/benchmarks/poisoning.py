"""``dpfda bench poisoning``: how much 1 % and 5 % of liars cost, with and without defenses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.noise import SimulationSource
from dpfda.protocol.person import Crowd, encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.study import Run
from dpfda.protocol.task import Task
from dpfda.report.contents import Outcome
from dpfda_bench.goals import Goal, at_most
from dpfda_bench.measuring import gathered

GOALS: dict[str, Goal] = {
    "answers_1_percent_costs": at_most(0.02),
    "answers_5_percent_costs": at_most(0.05),
    "mrma_1_percent_costs": at_most(0.02),
    "mrma_5_percent_costs": at_most(0.05),
}

_EPSILON = 2.0
_HELD_OUT = 4000
_GROUP = 8
_SHARES = (0.0, 0.01, 0.05)
_DEFENSES = ("none", "clipped", "median of means")
Rows = tuple[FloatArray, IntArray]
_ENCODER = CurveEncoder("cosine", n_basis=4, rescale="clip", scale=6.0)
_DESIGNS: dict[str, dict[str, Any]] = {
    "moments": {"name": "moments"},
    "mrma": {"name": "mrma", "n_classifiers": 20},
    "answers": {"name": "answers"},
}


def run(quick: bool = False) -> Outcome:
    """Mean held-out errors of three designs under attack."""
    people, replications = (1500, 2) if quick else (5000, 10)
    test = simulate_001(_HELD_OUT, random_state=10_000)
    rows, figures = [], {}
    for name, design in _DESIGNS.items():
        found = gathered(
            (
                (share, defense),
                _error(design, test, people, share=share, defense=defense, seed=seed),
            )
            for share, defense, seed in product(_SHARES, _DEFENSES, range(replications))
        )
        errors = {key: float(np.mean(values)) for key, values in found.items()}
        rows += [
            {"design": name, "defense": defense}
            | {f"{share:.0%} liars": errors[share, defense] for share in _SHARES}
            for defense in _DEFENSES
        ]
        for share in (0.01, 0.05):
            key = f"{name}_{share * 100:.0f}_percent_costs"
            figures[key] = errors[share, "clipped"] - errors[0.0, "clipped"]
        if name == "moments":
            costs = errors[0.05, "median of means"] - errors[0.0, "median of means"]
            figures["moments_5_percent_costs_with_median"] = costs
    notes = [
        "Moments fall to a few liars: where these are to be expected, ask questions or use MRMA.",
        f"ε = {_EPSILON:g}, {people} people, {replications} replications, errors on held-out "
        "people. Liars know the true slope and push against it with all the protocol allows.",
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)


def _error(
    design: dict[str, Any], test: Any, people: int, *, share: float, defense: str, seed: int
) -> float:
    plan = StudyPlan(
        epsilon=_EPSILON,
        n_people=people,
        encoder=_ENCODER,
        classes=(-1.0, 1.0),
        design=design,
        seed=seed,
    )
    data = simulate_001(people, random_state=seed)
    features, labels = encode_people(plan, data.X, data.y, grid_points=data.grid_points)
    liars = np.random.default_rng(seed).random(people) < share
    source, first = SimulationSource(seed), 0

    def asked(task: Task) -> FloatArray:
        nonlocal first
        own = slice(first, first + task.people)
        first += task.people
        rows = features[own], labels[own]
        reply = _told(plan, task, rows, source)
        reply[liars[own]] = _lies(plan, task, rows, reply)[liars[own]]
        return reply

    wrong = _model(plan, asked, defense).predict(test.X, grid_points=test.grid_points) != test.y
    return float(np.mean(wrong))


def _model(plan: StudyPlan, asked: Callable[[Task], FloatArray], defense: str) -> Any:
    """What a study ends with whose tasks are `asked` of everybody, a phase at a time."""
    if defense == "none":  # every reply is believed: it goes into the sums as it comes
        study = Run(plan)
        while not study.finished:
            task = study.tasks(0, study.quota)
            study.absorb(task, asked(task))
            study.close()
        return study.result.model
    server = Server(plan, median_group=_GROUP if defense == "median of means" else 0)
    while not server.finished:
        server.receive(asked(server.issue(server.wanted)), start=0)
    return server.model


def _told(plan: StudyPlan, task: Task, rows: Rows, source: SimulationSource) -> FloatArray:
    """What these people answer if they are honest."""
    return Crowd(plan, lambda start, stop: rows, source=source).answer(task).values.copy()


def _lies(plan: StudyPlan, task: Task, rows: Rows, reply: FloatArray) -> FloatArray:
    """The reply that does most damage: real values far out on the wrong side, bits inverted."""
    features, labels = rows
    if task.name == "vector":  # a far curve with the label it should not have
        far = 1e6 * np.sign(features)
        return np.column_stack([far, np.where(labels == 1, -1.0, 1.0)])
    if task.name == "moment":
        signs = np.where(labels == 1, 1.0, -1.0)[:, None]
        direction = np.sign((signs * features).mean(axis=0))
        return np.tile(-1e6 * direction, (len(reply), 1))
    # Bits: the most probable answers of many draws, turned around.
    told = sum(_told(plan, task, rows, SimulationSource(k)) for k in range(9))
    return np.where(np.asarray(told) > 0, -1.0, 1.0)
