"""Databases of earlier releases are brought up to date with what they hold; later ones refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from stored_studies import model, record, reply, stored, token

from dpfda.collector.run import check_storage
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage import database as databases
from dpfda.collector.storage import open_storage, tables
from dpfda.collector.storage.base import ClockMark, NewReply, Unavailable
from dpfda.errors import InvalidParameter


@pytest.fixture
def at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases stay as the first release makes them."""
    upgrade = command.upgrade

    def first(configuration: Config, _: str) -> Any:
        return upgrade(configuration, "0001")

    monkeypatch.setattr(databases.command, "upgrade", first)


def insert(connection: sa.Connection, table: str, row: dict[str, Any]) -> None:
    """A row as the first release writes it: only columns that it knows."""
    known = [column["name"] for column in sa.inspect(connection).get_columns(table)]
    named = {name: value for name, value in row.items() if name in known}
    columns = [tables.metadata.tables[table].c[name] for name in named]
    connection.execute(
        sa.table(table, *(sa.column(c.name, c.type) for c in columns)).insert(), named
    )


@stored
def test_data_of_the_first_release(
    database: str, at_first: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = open_storage(database)
    engine = old._engine  # type: ignore[attr-defined]
    assert "open" not in {one["name"] for one in sa.inspect(engine).get_columns("study")}
    settings = {"a": StudySettings(open=True), "b": StudySettings(domain_unit='"open":true')}
    with engine.begin() as connection:
        for name, chosen in settings.items():
            text = msgspec.json.encode(chosen).decode()
            study = msgspec.structs.replace(record(name), settings=text)
            insert(connection, "study", msgspec.structs.asdict(study))
            insert(connection, "model", msgspec.structs.asdict(model(name)))
    for number, name in enumerate(settings):
        old.enrol([(name, token(number))])
        old.issue([(name, token(number))], now=1.0)
        old.add_replies([_reply(number, name)])
    before = {name: old.replies(name, 0) for name in settings}
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO pulse (id, at) VALUES (1, 5.0), (2, 6.0)")
    old.close()

    monkeypatch.undo()
    new = open_storage(database)
    assert {name: new.replies(name, 0) for name in settings} == before
    assert [len(replies) for replies in before.values()] == [1, 1]
    assert [new.study(name).open for name in settings] == [True, False]  # type: ignore[union-attr]
    assert [line.id for line in new.page(most=9, only_open=True)] == ["a"]
    assert {line.owner for line in new.page(most=9)} == {"administrator"}
    assert (new.organizers(), new.activities(most=9)) == ([], [])
    assert [new.answered(name, 0) for name in settings] == [1, 1]
    assert new.clock() == ([ClockMark(boot="", at=5.0)], 6.0)
    assert new.add_replies([_reply(0, "a")]) == ["same"]
    assert new.create(msgspec.structs.replace(record("c"), open=True), model("c"))
    new.close()
    open_storage(database).close()


def _reply(number: int, study: str) -> NewReply:
    found: NewReply = msgspec.structs.replace(reply(number), study=study, number=0)
    return found


@stored
def test_a_later_release_is_told_in_words(database: str) -> None:
    storage = open_storage(database)
    with storage._engine.begin() as connection:  # type: ignore[attr-defined]
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    storage.close()
    with pytest.raises(Unavailable, match="newer release of dpfda wrote this database"):
        open_storage(database)
    with pytest.raises(InvalidParameter, match="install that release, or restore a copy"):
        check_storage(database)
