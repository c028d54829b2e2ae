"""The whole interactive study is ε-LDP: one person's data moves one reply by at most e^ε."""

import itertools

import numpy as np
import pytest

from dpfda import questions  # noqa: F401 (registers the designs)
from dpfda.curves import CurveEncoder
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import audit
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol import Server, StudyPlan

IDENTITY = CurveEncoder("identity", n_basis=3, rescale="clip", scale=1.0)


class OnePersonsReply:
    """The reply of one person in a fixed state of the server, as a mechanism on (z, y)."""

    def __init__(self, task, epsilon):
        self.task = task
        self.guarantee = Guarantee(epsilon=epsilon, model="local")
        self.log_likelihood = None

    def randomize(self, values, rng):
        task = self.task.rows(np.zeros(len(values), dtype=np.int64))
        return task.answer((values[:, :-1], values[:, -1].astype(np.int64)), rng).values

    def worst_cases(self):
        corners = [
            np.array([[a, b, b, y]])
            for a, b, y in itertools.product((-0.9, 0.9), (0.4,), (0.0, 1.0))
        ]
        return list(itertools.combinations(corners, 2))


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_every_phase_keeps_epsilon(epsilon):
    """Server states fixed by other people's replies; two neighbouring people; every phase."""
    plan = StudyPlan(
        epsilon=epsilon,
        n_people=2000,
        encoder=IDENTITY,
        classes=(0, 1),
        design={"name": "questions", "scales": (0.3, 0.3, 0.2), "evaluation_share": 0.1},
    )
    server, source, seen = Server(plan), SimulationSource(0), set()
    rng = np.random.default_rng(0)
    while not server.finished:
        start, kind = server.issued, server.phase_name
        task = server.issue(server.wanted)
        if kind not in seen:
            seen.add(kind)
            target = OnePersonsReply(task.rows([0]), epsilon)
            result = audit(target, name=kind, draws=20_000, source=source)
            assert result.passed, kind
        z = rng.uniform(-1, 1, (task.people, 3))
        reply = task.answer((z, (z[:, 0] > 0).astype(np.int64)), source)
        server.receive(reply.values, start=start)
    assert seen == {"centre", "direction", "intercept", "evaluation"}


def test_the_audit_is_not_blind():
    """At ε = 3 the direction phase really uses its budget: a claim of 2 is disproved."""
    plan = StudyPlan(
        epsilon=3.0,
        n_people=100,
        encoder=IDENTITY,
        classes=(0, 1),
        design={"name": "questions", "scales": (0.3, 0.3, 0.2), "centre_known": True},
    )
    task = Server(plan).issue(1)
    result = audit(
        OnePersonsReply(task, 2.0), name="direction", draws=50_000, source=SimulationSource(1)
    )
    assert not result.passed
