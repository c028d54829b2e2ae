"""Compare a copy of a collector's database with the original, row by row, without changes.

An older copy lacks later replies, and still contains the bodies of replies that were purged or
withdrawn later. All other rows must be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection, make_url
from sqlalchemy.exc import DBAPIError

from dpfda.collector.storage import tables
from dpfda.collector.storage.base import mark_of
from dpfda.errors import InvalidParameter

_study, _reply, _model = tables.study, tables.reply, tables.model
_FIXED = ("hash", "plan", "settings", "created", "seal")  # columns of a study that never change
_AT_ONCE = 5000


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One study in both databases.

    Attributes:
        study: its id.
        outcome: ``same``; ``behind`` if the original has more; ``different`` if the copy has rows
            that the original lacks, or different values.
        replies: number of replies in the copy and in the original.
        models: the same for models.
    """

    study: str
    outcome: Literal["same", "behind", "different"]
    replies: tuple[int, int]
    models: tuple[int, int]


def compare(copy: str, original: str) -> list[Compared]:
    """Compare every study of a copy and of the original, sorted by id.

    Args:
        copy: URL of a database, or a file of SQLite.
        original: the same.
    """
    with _reading("COPY", copy) as one, _reading("ORIGINAL", original) as other:
        names = sorted(_names(one) | _names(other))
        return [_compare(one, other, name) for name in names]


def _reading(name: str, place: str) -> Connection:
    """A read-only connection, without migrations."""
    try:
        url = make_url(place if "://" in place else f"sqlite:///{place}")
        if url.drivername == "sqlite":
            file = Path(str(url.database)).absolute()
            if not file.is_file():
                raise InvalidParameter(name, "a file that exists", str(url.database))
            # For an unused file, a normal reader would create additional files.
            how = "mode=ro" if Path(f"{file}-wal").exists() else "immutable=1"
            url = make_url(f"sqlite:///file:{file}?{how}&uri=true")
        else:
            url = url.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        found = engine.connect()
        found.execute(sa.select(_study.c.id).limit(1))
    except (DBAPIError, sa.exc.ArgumentError):
        shown = place.rpartition("@")[2]
        raise InvalidParameter(name, "a collector's database of this release", shown) from None
    return found


def _names(connection: Connection) -> set[str]:
    query = sa.select(_study.c.id).where(_study.c.status != "deleted")
    return set(connection.execute(query).scalars())


def _compare(copy: Connection, original: Connection, study: str) -> Compared:
    rows = [one.execute(sa.select(_study).where(_study.c.id == study)).first() for one in
            (copy, original)]  # fmt: skip
    here, there = rows
    counts: dict[str, tuple[int, int]] = {}
    wrong = behind = False
    for table, keys, what in (
        (_reply, ("phase", "number"), ("digest", "body")),
        (_model, ("phase",), ("kind", "people", "document", "summary")),
    ):
        mine, theirs, missing, odd = _merge(
            _rows(copy, table, study, keys, what),
            _rows(original, table, study, keys, what),
            keys=len(keys),
        )
        counts[table.name] = mine, theirs
        wrong, behind = wrong or odd, behind or missing
    if here is None or there is None:  # created after the copy, or deleted since
        wrong, behind = wrong or here is not None, True
        if there is not None and there.status == "deleted":
            wrong = False
        elif there is None and here is not None and not here.issued and counts["model"][0] == 1:
            wrong = False  # edited since before anybody joined, so it has another id now
    elif there.status == "deleted":
        wrong, behind = False, True
    else:
        wrong = wrong or any(getattr(here, name) != getattr(there, name) for name in _FIXED)
        wrong = wrong or here.phase > there.phase
        behind = behind or here.phase < there.phase
    outcome: Literal["same", "behind", "different"]
    outcome = "different" if wrong else "behind" if behind else "same"
    return Compared(study=study, outcome=outcome, replies=counts["reply"], models=counts["model"])


def _rows(
    connection: Connection, table: sa.Table, study: str, keys: tuple[str, ...],
    what: tuple[str, ...],
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    columns = [table.c[name] for name in (*keys, *what)]
    query = sa.select(*columns).where(table.c.study == study)
    query = query.order_by(*(table.c[name] for name in keys))
    found = connection.execution_options(yield_per=_AT_ONCE).execute(query)
    for row in found:
        yield tuple(bytes(one) if isinstance(one, memoryview) else one for one in row)


def _merge(
    copy: Iterator[tuple[Any, ...]], original: Iterator[tuple[Any, ...]], *, keys: int
) -> tuple[int, int, bool, bool]:
    """Row counts of both, whether the copy lacks rows, and whether it has different ones."""
    mine = theirs = 0
    missing = odd = False
    one, other = next(copy, None), next(original, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[:keys] < other[:keys]):
            mine, odd = mine + 1, True
            one = next(copy, None)
        elif one is None or other[:keys] < one[:keys]:
            theirs, missing = theirs + 1, True
            other = next(original, None)
        else:
            mine, theirs = mine + 1, theirs + 1
            purged = one[:-1] == other[:-1] and other[-1] == b""
            odd = odd or not (one == other or purged or _is_withdrawn(one, other))
            one, other = next(copy, None), next(original, None)
    return mine, theirs, missing, odd


def _is_withdrawn(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether the original's row is an empty reply, in place of the copy's."""
    return other[-1] == b"" and isinstance(one[-2], bytes) and other[-2] == mark_of(one[-2])
