"""A site's part in a study of owners: their rows, each owner asked once."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dpfda._validate import IntArray
from dpfda.boosting.owner import Owners
from dpfda.boosting.owner_rows import OwnerRows
from dpfda.errors import AlreadySpent, ProtocolError
from dpfda.federation.kept import Begun, KeptAnswers
from dpfda.federation.messages import Request, Shares
from dpfda.federation.shared import Allow, Part
from dpfda.noise import Source
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task


class OwnersPart(Part):
    """Answers requests that the study may ask, for those of its owners whose turn it is.

    Privacy:
        ε-LDP for all rows of an owner, towards everybody but this site: what leaves are the shares
        that the study's mechanism made of an owner's rows. The site knows from the plan alone whose
        turn it is, asks nobody twice, and answers a repeated request with the bytes of before. The
        ledger pays ε once, before the first share is drawn: no two shares are of one owner.

    Args:
        study: the contract.
        rows: the owners' private rows.
        name: the site's.
        tickets: when each owner's turn is, ascending.
        order: whose turn it is then.
        kept: what was answered.
        ledger: the owners' budget over all studies.
        label: public words for the ledger.
        key: the plan's hash: it is paid for once.
        source: where noise comes from.
    """

    steps = ("owners",)

    def __init__(
        self,
        study: StudyPlan,
        rows: OwnerRows,
        *,
        name: str,
        tickets: IntArray,
        order: IntArray,
        kept: KeptAnswers,
        ledger: BaseLedger,
        label: str,
        key: str,
        source: Source,
    ) -> None:
        self.name, self.rows = name, rows.owners
        self._study, self._tickets, self._kept = study, tickets, kept
        self._ledger, self._label, self._key = ledger, label, key
        self._owners = Owners(study, rows, order=order, source=source)

    def answer(self, step: str, message: Any, allow: Allow) -> Shares:
        """The shares of the owners whose turn it is."""
        asked: Request = message
        task, number = self._study.read_task(asked.query), asked.number
        mark = f"{task.digest} {asked.start} {asked.stop}"
        found = self._kept.again(number, mark)
        if found is None:
            found = self._new(task, asked, mark, allow)
        return Shares(site=self.name, number=number, values=found)

    def described(self, step: str, reply: Shares) -> str:
        """What leaves."""
        return f"{len(reply.values) // 8} noisy numbers of owners, question {reply.number}"

    def _new(self, task: Task, asked: Request, mark: str, allow: Allow) -> bytes:
        begun = self._kept.begun
        number = asked.number
        if not max(begun, default=-1) < number < self._study.n_people:
            raise ProtocolError(f"question {number} comes after later ones, or after all owners")
        asked_before = max((one.stop for one in begun.values()), default=0)
        if not asked_before <= asked.start <= asked.stop <= self._study.n_people:
            raise ProtocolError("an owner is asked once")
        first, last = np.searchsorted(self._tickets, [asked.start, asked.stop]).tolist()
        if task.people != last - first:
            raise ProtocolError(f"it is the turn of {last - first} owners here, not {task.people}")
        allow(_shown(task, number))
        self._kept.begin(number, Begun(mark, asked.stop))
        self._pay(first_time=not begun)
        self._owners.asked = first  # those who were not asked in their turn are asked no more
        values = self._owners.answer(task).values.astype("<f8").tobytes()
        self._kept.keep(number, values)
        return values

    def _pay(self, *, first_time: bool) -> None:
        """Once for all owners: each of them is asked once."""
        try:
            self._ledger.spend(self._study.guarantee, label=self._label, key=self._key)
        except AlreadySpent:
            if first_time:
                raise ProtocolError(
                    "the study is paid for, and what was answered in it is gone from this folder"
                ) from None


def _shown(task: Task, number: int) -> str:
    """A request, as a person at the site reads it."""
    written = json.dumps(task.to_dict(), ensure_ascii=False)
    who = f"{task.people} owners, {task.width} noisy numbers each, {task.event}"
    return f"question {number}: {task.name} to {who}: {written}"
