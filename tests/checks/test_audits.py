"""What `dpfda audit --all` reaches, and what it detects."""

from __future__ import annotations

import pytest

from dpfda.checks.attacks import Case
from dpfda.checks.audits import audit_cases, run
from dpfda.mechanisms import Mechanism
from dpfda.noise import SimulationSource
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.query import Query

CASES = audit_cases()
QUICK = 400_000  # draws at most; the command takes five times as many where it needs them
FEW = 1_000_000  # the same for conversations that are held one by one

TABLE = {
    "randomized_response(epsilon=1.0": 0.05,
    "laplace(epsilon=1.0": 0.05,
    "duchi(epsilon=1.0, dimension=2": 0.05,
    "piecewise(epsilon=1.0": 0.05,
    "categorical_response(epsilon=1.0": 0.05,
    "cap_index(epsilon=1.0": 0.05,
    "gaussian(": 0.05,
    "additive_laplace(epsilon=1.0": 0.05,
    "ellipsoid_laplace(epsilon=1.0": 0.05,
    "exponential(epsilon=1.0, prior=[1, 50": 0.25,
    "ball_mean 0": 0.05,
    "ball_mean 2": 0.05,
    "ball_products 1": 0.05,
    "cell_counts 0": 0.05,
    "regression_moments 0": 0.05,
    "regression_newton 0": 0.05,
    "moments, moments": 0.15,
    "questions, direction": 0.05,
    "mrma, evaluate": 0.05,
    "density 0, δ = 0.05": 0.25,
    "mean 1, δ = 0": 0.25,
    "regression 4, δ = 0.05": 0.25,
}
"""Cases by the beginning of their names, and the largest violation that may go unseen."""


def named(start: str) -> Case:
    return next(case for case in CASES if case.name.startswith(start))


@pytest.mark.parametrize(("start", "goal"), TABLE.items(), ids=list(TABLE))
def test_table_of_what_is_detected(start: str, goal: float) -> None:
    case = named(start)
    result = run(case, draws=QUICK, source=SimulationSource(3))
    print(f"{result.name}: detects {result.detects:.3f} with {result.draws} draws")
    assert result.passed
    assert result.detects is not None
    assert result.detects <= goal


def test_everything_that_is_registered_is_reached() -> None:
    assert len(CASES) >= 70
    names = {kind: {case.name for case in CASES if case.kind == kind} for kind in KINDS}
    for kind, members in (
        ("mechanism", Mechanism.members()),
        ("query", Query.members()),
        ("conversation", Conversation.members()),
    ):
        for member in members:
            assert any(name.startswith(member) for name in names[kind]), (kind, member)


KINDS = ("mechanism", "query", "study", "conversation")


@pytest.mark.parametrize("start", ["function_on_scalar 0, δ = 0.05"])
def test_a_conversation_of_several_looks(start: str) -> None:
    """Held one by one, with a real curator: about 500 of them show a quarter."""
    result = run(named(start), draws=FEW, source=SimulationSource(4))
    print(f"{result.name}: detects {result.detects} with {result.draws} conversations")
    assert result.passed
    assert result.detects is not None
    assert result.detects <= 0.3
