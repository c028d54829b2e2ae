"""A design names the tasks it may ask; people refuse every other one, with nothing spent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.errors import DpfdaError, InvalidParameter, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Design, Person, StudyPlan, Task
from dpfda.protocol.person import Crowd
from dpfda.simulate import simulate

DESIGNS: dict[str, dict[str, Any]] = {
    "moments": {"name": "moments"},
    "answers": {"name": "answers", "n_features": 2, "evaluation_share": 0.2},
    "vectors": {"name": "vectors", "temperature_share": 0.2},
    "mrma": {"name": "mrma", "n_classifiers": 3, "member_size": 5, "evaluation_share": 0.2},
    "mrma_each": {"name": "mrma", "n_classifiers": 3, "classifiers_per_person": 2},
    "mrma_stream": {"name": "mrma_stream", "n_classifiers": 3, "new_classifiers": 2},
    "exchange": {"name": "exchange", "intercepts": [0.1, 0.2], "coefficients": [[1, 0], [0, 1]]},
    "noisy_labels": {"name": "noisy_labels"},
}  # fmt: skip


def plan(design: str, *, n_people: int = 60, **changes: Any) -> StudyPlan:
    parts = {
        "epsilon": 1.0, "n_people": n_people, "classes": ("no", "yes"),
        "encoder": CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        "design": DESIGNS[design],
        "protects": "labels" if design == "noisy_labels" else "both",
    }  # fmt: skip
    return StudyPlan(**parts | changes)


def people(start: int, stop: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(start)
    return rng.uniform(-1, 1, (stop - start, 2)), rng.integers(0, 2, stop - start)


LINE = {"coefficients": [[[1, 0]]], "centers": [[[0, 0]]], "scales": [[[1, 1]]]}
VECTOR = {"name": "vector", "epsilon": 1.0, "people": 1, "dimension": 2}
MOMENT = {"name": "moment", "epsilon": 1.0, "people": 1, "dimension": 2, "positive": [1]}
MEMBER = LINE | {
    "name": "member", "epsilon": 1.0, "people": 1, "intercept": [[0]], "member": [[0]],
    "positive": [[[1]]],
}  # fmt: skip
TWO_MEMBERS = MEMBER | {
    "intercept": [[0, 0]], "coefficients": [[[1, 0], [0, 1]]], "centers": [[[0, 0]] * 2],
    "scales": [[[1, 1]] * 2], "member": [[0, 1]], "positive": [[[1], [1]]],
}  # fmt: skip
VERDICT = {"name": "evaluation", "epsilon": 1.0, "people": 1, "intercept": [[0]]} | LINE
STUMP = {
    "name": "stump", "epsilon": 1.0, "people": 1, "coordinates": [[1]], "thresholds": [[0.0]],
    "positive": [1],
}  # fmt: skip
CONFIDENCE = VERDICT | {
    "name": "confidence", "clipped": True, "dithers": [[0.1]], "damping": 1.0,
    "variances": [[[0.1, 0.1, 0.1]]],
}  # fmt: skip
GOOD = [
    ("mrma", VECTOR), ("mrma", MEMBER), ("mrma", VERDICT), ("moments", MOMENT),
    ("mrma_each", TWO_MEMBERS),
    ("answers", STUMP), ("answers", STUMP | {"uses_label": False}),
    ("answers", STUMP | {"coordinates": [[0, 1]], "thresholds": [[0.0, 0.0]]}),
    ("answers", VERDICT | {"clipped": True}), ("vectors", CONFIDENCE),
    ("mrma_stream", MEMBER), ("exchange", MEMBER),
    ("noisy_labels", VECTOR | {"protects": "labels"}),
]  # fmt: skip
HOSTILE = [
    ("mrma", VECTOR | {"positive": [[1] * 2000]}),  # one label, 2000 answers
    ("mrma", VECTOR | {"label_share": 0.999}),
    ("mrma", VECTOR | {"mechanism_name": "cap_index"}),
    ("mrma", VECTOR | {"mechanism_name": "piecewise"}),
    ("mrma", VECTOR | {"positive": [1] * 2000}),
    ("mrma", VECTOR | {"positive": [7]}),
    ("mrma", VECTOR | {"positive": [0]}),
    ("mrma", VECTOR | {"positive": 1}),
    ("mrma", VECTOR | {"positive": []}),
    ("mrma", VECTOR | {"protects": "features"}),
    ("mrma", VECTOR | {"dimension": 1}),
    ("mrma", VECTOR | {"epsilon": 0.5}),
    ("mrma", VECTOR | {"epsilon": 1.5}),
    ("mrma", VECTOR | {"people": 2}),
    ("mrma", VECTOR | {"people": 0}),
    ("mrma", VECTOR | {"unit": "owner"}),
    ("mrma", VECTOR | {"extra": 1}),
    ("mrma", MOMENT),
    ("mrma", STUMP),
    ("mrma", MEMBER | {"member": [[3]]}),
    ("mrma", MEMBER | {"positive": [[[0]]]}),
    ("mrma", MEMBER | {"positive": [[[0, 1]]]}),
    ("mrma", MEMBER | {"positive": [[[]]]}),
    ("mrma", MEMBER | {"epsilon": 0.5}),
    ("mrma", TWO_MEMBERS),  # the plan says one each
    ("mrma", MEMBER | {"intercept": np.zeros((1, 1, 50)).tolist()}),  # one curve, 50 answers
    ("mrma", VERDICT | {"clipped": True}),
    ("mrma_each", MEMBER),
    ("mrma_each", TWO_MEMBERS | {"epsilon": 2.0}),
    ("mrma_stream", VERDICT),
    ("exchange", VECTOR),
    ("exchange", MEMBER | {"member": [[2]]}),
    ("moments", MOMENT | {"positive": [7]}),
    ("moments", MOMENT | {"positive": [0]}),
    ("moments", MOMENT | {"mechanism_name": "laplace"}),
    ("moments", MOMENT | {"dimension": 1}),
    ("moments", VECTOR),
    ("answers", MOMENT),
    ("answers", VECTOR),
    ("answers", STUMP | {"coordinates": [[0, 1] * 2], "thresholds": [[0.0] * 4]}),
    ("answers", STUMP | {"coordinates": [[2]]}),
    ("answers", STUMP | {"positive": [2]}),
    ("answers", CONFIDENCE),  # nobody is kept for it
    ("vectors", CONFIDENCE | {"dithers": [[0.1] * 5]}),
    (
        "vectors",
        CONFIDENCE
        | {
            "coefficients": [[[1]]],
            "centers": [[[0]]],
            "scales": [[[1]]],
            "variances": [[[0.1] * 2]],
        },
    ),
    ("vectors", CONFIDENCE | {"clipped": False}),
    ("vectors", STUMP),  # with the label
    ("answers", VERDICT),
    ("noisy_labels", VECTOR),
    ("noisy_labels", VECTOR | {"protects": "features"}),
    ("mrma", {"name": ["vector"]}),
    ("mrma", {"name": "everything"}),
    ("mrma", {}),
    ("mrma", None),
    ("mrma", [VECTOR]),
    ("mrma", VECTOR | {"epsilon": 10**400}),
    ("mrma", VECTOR | {"dimension": "two"}),
]


def person(study: StudyPlan, ledger: Ledger, **more: Any) -> Person:
    accepts = study.guarantee.assumptions
    return Person(study, curve=[0.1, 0.4], label="yes", ledger=ledger, accepts=accepts, **more)


@pytest.mark.parametrize(("design", "sent"), GOOD)
def test_what_the_design_names_is_answered(design: str, sent: dict[str, Any]) -> None:
    study, ledger = plan(design), Ledger(limit_epsilon=10.0)
    reply = person(study, ledger).answer(study.read_task(sent))
    assert reply.values.shape[0] == 1
    assert ledger.spent.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(("design", "sent"), HOSTILE)
def test_everything_else_is_refused_with_nothing_spent(design: str, sent: Any) -> None:
    study, ledger = plan(design), Ledger(limit_epsilon=1000.0)
    one = person(study, ledger, source=SimulationSource(0))
    with pytest.raises(ProtocolError):
        one.answer(study.read_task(sent))
    assert not ledger.entries
    assert not one.transcript
    try:
        task = Task.from_dict(sent)
    except (DpfdaError, TypeError, AttributeError, OverflowError):
        return
    with pytest.raises(ProtocolError):  # built in this process, it goes round `read_task`
        one.answer(task)
    assert not ledger.entries


@pytest.mark.parametrize(
    ("design", "sent"),
    [
        ("mrma", MEMBER | {"member": [[3]]}), ("mrma", VECTOR | {"epsilon": 0.5}), ("mrma", MOMENT),
        ("mrma", VECTOR | {"dimension": 1}), ("moments", MOMENT | {"positive": [0]}),
    ],
)  # fmt: skip
def test_what_is_read_was_checked(design: str, sent: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        plan(design).read_task(sent)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("unit", ["person", "scan"])
def test_a_server_asks_only_what_its_design_names(design: str, unit: str) -> None:
    study = plan(design, unit=unit)
    assert simulate(study, people, source=SimulationSource(0)).finished


@pytest.mark.parametrize("design", ["moments", "vectors", "noisy_labels"])
def test_with_three_classes_each_may_count(design: str) -> None:
    study = plan(design, classes=("a", "b", "c"))
    assert simulate(study, people, source=SimulationSource(0)).finished


def test_nobody_beyond_the_plan_is_asked() -> None:
    study = plan("moments", n_people=3)
    crowd = Crowd(study, people, source=SimulationSource(0))
    task = Task.from_dict(MOMENT | {"people": 2, "positive": [1, 1]})
    crowd.answer(task)
    with pytest.raises(ProtocolError, match="3 people"):
        crowd.answer(task)


def test_every_design_is_found_and_names_its_tasks() -> None:
    assert {design["name"] for design in DESIGNS.values()} <= set(Design.members())
    for name in DESIGNS:
        assert set(plan(name).asks) <= set(Task.members())


def test_a_design_without_a_required_parameter_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="intercepts"):
        _ = replace(plan("moments"), design={"name": "exchange"}).asks
