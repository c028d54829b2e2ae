"""The public, signed plan of a shared study: participants, queries and cost."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from dpfda import _validate
from dpfda.errors import DpfdaError, InvalidData, InvalidParameter, ProtocolError, printable
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.price import Price, compose
from dpfda.protocol.plan import MOST_TITLE
from dpfda.protocol.secure_sum import Identity, Terms
from dpfda.protocol.secure_sum.crypto import signed
from dpfda.sites.app import approved_content
from dpfda.sites.identity import Card, from_hex, is_node_key
from dpfda.sites.shared import COUNTED, SharedInquiry


class PlanBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan in the form of its JSON document."""

    format: Literal[1] = 1
    study: str
    coordinator: Card
    sites: tuple[Card, ...]
    colluders: int
    dropouts: int
    inquiry: dict[str, Any]
    address: str
    certificate: str
    signature: str = ""


class Plan:
    """The contract of all sites, fixed before the first query and identified by its hash.

    Any change of the plan, such as another key, changes the hash. Every signature, mask and ledger
    entry of the study is bound to the hash.

    Args:
        body: the contents of the document, all of which are checked.

    Attributes:
        inquiry: the queries.
        terms: the terms of the secure sum; their study is the plan's hash.
    """

    def __init__(self, body: PlanBody) -> None:
        self.body = body
        for card in (body.coordinator, *body.sites):
            card.check()
        study = body.study
        if not study.strip() or len(study) > MOST_TITLE or not study.isprintable():
            raise InvalidParameter("study", f"a name of at most {MOST_TITLE} letters", study)
        for card in body.sites:
            _validate.whole(f"rows of {card.name!r}", card.rows, least=1)
        if body.coordinator.name in [card.name for card in body.sites]:
            raise InvalidParameter("coordinator", "a name that no site has", body.coordinator.name)
        nodes = [card.node for card in body.sites]
        if not all(map(is_node_key, nodes)) or len(set(nodes)) != len(nodes):
            raise InvalidParameter("node keys", "valid, and different for every site", None)
        for card in body.sites:
            if not signed(card.public, card.approval, approved_content()):
                raise ProtocolError(
                    f"the card of {card.name!r} signs the Flower app of another version: ask the "
                    "site for the card of a folder made by this version of dpfda"
                )
        try:
            self.inquiry = SharedInquiry.from_dict(body.inquiry)
        except DpfdaError:
            raise
        except Exception as error:  # any error of a hostile document
            raise InvalidParameter("inquiry", "a valid inquiry", str(error)) from None
        self.inquiry.check(body.sites)
        self.terms = Terms(
            study=self.digest,
            coordinator=body.coordinator.public,
            roster=tuple((card.name, card.public) for card in body.sites),
            colluders=body.colluders,
            dropouts=body.dropouts,
        )

    @classmethod
    def signed_by(cls, identity: Identity, body: PlanBody) -> Self:
        """A new plan, signed by its coordinator."""
        if body.coordinator.public != identity.public:
            raise InvalidParameter(
                "coordinator", "the owner of the key that signs the plan", body.coordinator.name
            )
        signature = identity.sign(_content(body)).hex()
        return cls(msgspec.structs.replace(body, signature=signature))

    @classmethod
    def from_json(cls, document: bytes) -> Self:
        """Read a plan; refuse it if its coordinator did not sign it."""
        try:
            body = msgspec.json.decode(document, type=PlanBody)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise InvalidData("plan", "a plan of a shared study", str(error)) from None
        given, key = from_hex("signature", body.signature), body.coordinator.public
        if not signed(key, given, _content(body)):
            raise ProtocolError("the plan is not signed by the coordinator that it names")
        return cls(body)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load a plan from a file."""
        return cls.from_json(path.read_bytes())

    def to_json(self) -> bytes:
        """The JSON document of the plan."""
        return msgspec.json.format(msgspec.json.encode(self.body), indent=2)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything except the signatures: the content that sites sign."""
        return hashlib.sha256(_content(self.body)).hexdigest()

    @property
    def agreement(self) -> bytes:
        """The bytes that a site signs to agree."""
        return b"dpfda: this site agrees to the plan " + self.digest.encode()

    def replied(self, asked: bytes, body: bytes) -> bytes:
        """The bytes that a site signs when it replies to a message."""
        what = f"dpfda: in the plan {self.digest}, asked {hashlib.sha256(asked).hexdigest()}: "
        return what.encode() + body

    def card(self, name: str) -> Card:
        """The card of a site."""
        for card in self.body.sites:
            if card.name == name:
                return card
        raise ProtocolError(f"site {name!r} is not in the plan")

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of each site's people."""
        return self.inquiry.guarantee(self.terms)

    @property
    def most(self) -> Price:
        """The total that each site's ledger is charged at most."""
        price, lapse = self.inquiry.facts.most, self.terms.lapse
        return price + compose([lapse]) if self.inquiry.masked and lapse is not None else price

    def __str__(self) -> str:
        asked, body, terms = self.inquiry, self.body, self.terms
        lines = [
            f"plan {self.digest}",
            f"  study        {body.study}: {asked.facts.title}",
            f"  coordinator  {body.coordinator.name} ({body.coordinator.fingerprint})",
            f"  reached at   {printable(body.address)}",
            *(
                f"  site         {one.name} ({one.fingerprint}), {one.rows} {COUNTED[asked.holds]}"
                for one in body.sites
            ),
            *(
                f"  column       {printable(name)}: {known}"
                for name, known in asked.columns.items()
            ),
            f"  price        {printable(asked.facts.price)}",
            f"  trust        {_trust(terms) if asked.masked else _silence(terms)}",
        ]
        return "\n".join(lines)


def _trust(terms: Terms) -> str:
    said = (
        f"{terms.colluders} sites may collude, {terms.dropouts} fall silent, "
        f"{terms.threshold} open a sum"
    )
    if terms.lapse is None:
        return said
    chosen, failure = terms.neighbors.degree, terms.lapse.delta
    return f"{said}; each masks with {chosen} of its own choice, {failure:.1g} is added to δ"


def _silence(terms: Terms) -> str:
    return f"nobody: what leaves a site is noisy already; {terms.dropouts} may fall silent"


def _content(body: PlanBody) -> bytes:
    # Fields keep their order, because the order of a table's columns matters.
    return b"dpfda plan" + msgspec.json.encode(msgspec.structs.replace(body, signature=""))
