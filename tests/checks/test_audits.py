"""The cases of `dpfda audit --all`, and flaws that the audits of conversations detect."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest

from dpfda._validate import FloatArray
from dpfda.central.moments import discriminant
from dpfda.central.moments.moment_query import JointMoments
from dpfda.checks import attacks
from dpfda.checks.attacks import Case, TranscriptAttack, attacked, audit_cases, run
from dpfda.checks.conversations import Rehearsal
from dpfda.mechanisms import Mechanism
from dpfda.noise import SecureSource, SimulationSource, Source
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.tally import spent
from dpfda.protocol import query
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.query import Answer, DatasetQuery, Query

CASES = audit_cases()
DRAWS = 2_000_000  # as many as the command takes at most
KINDS = ("mechanism", "query", "study", "conversation")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}: {case.name}"[:80])
def test_every_case_passes_and_detects_twice_its_goal(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dpfda audit --all` reaches the goals themselves, with four times as many draws."""
    # An audit begins with so many draws, and more follow where they do not reach the goal.
    monkeypatch.setattr(attacks, "PILOT", 4000)
    monkeypatch.setattr(attacks, "_FEW", 10)  # of a conversation
    coarse = replace(case, goal=2 * case.goal)
    result = run(coarse, draws=DRAWS // 4, source=SimulationSource(3))
    assert result.passed
    assert result.detects is not None
    assert result.detects <= coarse.goal


def test_goals_are_those_that_were_set() -> None:
    """5 % for local randomizers at ε = 1 and all sums, 10 % for choices, 25 % for conversations."""
    for case in CASES:
        subject = case.make() if case.kind == "mechanism" else None
        if subject is not None and subject.epsilon >= 0.5 and "exponential" not in case.name:
            assert case.goal == 0.05
        most = 0.25 if case.kind == "conversation" or "tilted" in case.name else 0.1
        assert case.goal <= most


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


@pytest.mark.parametrize("largest_noise", [0.0, math.inf], ids=["means", "means and products"])
@pytest.mark.parametrize("groups", [("a", "b"), ("a", "b", "c")])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_discriminant_analyses_pass_with_products_and_without(
    groups: tuple[str, ...], delta: float, largest_noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few records are not enough for products, so that `dpfda audit` sees means alone."""
    monkeypatch.setattr(discriminant, "_ONE_DIRECTION", largest_noise)
    monkeypatch.setattr(attacks, "PILOT", 4000)
    monkeypatch.setattr(attacks, "_FEW", 10)
    about = discriminant.Discriminant(
        epsilon=1.0, delta=delta, n=attacks.RECORDS, groups=groups, features=3, bound=1.0
    )
    holder = Rehearsal(about, attacks.RECORDS)
    converse(about, lambda query, place: holder.answer(query, number=place))
    (joint,) = [one.query for one in holder.transcript if isinstance(one.query, JointMoments)]
    assert joint.second == (3 if largest_noise else 1)
    make = partial(attacks.conversation_attack, about, attacks.RECORDS)
    case = Case("conversation", "discriminant", make, 0.5)
    result = run(case, draws=DRAWS // 4, source=SimulationSource(3))
    assert result.passed
    assert result.detects is not None
    assert result.detects <= case.goal


@pytest.mark.parametrize("start", ["mean 0, δ = 0", "mean 0, δ = 0.05", "regression 0, δ = 0.05"])
def test_a_conversation_with_a_little_less_noise_is_caught(
    start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every answer lies a fifth nearer to the truth than it should: seen in what is released."""
    case = next(case for case in CASES if case.kind == "conversation" and case.name == start)
    subject = case.make()
    assert isinstance(subject, TranscriptAttack)
    honest = query.randomized

    def nearer(look: DatasetQuery, exact: FloatArray, n: int, source: Source) -> Answer:
        answer = honest(look, exact, n, source)
        if look.mechanism.depth_shape is None:
            return answer
        return replace(answer, values=exact + (answer.values - exact) / 1.2)

    monkeypatch.setattr(query, "randomized", nearer)
    result = attacked(subject, start, draws=DRAWS, source=SimulationSource(1), goal=0.15)
    assert result.misfit is not None
    assert result.misfit < -4.42
    assert not result.passed


def test_a_transcript_that_tells_too_much_is_caught() -> None:
    """A conversation at ε = 1, had it claimed 0.6."""
    case = next(case for case in CASES if case.name == "function_on_scalar 0, δ = 0")
    subject = case.make()
    subject.guarantee = Guarantee(epsilon=0.6)
    result = attacked(subject, "claims less", draws=DRAWS, source=SimulationSource(1), goal=0.25)
    assert result.density_excess is not None
    assert result.density_excess > 0


@pytest.mark.parametrize("name", ["score 0, δ = 0", "mean 2, δ = 0"])
def test_audits_with_real_noise_are_about_nobody(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    assert run(case, draws=1000, source=SecureSource()).draws >= 1000
    assert not spent().releases
