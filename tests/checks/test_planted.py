"""Every flaw that is planted in a class that ships is seen, and without it the check is silent."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from dpfda import checks
from dpfda.checks import load_all
from dpfda.checks.planted import Part, Planted

load_all()
FLAWS = list(Planted.all())


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name)
def test_a_planted_flaw_is_caught(flaw: Planted) -> None:
    assert flaw.caught()


ALONE = {flaw.check: flaw.name for flaw in FLAWS if not isinstance(flaw.check, Part)}
PARTS = {flaw.check for flaw in FLAWS if isinstance(flaw.check, Part)}


@pytest.mark.parametrize("check", ALONE, ids=ALONE.values())
def test_without_the_flaw_the_check_is_silent(check: Callable[[], None]) -> None:
    check()


def test_parts_of_contracts_are_silent_where_contracts_are_kept() -> None:
    """`test_contracts` calls the same functions with the same instances, without a flaw."""
    called = set()
    for case in checks.cases():
        given = case.subject if isinstance(case.subject, tuple) else (case.subject,)
        module = sys.modules[case.check.__module__]
        parts = map(vars(module).get, case.check.__code__.co_names)
        called |= {(part, repr(given)) for part in (case.check, *parts)}
    for part in PARTS:
        for name in part.names:
            instances = part.instances(name)
            assert instances
            assert {(part.check, repr(given)) for given in instances} <= called, (part, name)


def test_enough_is_planted() -> None:
    assert len(FLAWS) >= 40
