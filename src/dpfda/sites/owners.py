"""Boosting over sites: the inquiry in a plan, the coordinator's side, and the site's side.

All owners take part in one boosting study. Sites hold the rows of owners, and each owner is asked
once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpfda._registry import revive
from dpfda._validate import FloatArray, IntArray
from dpfda.curves.files import Table
from dpfda.curves.files.cells import label
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.estimators.file_block import frame
from dpfda.local.boosting.design import BoostingDesign
from dpfda.local.boosting.model import RowModel
from dpfda.local.boosting.request import OwnerRows, Owners, public_order
from dpfda.noise import SecureSource, Source
from dpfda.privacy.cost import limit
from dpfda.privacy.events import PureEvent
from dpfda.privacy.guarantee import (
    SITE_SIZES_ARE_PUBLIC,
    SITES_DRAW_THEIR_NOISE,
    USER_IS_NOT_PROTECTED,
    Guarantee,
)
from dpfda.privacy.ledger import BaseLedger, part_label
from dpfda.protocol.person import Scattered, encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.secure_sum import Terms
from dpfda.protocol.task import Task, check_reply
from dpfda.report.documents import Documented
from dpfda.simulate import ask_everybody
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.identity import Card
from dpfda.sites.messages import AskOwners, Shares
from dpfda.sites.plan import Plan
from dpfda.sites.shared import Allow, Facts, Holds, Part, SharedInquiry
from dpfda.sites.stored_files import Begun, KeptAnswers

if TYPE_CHECKING:
    from dpfda.sites.site_folder import SiteFolder


def lead_owners(coordinator: Coordinator, study: StudyPlan, places: IntArray) -> RowModel:
    """Run the study from the first round to the last, and return its model.

    Args:
        coordinator: sends messages, and stores replies.
        study: the study plan.
        places: the site of each owner, as its number in the plan, in the order of the study.
    """
    crowd = Scattered(study, places, Requests(coordinator).ask)
    server = ask_everybody(
        study,
        crowd,
        source=SecureSource(),  # not used: sites draw the noise
        at_once=study.n_people,
        answers=crowd.answered,
    )
    model = server.model
    assert isinstance(model, RowModel)
    return model


class Requests:
    """Sends each task to the sites of the next owners; replies are stored before they are used."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator, self._number = coordinator, -1

    def ask(self, tasks: Mapping[int, Task], start: int, stop: int) -> dict[int, FloatArray]:
        """Replies of the sites that answered."""
        self._number += 1
        lead, number = self._coordinator, self._number
        names = {lead.plan.terms.names[place]: place for place in tasks}
        asked = {
            name: AskOwners(number=number, start=start, stop=stop, query=tasks[place].to_dict())
            for name, place in names.items()
        }
        marks = [tasks[place].digest for place in names.values()]
        digest = hashlib.sha256(" ".join([str(start), str(stop), *marks]).encode()).hexdigest()

        def wrong(name: str, reply: Shares) -> str:
            if reply.site != name or reply.number != number:
                return "replied in another site's name, or to another question"
            task = tasks[names[name]]
            check_reply(task, _rows(reply.values, task))
            return ""

        found = lead.each(number, "owners", asked, question=digest, wrong=wrong)
        lead.say_answered(number, next(iter(tasks.values())).name, list(found))
        return {
            names[name]: _rows(reply.values, tasks[names[name]]) for name, reply in found.items()
        }


def _rows(content: bytes, task: Task) -> FloatArray:
    """The replies in a message, after a check of their shape."""
    if len(content) != 8 * task.people * task.width:
        raise ProtocolError(
            f"the reply has {len(content) / 8:g} numbers, not {task.people * task.width}"
        )
    return np.frombuffer(content, dtype="<f8").reshape(task.people, task.width)


class OwnersPart(Part):
    """Answers tasks that the study may ask, for the next owners of this site.

    Privacy:
        ε-LDP for all rows of an owner, against everybody but this site: only the shares that the
        study's mechanism computes from an owner's rows are sent. The plan alone determines the
        order of the owners. No owner is asked twice, and a repeated task gets the same bytes again.
        The ledger pays ε once, before the first share is drawn, since each share is of a different
        owner. The ledger also records how many owners have been asked, in case the account is lost
        or replaced by an old copy.

    Args:
        study: the study plan.
        rows: the owners' private rows.
        name: name of the site.
        tickets: the places of this site's owners in the study, ascending.
        order: the owner at each of these places.
        people: a digest of the owners' names; with other names the order would differ.
        kept: the stored answers.
        ledger: the owners' budget over all studies.
        label: public text for the entry in the ledger.
        key: the plan's hash.
        source: the source of noise.
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

    def answer(self, step: str, message: object, allow: Allow) -> Shares:
        """The shares of the next owners."""
        assert isinstance(message, AskOwners)
        task, number = self._study.read_task(message.query), message.number
        mark = f"{task.digest} {message.start} {message.stop}"
        found = self._kept.again(number, mark)
        if found is None:
            found = self._new(task, message, mark, allow)
        return Shares(site=self.name, number=number, values=found)

    def described(self, step: str, reply: object) -> str:
        """A description of the reply, for the site's journal."""
        assert isinstance(reply, Shares)
        return f"{len(reply.values) // 8} noisy numbers of owners, question {reply.number}"

    def _new(self, task: Task, asked: AskOwners, mark: str, allow: Allow) -> bytes:
        begun, number = self._kept.begun, asked.number
        if not max(begun, default=-1) < number < self._study.n_people:
            raise ProtocolError(
                f"question {number} is out of order, or comes after all owners have answered"
            )
        if any(one.people != self._people for one in begun.values()):
            raise ProtocolError("the owners at this site changed since the study began")
        asked_before = max((one.stop for one in begun.values()), default=0)
        if not asked_before <= asked.start <= asked.stop <= self._study.n_people:
            raise ProtocolError("each owner is asked only once")
        if asked.start < self._paid_until:
            raise ProtocolError(
                "the study was paid for, but its answers are missing from this folder"
            )
        first, last = np.searchsorted(self._tickets, [asked.start, asked.stop]).tolist()
        if not 0 < task.people == last - first:
            raise ProtocolError(
                f"the query is for {task.people} owners, but the next ones of this site are "
                f"{last - first}"
            )
        allow(_shown(task, number))
        self._kept.begin(number, Begun(mark, asked.stop, self._people))
        self._pay(task, asked.stop, place=len(begun) + 1)
        self._owners.asked = first  # skipped owners are never asked again
        values = self._owners.answer(task).values.astype("<f8").tobytes()
        self._kept.keep(number, values)
        return values

    @property
    def _paid_until(self) -> int:
        """The place of the first owner who was not asked yet, according to the ledger."""
        keys = [(entry.key or "").partition(" ") for entry in self._ledger.entries]
        return max((int(stop) for key, _, stop in keys if key == self._key), default=0)

    def _pay(self, task: Task, stop: int, *, place: int) -> None:
        """Pay ε once for all owners, since each of them is asked once."""
        promise = self._study.guarantee
        self._ledger.spend(
            PureEvent(epsilon=0.0) if self._paid_until else promise,
            label=part_label(self._label, place, task.name),
            key=f"{self._key} {stop}",
            assumptions=promise.assumptions,
            unit=promise.unit,
        )


def _shown(task: Task, number: int) -> str:
    """A description of a task for a person at the site."""
    written = json.dumps(task.to_dict(), ensure_ascii=False)
    who = f"{task.people} owners, {task.width} noisy numbers each, {task.event}"
    return f"question {number}: {task.name} to {who}: {written}"


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnersInquiry(SharedInquiry, name="owners"):
    """A study of owners, and the columns of their rows.

    Owners are numbered by site, in the order of the plan, and within a site by their sorted names.
    The order in which they take part is a public random permutation from the study's seed.

    Attributes:
        study: the study plan.
        feature_ranges: for each column, its public (low, high) or its categories.
        target: the column of labels.

    Examples:
        >>> from dpfda.local.boosting.samme_study import SammeDesign
        >>> design = SammeDesign(rule="classifier", feature_ranges=[[0, 9]], n_rounds=2,
        ...                      owners_per_round=20, judges=20)
        >>> study = design.plan(epsilon=1.0, owners=80, classes=("no", "yes"))
        >>> OwnersInquiry(study=study, feature_ranges={"age": [0, 9]}, target="sick").columns
        {'age': [0.0, 9.0], 'sick': ['no', 'yes']}
    """

    holds: ClassVar[Holds] = "owners"

    study: StudyPlan
    feature_ranges: Mapping[str, Any]
    target: str

    def __post_init__(self) -> None:
        revive(self, "study", StudyPlan.from_dict)
        object.__setattr__(self, "feature_ranges", dict(self.feature_ranges))
        _ = self.study.asks  # refuses an invalid plan before anybody signs it
        if not isinstance(self.study.built_design, BoostingDesign):
            raise InvalidParameter("study", "a boosting study", self.study.built_design.name)
        if self.study.protects != "both":
            rule = "'both': owners at sites send nothing in clear"
            raise InvalidParameter("protects", rule, self.study.protects)
        if (width := len(self.public.names)) != self.study.encoder.n_features:
            rule = f"of {self.study.encoder.n_features} numbers, as the study asks"
            raise InvalidParameter("feature_ranges", rule, width)
        if self.target in self.feature_ranges:
            raise InvalidParameter("target", "different from the other columns", self.target)

    @property
    def public(self) -> PublicColumns:
        """The columns of a row."""
        return PublicColumns.of(self.feature_ranges)

    @property
    def facts(self) -> Facts:
        """Title, unit and price; all rows of an owner are protected together."""
        epsilon, unit = self.study.epsilon, self.study.unit
        price = f"ε = {epsilon:g} for each {unit}, once; local"
        title = f"owners, {self.study.built_design.name}"
        return Facts(title, unit, limit(epsilon=epsilon, delta=0.0), price)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The columns of the rows, and the labels."""
        found = {
            column.key: list(column.categories) or [column.low, column.high]
            for column in self.public.columns
        }
        return found | {self.target: list(self.study.classes)}

    def check(self, cards: Sequence[Card]) -> None:
        """Refuse sites if their total number of owners differs from that of the study."""
        owners = sum(card.rows for card in cards)
        if self.study.n_people != owners:
            raise InvalidParameter("owners", f"{owners}, as the cards say", self.study.n_people)

    def guarantee(self, terms: Terms) -> Guarantee:
        """The guarantee of the study, on the assumption that sites draw noise correctly."""
        return self.study.guarantee.assuming(
            SITE_SIZES_ARE_PUBLIC, SITES_DRAW_THEIR_NOISE, USER_IS_NOT_PROTECTED
        )

    def places(self, cards: Sequence[Card]) -> IntArray:
        """The site of each owner, as its number in the plan, in the order of the study."""
        return np.repeat(np.arange(len(cards)), [card.rows for card in cards])[self._order]

    def own_order(self, cards: Sequence[Card], name: str) -> tuple[IntArray, IntArray]:
        """The places of a site's owners in the study, and their numbers at the site."""
        first = 0
        for card in cards:
            if card.name == name:
                break
            first += card.rows
        mine = (self._order >= first) & (self._order < first + card.rows)
        return np.flatnonzero(mine), self._order[mine] - first

    @property
    def _order(self) -> IntArray:
        return public_order(self.study)

    def records(self, table: Table, owner: str) -> OwnerRows:
        """A site's private rows by owner; invalid numbers and labels are replaced."""
        for name in (*self.feature_ranges, self.target, owner):
            if name not in table.names:
                raise InvalidData("data", f"a table with the column {name!r}")
        rows = self.public.read(frame(table, self.public, gaps=True), strict=False)
        known = {label(str(one)): one for one in self.study.classes}
        labels = [known.get(word, word) for word in table.text(self.target)]
        features, numbers = encode_people(self.study, rows, labels)
        return OwnerRows.grouped(features, numbers, groups=table.text(owner))

    def part(self, plan: Plan, folder: SiteFolder, source: Source) -> OwnersPart:
        """The part of a site with its owners' rows."""
        table, owner = folder.table(), folder.config.owner
        tickets, order = self.own_order(plan.body.sites, folder.config.name)
        return OwnersPart(
            self.study,
            self.records(table, owner),
            name=folder.config.name,
            tickets=tickets,
            order=order,
            people=_digest(table.text(owner)),
            kept=KeptAnswers(folder.account(plan), study=plan.digest),
            ledger=folder.ledger,
            label=f"{plan.body.study} {plan.digest[:12]}",
            key=plan.digest,
            source=source,
        )

    def lead(self, coordinator: Coordinator) -> dict[str, Documented]:
        """The boosted model."""
        found = lead_owners(coordinator, self.study, self.places(coordinator.plan.body.sites))
        promise = coordinator.plan.guarantee
        return {"result": replace(found, guarantee=promise, table=self.public)}

    def progress(self, account: Path, study: str) -> list[str]:
        """The progress of each request at a site."""
        return KeptAnswers(account, study=study).words


def _digest(names: Iterable[str]) -> str:
    """A digest of all owners at a site; it stays at the site."""
    return hashlib.sha256(json.dumps(sorted(set(names))).encode()).hexdigest()
