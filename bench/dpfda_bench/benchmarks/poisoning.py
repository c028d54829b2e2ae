"""``dpfda bench poisoning``: how much 1 % and 5 % of liars cost, with and without defenses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.estimators.local_gradient_boosting_classifier import LocalGradientBoostingClassifier
from dpfda.local.boosting.gradient_requests import GradientRequest
from dpfda.local.boosting.request import OwnerRows, Owners, public_order
from dpfda.mechanisms.codebook import CODEBOOKS
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
    "boosting_5_percent_costs": at_most(0.02),
    "boosting_10_percent_costs": at_most(0.05),
}

_EPSILON = 2.0
_HELD_OUT = 4000
_GROUP = 8
_TRIED = 1 << 14  # words among which a hostile owner looks for the worst
_SHARES = (0.0, 0.01, 0.05)
_SHARES_OF_OWNERS = (0.0, 0.01, 0.05, 0.1, 0.2)
_EXPECTED, _OWN_ROWS = 0.1, 500
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
    for expected, own in product((0.0, _EXPECTED), (0, _OWN_ROWS)):
        of_owners = gathered(
            (share, _boosting_error(test, people, share, seed=seed, expected=expected, own=own))
            for share, seed in product(_SHARES_OF_OWNERS, range(replications))
        )
        by_share = {share: float(np.mean(values)) for share, values in of_owners.items()}
        rows.append(
            {
                "design": f"gradient boosting, {own} own rows",
                "defense": f"hostile_share={expected:g}" if expected else "none",
            }
            | {f"{share:.0%} liars": error for share, error in by_share.items()}
        )
        if expected and own:
            for share in _SHARES_OF_OWNERS[1:]:
                figures[f"boosting_{share * 100:.0f}_percent_costs"] = (
                    by_share[share] - by_share[0.0]
                )
    notes = [
        "Moments fall to a few liars: where these are to be expected, ask questions or use MRMA.",
        f"ε = {_EPSILON:g}, {people} people, {replications} replications, errors on held-out "
        "people. Liars know the true slope and push against it with all the protocol allows.",
        "Owners of one row each report gradients; hostile ones choose codebook and codeword "
        "freely, against the mean gradient of their round. Own rows are unlabeled rows of the data "
        "user; without any, rows are drawn from the public ranges.",
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
    assert data.y is not None
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


def _boosting_error(
    test: Any, people: int, share: float, *, seed: int, expected: float, own: int
) -> float:
    """Held-out error of gradient reports with a share of hostile owners.

    Args:
        test: held-out people.
        people: how many owners, of one row each.
        share: of them are hostile.
        seed: of the study.
        expected: the share that the study was told.
        own: unlabeled rows of the data user; with 0, rows are drawn from the public ranges.
    """
    data = simulate_001(people, random_state=seed)
    features = _ENCODER.encode(data.X, data.grid_points)
    classifier = LocalGradientBoostingClassifier(
        _EPSILON,
        feature_ranges=[(-1.0, 1.0)] * features.shape[1],
        classes=(0, 1),
        rows_per_owner=1,
        hostile_share=expected,
        random_state=seed,
    )
    reference = None
    if own:
        known = simulate_001(own, random_state=20_000 + seed)
        reference = _ENCODER.encode(known.X, known.grid_points)
    plan = classifier.planned(people, reference=reference)
    owners = OwnerRows.grouped(features, (np.asarray(data.y) > 0).astype(int), groups=None)
    order, first = public_order(plan), 0
    crowd = Owners(plan, owners, order=order, source=SimulationSource(seed))
    rng, server = np.random.default_rng(seed), Server(plan)
    while not server.finished:
        task = server.issue(server.wanted)
        reply = crowd.answer(task).values.copy()
        assert isinstance(task, GradientRequest)
        truth = task.exact(owners.take(order[first : first + task.people]), SimulationSource(0))
        first += task.people
        # Any word of any codebook may be sent: the worst of many.
        words = np.column_stack(
            [rng.integers(0, CODEBOOKS, _TRIED), rng.integers(0, task.mechanism.words, _TRIED)]
        ).astype(np.float64)
        worst = int(np.argmin(task.decode(words) @ truth.mean(axis=0)))
        reply[rng.random(task.people) < share] = words[worst]
        server.receive(reply, start=0)
    wrong = server.model.predict(_ENCODER.encode(test.X, test.grid_points)) != (test.y > 0)
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
