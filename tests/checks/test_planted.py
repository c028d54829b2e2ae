"""Every flaw planted in a shipped class is caught, and the check passes without the flaw."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from planted_flaws import PLANTED, ContractStep, Planted, draws

from dpfda import checks


@pytest.mark.parametrize("flaw", PLANTED, ids=lambda flaw: flaw.name)
def test_a_planted_flaw_is_caught(flaw: Planted) -> None:
    assert flaw.caught()


STEPS = {flaw.check for flaw in PLANTED if isinstance(flaw.check, ContractStep)}
OTHER_CHECKS = {
    flaw.check: flaw.name
    for flaw in PLANTED
    if flaw.check not in STEPS
    if flaw.check.__module__ != draws.__name__  # audits: test_audits.py shows that they pass
}


@pytest.mark.parametrize("check", OTHER_CHECKS, ids=OTHER_CHECKS.values())
def test_the_check_passes_without_the_flaw(check: Callable[[], None]) -> None:
    check()


def test_steps_of_contracts_pass_without_a_flaw() -> None:
    """`test_contracts` calls the same functions with the same instances, without a flaw."""
    called = set()
    for case in checks.cases():
        given = case.subject if isinstance(case.subject, tuple) else (case.subject,)
        module = sys.modules[case.check.__module__]
        parts = map(vars(module).get, case.check.__code__.co_names)
        called |= {(part, repr(given)) for part in (case.check, *parts)}
    for step in STEPS:
        for name in step.names:
            instances = step.instances(name)
            assert instances
            assert {(step.check, repr(given)) for given in instances} <= called, (step, name)


def test_enough_is_planted() -> None:
    assert len(PLANTED) >= 40
