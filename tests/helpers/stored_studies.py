"""Small studies as a storage knows them, and the storages to try them on."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from dpfda.collector.conclude import Conclusion
from dpfda.collector.storage.base import ModelRecord, NewReply, Storage, StudyRecord
from dpfda.protocol.plan import StudyPlan

every_storage = pytest.mark.parametrize(
    "database", ["memory", "sqlite", "postgresql"], indirect=True
)
stored = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


def record(name: str = "study", *, quota: int = 3, created: float = 1.0) -> StudyRecord:
    return StudyRecord(
        id=name,
        hash=name * 4,
        plan="{}",
        settings="{}",
        created=created,
        phase=0,
        kind="report",
        quota=quota,
        status="open",
        state="{}",
        seal="s",
        title="a title",
        epsilon=0.5,
    )


def study_of(plan: StudyPlan, first: Conclusion) -> StudyRecord:
    """A study that was just begun."""
    return StudyRecord(
        id="a",
        hash=plan.hash,
        plan=msgspec.json.encode(plan.to_dict()).decode(),
        settings="{}",
        created=0.0,
        seal="s",
        **first.following,
    )


def model(name: str = "study", phase: int = -1) -> ModelRecord:
    return ModelRecord(
        study=name, phase=phase, kind="report", people=0, created=1.0, document="{}", summary="{}"
    )


FINISHED = {"phase": 1, "kind": "finished", "quota": 0, "status": "finished", "state": "{}"}


def token(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def reply(number: int, *, study: str = "study", phase: int = 0, body: bytes = b"x") -> NewReply:
    digest = hashlib.sha256(body).digest()
    return NewReply(token(number), study, phase, number, digest, body)


def begun(storage: Storage, *, people: int = 3, quota: int = 3) -> None:
    """A study in which people 0, 1, ... hold the tickets 0, 1, ..."""
    assert storage.create(record(quota=quota), model())
    crowd = [("study", token(i)) for i in range(people)]
    assert storage.enrol(crowd) == ["enrolled"] * people
    storage.issue(crowd, now=2.0)
