"""What a plan asks of owners whose rows lie at sites: one boosting study of all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpfda._validate import IntArray
from dpfda.curves.files import Table
from dpfda.curves.files.cells import label
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.from_files import frame
from dpfda.local.boosting.design import BoostingDesign
from dpfda.local.boosting.owner import public_order
from dpfda.local.boosting.owner_rows import OwnerRows
from dpfda.noise import Source
from dpfda.privacy.cost import limit
from dpfda.privacy.guarantee import (
    SITE_SIZES_ARE_PUBLIC,
    SITES_DRAW_THEIR_NOISE,
    USER_IS_NOT_PROTECTED,
    Guarantee,
)
from dpfda.privacy.price import Price
from dpfda.protocol.person import encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.secure_sum import Terms
from dpfda.report.documents import Documented
from dpfda.sites.card import Card
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.kept import KeptAnswers
from dpfda.sites.owners.lead import lead_owners
from dpfda.sites.owners.part import OwnersPart
from dpfda.sites.plan import Plan
from dpfda.sites.shared import Holds, SharedInquiry

if TYPE_CHECKING:  # it knows plans, and plans know inquiries
    from dpfda.sites.site_folder import SiteFolder


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnersInquiry(SharedInquiry, name="owners"):
    """A study of owners, and the columns that their rows are read from.

    Owners take part in an order that anybody can draw again from the study's seed: they are
    numbered site by site, as the plan lists sites, and within a site by their sorted names.

    Attributes:
        study: the contract that every owner is protected by.
        feature_ranges: column -> public (low, high), or its categories.
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
        self._revive("study", StudyPlan.from_dict)
        object.__setattr__(self, "feature_ranges", dict(self.feature_ranges))
        _ = self.study.asks  # refused here, before anybody signs
        if not isinstance(self.study.built_design, BoostingDesign):
            raise InvalidParameter("study", "one of owners", self.study.built_design.name)
        if self.study.protects != "both":
            rule = "'both': what is sent of owners at sites says nothing in clear"
            raise InvalidParameter("protects", rule, self.study.protects)
        if (width := len(self.public.names)) != self.study.encoder.n_features:
            rule = f"of {self.study.encoder.n_features} numbers, as the study asks"
            raise InvalidParameter("feature_ranges", rule, width)
        if self.target in self.feature_ranges:
            raise InvalidParameter("target", "a column that is not among the others", self.target)

    @property
    def public(self) -> PublicColumns:
        """The columns of a row."""
        return PublicColumns.of(self.feature_ranges)

    @property
    def title(self) -> str:
        """The design."""
        return f"owners, {self.study.built_design.name}"

    @property
    def unit(self) -> str:
        """All rows of an owner."""
        return self.study.unit

    @property
    def most(self) -> Price:
        """Everybody answers once."""
        return limit(epsilon=self.study.epsilon, delta=0.0)

    @property
    def price(self) -> str:
        """The same in words."""
        return f"ε = {self.study.epsilon:g} for each {self.unit}, once; local"

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Those of rows, and the labels."""
        found = {
            column.key: list(column.categories) or [column.low, column.high]
            for column in self.public.columns
        }
        return found | {self.target: list(self.study.classes)}

    def check(self, cards: Sequence[Card]) -> None:
        """Refuse sites with another number of owners than the study has."""
        owners = sum(card.rows for card in cards)
        if self.study.n_people != owners:
            raise InvalidParameter("owners", f"{owners}, as the cards say", self.study.n_people)

    def guarantee(self, terms: Terms) -> Guarantee:
        """The study's, if sites draw as they should."""
        return self.study.guarantee.assuming(
            SITE_SIZES_ARE_PUBLIC, SITES_DRAW_THEIR_NOISE, USER_IS_NOT_PROTECTED
        )

    def places(self, cards: Sequence[Card]) -> IntArray:
        """The site of each owner, by its number in the plan, in the order of the study."""
        return np.repeat(np.arange(len(cards)), [card.rows for card in cards])[self._order]

    def own_order(self, cards: Sequence[Card], name: str) -> tuple[IntArray, IntArray]:
        """Of one site's owners: where each comes in the study, and which of the site's it is."""
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
        """A site's private rows by their owners; what is no number or no label stops nobody."""
        for name in (*self.feature_ranges, self.target, owner):
            if name not in table.names:
                raise InvalidData("data", f"a table with the column {name!r}")
        rows = self.public.read(frame(table, self.public, gaps=True), strict=False)
        known = {label(str(one)): one for one in self.study.classes}
        labels = [known.get(word, word) for word in table.text(self.target)]
        features, numbers = encode_people(self.study, rows, labels)
        return OwnerRows.grouped(features, numbers, groups=table.text(owner))

    def part(self, plan: Plan, folder: SiteFolder, source: Source) -> OwnersPart:
        """A site with its owners' rows."""
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
        """How far each request came at a site."""
        return KeptAnswers(account, study=study).words


def _digest(names: Iterable[str]) -> str:
    """Of all owners at a site; it stays there."""
    return hashlib.sha256(json.dumps(sorted(set(names))).encode()).hexdigest()
