"""What every storage forgets: who gave which reply, purged replies, whole studies."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from stored_studies import FINISHED, begun, every_storage, model, record, reply, stored, token

from dpfda.collector.storage import open_storage, postgresql, sqlite, tables
from dpfda.collector.storage.base import Ended, Storage, Totals

NEXT = {"phase": 1, "kind": "check", "quota": 5, "status": "open", "state": "{1}"}


def concluded(storage: Storage, *, answers: int = 2, following: Any = NEXT) -> None:
    """People 0, 1, 2 had tickets, the first `answers` of them answered, and the phase is over."""
    begun(storage)
    assert storage.add_replies([reply(i) for i in range(answers)]) == ["stored"] * answers
    storage.begin_closing("study", 0)
    assert storage.advance("study", 0, Ended(following=following, model=model(phase=0)))


def forget_all(storage: Storage, *, most: int = 2000) -> int:
    steps = 0
    while storage.forget(most=most):
        steps += 1
    return steps


def rows(storage: Storage, table: str) -> list[Any]:
    with storage._read() as connection:  # type: ignore[attr-defined]
        return list(connection.execute(sa.select(tables.metadata.tables[table])))


@stored
def test_whose_reply_it_was_is_forgotten(storage: Storage) -> None:
    """Before: every reply of every phase could be joined to a token for ever."""
    concluded(storage)
    forget_all(storage)
    assert rows(storage, "person") == []
    assert [len(row) for row in rows(storage, "past")] == [2, 2, 2]  # answered or not: the same
    assert {bytes(row.token) for row in rows(storage, "past")} == {token(i) for i in range(3)}
    assert not {"token", "received"} & set(rows(storage, "reply")[0]._fields)
    assert rows(storage, "forgetting") == []
    assert storage.replies("study", 0) == [(0, b"x"), (1, b"x")]


@every_storage
def test_the_same_bytes_get_the_same_answer_when_their_owner_is_forgotten(storage: Storage) -> None:
    concluded(storage)
    late = [reply(0), reply(0, body=b"new"), reply(2), reply(7)]
    forget_all(storage)
    assert storage.add_replies(late) == ["same", "late", "late", "unknown"]
    assert storage.issue([("study", token(0)), ("study", token(2))], now=3.0) == ["late"] * 2
    assert storage.answered("study", 0) == 2, "nothing counts twice"
    assert storage.issue([("study", token(7))], now=3.0) == ["unknown"]


@every_storage
def test_people_of_the_open_phase_are_not_forgotten(storage: Storage) -> None:
    concluded(storage)
    new = [("study", token(i)) for i in (8, 9)]
    storage.enrol(new)
    (ticket,) = storage.issue(new[:1], now=3.0)
    forget_all(storage)
    assert storage.issue(new[:1], now=4.0) == [ticket]
    second = reply(8, phase=1)
    assert storage.add_replies([type(second)(token(8), "study", 1, 0, b"d", b"x")]) == ["stored"]
    (other,) = storage.issue(new[1:], now=4.0)
    assert (other.phase, other.number) == (1, 1)  # type: ignore[union-attr]


@stored
def test_a_crash_between_conclusion_and_forgetting(storage: Storage, database: str) -> None:
    concluded(storage)
    assert len(rows(storage, "person")) == 3, "noted in the transaction that ends the phase"
    storage.close()
    again = open_storage(database)
    assert again.forget(most=1), "a step"
    again.close()
    again = open_storage(database)
    forget_all(again, most=1)
    assert rows(again, "person") == []
    assert len(rows(again, "past")) == 3
    assert again.add_replies([reply(0), reply(2)]) == ["same", "late"]
    again.close()


@every_storage
def test_purged_replies_leave_digests(storage: Storage) -> None:
    concluded(storage)
    forget_all(storage)
    assert not storage.purge("other")
    assert storage.purge("study")
    assert storage.purge("study"), "twice does no harm"
    forget_all(storage, most=1)
    assert storage.replies("study", 0) == []
    assert storage.digest("study", 0, 0) == reply(0).digest
    assert storage.digest("study", 0, 2) is None
    assert storage.answered("study", 0) == 2
    assert storage.add_replies([reply(0), reply(1, body=b"new")]) == ["same", "late"]
    assert [entry.phase for entry in storage.models("study")] == [-1, 0]


@every_storage
def test_replies_of_an_open_phase_are_not_purged(storage: Storage) -> None:
    concluded(storage)
    storage.enrol([("study", token(8))])
    storage.issue([("study", token(8))], now=3.0)
    current = type(reply(0))(token(8), "study", 1, 0, b"d", b"kept")
    assert storage.add_replies([current]) == ["stored"]
    storage.begin_closing("study", 1)  # its conclusion is being drawn
    storage.purge("study")
    forget_all(storage)
    assert storage.replies("study", 0) == []
    assert storage.replies("study", 1) == [(0, b"kept")]


@every_storage
@pytest.mark.parametrize("when", ["open", "closing", "next", "finished"])
def test_a_deleted_study_is_gone_and_no_other(storage: Storage, when: str) -> None:
    """In the middle of a phase, while it is concluded, after it, and at the end."""
    if when in ("open", "closing"):
        begun(storage)
        storage.add_replies([reply(0)])
    else:
        concluded(storage, following=NEXT if when == "next" else FINISHED)
    if when == "closing":
        storage.begin_closing("study", 0)
    assert storage.create(record("other"), model("other"))
    storage.enrol([("other", token(20))])
    storage.issue([("other", token(20))], now=2.0)
    of_other = type(reply(0))(token(20), "other", 0, 0, b"d", b"x")
    assert storage.add_replies([of_other]) == ["stored"]

    assert storage.delete("study")
    assert not storage.delete("study")
    for _ in range(2):  # at once, and when the rows are gone
        assert storage.study("study") is None
        assert [study.id for study in storage.page(most=9)] == ["other"]
        assert storage.due(now=1e12) == []
        assert storage.totals() == Totals(studies=1, finished=0, enrolled=1)
        assert storage.models("study") == []
        assert not storage.begin_closing("study", 0)
        assert not storage.advance("study", 0, Ended(following=NEXT, model=model(phase=0)))
        assert not storage.purge("study")
        group = [reply(0), reply(1), reply(9), of_other]
        assert storage.add_replies(group) == ["gone", "gone", "gone", "same"]
        assert storage.enrol([("study", token(30))]) == ["unknown"]
        assert not storage.create(record(), model()), "devices would not answer it again"
        forget_all(storage, most=1)
    assert storage.answered("study", 0) == 0
    assert storage.digest("study", 0, 0) is None
    assert storage.replies("other", 0) == [(0, b"x")]
    assert storage.issue([("other", token(20))], now=9.0) == ["answered"]


@stored
def test_nothing_of_a_deleted_study_is_left_but_its_id(storage: Storage) -> None:
    concluded(storage)
    storage.enrol([("study", token(8))])
    storage.forget(most=1)
    storage.delete("study")
    forget_all(storage, most=1)
    for table in ("person", "past", "reply", "model", "tally", "forgetting"):
        assert rows(storage, table) == []
    (left,) = rows(storage, "study")
    assert set(left) == {"study", "deleted", "", 0, None}


@every_storage
def test_a_ticket_of_a_deleted_study_is_not_handed_out(storage: Storage) -> None:
    begun(storage, people=0)
    storage.enrol([("study", token(0))])
    storage.delete("study")
    assert storage.issue([("study", token(0))], now=1.0) == ["gone"]
    forget_all(storage)
    assert storage.issue([("study", token(0)), ("no", token(0))], now=1.0) == ["gone", "unknown"]


@stored
def test_people_answer_while_their_study_is_deleted(storage: Storage, database: str) -> None:
    storage.create(record(quota=60), model())
    crowd = [("study", token(i)) for i in range(60)]
    storage.enrol(crowd)
    storage.issue(crowd, now=1.0)
    failures: list[BaseException] = []
    verdicts: list[str] = []
    erasing = threading.Event()

    def answer() -> None:
        own = open_storage(database)
        try:
            for i in range(60):
                verdicts.extend(own.add_replies([reply(i)]))
                erasing.wait(0 if i < 40 else 5)  # the last ones come too late
        except BaseException as error:
            failures.append(error)
        own.close()

    def erase() -> None:
        own = open_storage(database)
        try:
            while len(verdicts) < 5:
                time.sleep(0.001)
            own.delete("study")
            erasing.set()
            forget_all(own, most=7)
        except BaseException as error:
            failures.append(error)
        own.close()

    work: list[Callable[[], None]] = [answer, erase, erase]
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert set(verdicts) == {"stored", "gone"}
    forget_all(storage)
    assert rows(storage, "reply") == rows(storage, "person") == []


def remains(path: Path, people: int) -> int:
    """How many links between a token and a ticket are in any byte of the database's files."""
    content = b"".join(
        name.read_bytes() for name in path.parent.iterdir() if name.name.startswith(path.name)
    )
    found = 0
    for i in range(people):
        number = i.to_bytes(1 if i < 128 else 2, "big")
        found += token(i) + b"study" + number in content  # as the table has it
        found += b"study" + number + token(i) in content  # as the index has it
    return found


@pytest.mark.parametrize("crashed", [False, True])
def test_a_copied_sqlite_file_holds_no_link(tmp_path: Path, crashed: bool) -> None:
    """Neither in free pages nor in the write-ahead log, also after a crash before the log's end."""
    path, people = tmp_path / "study.db", 3000
    storage = open_storage(f"sqlite:///{path}")
    storage.create(record(quota=people), model())
    crowd = [("study", token(i)) for i in range(people)]
    for start in range(0, people, 150):
        storage.enrol(crowd[start : start + 150])
        storage.issue(crowd[start : start + 150], now=1.0)
    assert remains(path, people) > people, "the test finds them while they are there"
    storage.begin_closing("study", 0)
    storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    if crashed:
        while storage.forget(most=500) and storage._dirty and rows(storage, "forgetting"):  # type: ignore[attr-defined]
            pass
        storage.close()
        storage = open_storage(f"sqlite:///{path}")
    forget_all(storage, most=500)
    assert remains(path, people) == 0
    assert path.with_name("study.db-wal").stat().st_size == 0
    storage.close()


def test_no_withdrawn_reply_stays_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    storage = open_storage(f"sqlite:///{path}")
    begun(storage)
    replies = [reply(i, body=b'{"values":[%d.125]}' % (73_000 + i)) for i in range(2)]
    storage.add_replies(replies)
    files = [path, path.with_name("study.db-wal")]

    def held() -> list[bool]:
        content = b"".join(one.read_bytes() for one in files)
        return [one.body in content for one in replies]

    assert held() == [True, True]
    assert [storage.withdraw(replies[0]) for _ in range(2)] == ["withdrawn"] * 2
    assert len(rows(storage, "forgetting")) == 1
    forget_all(storage)
    assert held() == [False, True]
    assert rows(storage, "forgetting") == []
    storage.close()


def test_no_link_stays_where_other_people_do(tmp_path: Path) -> None:
    """Rows that stay are moved between pages while others go, which leaves copies behind."""
    path, people = tmp_path / "study.db", 1200
    storage = open_storage(f"sqlite:///{path}")
    for name in ("study", "other"):
        storage.create(record(name, quota=people), model(name))
    for start in range(0, people, 40):
        those = range(start, start + 40)
        crowd = [one for i in those for one in (("study", token(i)), ("other", token(people + i)))]
        storage.enrol(crowd)
        storage.issue(crowd, now=1.0)
    assert remains(path, people) > people
    storage.begin_closing("study", 0)
    storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    forget_all(storage, most=50)
    assert len(rows(storage, "person")) == people
    assert remains(path, people) == 0
    storage.close()


def test_a_large_file_is_not_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.db"
    storage = open_storage(f"sqlite:///{path}")
    concluded(storage)
    told: list[str] = []
    sa.event.listen(
        storage._engine,
        "checkout",
        lambda raw, *_: raw.set_trace_callback(told.append),  # type: ignore[attr-defined]
    )
    monkeypatch.setattr(sqlite, "SMALL", path.stat().st_size - 1)
    forget_all(storage)
    assert "VACUUM" not in told
    monkeypatch.setattr(sqlite, "SMALL", path.stat().st_size)
    storage._dirty = True  # type: ignore[attr-defined]
    forget_all(storage)
    assert told.count("VACUUM") == 1
    storage._dirty = True  # type: ignore[attr-defined]
    forget_all(storage)
    assert told.count("VACUUM") == 1, "once for what was forgotten, however often it is tried"
    storage.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("small", [True, False])
def test_no_link_stays_in_the_files_of_a_server(
    database: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain VACUUM leaves the bytes of rows behind which others stand."""
    people = 200
    storage = open_storage(database)
    for name in ("study", "other"):
        storage.create(record(name, quota=people), model(name))
    for name, first in (("study", 0), ("other", people)):
        crowd = [(name, token(first + i)) for i in range(people)]
        storage.enrol(crowd)
        storage.issue(crowd, now=1.0)
    storage.add_replies([reply(i, body=b"reply %d." % i) for i in range(people)])
    assert left_in_files(storage, people) == (people, people)
    if not small:
        monkeypatch.setattr(postgresql, "SMALL", 1)
    storage.begin_closing("study", 0)
    storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    storage.purge("study")
    forget_all(storage)
    assert (left_in_files(storage, people) == (0, 0)) == small
    assert len(rows(storage, "person")) == people
    storage.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_tables_in_use_are_written_anew_later(database: str) -> None:
    storage: Any = open_storage(database)
    concluded(storage)
    with storage._engine.begin() as somebody:
        somebody.execute(sa.text("LOCK TABLE reply IN ROW EXCLUSIVE MODE"))
        assert not storage._scrub(), "whoever writes is not waited for"
        assert somebody.execute(sa.text("SELECT 1")).scalar_one() == 1
    assert storage._scrub()
    with storage._engine.connect() as connection:
        assert connection.execute(sa.text("SHOW lock_timeout")).scalar_one() == "10s"
    storage.close()


def test_a_file_in_use_is_written_anew_later(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    storage: Any = open_storage(f"sqlite:///{path}")
    concluded(storage)
    storage._forgotten += 1
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert not storage._scrub(), "whoever writes is not waited for"
    assert storage._written_anew != storage._forgotten
    other.execute("ROLLBACK")
    other.close()
    assert storage._scrub()
    assert storage._written_anew == storage._forgotten
    storage.close()


def left_in_files(storage: Any, people: int) -> tuple[int, int]:
    """How many tokens and replies of the first people are in any byte of their tables."""
    with storage._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("CHECKPOINT"))
        folder = Path(connection.execute(sa.text("SHOW data_directory")).scalar_one())
        where = sa.text("SELECT pg_relation_filepath(:name)")
        person, replies = (
            (folder / connection.execute(where, {"name": name}).scalar_one()).read_bytes()
            for name in ("person", "reply")
        )
    return (
        sum(token(i) in person for i in range(people)),
        sum(b"reply %d." % i in replies for i in range(people)),
    )


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
def test_sqlite_files_are_their_owners_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "study.db"
        storage = open_storage(f"sqlite:///{path}")
        storage.create(record(), model())
        names = sorted(tmp_path.iterdir())
        assert [name.name for name in names] == ["study.db", "study.db-shm", "study.db-wal"]
        assert {name.stat().st_mode & 0o777 for name in names} == {0o600}
        storage.close()
        path.chmod(0o644)
        open_storage(f"sqlite:///{path}").close()
        assert path.stat().st_mode & 0o777 == 0o600, "a file from before is taken from others"
    finally:
        os.umask(before)


@pytest.mark.timed
def test_a_reader_delays_the_end_of_the_log_and_nobody_else(tmp_path: Path) -> None:
    """A backup that reads while something is forgotten: tried again, and not waited for."""
    path = tmp_path / "study.db"
    storage = open_storage(f"sqlite:///{path}")
    concluded(storage)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM person").fetchall()
        began = time.monotonic()
        forget_all(storage)
        assert time.monotonic() - began < 5, "those who write go on"
        assert path.with_name("study.db-wal").stat().st_size > 0
        reader.execute("ROLLBACK")
    assert not storage.forget()
    assert path.with_name("study.db-wal").stat().st_size == 0
    storage.close()


def test_sqlite_keeps_no_order_of_arrival(storage: Storage, database: str) -> None:
    concluded(storage)
    with contextlib.closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection:
        for table in ("person", "past", "reply"):
            with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
                connection.execute(f"SELECT rowid FROM {table}")


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_postgresql_keeps_no_order_of_arrival_and_no_old_rows(storage: Storage) -> None:
    people = 60
    storage.create(record(quota=people), model())
    crowd = [("study", token(i)) for i in range(people)]
    storage.enrol(crowd)
    storage.issue(crowd, now=1.0)
    storage.begin_closing("study", 0)
    storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    size = sa.text("SELECT pg_relation_size('person')")
    with storage._read() as connection:  # type: ignore[attr-defined]
        assert connection.execute(size).scalar_one() > 0
    forget_all(storage, most=7)
    with storage._read() as connection:  # type: ignore[attr-defined]
        assert connection.execute(size).scalar_one() == 0, "vacuumed"
        lie = connection.execute(sa.text("SELECT token FROM past ORDER BY ctid")).scalars()
        assert [bytes(one) for one in lie] == sorted(token(i) for i in range(people))
