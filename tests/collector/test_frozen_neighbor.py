"""Processes that share one PostgreSQL database do not wait for one that is frozen."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from forked_collector import QuickCollector
from sqlalchemy import event

from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.health import WAITING
from dpfda.collector.run import check_storage
from dpfda.collector.storage import open_storage, postgresql
from dpfda.collector.storage.base import NewReply, Unavailable
from dpfda.collector.storage.issuing import Issuing
from dpfda.errors import InvalidParameter

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def _freeze() -> None:
    """The process stops inside the first transaction that hands out tickets."""
    issue = Issuing.issue

    def issue_and_stop(*args: Any, **kwargs: Any) -> Any:
        Issuing.issue = issue  # type: ignore[method-assign]
        verdicts = issue(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(2)  # another thread may take the signal, a little later
        return verdicts

    Issuing.issue = issue_and_stop  # type: ignore[method-assign]


class Freezing(QuickCollector):
    prepare = _freeze


def task(collector: CollectorProcess, study: str, token: str) -> tuple[int, Any]:
    try:
        body = collector.read("GET", f"/api/studies/{study}/task", token=token)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
    return 200, json.loads(body)


@pytest.fixture
def neighbors(database: str) -> Iterator[tuple[CollectorProcess, CollectorProcess]]:
    with QuickCollector(database) as one, Freezing(database) as other:
        yield one, other


@pytest.mark.timed
def test_a_frozen_process_does_not_stop_the_others(
    neighbors: tuple[CollectorProcess, CollectorProcess], make_plan: Any
) -> None:
    one, frozen = neighbors
    study, other = (one.create(make_plan(20, seed=seed))["id"] for seed in (0, 1))
    first, *rest = one.invite(study, 6)
    elsewhere = one.invite(other, 5)
    answers: list[tuple[int, Any]] = []
    waiting = threading.Thread(target=lambda: answers.append(task(frozen, study, first)))
    waiting.start()
    stopped = Path(f"/proc/{frozen.pid}/stat")
    while stopped.read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.05)
    try:
        began = time.monotonic()
        alone = task(one, other, elsewhere.pop())
        assert alone[0] == 200
        assert time.monotonic() - began < 4, "of another study: nothing to wait for"
        tickets = [task(one, study, token) for token in rest]
        others = [task(one, other, token) for token in elsewhere]
        took = time.monotonic() - began
        assert [status for status, _ in [*tickets, *others]] == [200] * 9
        # One wait until the server ends the frozen transaction, then none.
        assert took < postgresql._IDLE + 10
    finally:
        os.kill(frozen.pid, signal.SIGCONT)
    waiting.join(30)
    assert answers[0][0] == 503, "its transaction was undone"
    again = task(one, study, first)
    assert again[0] == 200
    numbers = [body["ticket"] for _, body in [*tickets, again]]
    assert len(set(numbers)) == len(numbers), "no ticket twice"


@pytest.mark.timed
def test_health_knows_how_long_a_write_waits(database: str, make_plan: Any) -> None:
    with QuickCollector(database) as collector:
        study = collector.create(make_plan(20))["id"]
        (token,) = collector.invite(study, 1)
        with psycopg.connect(database) as other:  # not a collector: no timeout of ours reaches it
            other.execute("SELECT id FROM study FOR UPDATE")
            asking = threading.Thread(target=task, args=(collector, study, token))
            asking.start()
            deadline, said = time.monotonic() + 8, ""
            while WAITING not in said and time.monotonic() < deadline:
                time.sleep(0.3)
                try:
                    said = collector.read("GET", "/health").decode()
                except urllib.error.HTTPError as error:
                    said = error.read().decode()
            assert WAITING in said
            measured = collector.read("GET", "/metrics").decode()
            assert "\ndpfda_writes_waiting 1.0\n" in measured
            other.rollback()
        asking.join()
        assert collector.request("GET", "/health") == {"status": "ok"}


def test_a_database_that_is_not_durable_is_refused(database: str) -> None:
    name = database.rpartition("/")[2]
    storage = open_storage(database)
    with psycopg.connect(database, autocommit=True) as other:
        other.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        with pytest.raises(InvalidParameter, match="synchronous_commit is off"):
            check_storage(database)
        with pytest.raises(Unavailable, match="synchronous_commit is off"):
            open_storage(database)
        with storage._engine.connect() as known:  # its value was set when it connected
            assert known.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"
        other.execute(f"ALTER DATABASE {name} SET synchronous_commit = remote_write")
        open_storage(database).close()
    storage.close()


def test_many_rows_are_one_message(database: str, make_plan: Any) -> None:
    """A process that is frozen between two messages of a statement would keep its locks."""
    with QuickCollector(database) as collector:
        study = collector.create(make_plan(20))["id"]
    many: list[str] = []
    storage = open_storage(database)
    event.listen(
        storage._engine, "before_cursor_execute",
        lambda *told: many.append(told[2]) if told[5] else None,
    )  # fmt: skip
    people = [(study, bytes([number]) * 32) for number in range(5)]
    until = {people[0][1]: 2e9}
    assert storage.enrol(people, until=until) == ["enrolled"] * 5
    tickets = storage.issue(people, now=1e9)
    numbers = [ticket.number for ticket in tickets]  # type: ignore[union-attr]
    assert numbers == [0, 1, 2, 3, 4]
    replies = [
        NewReply(token, study, 0, number, bytes([number]) * 32, b"{}")
        for (_, token), number in zip(people, numbers, strict=True)
    ]
    assert storage.add_replies(replies) == ["stored"] * 5
    assert storage.add_replies(replies) == ["same"] * 5
    assert storage.replies(study, 0) == [(number, b"{}") for number in range(5)]
    assert many == []
    storage.close()


def test_every_connection_has_limits(database: str) -> None:
    storage = open_storage(database)
    for engine in (storage._engine, storage._hurried):  # type: ignore[attr-defined]
        with engine.connect() as connection:
            found = {
                name: connection.exec_driver_sql(f"SHOW {name}").scalar_one()
                for name in (
                    "lock_timeout",
                    "statement_timeout",
                    "idle_in_transaction_session_timeout",
                    "tcp_keepalives_idle",
                    "tcp_user_timeout",
                )
            }
        assert "0" not in found.values(), found
    storage.close()
