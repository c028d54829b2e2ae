"""The aggregator of a secure sum: passes messages on, and learns the sum or nothing.

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
    KeyOffer,
    MaskedVector,
    Message,
    OfferList,
    RoundFailed,
    RoundId,
    SealedShares,
    Survivors,
    Terms,
    Unmasking,
    commitment,
    list_digest,
    offer_content,
    pair_seed,
    survivors_content,
)

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class SecureSum:
    """The result of a round: the sum over the remaining sites, and their names."""

    total: npt.NDArray[np.int64]
    survivors: tuple[str, ...]
    attempt: int


class Aggregator:
    """The other side of a round. Holds no key and no vector that is not masked.

    A round ends in the right sum, or in `RoundFailed` that says why; never in a sum with masks left
    in it (every reconstructed secret is checked against what its owner published), and never in one
    with too few sites' noise. What it tells the sites it signs, so that none can be told another
    thing unnoticed: a coordinator that restarts goes on with the next attempt.

    Args:
        terms: what all sites agreed on.
        identity: the coordinator's lasting key.
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
        self._offers: dict[str, KeyOffer] = {}
        self._shared: dict[str, SealedShares] = {}
        self._vectors: dict[str, MaskedVector] = {}
        self.survivors: tuple[str, ...] = ()

    def offers(self, received: Sequence[KeyOffer]) -> OfferList:
        """Step 1: the list of keys to pass to every site."""
        for offer in self._checked(received):
            content = offer_content(self._terms, offer)
            check_signature(self._terms.identity(offer.site), offer.signature, content)
            self._offers[offer.site] = offer
        self._require(len(self._offers), self._terms.needed, "offered keys")
        offers = tuple(self._offers.values())
        self._list = list_digest(self._terms, self.round, offers)
        return OfferList(round=self.round, offers=offers, signature=self._identity.sign(self._list))

    def route(self, received: Sequence[SealedShares]) -> dict[str, dict[str, bytes]]:
        """Step 2: for each site, the shares that the others sealed for it."""
        for message in self._checked(received):
            if message.site not in self._offers:
                raise ProtocolError("a share comes from a site that offered no keys")
            if set(message.sealed) != set(self._offers) - {message.site}:
                raise ProtocolError(f"site {message.site!r} sealed no share for every other site")
            self._shared[message.site] = message
        self._require(len(self._shared), self._terms.needed, "shared their keys")
        return {
            name: {
                sender: message.sealed[name]
                for sender, message in self._shared.items()
                if sender != name
            }
            for name in self._shared
        }

    def collect(self, received: Sequence[MaskedVector]) -> Survivors:
        """Step 3: the sites whose vectors arrived, in roster order."""
        for message in self._checked(received):
            if message.site not in self._shared or len(message.residues) != 8 * self.size:
                raise ProtocolError("a masked vector has the wrong length or sender")
            if set(message.partners) != set(self._shared):
                # Its masks would not cancel against the others'.
                raise RoundFailed("a site masked with another set of sites", repeatable=True)
            self._vectors[message.site] = message
        self._require(len(self._vectors), self._terms.needed, "sent their vectors")
        self.survivors = tuple(sorted(self._vectors, key=self._terms.number))
        content = self._content("told")
        return Survivors(
            round=self.round, sites=self.survivors, signature=self._identity.sign(content)
        )

    def confirmations(self, received: Sequence[Confirmation]) -> list[Confirmation]:
        """Step 4: the signatures to pass to every survivor; others would make them leave."""
        content = self._content("confirmed")
        kept = [
            one
            for one in self._checked(received)
            if one.survivors == self.survivors
            and one.site in self.survivors
            and signed(self._terms.identity(one.site), one.signature, content)
        ]
        self._require(len(kept), self._terms.threshold, "confirmed the survivors")
        return kept

    def open(self, received: Sequence[Unmasking]) -> SecureSum:
        """Step 5: take every mask off the sum."""
        messages = self._checked(received)
        if len(messages) < self._terms.threshold:
            # Sites help to open a stage once, so that no second, different sum can be taken.
            raise RoundFailed(
                f"{len(messages)} sites helped to open the sum, {self._terms.threshold} are "
                "needed; the stage cannot be repeated",
                repeatable=False,
            )
        total = np.zeros(self.size, dtype=np.uint64)
        for name in self.survivors:
            total += np.frombuffer(self._vectors[name].residues, dtype="<u8")
            total -= expand(self._seed(name, messages), self.size)
        for name in self._shared:
            if name not in self._vectors:
                total -= self._leftovers(name, messages)
        return SecureSum(total.view(np.int64), self.survivors, self.round.attempt)

    def _seed(self, name: str, messages: Sequence[Unmasking]) -> bytes:
        """A survivor's self-mask seed, checked against its commitment."""
        seed = self._recover({one.site: one.seeds for one in messages}, name)
        if commitment(seed) != self._shared[name].commitment:
            raise RoundFailed("a self mask was not recovered correctly", repeatable=False)
        return seed

    def _leftovers(self, name: str, messages: Sequence[Unmasking]) -> npt.NDArray[np.uint64]:
        """The masks that survivors share with a site whose vector never came."""
        key = RoundKey(self._recover({one.site: one.keys for one in messages}, name))
        if key.public != self._offers[name].mask_key:
            raise RoundFailed("a mask key was not recovered correctly", repeatable=False)
        total = np.zeros(self.size, dtype=np.uint64)
        for survivor in self.survivors:
            other = self._offers[survivor]
            seed = pair_seed(self._terms, self.round, self._list, key, owner=name, other=other)
            first = self._terms.number(survivor) < self._terms.number(name)
            total += pairwise(seed, self.size, first=first)
        return total

    def _recover(self, held: Mapping[str, Mapping[str, bytes]], name: str) -> bytes:
        """A secret of `name` from the shares of it that sites sent."""
        number = self._terms.number
        shares = {number(site) + 1: mine[name] for site, mine in held.items() if name in mine}
        try:
            return crypto.recover(shares, threshold=self._terms.threshold)
        except ProtocolError as problem:
            raise RoundFailed(str(problem), repeatable=False) from None

    def _content(self, purpose: Literal["told", "confirmed"]) -> bytes:
        return survivors_content(purpose, self._terms, self.round, self._list, self.survivors)

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
"""How often a question is tried before it counts as not answered."""

Silence = Callable[[str, int], set[str]]
"""(step, attempt) -> the sites that fall silent at this step; for tests and rehearsals."""

Carry = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""(step, message by site) -> what sites replied; those that fell silent are left out."""


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
        terms: what all sites agreed on.
        coordinator: whose key the terms name.
        stage: which of the sites' contributions.
        size: length of the vectors.
        question: digest of what they answer.
        silent: which sites fall silent when; None: nobody does.

    Raises:
        RoundFailed: no attempt succeeded, or the last one may not be repeated. Nothing was learnt.
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
    """The five steps of a round; a site that does not reply is dropped from then on."""
    offered = carry("advertise", dict.fromkeys(sites, aggregator.round))
    offers = aggregator.offers(list(offered.values()))
    shared = carry("share", dict.fromkeys(offered, offers))
    masked = carry("mask", aggregator.route(list(shared.values())))
    survivors = aggregator.collect(list(masked.values()))
    signed = carry("confirm", dict.fromkeys(masked, survivors))
    confirmed = aggregator.confirmations(list(signed.values()))
    return aggregator.open(list(carry("unmask", dict.fromkeys(signed, confirmed)).values()))


def _called(members: Sequence[Member], attempt: int, silent: Silence | None) -> Carry:
    """Members of this process, of whom some may rehearse to fall silent."""
    by_name = {member.name: member for member in members}

    def carry(step: str, messages: Mapping[str, Any]) -> dict[str, Any]:
        gone = silent(step, attempt) if silent is not None else set()
        return {
            name: getattr(by_name[name], step)(message)
            for name, message in messages.items()
            if name not in gone
        }

    return carry
