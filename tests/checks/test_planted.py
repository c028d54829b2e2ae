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


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name)
def test_without_the_flaw_the_check_is_silent(flaw: Planted) -> None:
    flaw.check()


def test_enough_is_planted() -> None:
    assert len(FLAWS) >= 40
