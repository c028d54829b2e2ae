"""A site's part in a study of owners: their rows, each owner asked once."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dpfda._validate import IntArray
from dpfda.errors import ProtocolError
from dpfda.local.boosting.owner import Owners
from dpfda.local.boosting.owner_rows import OwnerRows
from dpfda.noise import Source
from dpfda.privacy.events import PureEvent
from dpfda.privacy.ledger import BaseLedger, part_label
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.sites.kept import Begun, KeptAnswers
from dpfda.sites.messages import AskOwners, Shares
from dpfda.sites.shared import Allow, Part


class OwnersPart(Part):
    """Answers requests that the study may ask, for those of its owners whose turn it is.

    Privacy:
        ε-LDP for all rows of an owner, towards everybody but this site: what leaves are the shares
        that the study's mechanism made of an owner's rows. The site knows from the plan alone whose
        turn it is, asks nobody twice, and answers a repeated request with the bytes of before. The
        ledger pays ε once, before the first share is drawn: no two shares are of one owner. It also
        remembers up to whose turn the study came, should the account be lost or put back.

    Args:
        study: the contract.
        rows: the owners' private rows.
        name: the site's.
        tickets: when each owner's turn is, ascending.
        order: whose turn it is then.
        people: a digest of who they are: others would come in another order.
        kept: what was answered.
        ledger: the owners' budget over all studies.
        label: public words for the ledger.
        key: the plan's hash.
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
        people: str,
        kept: KeptAnswers,
        ledger: BaseLedger,
        label: str,
        key: str,
        source: Source,
    ) -> None:
        self.name, self.rows = name, rows.owners
        self._study, self._tickets, self._people, self._kept = study, tickets, people, kept
        self._ledger, self._label, self._key = ledger, label, key
        self._owners = Owners(study, rows, order=order, source=source)

    def answer(self, step: str, message: Any, allow: Allow) -> Shares:
        """The shares of the owners whose turn it is."""
        asked: AskOwners = message
        task, number = self._study.read_task(asked.query), asked.number
        mark = f"{task.digest} {asked.start} {asked.stop}"
        found = self._kept.again(number, mark)
        if found is None:
            found = self._new(task, asked, mark, allow)
        return Shares(site=self.name, number=number, values=found)

    def described(self, step: str, reply: Shares) -> str:
        """What leaves."""
        return f"{len(reply.values) // 8} noisy numbers of owners, question {reply.number}"

    def _new(self, task: Task, asked: AskOwners, mark: str, allow: Allow) -> bytes:
        begun, number = self._kept.begun, asked.number
        if not max(begun, default=-1) < number < self._study.n_people:
            raise ProtocolError(f"question {number} comes after later ones, or after all owners")
        if any(one.people != self._people for one in begun.values()):
            raise ProtocolError("the owners here are others than when the study began")
        asked_before = max((one.stop for one in begun.values()), default=0)
        if not asked_before <= asked.start <= asked.stop <= self._study.n_people:
            raise ProtocolError("an owner is asked once")
        if asked.start < self._paid_until:
            raise ProtocolError(
                "the study is paid for, and what was answered in it is gone from this folder"
            )
        first, last = np.searchsorted(self._tickets, [asked.start, asked.stop]).tolist()
        if not 0 < task.people == last - first:
            raise ProtocolError(f"it is the turn of {last - first} owners here, not {task.people}")
        allow(_shown(task, number))
        self._kept.begin(number, Begun(mark, asked.stop, self._people))
        self._pay(task, asked.stop, place=len(begun) + 1)
        self._owners.asked = first  # those who were not asked in their turn are asked no more
        values = self._owners.answer(task).values.astype("<f8").tobytes()
        self._kept.keep(number, values)
        return values

    @property
    def _paid_until(self) -> int:
        """Everybody numbered below may have been asked, says the ledger."""
        keys = [(entry.key or "").partition(" ") for entry in self._ledger.entries]
        return max((int(stop) for key, _, stop in keys if key == self._key), default=0)

    def _pay(self, task: Task, stop: int, *, place: int) -> None:
        """ε once for all owners, since each of them is asked once; then nothing more."""
        promise = self._study.guarantee
        self._ledger.spend(
            PureEvent(epsilon=0.0) if self._paid_until else promise,
            label=part_label(self._label, place, task.name),
            key=f"{self._key} {stop}",
            assumptions=promise.assumptions,
            unit=promise.unit,
        )


def _shown(task: Task, number: int) -> str:
    """A request, as a person at the site reads it."""
    written = json.dumps(task.to_dict(), ensure_ascii=False)
    who = f"{task.people} owners, {task.width} noisy numbers each, {task.event}"
    return f"question {number}: {task.name} to {who}: {written}"
