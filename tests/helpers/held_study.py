"""Studies that were held in a moment: the server's own conclusions, stored without HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from dpfda.collector.conclude import begin, conclude, resume
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import Ended, NewReply, StudyRecord, Ticket
from dpfda.noise import SimulationSource
from dpfda.protocol.person import Crowd
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import Reply

HOUR = 3600.0
CREATED = 1_790_000_000.0

People = Callable[[int, int], Any]


def hold(
    database: str, plan: StudyPlan, people: People, *, people_who_answer: int, **how: Any
) -> str:
    """A study in which so many of its people have answered; its id.

    Args:
        database: URL of the storage.
        plan: the study.
        people: encoded curves and label numbers.
        people_who_answer: how many; the last of them in a phase that goes on.
        how: settings of the study.
    """
    begun = begin(plan.to_dict())
    assert not isinstance(begun, str), begun
    contract, found = begun
    storage = open_storage(database)
    record = StudyRecord(
        id=contract.hash[:16], hash=contract.hash, title=contract.title, epsilon=contract.epsilon,
        plan=msgspec.json.encode(contract.to_dict()).decode(), created=CREATED, seal="s",
        settings=msgspec.json.encode(StudySettings(**how)).decode(), **found.following,
    )  # fmt: skip
    first = found.recorded(record.id, -1, "begin", created=CREATED)
    assert storage.create(record, first)
    crowd, left = Crowd(contract, people, source=SimulationSource(0)), people_who_answer
    while left and found.following["status"] != "finished":
        now = found.following
        server = resume(contract, now["state"])
        here = min(left, now["quota"])
        values = crowd.answer(server.issue(here)).values
        replies = [
            (number, msgspec.json.encode(Reply(contract.hash, now["phase"], number, row)))
            for number, row in enumerate(values.tolist())
        ]
        left -= here
        if here < now["quota"]:
            _unfinished(storage, record.id, now["phase"], replies)
            break
        found = conclude(record.plan, now["state"], replies)
        ended = CREATED + HOUR * (now["phase"] + 1)
        learnt = found.recorded(record.id, now["phase"], now["kind"], created=ended)
        storage.begin_closing(record.id, now["phase"])
        assert storage.advance(
            record.id, now["phase"], Ended(following=found.following, model=learnt)
        )
    storage.close()
    return record.id


def _unfinished(storage: Any, study: str, phase: int, replies: list[tuple[int, bytes]]) -> None:
    """Replies of a phase that goes on."""
    tokens = [hashlib.sha256(f"{study}{number}".encode()).digest() for number, _ in replies]
    storage.enrol([(study, token) for token in tokens])
    issued = storage.issue([(study, token) for token in tokens], now=CREATED + 9 * HOUR)
    for token, ticket, (_, body) in zip(tokens, issued, replies, strict=True):
        assert isinstance(ticket, Ticket)
        assert ticket.number is not None
        reply = NewReply(token, study, phase, ticket.number, hashlib.sha256(body).digest(), body)
        assert storage.add_replies([reply]) == ["stored"]


def curves(n: int, d: int, *, signal: float, seed: int = 0) -> People:
    """Encoded curves whose first features tell two labels apart, or nothing at all."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    features = rng.normal(0, 0.25, (n, d))
    features[:, : min(3, d)] += (
        signal * np.array([1.0, -0.8, 0.4])[: min(3, d)] * (2 * labels - 1)[:, None]
    )
    features = np.clip(features, -1, 1)
    return lambda start, stop: (features[start:stop], labels[start:stop])
