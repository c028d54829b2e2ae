"""A study that `dpfda studies export` wrote, read again: randomized replies, never a curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpfda.errors import ProtocolError
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.wire import Reply


def replayed(plan: StudyPlan, folder: Path) -> Server:
    """The server of an exported study as it was at its end, from the plan and the replies alone.

    Args:
        plan: whose study it must be.
        folder: with ``study.json`` and the replies of each phase.
    """
    try:
        told: Any = msgspec.json.decode((folder / "study.json").read_bytes())
        finished = (told["hash"], told["status"]) == (plan.hash, "finished")
    except (OSError, msgspec.MsgspecError, UnicodeError, KeyError, TypeError):
        raise ProtocolError(f"{folder.name} holds no exported study") from None
    if not finished:
        raise ProtocolError(f"{folder.name} is of another study, or not finished")
    server = Server(plan)
    while not server.finished:
        _absorb(server, folder)
    return server


def _absorb(server: Server, folder: Path) -> None:
    """One phase, whose tickets without a reply lapse."""
    phase, people = server.phase, server.wanted
    rows = np.zeros((people, server.issue(people).width))
    missing = np.ones(people, dtype=bool)
    path = folder / f"replies-{phase}.ndjson"
    if not path.exists():  # not yet, perhaps: an export is written file by file
        raise ProtocolError(f"{folder.name} holds no {path.name}")
    for line in path.read_bytes().splitlines():
        try:
            reply = msgspec.json.decode(line, type=Reply)
        except (msgspec.MsgspecError, UnicodeError):
            raise ProtocolError(f"{path.name} holds something else than replies") from None
        known = reply.plan == server.plan.hash and reply.phase == phase
        if not (known and 0 <= reply.ticket < people and missing[reply.ticket]):
            raise ProtocolError(f"{path.name} holds replies to another study, or two to one ticket")
        if len(reply.values) != rows.shape[1]:
            raise ProtocolError(f"{path.name} holds a reply of another length than was asked for")
        rows[reply.ticket], missing[reply.ticket] = reply.values, False
    if missing.all():
        raise ProtocolError(f"{path.name} holds nobody's reply; were they forgotten?")
    server.receive(rows, start=0, missing=missing)
    if server.phase == phase:
        server.close_phase()
