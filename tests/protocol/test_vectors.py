"""The test vectors that clients in other languages rely on: this package replays them all."""

from __future__ import annotations

import contextlib
import hashlib
import math
from typing import Any

import numpy as np
import pytest
from wire_vectors import Replay, bits, from_bits, vectors

from dpfda import Ledger
from dpfda.curves import read_encoder
from dpfda.errors import ProtocolError
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.composed import Joined
from dpfda.protocol.person import Person, encode_people, one_curve
from dpfda.protocol.plan import StudyPlan, canonical, number_text
from dpfda.protocol.task import Task

PLANS = {name: StudyPlan.from_dict(one["plan"]) for name, one in vectors("plans").items()}
MECHANISMS, TASKS, ENCODER = vectors("mechanisms"), vectors("tasks"), vectors("encoder")
REFUSED = vectors("refused")["cases"]


@pytest.mark.parametrize("case", vectors("numbers"), ids=lambda case: case["text"])
def test_numbers(case: Any) -> None:
    assert number_text(from_bits(case["bits"])) == case["text"]
    assert float(case["text"]) == from_bits(case["bits"])
    assert bits(from_bits(case["bits"])) == case["bits"]


@pytest.mark.parametrize("name", PLANS)
def test_plans(name: str) -> None:
    case = vectors("plans")[name]
    assert PLANS[name].hash == case["hash"]
    assert canonical(case["plan"]) == canonical(PLANS[name].to_dict())


@pytest.mark.parametrize("case", vectors("refused_plans"), ids=lambda case: case["what"])
def test_refused_plans(case: Any) -> None:
    assert hashlib.sha256(canonical(case["plan"])).hexdigest() == case["hash"]
    # As a device reads what a collector sends: another hash is another plan.
    found = ""
    with contextlib.suppress(Exception):
        plan = StudyPlan.from_dict(case["plan"])
        found = plan.hash if plan.asks else ""
    assert found != case["hash"]


@pytest.mark.parametrize("case", MECHANISMS, ids=lambda case: case["mechanism"]["name"])
def test_mechanisms(case: Any) -> None:
    mechanism = Mechanism.from_dict(case["mechanism"])
    for draw in case["draws"]:
        source, row = Replay(draw["words"]), np.array(draw["value"], dtype=float)
        single = np.ndim(mechanism.worst_cases()[0][0]) == 1
        report = mechanism.randomize(row if single else row[None], source)
        assert np.ravel(report).tolist() == draw["report"]
        assert source.left == []


@pytest.mark.parametrize("case", TASKS, ids=lambda case: case["task"]["name"])
def test_tasks(case: Any) -> None:
    source, task = Replay(case["words"]), Task.from_dict(case["task"])
    records = np.array([told(case["features"])]), np.array([case["label"]])
    assert task.answer(records, source).values[0].tolist() == case["values"]
    assert source.left == []


def cell(value: Any) -> Any:
    return float(value) if value in ("NaN", "Infinity") else value


def told(values: Any) -> Any:
    return [told(one) if isinstance(one, list) else float(one) for one in values]


@pytest.mark.parametrize(
    "case", ENCODER["cases"], ids=lambda case: case["encoder"]["basis"]["name"]
)
def test_encoders(case: Any) -> None:
    encoder = read_encoder(case["encoder"])
    plan = StudyPlan(epsilon=1.0, n_people=1, encoder=encoder, classes=(0, 1))
    for curve in case["curves"]:
        points = curve["points"]
        if encoder.table is not None:  # cells in the order of the public columns
            keys = [column.key for column in encoder.table.columns]
            given: Any = dict(zip(keys, map(cell, curve["values"]), strict=True))
        else:
            values = told(curve["values"])
            given = values if points is None else (np.array(points), np.array(values))
        batch = one_curve(given, channels=encoder.channels)
        found = encode_people(plan, batch, [0])[0][0]
        np.testing.assert_allclose(found, curve["features"], rtol=0, atol=ENCODER["tolerance"])


def holder(plan: StudyPlan) -> tuple[Person, Ledger]:
    ledger = Ledger(1e6)
    label = plan.classes[0] if plan.classes else math.nan
    curve = [0.0] * plan.encoder.n_features
    accepts = plan.guarantee.assumptions
    return Person(plan, curve=curve, label=label, ledger=ledger, accepts=accepts), ledger


@pytest.mark.parametrize(
    "case", REFUSED, ids=lambda case: f"{case['plan']}: {case['task']['name']}"
)
def test_refusals(case: Any) -> None:
    plan = PLANS[case["plan"]]
    person, ledger = holder(plan)
    assert person.answer(plan.read_task(case["task"])).values.size
    assert ledger.spent.epsilon == case["task"]["epsilon"]
    for other in case["others"]:
        kept = {k: v for k, v in case["task"].items() if k not in other.get("without", ())}
        person, ledger = holder(plan)
        if other["reason"] is None:
            assert person.answer(plan.read_task(kept | other["set"])).values.size
            continue
        with pytest.raises(ProtocolError) as refusal:
            person.answer(plan.read_task(kept | other["set"]))
        assert str(refusal.value) == other["reason"]
        assert ledger.spent.epsilon == 0


def test_whatever_a_person_may_meet_has_a_vector() -> None:
    own = {name for name, one in Task.members().items() if "protocol.tasks" in one.__module__}
    assert {case["task"]["name"] for case in TASKS} == own
    assert {case["task"]["name"] for case in REFUSED} == own
    used = [Task.from_dict(case["task"]).mechanism for case in [*TASKS, *REFUSED]]
    parts = [part for one in used for part in (one.parts if isinstance(one, Joined) else [one])]
    drawn = {case["mechanism"]["name"] for case in MECHANISMS}
    assert {one.name for one in parts} == drawn
    assert sum(len(case["others"]) for case in REFUSED) > 600
