"""What participants read before they consent is part of the plan, and of nothing without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dpfda import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.protocol import StudyPlan

INFORMATION = {"version": "1", "institution": "Institute", "contact": "Ann", "purpose": "Sleep"}
PLAN = StudyPlan(
    epsilon=1.0, n_people=10, encoder=CurveEncoder(n_basis=4), classes=(0, 1),
    design={"name": "moments"}, information=INFORMATION,
)  # fmt: skip


@pytest.mark.parametrize("name", [*INFORMATION, "officer"])
def test_another_word_is_another_study(name: str) -> None:
    assert replace(PLAN, information=INFORMATION | {name: "other"}).hash != PLAN.hash


def test_a_plan_without_information_has_no_such_field() -> None:
    plain = replace(PLAN, information={})
    assert "information" not in plain.to_dict()
    assert StudyPlan.from_dict(PLAN.to_dict()) == PLAN


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"purpose": None}, "purpose must be one paragraph"),
        ({"purpose": ""}, "purpose must be 1 to 2000 characters"),
        ({"risks": "x" * 2001}, "risks must be 1 to 2000 characters"),
        ({"contact": "a\nb"}, "contact must be one paragraph"),
        ({"more": "a"}, "information must be one of version"),
    ],
)
def test_whatever_else_is_refused(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        replace(PLAN, information=INFORMATION | change)


def test_it_is_complete_or_absent() -> None:
    with pytest.raises(InvalidParameter, match="contact must be given"):
        replace(PLAN, information=dict.fromkeys(("version", "institution", "purpose"), "a"))
