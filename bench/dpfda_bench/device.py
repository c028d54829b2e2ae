"""What a reply costs a person's device: milliseconds and bytes, for every design and phase."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from dpfda import plan_study
from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.noise import SecureSource, SimulationSource, Source
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.person import Crowd, Person
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.wire import ReplyMessage, TaskMessage

_PEOPLE, _COLUMNS, _EPSILONS = 10_000, 36, (1.0, 5.0)
_DESIGNS: dict[str, dict[str, Any]] = {
    "moments": {}, "noisy_labels": {}, "answers": {"evaluation_share": 0.1},
    "mrma": {"n_classifiers": 500, "member_size": 20, "evaluation_share": 0.2},
    "mrma_stream": {"n_classifiers": 20, "new_classifiers": 5},
    "exchange": {"intercepts": [0.1], "coefficients": [[1.0] * _COLUMNS]},
    "vectors": {"evaluation_share": 0.1},
}  # fmt: skip


def plans() -> Iterator[StudyPlan]:
    """Studies of 36 columns: every design of people, and what the recipe makes of such tables."""
    ranges = [(-4.0, 4.0)] * _COLUMNS
    encoder = CurveEncoder("identity", feature_ranges=ranges)
    for epsilon in _EPSILONS:
        for name, design in _DESIGNS.items():
            yield StudyPlan(
                epsilon=epsilon, n_people=_PEOPLE, encoder=encoder, classes=(0, 1),
                design={"name": name} | design,
                protects="labels" if name == "noisy_labels" else "both",
            )  # fmt: skip
        facts: dict[str, Any] = {"feature_ranges": ranges}
        yield plan_study(_PEOPLE, epsilon, classes=tuple(range(26)), **facts)
        yield plan_study(_PEOPLE, epsilon, target_range=(-3.0, 3.0), **facts)


def messages(plan: StudyPlan) -> Iterator[bytes]:
    """The task of the first person in every phase of a simulated study."""

    def people(start: int, stop: int) -> tuple[FloatArray, IntArray]:
        generator = np.random.default_rng(start)
        labels = generator.integers(0, max(plan.n_classes, 1), stop - start)
        columns = plan.encoder.n_features + (plan.target_range is not None)
        features = generator.uniform(-1, 1, (stop - start, columns))
        return features + 0.1 * (labels[:, None] % 5), labels

    server, seen = Server(plan), -1
    crowd = Crowd(plan, people, source=SimulationSource(0))
    while not server.finished:
        start = server.issued
        task = server.issue(min(server.wanted, 4096))
        if server.phase > seen:
            seen = server.phase
            only = task.rows([0]).to_dict()
            yield msgspec.json.encode(TaskMessage(plan.hash, seen, 0, only))
        server.receive(crowd.answer(task).values, start=start)


def reply(plan: StudyPlan, body: bytes, row: dict[str, Any], source: Source) -> bytes:
    """What a device does between the two messages, but for keeping its ledger on disk."""
    message = msgspec.json.decode(body, type=TaskMessage)
    task = plan.read_task(message.task)
    person = Person(plan, ledger=Ledger(plan.epsilon), source=source, **row,
                    accepts=plan.guarantee.assumptions)  # fmt: skip
    values = person.answer(task).values
    return msgspec.json.encode(
        ReplyMessage.saying(plan.hash, message.phase, message.ticket, values[0].tolist())
    )


def costs(*, devices: int = 3) -> list[dict[str, Any]]:
    """Of every design and ε, the most milliseconds and bytes of a reply, over all phases.

    Every study is answered by some new devices, and the median of their times counts.
    """
    rows = []
    for plan in plans():
        asked = [body.decode() for body in messages(plan)]
        given = json.dumps({"plan": plan.to_dict(), "messages": asked})
        found = np.median([_on_a_device(given) for _ in range(devices)], axis=0)
        taken, size = found.max(axis=0).tolist()
        rows.append(
            {"design": plan.design["name"], "classes": plan.n_classes, "epsilon": plan.epsilon}
            | {"milliseconds": taken, "bytes": int(size)}
        )
    return rows


def _on_a_device(given: str) -> list[tuple[float, int]]:
    command = [sys.executable, "-m", "dpfda_bench.device"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return [(taken, size) for taken, size in json.loads(done.stdout)]


def _answered(plan: StudyPlan, bodies: list[str]) -> Iterator[tuple[float, int]]:
    """Milliseconds and bytes of the reply in every phase."""
    label = 0.5 if plan.target_range is not None else plan.classes[-1]
    row, source = (
        {"curve": np.linspace(-3, 3, plan.encoder.n_features), "label": label},
        SecureSource(),
    )
    _ = plan.asks  # as when the study was joined
    for body in bodies:
        began = time.process_time()
        sent = reply(plan, body.encode(), row, source)
        yield 1000 * (time.process_time() - began), len(sent)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    study = StudyPlan.from_dict(given["plan"])
    print(json.dumps(list(_answered(study, given["messages"]))))  # noqa: T201
