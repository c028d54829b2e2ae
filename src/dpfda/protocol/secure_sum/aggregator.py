"""The aggregator of a secure sum: it forwards messages, and learns either the sum or nothing.

A round runs in one process, or over any transport of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda.errors import ProtocolError
from dpfda.protocol.secure_sum import crypto
from dpfda.protocol.secure_sum.crypto import (
    Identity,
    RoundKey,
    check_signature,
    expand,
    pairwise,
    signed,
)
from dpfda.protocol.secure_sum.member import Member
from dpfda.protocol.secure_sum.messages import (
    Confirmation,
    Confirmed,
    KeyOffer,
    Keys,
    MaskedVector,
    Message,
    OfferList,
    RoundFailed,
    RoundId,
    SealedShares,
    Sharers,
    Survivors,
    Terms,
    Unmasking,
    commitment,
    offer_content,
    pair_seed,
    sharers_content,
    survivors_content,
)

M = TypeVar("M", bound=Message)
_Given = Mapping[str, Mapping[str, bytes]]  # shares of secrets, by sender and then by owner


@dataclass(frozen=True)
class SecureSum:
    """The result of a round: the sum over the remaining sites, and their names."""

    total: npt.NDArray[np.int64]
    survivors: tuple[str, ...]
    attempt: int


class Aggregator:
    """The coordinator's side of a round. It has no site's keys and only masked vectors.

    A round ends in the correct sum, or in `RoundFailed` with the reason. It never ends in a sum
    that still contains masks, because every reconstructed secret is checked against what its owner
    published, and never in a sum with the noise of too few sites. The aggregator signs what it
    announces to the sites, so that different announcements are detected. A restarted coordinator
    therefore continues with the next attempt.

    Args:
        terms: the terms that all sites agreed on.
        identity: the coordinator's long-term key.
        round_id: stage, attempt and question.
        size: length of the vectors.

    Examples:
        >>> keys = [Identity() for _ in range(3)]
        >>> roster = (("a", keys[1].public), ("b", keys[2].public))
        >>> terms = Terms(study="s", coordinator=keys[0].public, roster=roster)
        >>> Aggregator(terms, keys[0], RoundId(stage=0, attempt=1), size=3).size
        3
    """

    def __init__(self, terms: Terms, identity: Identity, round_id: RoundId, *, size: int) -> None:
        if terms.coordinator != identity.public:
            raise ProtocolError("the terms name another coordinator")
        self._terms = terms
        self._identity = identity
        self.round = round_id
        self.size = _validate.whole("size", size)
        self._offers: dict[str, Keys] = {}
        self._holders: dict[str, tuple[str, ...]] = {}  # a site and the neighbors that it chose
        self._chosen: dict[str, tuple[str, ...]] = {}  # those of them that offered keys
        self._choosers: dict[str, list[str]] = {}  # neighbors that chose it
        self._shared: dict[str, SealedShares] = {}
        self._vectors: dict[str, MaskedVector] = {}
        self.survivors: tuple[str, ...] = ()

    def offers(self, received: Sequence[KeyOffer]) -> dict[str, OfferList]:
        """Step 1: for each site, its own keys and those of its neighbors."""
        for offer in self._checked(received):
            content = offer_content(self._terms, self.round, offer.site, offer.keys)
            check_signature(self._terms.identity(offer.site), offer.keys.signature, content)
            self._offers[offer.site] = offer.keys
        self._require(len(self._offers), self._terms.needed, "offered keys")
        self._choosers = {name: [] for name in self._offers}
        for name, keys in self._offers.items():
            chosen = self._terms.chosen(name, keys.choice)
            self._holders[name] = (name, *chosen)
            self._chosen[name] = tuple(one for one in chosen if one in self._offers)
            for one in self._chosen[name]:
                self._choosers[one].append(name)
        return {
            name: OfferList(
                round=self.round,
                offers={one: self._offers[one] for one in (name, *self._neighbors(name))},
            )
            for name in self._offers
        }

    def route(self, received: Sequence[SealedShares]) -> dict[str, Sharers]:
        """Step 2: for each site, the sites that shared, and the shares that neighbors sealed."""
        for message in self._checked(received):
            if message.site not in self._offers:
                raise ProtocolError("a share comes from a site that offered no keys")
            if set(message.sealed) != set(self._chosen[message.site]):
                raise ProtocolError(f"site {message.site!r} sealed no share for every neighbor")
            self._shared[message.site] = message
        self._require(len(self._shared), self._terms.needed, "shared their keys")
        self._sharers = self._terms.ordered(list(self._shared))
        content = sharers_content("shared", self._terms, self.round, self._sharers)
        signature = self._identity.sign(content)
        return {
            name: Sharers(
                round=self.round,
                sites=self._sharers,
                signature=signature,
                sealed={
                    sender: self._shared[sender].sealed[name]
                    for sender in self._choosers[name]
                    if sender in self._shared
                },
            )
            for name in self._shared
        }

    def collect(self, received: Sequence[MaskedVector]) -> Survivors:
        """Step 3: the sites whose vectors arrived, in roster order."""
        content = sharers_content("masked", self._terms, self.round, self._sharers)
        for message in self._checked(received):
            if message.site not in self._shared or len(message.residues) != 8 * self.size:
                raise ProtocolError("a masked vector has the wrong length or sender")
            if not signed(self._terms.identity(message.site), message.signature, content):
                # Its masks would not cancel against the others'.
                raise RoundFailed("a site masked with another set of sites", repeatable=True)
            self._vectors[message.site] = message
        self._require(len(self._vectors), self._terms.needed, "sent their vectors")
        self.survivors = self._terms.ordered(list(self._vectors))
        signature = self._identity.sign(self._content("told"))
        return Survivors(round=self.round, sites=self.survivors, signature=signature)

    def confirmations(self, received: Sequence[Confirmation]) -> dict[str, Confirmed]:
        """Step 4: for each site, enough signatures on the survivors.

        A site that signed a different set receives them too. It then detects the deception, and
        leaves.
        """
        content, replied = self._content("confirmed"), self._checked(received)
        kept = {
            one.site: one.signature
            for one in replied
            if one.site in self._vectors
            and signed(self._terms.identity(one.site), one.signature, content)
        }
        self._require(len(kept), self._terms.threshold, "confirmed the survivors")
        for name in self._shared:
            holders = sum(one in kept for one in self._holders[name])
            self._require(holders, self._terms.neighbors.threshold, f"hold shares of {name!r}")
        enough = {name: kept[name] for name in sorted(kept)[: self._terms.threshold]}
        return {
            reply.site: Confirmed(
                round=self.round,
                confirmed=enough,
                masked={
                    one: self._vectors[one].signature
                    for one in self._choosers[reply.site]
                    if one in self._vectors
                },
            )
            for reply in replied
            if reply.site in self._vectors
        }

    def open(self, received: Sequence[Unmasking]) -> SecureSum:
        """Step 5: remove all masks from the sum."""
        messages = self._checked(received)
        needed = self._terms.neighbors.threshold
        if len(messages) < needed:
            # Sites help to open a stage only once, so that no second sum can be opened.
            raise RoundFailed(
                f"{len(messages)} sites helped to open the sum, {needed} are "
                "needed; the stage cannot be repeated",
                repeatable=False,
            )
        helped = {one.site: one for one in messages}
        self._terms.ordered(list(helped))  # sites of the roster only
        total = np.zeros(self.size, dtype=np.uint64)
        seeds = {site: one.seeds for site, one in helped.items()}
        for name in self.survivors:
            total += np.frombuffer(self._vectors[name].residues, dtype="<u8")
            total -= expand(self._seed(name, seeds), self.size)
        keys = {site: one.keys for site, one in helped.items()}
        for name in self._shared:
            if name not in self._vectors:
                total -= self._leftovers(name, keys)
        return SecureSum(total.view(np.int64), self.survivors, self.round.attempt)

    def _seed(self, name: str, given: _Given) -> bytes:
        """A survivor's self-mask seed, checked against its commitment."""
        seed = self._recover(name, given)
        if commitment(seed) != self._shared[name].commitment:
            raise RoundFailed("a self mask was not recovered correctly", repeatable=False)
        return seed

    def _leftovers(self, name: str, given: _Given) -> npt.NDArray[np.uint64]:
        """The sum of the masks that survivors share with a site whose vector did not arrive."""
        key = RoundKey(self._recover(name, given))
        if key.public != self._offers[name].mask:
            raise RoundFailed("a mask key was not recovered correctly", repeatable=False)
        total = np.zeros(self.size, dtype=np.uint64)
        for survivor in self._neighbors(name):
            if survivor not in self._vectors:
                continue
            other = survivor, self._offers[survivor]
            seed = pair_seed(self._terms, self.round, self._sharers, key, owner=name, other=other)
            first = self._terms.number(survivor) < self._terms.number(name)
            total += pairwise(seed, self.size, first=first)
        return total

    def _recover(self, name: str, given: _Given) -> bytes:
        """A secret of `name`, from the shares that sites sent."""
        shares = {
            point: given[site][name]
            for point, site in enumerate(self._holders[name], start=1)
            if name in given.get(site, {})
        }
        try:
            return crypto.recover(shares, threshold=self._terms.neighbors.threshold)
        except ProtocolError as problem:
            raise RoundFailed(str(problem), repeatable=False) from None

    def _neighbors(self, name: str) -> tuple[str, ...]:
        """The sites that it chose or that chose it, if they offered keys."""
        return self._terms.ordered([*self._chosen[name], *self._choosers[name]])

    def _content(self, purpose: Literal["told", "confirmed"]) -> bytes:
        place = self._terms, self.round, self._sharers, self.survivors
        return survivors_content(purpose, *place)

    def _checked(self, received: Sequence[M]) -> list[M]:
        if len({one.site for one in received}) != len(received):
            raise ProtocolError("a site sent the same step twice")
        for one in received:
            if one.round != self.round:
                raise ProtocolError("a message belongs to another round")
        return list(received)

    def _require(self, count: int, least: int, deed: str) -> None:
        if count < least:
            raise RoundFailed(f"{count} sites {deed}, {least} are needed", repeatable=True)


ATTEMPTS = 3
"""The number of attempts at a question before it counts as not answered."""

Silence = Callable[[str, int], set[str]]
"""(step, attempt) -> the sites that stop replying at this step; for tests and rehearsals."""

Carry = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""(step, messages by site) -> replies by site; sites that did not reply are left out."""


def add_up(
    members: Sequence[Member],
    terms: Terms,
    coordinator: Identity,
    *,
    stage: int,
    size: int,
    question: str = "",
    silent: Silence | None = None,
) -> SecureSum:
    """The sum of the sites' vectors for a stage; repeats a failed round with new masks.

    Args:
        members: the sites that can be reached.
        terms: the terms that all sites agreed on.
        coordinator: the key that the terms name.
        stage: the number of the sites' contributions.
        size: length of the vectors.
        question: digest of the query that the vectors answer.
        silent: the sites that stop replying, by step and attempt; None if all reply.

    Raises:
        RoundFailed: if no attempt succeeded or the last one must not be repeated. The coordinator
            then learnt nothing.
    """
    for attempt in range(1, ATTEMPTS + 1):
        round_id = RoundId(stage=stage, attempt=attempt, question=question)
        aggregator = Aggregator(terms, coordinator, round_id, size=size)
        try:
            return one_round(
                aggregator, [one.name for one in members], _called(members, attempt, silent)
            )
        except RoundFailed as failure:
            if not failure.repeatable or attempt == ATTEMPTS:
                raise
    raise AssertionError  # the loop returns or raises


def one_round(aggregator: Aggregator, sites: Sequence[str], carry: Carry) -> SecureSum:
    """The five steps of a round; a site that does not reply is left out of later steps."""
    offered = carry("advertise", dict.fromkeys(sites, aggregator.round))
    shared = carry("share", aggregator.offers(list(offered.values())))
    masked = carry("mask", aggregator.route(list(shared.values())))
    survivors = aggregator.collect(list(masked.values()))
    confirmed = carry("confirm", dict.fromkeys(masked, survivors))
    opened = carry("unmask", aggregator.confirmations(list(confirmed.values())))
    return aggregator.open(list(opened.values()))


def _called(members: Sequence[Member], attempt: int, silent: Silence | None) -> Carry:
    """Calls members in this process; some of them may stop replying for a rehearsal."""
    by_name = {member.name: member for member in members}

    def carry(step: str, messages: Mapping[str, Any]) -> dict[str, Any]:
        gone = silent(step, attempt) if silent is not None else set()
        return {
            name: getattr(by_name[name], step)(message)
            for name, message in messages.items()
            if name not in gone
        }

    return carry
