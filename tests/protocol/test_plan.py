"""The public contract of a study."""

from __future__ import annotations

import json

import msgspec
import pytest

from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter, UnknownName
from dpfda.protocol import StudyPlan


def plan(**changes) -> StudyPlan:
    parts = {
        "epsilon": 1.0,
        "n_people": 100,
        "encoder": CurveEncoder("bspline", n_basis=5, scale=(1.0, 2.0, 3.0, 4.0, 5.0)),
        "classes": ("no", "yes"),
        "design": {"name": "mrma", "learner_parameters": {"l2": 1.0}, "cutoff": None},
    }
    return StudyPlan(**parts | changes)


def test_survives_json_with_the_same_hash() -> None:
    original = plan(classes=(0, 1), design={"name": "x", "scales": (0.1, 0.2)})
    document = json.loads(msgspec.json.encode(original.to_dict()))
    again = StudyPlan.from_dict(document)
    assert again.hash == original.hash
    assert again.to_dict() == StudyPlan.from_dict(again.to_dict()).to_dict()
    assert again.encoder == original.encoder


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 1.0000000000000002},
        {"n_people": 101},
        {"encoder": CurveEncoder("bspline", n_basis=5)},
        {"classes": ("yes", "no")},
        {"design": {"name": "mrma"}},
        {"protects": "features"},
        {"unit": "scan"},
        {"seed": 1},
        {"title": "another"},
    ],
)
def test_every_part_is_in_the_hash(changes) -> None:
    assert plan(**changes).hash != plan().hash


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"n_people": 0}, "n_people"),
        ({"n_people": 1.5}, "n_people"),
        ({"classes": ("only",)}, "classes"),
        ({"classes": ("a", "a")}, "classes"),
        ({"protects": "nothing"}, "protects"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**53}, "seed must be an integer from 0 to 9007199254740991"),
        ({"seed": 2**70}, "seed"),
        ({"seed": True}, "seed"),
        ({"classes": (0.0, float("nan"))}, "classes must be words, finite numbers"),
        ({"classes": (0.0, float("inf"))}, "classes"),
        ({"classes": (0, 2**53)}, "classes must be at most 9007199254740991 in size"),
        ({"classes": (-(2**53), 0)}, "classes must be at most 9007199254740991 in size"),
        ({"classes": (None, "a")}, "classes"),
        ({"classes": ("a", ["b"])}, "classes"),
        ({"classes": "ab"}, "classes must be a list"),
        ({"unit": 3}, "unit"),
        ({"title": None}, "title"),
        ({"design": "mrma"}, "design"),
    ],
)
def test_impossible_plans_are_refused(changes, name: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        plan(**changes)


def test_the_largest_integers_that_every_reader_holds() -> None:
    assert plan(classes=(2**53 - 1, 1 - 2**53), seed=2**53 - 1).seed == 2**53 - 1


def test_unknown_and_missing_parts_are_refused() -> None:
    data = plan().to_dict()
    with pytest.raises(InvalidParameter, match="backdoor"):
        StudyPlan.from_dict(data | {"backdoor": True})
    for part in ("epsilon", "n_people", "encoder", "classes"):
        with pytest.raises(InvalidParameter, match=part):
            StudyPlan.from_dict({key: value for key, value in data.items() if key != part})
    with pytest.raises(UnknownName):
        StudyPlan.from_dict(data | {"encoder": data["encoder"] | {"basis": {"name": "magic"}}})


def test_cannot_be_changed_afterwards() -> None:
    design = {"name": "mrma"}
    frozen = plan(design=design)
    design["name"] = "other"
    assert frozen.design["name"] == "mrma"
    with pytest.raises(AttributeError):
        frozen.epsilon = 5.0  # type: ignore[misc]


def test_the_guarantee_says_what_is_not_protected() -> None:
    assert plan().guarantee.assumptions == ()
    assert plan(protects="features").guarantee.assumptions == ("labels are public",)
    assert plan(protects="labels", unit="scan").guarantee.unit == "scan"
