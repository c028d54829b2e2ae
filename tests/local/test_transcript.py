"""The whole interactive study is ε-LDP: one person's data moves one reply by at most e^ε.

The reply comes out of a real `Person`, who agreed to the plan and holds the data; the task comes
out of a real `Server`, in a state that other people's replies left.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from dpfda.checks.attacks import QueryAttack, person
from dpfda.curves import CurveEncoder
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import AuditResult, audit
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol import Person, Server, StudyPlan, Task

IDENTITY = CurveEncoder("identity", n_basis=3, rescale="clip", scale=1.0)


def plan_at(epsilon: float, **design: Any) -> StudyPlan:
    return StudyPlan(
        epsilon=epsilon,
        n_people=6000,  # enough for every phase at the smallest ε
        encoder=IDENTITY,
        classes=(0, 1),
        design={"name": "answers", "spread_differs": True} | design,
    )


def attacked(plan: StudyPlan, task: Task, *, claim: float | None = None) -> AuditResult:
    attack = QueryAttack(task.rows([0]), partial(person, plan), labels=2)
    if claim is not None:
        attack.guarantee = Guarantee(epsilon=claim, model="local")
    return audit(attack, name=task.name, draws=50_000, source=SimulationSource(1))


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_every_phase_keeps_epsilon(epsilon: float) -> None:
    """Server states fixed by other people's replies; two neighboring people; every question."""
    plan = plan_at(epsilon, evaluation_share=0.1, temperature_share=0.1)
    server, source, seen = Server(plan), SimulationSource(0), set()
    rng = np.random.default_rng(0)
    while not server.finished:
        start, phase = server.issued, server.kind
        task = server.issue(server.wanted)
        kind = phase, task.width, getattr(task, "uses_label", None)
        if kind not in seen:
            seen.add(kind)
            result = attacked(plan, task)
            assert result.passed, kind
            assert result.claimed_epsilon == pytest.approx(epsilon)
        z = rng.uniform(-1, 1, (task.people, 3))
        reply = task.answer((z, (z[:, 0] > 0).astype(np.int64)), source)
        server.receive(reply.values, start=start)
    several = {("answers", 2, True), ("answers", 3, True), ("temperature", 3, None)}
    assert seen == {("answers", 1, False), ("answers", 1, True), ("evaluation", 1, None)} | (
        several if epsilon > 1 else {("temperature", 1, None)}
    )


def test_the_audit_is_not_blind() -> None:
    """At ε = 3 every reply really uses its budget: a claim of 2.7 is disproved by draws alone."""
    plan = plan_at(3.0, center_known=True)
    result = attacked(plan, Server(plan).issue(1), claim=2.7)
    assert result.lower_bound > 2.7
    assert not result.passed


def test_a_person_who_sends_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_at(1.0, center_known=True)
    task = Server(plan).issue(1)
    honest = Person._respond

    def leaking(self: Person, query: Task, number: int) -> Any:
        answer = honest(self, query, number)
        answer.values[:] = 1.0
        return answer

    monkeypatch.setattr(Person, "_respond", leaking)
    with pytest.raises(AssertionError, match="something else"):
        attacked(plan, task)
