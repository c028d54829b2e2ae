"""Studies by age, a page at a time, and those whose phase must be concluded.

Neither looks at more rows than it returns, however many studies there are.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from dpfda.collector.storage import counters
from dpfda.collector.storage.base import StudyLine, StudyRecord
from dpfda.collector.storage.tables import study as _study

_ANSWERED = counters.answered_now()
_SHORT = [_study.c[name] for name in StudyLine.__struct_fields__ if name in _study.c]
_LINES = sa.select(*_SHORT, _ANSWERED.label("answered")).order_by(
    _study.c.created.desc(), _study.c.id.desc()
)
_HERE = _study.c.status != "deleted"  # those are the oldest, so that no page passes over them
_OPEN = sa.text("status = 'open'")  # as it is written in an index: else that is not used
_ALL_OUT = sa.text("issued >= quota")
_DUE = sa.select(_study).where(
    _study.c.id.in_(
        sa.union_all(
            sa.select(_study.c.id).where(sa.text("status = 'closing'")),
            sa.select(_study.c.id).where(_OPEN, _study.c.due <= sa.bindparam("now")),
            sa.select(_study.c.id).where(_OPEN, _ALL_OUT, _study.c.quota <= _ANSWERED),
        )
    )
)


def page(connection: Connection, *, most: int, after: tuple[float, str] | None) -> list[StudyLine]:
    """Newest first."""
    query = _LINES.where(_HERE).limit(most)
    if after is not None:
        query = query.where(sa.tuple_(_study.c.created, _study.c.id) < after)
    return [StudyLine(**row._mapping) for row in connection.execute(query)]


def due(connection: Connection, *, now: float) -> list[StudyRecord]:
    """Closing, past their deadline, or complete; each has an index of the few it may be about."""
    return [StudyRecord(**row._mapping) for row in connection.execute(_DUE, {"now": now})]
