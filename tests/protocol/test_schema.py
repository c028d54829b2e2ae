"""The JSON Schema of the wire is that of what travels."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpfda.curves import CurveEncoder, RowEncoder
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.schema import wire_schema
from dpfda.protocol.server import Server
from dpfda.protocol.task import Task

checker = pytest.importorskip("jsonschema_rs", reason="jsonschema-rs is not installed")
WHOLE = wire_schema()


def of(kind: str) -> Any:
    return checker.validator_for(WHOLE | {"$ref": f"#/$defs/{kind}"})


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def plans() -> list[StudyPlan]:
    curves = CurveEncoder("cosine", n_basis=4)
    table = CurveEncoder("identity", feature_ranges={"age": (0, 100), "sex": ["f", "m"]})
    both = CurveEncoder.side_by_side([curves, CurveEncoder("bspline", n_basis=5)])
    common: Any = {"epsilon": 1.0, "n_people": 500, "classes": ("no", "yes")}
    return [
        StudyPlan(encoder=curves, design={"name": "answers"}, **common),
        StudyPlan(encoder=table, design={"name": "vectors"}, **common),
        StudyPlan(encoder=both, design={"name": "mrma", "cutoff": 0.5}, **common),
        StudyPlan(
            epsilon=1.0, n_people=500, encoder=curves, design={"name": "vector_numbers"},
            target_range=(0, 10),
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [name for name in Task.members() if "." not in name])
def test_every_example_of_a_task_fits(kind: str) -> None:
    task = Task.named(kind)
    for example in task.examples():
        sent = plain(example.to_dict())
        assert of(task.__name__).is_valid(sent)
        assert of("Task").is_valid(sent)
        assert not of("Task").is_valid(sent | {"backdoor": 1})
        assert not of(task.__name__).is_valid(sent | {"epsilon": 0})
        assert not of(task.__name__).is_valid({k: v for k, v in sent.items() if k != "people"})


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: plan.design["name"])
def test_plans_and_models_fit(plan: StudyPlan) -> None:
    sent = plain(plan.to_dict())
    of("StudyPlan").validate(sent)
    for wrong in ({"seed": 2**53}, {"protects": "nothing"}, {"design": {"name": "other"}}):
        assert not of("StudyPlan").is_valid(sent | wrong)
    model = plain(Server(plan).model.to_dict())
    of("Model").validate(model)
    assert not of("Model").is_valid(model | {"encoder": {}})


def test_rows_and_messages_fit() -> None:
    of("Encoder").validate(RowEncoder(3).to_dict())
    asked = {"plan": "0" * 64, "phase": 0, "ticket": 3}
    said = asked | {"values": [1.0, -1], "nonce": "0f" * 16}
    of("ReplyMessage").validate(said)
    for wrong in ({"values": ["1"]}, {"nonce": "0" * 31}, {"nonce": "0" * 33}, {"nonce": "F" * 32}):
        assert not of("ReplyMessage").is_valid(said | wrong)
    assert not of("ReplyMessage").is_valid(asked | {"values": [1.0]})
    task = plain(Task.named("stump").examples()[0].to_dict())
    of("TaskMessage").validate(asked | {"task": task})
    assert not of("TaskMessage").is_valid(asked | {"task": {"name": "stump"}})
    of("Receipt").validate({"receipt": "0-3-" + "0" * 32})


def test_everything_is_described_and_every_reference_leads_somewhere() -> None:
    definitions = WHOLE["$defs"]
    for name, one in definitions.items():
        if one.get("type") == "object" and name not in ("Guarantee",):
            assert one.get("description"), name
    assert "label number" in definitions["StumpTask"]["properties"]["positive"]["description"]
    text = json.dumps(WHOLE)
    named = {part.partition('"')[0] for part in text.split("#/$defs/")[1:]}
    assert named <= set(definitions)
    elsewhere = json.dumps(wire_schema(at="#/components/schemas/"))
    assert "#/$defs/" not in elsewhere
    assert elsewhere.count("#/components/schemas/") == text.count("#/$defs/")
