"""A site's role in a secure sum: it has one noisy vector per stage, and sends it only masked."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NoReturn

import msgspec
import numpy as np

from dpfda._validate import IntArray
from dpfda.errors import InvalidData, ProtocolError
from dpfda.protocol.account import Account
from dpfda.protocol.secure_sum import crypto
from dpfda.protocol.secure_sum.crypto import (
    Identity,
    RoundKey,
    check_signature,
    expand,
    pairwise,
    seal,
    signed,
    unseal,
)
from dpfda.protocol.secure_sum.messages import (
    Cheated,
    Confirmation,
    Confirmed,
    KeyOffer,
    Keys,
    MaskedVector,
    OfferList,
    RoundId,
    SealedShares,
    Sharers,
    Survivors,
    Terms,
    Unmasking,
    commitment,
    offer_content,
    pair_seed,
    share_context,
    sharers_content,
    survivors_content,
)
from dpfda.protocol.secure_sum.neighbors import CHOICE_BYTES

COORDINATOR = "the coordinator"


@dataclass
class _Round:
    """A member's state of the current round."""

    id: RoundId
    next: str = "share"
    cipher: RoundKey = field(default_factory=RoundKey)
    mask: RoundKey = field(default_factory=RoundKey)
    seed: bytes = field(default_factory=lambda: secrets.token_bytes(crypto.SECRET_BYTES))
    offers: dict[str, Keys] = field(default_factory=dict)  # of this site and its neighbors
    choosers: tuple[str, ...] = ()  # neighbors that chose this site and send it shares
    shares: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)  # (seed, mask key)
    sharers: tuple[str, ...] = ()
    survivors: tuple[str, ...] = ()


class Member:
    """One site's side of the protocol: it turns messages into messages, for any transport.

    Privacy:
        A vector includes its noise, drawn once per stage; a repeated round masks the same vector
        with new masks. A member signs only one set of survivors per round, of at least S - k sites,
        and helps to open only one round of a stage. With the threshold of `Terms`, at most one sum
        is therefore opened for each stage. A member chooses its neighbors by itself, once per
        study. If a signature proves that the coordinator broke a rule, the member raises `Cheated`
        and leaves the round.

    Args:
        name: this site's name in the roster.
        identity: its long-term key.
        terms: the terms that all sites agreed on.
        account: the record that must outlive this object; in memory by default.

    Examples:
        >>> from dpfda.protocol.secure_sum import add_up
        >>> identities = {name: Identity() for name in ("north", "south", "west")}
        >>> roster = tuple((name, one.public) for name, one in identities.items())
        >>> coordinator = Identity()
        >>> terms = Terms(study="beds", coordinator=coordinator.public, roster=roster)
        >>> members = [Member(name, one, terms) for name, one in identities.items()]
        >>> for member in members:
        ...     member.contribute(0, np.array([10, -3]))
        >>> add_up(members, terms, coordinator, stage=0, size=2).total
        array([30, -9])
    """

    def __init__(
        self, name: str, identity: Identity, terms: Terms, account: Account | None = None
    ) -> None:
        if terms.identity(name) != identity.public:
            raise ProtocolError("the roster lists another identity key for this site")
        self.name = name
        self.terms = terms
        self.account = Account() if account is None else account
        self._identity = identity
        purpose = b"dpfda choice of neighbors" + terms.digest
        self._choice = identity.derive(purpose, length=CHOICE_BYTES)
        self._round: _Round | None = None

    def __repr__(self) -> str:
        return f"Member({self.name!r})"

    def __reduce__(self) -> str:
        raise TypeError("a member holds private sums and keys and cannot be pickled")

    # -- before the round ------------------------------------------------------------------------

    def contribute(self, stage: int, noisy: IntArray, *, question: str = "") -> None:
        """Fix this site's vector for a stage: integers that already include their noise."""
        values = np.asarray(noisy)
        if values.ndim != 1 or values.dtype.kind != "i" or len(values) == 0:
            raise InvalidData("noisy", "a one-dimensional array of signed integers")
        if stage not in self.account.stages:
            self.account.begin(stage, question)
        self.account.fix(stage, values.astype(np.int64))

    # -- the five steps ---------------------------------------------------------------------------

    def advertise(self, round_id: RoundId) -> KeyOffer:
        """Step 1: new keys for a new round."""
        stage = self.account.stages.get(round_id.stage)
        if stage is not None and round_id.question != stage.question:
            raise ProtocolError("this site answered another question in this stage")
        if stage is not None and stage.opened:
            raise ProtocolError(
                "this stage was opened already; a second sum would reveal more than was paid for"
            )
        if stage is None or stage.noisy is None:
            raise ProtocolError("this site has nothing to contribute to the stage")
        self.account.attempt(round_id.stage, round_id.attempt)
        self._round = current = _Round(round_id)
        keys = Keys(cipher=current.cipher.public, mask=current.mask.public, choice=self._choice)
        content = offer_content(self.terms, round_id, self.name, keys)
        keys = msgspec.structs.replace(keys, signature=self._identity.sign(content))
        return KeyOffer(round=round_id, site=self.name, keys=keys)

    def share(self, listed: OfferList) -> SealedShares:
        """Step 2: check the keys of neighbors; seal shares of this site's secrets for some."""
        current = self._current("share", listed.round)
        self._check_offers(listed.offers)
        offers, own = listed.offers, listed.offers[self.name]
        points = {self.name: 1} | {name: place + 2 for place, name in enumerate(self._chosen)}
        points = {name: point for name, point in points.items() if name in offers}
        threshold = self.terms.neighbors.threshold
        self._require(len(points), threshold, "of this site's choice offered keys")
        current.offers = offers
        current.choosers = tuple(
            name for name, keys in offers.items() if self._chose(name, keys, self.name)
        )
        given = list(points.values())
        seeds = crypto.split(current.seed, threshold=threshold, points=given)
        masks = crypto.split(current.mask.secret(), threshold=threshold, points=given)
        current.next = "mask"
        sealed = {}
        for name, point in points.items():
            if name == self.name:
                current.shares[name] = (seeds[point], masks[point])
                continue
            keys = offers[name]
            context = share_context(self.terms, current.id, (self.name, own), (name, keys))
            key = current.cipher.agree(keys.cipher, context)
            sealed[name] = seal(key, seeds[point] + masks[point], context)
        return SealedShares(
            round=current.id, site=self.name, sealed=sealed, commitment=commitment(current.seed)
        )

    def mask(self, told: Sharers) -> MaskedVector:
        """Step 3: the noisy vector under its masks, one with each neighbor that shared its keys."""
        current = self._current("mask", told.round)
        noisy = self.account.stages[current.id.stage].noisy
        if noisy is None:
            raise ProtocolError(
                "this stage was opened already; a second sum would reveal more than was paid for"
            )
        content = sharers_content("shared", self.terms, current.id, told.sites)
        check_signature(self.terms.coordinator, told.signature, content)
        sharers = self._a_set(told.sites, "shared their keys")
        choosers = {name for name in current.choosers if name in sharers}
        partners = choosers | {name for name in self._chosen if name in sharers}
        for name in self.terms.ordered([*partners]):
            if name not in current.offers:
                self._accuse(COORDINATOR, f"withheld the keys of {_site(name)}")
        for name in self.terms.ordered([*choosers ^ set(told.sealed)]):
            deed = "withheld the shares" if name in choosers else "passed on the shares"
            self._accuse(COORDINATOR, f"{deed} of {_site(name)}")
        shares = {sender: self._unsealed(sender, text) for sender, text in told.sealed.items()}
        current.next, current.sharers = "confirm", told.sites
        current.shares |= shares
        vector = noisy.astype(np.uint64)  # modulo 2^64
        vector += expand(current.seed, len(vector))
        for name in partners:
            other = name, current.offers[name]
            place = self.terms, current.id, current.sharers, current.mask
            seed = pair_seed(*place, owner=self.name, other=other)
            first = self.terms.number(self.name) < self.terms.number(name)
            vector += pairwise(seed, len(vector), first=first)
        content = sharers_content("masked", self.terms, current.id, current.sharers)
        return MaskedVector(
            round=current.id,
            site=self.name,
            residues=vector.astype("<u8").tobytes(),
            signature=self._identity.sign(content),
        )

    def confirm(self, told: Survivors) -> Confirmation:
        """Step 4: sign the set of sites whose vectors arrived; one set per round."""
        current = self._current("confirm", told.round, also="unmask")
        content = self._content("told", told.sites)
        check_signature(self.terms.coordinator, told.signature, content)
        if current.survivors:
            if told.sites != current.survivors:
                self._accuse(COORDINATOR, "told this site two different sets of survivors")
            raise ProtocolError("a set of survivors is confirmed once in a round")
        survivors = self._a_set(told.sites, "sent their vectors")
        if not survivors <= set(current.sharers):
            self._accuse(COORDINATOR, "named survivors that did not share their keys")
        current.next, current.survivors = "unmask", told.sites
        signature = self._identity.sign(self._content("confirmed", told.sites))
        return Confirmation(round=current.id, site=self.name, signature=signature)

    def unmask(self, given: Confirmed) -> Unmasking:
        """Step 5: help to open the sum that enough sites confirmed, once per stage.

        The self mask of a site is opened only if it masked with all its neighbors that shared.
        """
        current = self._current("unmask", given.round)
        alive = set(current.survivors)
        content = self._content("confirmed", current.survivors)
        for name, signature in given.confirmed.items():
            if name not in alive or not signed(self.terms.identity(name), signature, content):
                self._accuse(COORDINATOR, f"passed on another confirmation of {_site(name)}")
        self._require(
            len(given.confirmed), self.terms.threshold, "confirmed the survivors that it was told"
        )
        content = sharers_content("masked", self.terms, current.id, current.sharers)
        for name in current.choosers:
            if name not in alive:
                continue
            signature = given.masked.get(name, b"")
            if not signed(self.terms.identity(name), signature, content):
                self._accuse(COORDINATOR, f"told {_site(name)} another set of sharers")
        self._round = None
        self.account.open(current.id.stage)
        return Unmasking(
            round=current.id,
            site=self.name,
            seeds={name: pair[0] for name, pair in current.shares.items() if name in alive},
            keys={name: pair[1] for name, pair in current.shares.items() if name not in alive},
        )

    # -- checks ------------------------------------------------------------------------------------

    @cached_property
    def _chosen(self) -> tuple[str, ...]:
        """The neighbors that this site chose."""
        return self.terms.chosen(self.name, self._choice)

    def _chose(self, name: str, keys: Keys, other: str) -> bool:
        return other in self.terms.chosen(name, keys.choice)

    def _check_offers(self, offers: Mapping[str, Keys]) -> None:
        """Check that keys are of this site and its neighbors only, and signed by their sites."""
        assert self._round is not None
        for name, keys in offers.items():
            content = offer_content(self.terms, self._round.id, name, keys)
            check_signature(self.terms.identity(name), keys.signature, content)
        own = offers.get(self.name)
        if own is None or own.mask != self._round.mask.public:
            self._accuse(COORDINATOR, "passed on a list of keys that does not hold this site's own")
        for name, keys in offers.items():
            known = name == self.name or name in self._chosen
            if not known and not self._chose(name, keys, self.name):
                self._accuse(COORDINATOR, f"passed on the keys of {_site(name)}, no neighbor")

    def _a_set(self, names: Sequence[str], deed: str) -> set[str]:
        """The set of these sites: enough of them, in roster order, with this site among them."""
        if tuple(names) != self.terms.ordered(names):
            raise ProtocolError("sites come in roster order, each once")
        if self.name not in names:
            raise ProtocolError("the set of sites does not hold this site")
        self._require(len(names), self.terms.needed, deed)
        return set(names)

    def _unsealed(self, sender: str, content: bytes) -> tuple[bytes, bytes]:
        """A sender's two shares; refused if sender and site received different keys."""
        assert self._round is not None
        current = self._round
        theirs, own = current.offers[sender], current.offers[self.name]
        context = share_context(self.terms, current.id, (sender, theirs), (self.name, own))
        shares = unseal(current.cipher.agree(theirs.cipher, context), content, context)
        if len(shares) != 2 * crypto.SHARE_BYTES:
            self._accuse(_site(sender), "sealed shares of the wrong length")
        return shares[: crypto.SHARE_BYTES], shares[crypto.SHARE_BYTES :]

    def _content(self, purpose: Literal["told", "confirmed"], survivors: Sequence[str]) -> bytes:
        assert self._round is not None
        return survivors_content(
            purpose, self.terms, self._round.id, self._round.sharers, survivors
        )

    def _accuse(self, culprit: str, deed: str) -> NoReturn:
        self._round = None
        raise Cheated(culprit, deed)

    def _current(self, step: str, round_id: RoundId | None = None, *, also: str = "") -> _Round:
        if self._round is None:
            raise ProtocolError("no round is in progress at this site")
        if round_id is not None and round_id != self._round.id:
            raise ProtocolError("a message belongs to another round")
        if self._round.next not in (step, also):
            raise ProtocolError(
                f"{step} comes once in a round, in its turn; next is {self._round.next}"
            )
        return self._round

    @staticmethod
    def _require(count: int, least: int, deed: str) -> None:
        if count < least:
            raise ProtocolError(f"{count} sites {deed}; {least} are needed")


def _site(name: str) -> str:
    return f"site {name!r}"
