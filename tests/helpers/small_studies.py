"""A few people for every design, with every kind of phase that it may have."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.local.boosting.design import BoostingDesign
from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.samme_study import SammeDesign
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.task import Task

_TABLE = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)
_CURVES = CurveEncoder.side_by_side([CurveEncoder("cosine", n_basis=n) for n in (3, 1)])
_TWO, _THREE = ("no", "yes"), ("low", "middle", "high")


def _plan(
    n_people: int,
    epsilon: float,
    classes: Any = _TWO,
    *,
    encoder: CurveEncoder = _TABLE,
    **design: Any,
) -> StudyPlan:
    protects = "labels" if design["name"] == "noisy_labels" else "both"
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=encoder,
        classes=classes,
        target_range=None if classes else (0.0, 10.0),
        design=design,
        protects=protects,
    )


def _owners(design: BoostingDesign, n_people: int, classes: Any = _TWO) -> StudyPlan:
    return design.plan(epsilon=4.0, owners=n_people, classes=classes)


@cache
def small_studies() -> dict[str, StudyPlan]:
    """By name; a huge ε makes few people enough for every kind of phase."""
    rows = np.random.default_rng(0).normal(size=(12, 2))
    reports = {"n_classifiers": 3, "member_size": 2, "training_share": 0.4}
    judged = reports | {"evaluation_share": 0.2}
    members: dict[str, Any] = {"intercepts": (0.0, 0.1), "coefficients": ((1.0, 0.0), (0.0, -1.0))}
    halves: dict[str, Any] = {"feature_ranges": [(-1, 1)] * 2, "owners_per_round": 2}
    return {
        "moments": _plan(3, 1.0, _THREE, name="moments"),
        "answers": _plan(40, 4.0, name="answers", evaluation_share=0.1, temperature_share=0.2),
        "answers of spread": _plan(30, 2.0, name="answers", spread_differs=True),
        "answers of channels": _plan(
            20, 8.0, encoder=_CURVES, name="answers", center_known=True, evaluation_share=0.2
        ),
        "noisy_labels": _plan(4, 1.0, _THREE, name="noisy_labels"),
        "vectors": _plan(
            120,
            20.0,
            name="vectors",
            evaluation_share=0.1,
            temperature_share=0.1,
            spread_differs=True,
        ),
        "vectors, three classes": _plan(120, 30.0, _THREE, name="vectors", evaluation_share=0.1),
        "vector_numbers": _plan(120, 30.0, (), name="vector_numbers", evaluation_share=0.1),
        "mrma": _plan(12, 4.0, name="mrma", **judged),
        "mrma, three classes": _plan(14, 4.0, _THREE, name="mrma", **judged),
        "mrma_votes": _plan(12, 4.0, name="mrma_votes", **judged),
        "mrma_stream": _plan(8, 4.0, name="mrma_stream", new_classifiers=2, **reports),
        "exchange": _plan(5, 1.0, name="exchange", evaluation_share=0.4, **members),
        "samme, judged": _owners(SammeDesign(rule="classifier", judges=2, n_rounds=2, **halves), 8),
        "samme, own labels": _owners(
            SammeDesign(rule="statistic", labeled=rows, labels=1 * (rows[:, 0] > 0), **halves), 6
        ),
        "gradient_boosting": _owners(
            GradientDesign(features=FeatureMap.learnt(rows), reference=rows, n_rounds=2), 4, _THREE
        ),
    }


def replies(task: Task, phase: int, ticket: int) -> FloatArray:
    """What the person with this ticket answers, whenever and wherever they are asked."""
    generator = np.random.default_rng([phase, ticket])
    source = SimulationSource(int(generator.integers(1 << 30)))
    return task.answer(task.trial(generator), source).values


def answer_one(server: Server) -> None:
    """The next person."""
    phase, ticket = server.phase, server.issued
    server.receive(replies(server.issue(1), phase, ticket), start=ticket)
