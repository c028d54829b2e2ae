"""One suite for every storage."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from stored_studies import FINISHED, begun, every_storage, model, record, reply, stored, token

from dpfda.collector.storage import open_storage, tables
from dpfda.collector.storage.base import Ended, NewReply, Storage, Ticket, Totals
from dpfda.errors import UnknownName


@every_storage
def test_studies_are_kept_newest_first(storage: Storage) -> None:
    assert storage.study("study") is None
    assert storage.create(record(), model())
    assert storage.create(record("later", created=2.0), model("later"))
    assert storage.study("study") == record()
    assert [study.id for study in storage.page(most=9)] == ["later", "study"]
    assert storage.models("study") == [model()]


@every_storage
def test_another_process_finds_the_same_studies(storage: Storage, database: str) -> None:
    storage.create(record(), model())
    assert (storage.url is None) == (database == "memory:")
    if storage.url is not None:
        again = open_storage(storage.url)
        assert again.study("study") == record()
        again.close()


@every_storage
def test_a_study_is_created_once(storage: Storage) -> None:
    assert storage.create(record(), model())
    assert not storage.create(record(created=9.0), model())
    assert storage.study("study") == record()


@every_storage
def test_people_are_enrolled_until_the_study_is_finished(storage: Storage) -> None:
    begun(storage, people=1)
    crowd = [("study", token(i)) for i in (7, 8)]
    assert storage.enrol([*crowd, ("other", token(9))]) == ["enrolled", "enrolled", "unknown"]
    storage.begin_closing("study", 0)
    assert storage.enrol([("study", token(10))]) == ["enrolled"]
    storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    assert storage.enrol([("study", token(11))]) == ["finished"]
    study = storage.study("study")
    assert study is not None
    assert study.enrolled == 4


@every_storage
def test_tickets_are_handed_out_once_and_again_to_the_same_person(storage: Storage) -> None:
    storage.create(record(quota=2), model())
    storage.create(record("other"), model("other"))
    storage.enrol([("study", token(i)) for i in range(3)])
    asked = [("study", token(i)) for i in (0, 1, 0, 2, 7)] + [("other", token(0))]
    assert storage.issue(asked, now=2.0) == [
        Ticket("study", 0, 0),
        Ticket("study", 0, 1),
        Ticket("study", 0, 0),
        "wait",
        "unknown",
        "foreign",
    ]
    assert storage.issue([("study", token(1))], now=3.0) == [Ticket("study", 0, 1)]
    study = storage.study("study")
    assert study is not None
    assert (study.issued, study.began) == (2, 2.0)


@every_storage
def test_replies_are_stored_once(storage: Storage) -> None:
    begun(storage)
    assert storage.add_replies([reply(0), reply(1)]) == ["stored", "stored"]
    assert storage.add_replies([reply(0), reply(1, body=b"new"), reply(2)]) == [
        "same",
        "different",
        "stored",
    ]
    assert storage.answered("study", 0) == 3
    assert storage.replies("study", 0) == [(0, b"x"), (1, b"x"), (2, b"x")]


@every_storage
def test_one_bad_reply_spoils_no_other(storage: Storage) -> None:
    begun(storage)
    group = [reply(0), reply(0, body=b"other"), reply(0), reply(5), reply(1)]
    foreign = NewReply(token(0), "study", 0, 2, b"d" * 32, b"x")
    assert storage.add_replies([*group, foreign]) == [
        "stored",
        "different",
        "same",
        "unknown",
        "stored",
        "foreign",
    ]


@every_storage
def test_late_replies_are_refused_and_old_ones_still_known(storage: Storage) -> None:
    begun(storage)
    storage.add_replies([reply(0)])
    assert storage.begin_closing("study", 0)
    assert storage.add_replies([reply(0), reply(1), reply(0, body=b"new")]) == [
        "same",
        "late",
        "different",
    ]
    following = {"phase": 1, "kind": "check", "quota": 5, "status": "open", "state": "{1}"}
    assert storage.advance("study", 0, Ended(following=following, model=model(phase=0)))
    assert storage.add_replies([reply(0), reply(1)]) == ["same", "late"]
    study = storage.study("study")
    assert study is not None
    assert (study.phase, study.kind, study.quota, study.issued) == (1, "check", 5, 0)
    assert (study.began, study.state) == (None, "{1}")


@every_storage
def test_a_withdrawn_reply_is_in_no_sum_and_does_not_come_back(storage: Storage) -> None:
    begun(storage)
    storage.enrol([("study", token(5))])
    storage.add_replies([reply(0), reply(1)])
    other = NewReply(token(1), "study", 0, 0, reply(0).digest, b"x")  # of another person's ticket
    assert [storage.withdraw(one) for one in (reply(1, body=b"new"), other, reply(9))] == [
        "different",
        "foreign",
        "unknown",
    ]
    assert storage.withdraw(NewReply(token(5), "study", 0, 0, reply(0).digest, b"x")) == "foreign"
    assert storage.replies("study", 0) == [(0, b"x"), (1, b"x")]
    assert [storage.withdraw(reply(0)), storage.withdraw(reply(0))] == ["withdrawn"] * 2
    assert storage.replies("study", 0) == [(1, b"x")]
    assert storage.withdraw(reply(2)) == "withdrawn", "it may still be on its way"
    again = [reply(0), reply(2), reply(0, body=b"new"), reply(1)]
    assert storage.add_replies(again) == ["withdrawn", "withdrawn", "different", "same"]
    assert storage.issue([("study", token(0))], now=3.0) == ["answered"], "nobody is asked twice"
    assert storage.settled("study", [token(0)]) == {token(0)}
    assert storage.answered("study", 0) == 3, "the phase waits for nobody else"
    assert [one.id for one in storage.due(now=3.0)] == ["study"]
    assert storage.begin_closing("study", 0)
    assert [storage.withdraw(reply(i)) for i in (0, 1)] == ["withdrawn", "late"]
    assert storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    while storage.forget():
        pass
    assert [storage.withdraw(reply(i)) for i in (0, 1, 9)] == ["withdrawn", "late", "unknown"]
    assert storage.add_replies([reply(0), reply(1)]) == ["withdrawn", "same"]
    assert storage.replies("study", 0) == [(1, b"x")]
    assert storage.withdraw(reply(0, study="none")) == "gone"


@every_storage
def test_a_phase_ends_once(storage: Storage) -> None:
    begun(storage)
    following = {"phase": 1, "kind": "check", "quota": 5, "status": "open", "state": "{}"}
    assert not storage.advance("study", 0, Ended(following=following, model=model(phase=0)))
    assert storage.begin_closing("study", 0)
    assert storage.begin_closing("study", 0), "after a crash the work is taken up again"
    assert storage.advance("study", 0, Ended(following=following, model=model(phase=0)))
    assert not storage.advance("study", 0, Ended(following=following, model=model(phase=0)))
    assert not storage.begin_closing("study", 0)
    assert [entry.phase for entry in storage.models("study")] == [-1, 0]


@every_storage
def test_a_finished_study_wants_nobody(storage: Storage) -> None:
    begun(storage, people=3, quota=2)
    storage.begin_closing("study", 0)
    storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    assert storage.issue([("study", token(2))], now=3.0) == ["finished"]
    assert not storage.begin_closing("study", 1)


@every_storage
@pytest.mark.parametrize("by_hand", [False, True])
def test_the_next_study_begins_with_the_end_of_this_one(storage: Storage, by_hand: bool) -> None:
    begun(storage)
    following = record("next", created=3.0), model("next")
    if by_hand:
        storage.create(*following)
    storage.begin_closing("study", 0)
    ended = Ended(following=FINISHED, model=model(phase=0), successor=following)
    assert storage.advance("study", 0, ended)
    study = storage.study("study")
    assert study is not None
    assert study.successor == "next"
    assert [(line.id, line.status) for line in storage.page(most=9)] == [
        ("next", "open"),
        ("study", "finished"),
    ]
    assert [entry.phase for entry in storage.models("next")] == [-1]


@every_storage
def test_studies_come_in_pages(storage: Storage) -> None:
    assert storage.page(most=3) == []
    for number, created in enumerate([1.0, 3.0, 2.0, 2.0, 2.0]):
        storage.create(record(f"{number}", created=created), model(f"{number}"))
    found, after = [], None
    while lines := storage.page(most=2, after=after):
        assert len(lines) <= 2
        found += [line.id for line in lines]
        after = lines[-1].place
    assert found == ["1", "4", "3", "2", "0"]  # of the same age in the order of names, none twice
    storage.create(record("new", created=9.0), model("new"))
    assert storage.page(most=1, after=after) == []  # what is new is on no later page


@every_storage
def test_a_line_says_what_a_study_does(storage: Storage) -> None:
    begun(storage)
    storage.add_replies([reply(0), reply(1), reply(0)])
    storage.create(record("other"), model("other"))
    other, line = sorted(storage.page(most=9), key=lambda line: line.answered)
    assert (line.id, line.hash, line.created, line.kind) == ("study", "study" * 4, 1.0, "report")
    assert (line.answered, line.issued, line.quota, line.enrolled) == (2, 3, 3, 3)
    assert (line.title, line.epsilon) == ("a title", 0.5)
    assert (other.id, other.answered) == ("other", 0)
    storage.begin_closing("study", 0)
    following = {"phase": 1, "kind": "check", "quota": 5, "status": "open", "state": "{}"}
    storage.advance("study", 0, Ended(following=following, model=model(phase=0)))
    after = {line.id: line for line in storage.page(most=9)}["study"]
    assert (after.phase, after.quota, after.answered) == (1, 5, 0)  # of the present phase alone


@every_storage
def test_totals_are_those_of_all_studies(storage: Storage) -> None:
    assert storage.totals() == Totals()
    begun(storage)
    storage.create(record("other"), model("other"))
    storage.create(record("other"), model("other"))  # refused: it exists
    storage.enrol([("other", token(i)) for i in range(10, 14)])
    assert storage.totals() == Totals(studies=2, finished=0, enrolled=7)
    storage.begin_closing("study", 0)
    ended = Ended(following=FINISHED, model=model(phase=0), successor=(record("b"), model("b")))
    storage.advance("study", 0, ended)
    assert storage.totals() == Totals(studies=3, finished=1, enrolled=7)
    assert not storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    assert storage.totals() == Totals(studies=3, finished=1, enrolled=7)


def due(storage: Storage, now: float) -> list[str]:
    return sorted(study.id for study in storage.due(now=now))


@every_storage
def test_what_must_be_concluded(storage: Storage) -> None:
    timed = msgspec.structs.replace(record("timed", quota=2), deadline=10.0)
    storage.create(timed, model("timed"))
    begun(storage, people=2, quota=2)
    assert due(storage, 1e9) == []  # nobody has answered, and there is no deadline
    storage.enrol([("timed", token(7))])
    assert due(storage, 1e9) == []  # nobody was asked
    storage.issue([("timed", token(7))], now=100.0)
    storage.enrol([("timed", token(8))])
    storage.issue([("timed", token(8))], now=105.0)  # counted from the first
    assert due(storage, 109.9) == []
    assert due(storage, 110.0) == ["timed"]
    storage.add_replies([reply(0)])
    assert due(storage, 1.0) == []
    storage.add_replies([reply(1)])
    assert due(storage, 1.0) == ["study"]
    for name in ("study", "timed"):
        storage.begin_closing(name, 0)
    assert due(storage, 1.0) == ["study", "timed"]  # whoever began, and was interrupted
    following = {"phase": 1, "kind": "check", "quota": 1, "status": "open", "state": "{}"}
    storage.advance("timed", 0, Ended(following=following, model=model("timed", phase=0)))
    storage.advance("study", 0, Ended(following=FINISHED, model=model(phase=0)))
    assert due(storage, 1e9) == []
    again = storage.study("timed")
    assert again is not None
    assert (again.began, again.due, again.deadline) == (None, None, 10.0)


@stored
def test_everything_survives_reopening(storage: Storage, database: str) -> None:
    begun(storage)
    storage.add_replies([reply(0)])
    storage.close()
    again = open_storage(database)
    assert again.replies("study", 0) == [(0, b"x")]
    assert again.issue([("study", token(0))], now=2.0) == ["answered"]
    assert again.issue([("study", token(1))], now=2.0) == [Ticket("study", 0, 1)]
    again.close()


@stored
def test_several_writers_at_once(storage: Storage, database: str) -> None:
    """Tickets are distinct and no reply is lost when four processes' worth of threads compete."""
    storage.create(record(quota=80), model())
    crowd = [("study", token(i)) for i in range(80)]
    storage.enrol(crowd)
    places: list[Ticket] = []
    failures: list[BaseException] = []

    def work(part: int) -> None:
        try:
            own = open_storage(database)
            for start in range(part * 20, part * 20 + 20, 5):
                group = crowd[start : start + 5]
                tickets = own.issue(group, now=1.0)
                replies = [
                    NewReply(who, "study", 0, ticket.number, b"d" * 32, b"y")  # type: ignore[union-attr]
                    for (_, who), ticket in zip(group, tickets, strict=True)
                ]
                assert own.add_replies(replies) == ["stored"] * 5
                places.extend(tickets)  # type: ignore[arg-type]
            own.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(place.number or 0 for place in places) == list(range(80))
    assert storage.answered("study", 0) == len(storage.replies("study", 0)) == 80  # kept, counted


@stored
def test_migrations_make_the_tables_that_the_code_uses(storage: Storage, database: str) -> None:
    inspector = sa.inspect(storage._engine)  # type: ignore[attr-defined]
    for table in tables.metadata.tables.values():
        found = {column["name"]: column["nullable"] for column in inspector.get_columns(table.name)}
        assert found == {column.name: bool(column.nullable) for column in table.columns}
        keys = inspector.get_pk_constraint(table.name)["constrained_columns"]
        assert keys == [column.name for column in table.primary_key]
        assert {index["name"] for index in inspector.get_indexes(table.name)} == {
            str(index.name) for index in table.indexes
        }


def test_sqlite_syncs_every_commit(storage: Storage) -> None:
    with storage._engine.connect() as connection:  # type: ignore[attr-defined]
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_sqlite_finds_no_fault_with_its_file(storage: Storage) -> None:
    begun(storage)
    storage.add_replies([reply(0)])
    with storage._engine.connect() as connection:  # type: ignore[attr-defined]
        assert connection.exec_driver_sql("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_an_unknown_scheme_does_not_show_the_password(tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as refusal:
        open_storage("mysql://someone:secret@localhost/x")
    assert "secret" not in str(refusal.value)


@every_storage
@pytest.mark.parametrize("odd", ["ticket", "token", "twice", "phase", "study"])
def test_one_odd_reply_among_good_ones_is_found(storage: Storage, odd: str) -> None:
    """Replies of one phase are compared all at once, where each is as it should be."""
    begun(storage, people=5, quota=5)
    storage.create(record("other"), model("other"))
    sent = [reply(number) for number in range(4)]
    change, verdict = {
        "ticket": ({"number": 4}, "foreign"),
        "token": ({"token": token(9)}, "unknown"),
        "twice": ({"token": token(0)}, "foreign"),
        "phase": ({"phase": 1}, "foreign"),
        "study": ({"study": "other"}, "foreign"),
    }[odd]
    sent[2] = msgspec.structs.replace(sent[2], **change)
    assert storage.add_replies(sent) == ["stored", "stored", verdict, "stored"]
    assert storage.add_replies([reply(2), reply(3), reply(4)]) == ["stored", "same", "stored"]
    assert [number for number, _ in storage.replies("study", 0)] == list(range(5))
