"""Every flaw that is planted in a class that ships is seen, and without it the check is silent."""

from __future__ import annotations

import pytest

from dpfda.checks import load_all
from dpfda.checks.planted import Planted

load_all()
FLAWS = list(Planted.all())


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name)
def test_a_planted_flaw_is_caught(flaw: Planted) -> None:
    assert flaw.caught()


def test_a_check_without_a_flaw_is_silent() -> None:
    # Of checks that are no contract of their own, which tests/checks/test_contracts.py runs.
    sound = {flaw.name: flaw for flaw in FLAWS}["question_response_too_sharp"]
    sound.check()


def test_enough_is_planted() -> None:
    assert len(FLAWS) >= 40
