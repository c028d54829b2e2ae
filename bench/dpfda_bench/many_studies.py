"""A collector's database with as many studies as wanted, made without asking anybody."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import msgspec
import sqlalchemy as sa

from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.storage import open_storage, tables
from dpfda.collector.storage.base import ModelRecord, StudyRecord
from dpfda.collector.storage.sql import SqlStorage

PATHS = ("/health", "/metrics", "/api/studies?most=10")


def fill(database: str, studies: int) -> SqlStorage:
    """A storage with so many studies: every third finished, the others waiting for people."""
    storage = open_storage(database)
    assert isinstance(storage, SqlStorage)
    with storage._engine.begin() as connection:
        known = tables.totals(connection).get("studies", 0)
        records = [_record(number) for number in range(known, studies)]
        connection.execute(
            tables.study.insert(), [msgspec.structs.asdict(record) for record in records]
        )
        models = [ModelRecord(
            study=one.id, phase=-1, kind="begin", people=0, created=one.created, document="{}",
            summary="{}",
        ) for one in records]  # fmt: skip
        connection.execute(tables.model.insert(), [msgspec.structs.asdict(one) for one in models])
        answers = [{"study": one.id, "phase": 0, "slot": 0, "answered": 3} for one in records[::2]]
        connection.execute(tables.tally.insert(), answers)
        finished = sum(one.status == "finished" for one in records)
        tables.add_totals(connection, 0, studies=len(records), finished=finished)
    if storage._engine.dialect.name == "postgresql":  # as its own daemon does after a while
        with storage._engine.begin() as connection:
            connection.execute(sa.text("ANALYZE"))
    return storage


def slowdown(folder: Path, *, few: int = 10, many: int = 10_000, rounds: int = 20) -> float:
    """How much longer the slowest of the lists and probes takes with many studies than with few."""
    took: dict[int, dict[str, float]] = {}
    for studies in (few, many):
        database = f"sqlite:///{folder / f'{studies}.db'}"
        fill(database, studies).close()
        with CollectorProcess(database) as collector:
            took[studies] = {
                path: statistics.median(_seconds(collector, path) for _ in range(rounds))
                for path in PATHS
            }
    return max(took[many][path] / took[few][path] for path in PATHS)


def _seconds(collector: CollectorProcess, path: str) -> float:
    start = time.perf_counter()
    collector.read("GET", path)
    return time.perf_counter() - start


def _record(number: int) -> StudyRecord:
    return StudyRecord(
        id=f"{number:02x}",
        hash=f"{number:064x}",
        title=f"study {number}",
        epsilon=1.0,
        plan="{}",
        settings="{}",
        created=float(number),
        phase=0,
        kind="report",
        quota=20,
        issued=10,
        status="finished" if number % 3 == 0 else "open",
        state='{"padding": "' + "x" * 2000 + '"}',  # a state is longer than a page of a list
        seal="",
    )
