"""Every registered class of every family keeps its shipped contract."""

from __future__ import annotations

import pytest

from dpfda import checks
from dpfda.mechanisms import Mechanism

CASES = checks.cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: checks.Case) -> None:
    case()


def test_every_mechanism_is_found() -> None:
    found = {type(case.subject) for case in CASES if case.family == "mechanism"}
    assert found == set(Mechanism.members().values())
    assert len(found) >= 10


def test_check_all_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "cases", lambda: CASES[:1])
    assert checks.check_all() == 1
