"""How SQL backends hand out tickets: in turn, and again where nobody answered in time.

Whatever changes a person's ticket locks the study first, and a reply locks it against such changes:
two people never hold one ticket, in however many processes they ask.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from dpfda.collector.storage import bulk, forgetting, tables
from dpfda.collector.storage.base import Issued, Lapse, Ticket, timed
from dpfda.collector.storage.waiting import Waiting

_study, _person, _reply = tables.study, tables.person, tables.reply
_LOCKED = (
    sa.select(
        *(_study.c.id, _study.c.phase, _study.c.quota, _study.c.issued, _study.c.status),
        *(_study.c.began, _study.c.deadline, _study.c.due),
    )
    .where(_study.c.id.in_(sa.bindparam("studies", expanding=True)))
    .order_by(_study.c.id)  # in one order everywhere: no deadlock
    .with_for_update()
)
_UNANSWERED = (
    sa.select(_person.c.token, _person.c.number, _person.c.until)
    .where(
        _person.c.study == sa.bindparam("of"),
        _person.c.phase == sa.bindparam("at"),
        _person.c.until.is_not(None),
        ~sa.exists().where(
            _reply.c.study == _person.c.study,
            _reply.c.phase == _person.c.phase,
            _reply.c.number == _person.c.number,
        ),
    )
    .order_by(_person.c.until, _person.c.number)
)
_NOBODY: dict[str, Issued] = {"finished": "finished", "deleted": "gone"}


class Issuing:
    """Hands out tickets, and remembers when it is worth looking for those that lapse."""

    def __init__(self) -> None:
        self._idle: dict[str, tuple[int, float]] = {}  # study: phase, and when the next may lapse
        self._waiting = Waiting()

    def issue(
        self,
        connection: Connection,
        people: Sequence[tuple[str, bytes]],
        *,
        now: float,
        lapse: Mapping[str, Lapse],
    ) -> list[Issued]:
        """The ticket of each person."""
        asked = list({study for study, _ in people})
        rows = {row.id: row for row in connection.execute(_LOCKED, {"studies": asked})}
        held = bulk.tickets(connection, [token for _, token in people])
        past = forgetting.served(connection, [one for one in people if one[1] not in held])
        verdicts: list[Issued] = []
        waiting: dict[str, list[int]] = defaultdict(list)
        for i, (study, token) in enumerate(people):
            row, mine, rule = rows.get(study), held.get(token), lapse.get(study, Lapse())
            if row is not None and row.status == "deleted":
                verdicts.append("gone")
            elif mine is None:
                verdicts.append("late" if (study, token) in past else "unknown")
            elif mine.study != study:
                verdicts.append("foreign")
            elif _is_answered(connection, mine):
                verdicts.append("answered")
            elif mine.number is not None:
                wanted = self._waiting.is_somebody(study, now, rule)
                kept = _kept(connection, token, mine, row, now=now, lapse=rule, wanted=wanted)
                verdicts.append(kept)
            elif rule.is_over(mine.until, now):
                verdicts.append("lapsed")
            else:
                verdicts.append("wait")
                waiting[study].append(i)
        for study, places in waiting.items():
            asking = [people[i][1] for i in places]
            new = self._new(connection, rows[study], asking, now, lapse.get(study, Lapse()))
            for i in places:
                verdicts[i] = new[people[i][1]]
        return verdicts

    def _new(
        self, connection: Connection, row: Any, asking: list[bytes], now: float, lapse: Lapse
    ) -> dict[bytes, Issued]:
        """Tickets of one study to people who have none."""
        tokens = list(dict.fromkeys(asking))  # one person may ask twice at once
        fresh = row.quota - row.issued if row.status == "open" else 0
        numbers = list(range(row.issued, row.issued + min(fresh, len(tokens))))
        if numbers:
            changed = {"issued": row.issued + len(numbers)} | timed(row, now)
            connection.execute(sa.update(_study).where(_study.c.id == row.id).values(**changed))
        if row.status == "open" and len(numbers) < len(tokens):
            numbers += self._lapsed(connection, row, now, lapse, len(tokens) - len(numbers))
        served = {
            token: Ticket(row.id, row.phase, number)
            for token, number in zip(tokens, numbers, strict=False)
        }
        if served:
            bulk.assign(connection, served, until=lapse.until(now))
        nobody = _NOBODY.get(row.status, "wait")
        if row.status == "open" and len(served) < len(tokens):
            self._waiting.sent_away(row.id, now)
        return {token: served.get(token, nobody) for token in tokens}

    def _lapsed(
        self, connection: Connection, row: Any, now: float, lapse: Lapse, most: int
    ) -> list[int]:
        """Take tickets from people who did not answer in time, longest ago first."""
        phase, idle = self._idle.get(row.id, (row.phase, 0.0))
        if lapse.seconds is None or (phase == row.phase and now <= idle):
            return []
        asked = {"of": row.id, "at": row.phase}
        found = connection.execute(_UNANSWERED.limit(most + 1), asked).all()
        free = [one for one in found[:most] if lapse.is_free(one.until, now)]
        if len(free) < most:  # nobody's lapses before this: of later tickets, none before now's
            rest = found[len(free) :]
            ends = min([one.until for one in rest[:1]] + [now + lapse.seconds])
            self._idle[row.id] = (row.phase, ends + lapse.grace)
        if free:
            lost = [bytes(one.token) for one in free]
            bulk.take_away(connection, lost)
        return [int(one.number) for one in free]


def _is_answered(connection: Connection, mine: bulk.Held) -> bool:
    """Whether there is a reply to somebody's ticket: then nobody is asked with it again."""
    if mine.phase is None or mine.number is None:
        return False
    return forgetting.digest(connection, mine.study, mine.phase, mine.number) is not None


def _kept(
    connection: Connection,
    token: bytes,
    mine: bulk.Held,
    row: Any,
    *,
    now: float,
    lapse: Lapse,
    wanted: bool,
) -> Issued:
    """What somebody is told who has not answered: the same as before, unless their time is over.

    Where nobody else wants it, it is theirs again.
    """
    ticket = Ticket(mine.study, mine.phase, mine.number)
    present = row is not None and (mine.phase, "open") == (row.phase, row.status)
    if not present or not lapse.has_ended(mine.until, now):
        return ticket
    if lapse.final:
        return "lapsed"
    if wanted:
        return "wait"
    bulk.assign(connection, {token: ticket}, until=lapse.until(now))
    return ticket
