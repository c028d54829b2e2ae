"""A site's role in a secure sum: it holds one noisy vector per stage and sends it only masked."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import msgspec
import numpy as np

from dpfda._validate import IntArray
from dpfda.errors import InvalidData, ProtocolError
from dpfda.protocol.account import Account
from dpfda.protocol.secure_sum import crypto
from dpfda.protocol.secure_sum.crypto import (
    SIGNATURE_BYTES,
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
    KeyOffer,
    MaskedVector,
    OfferList,
    RoundId,
    SealedShares,
    Survivors,
    Terms,
    Unmasking,
    commitment,
    list_digest,
    offer_content,
    pair_seed,
    share_context,
    survivors_content,
)

COORDINATOR = "the coordinator"
_DIGEST_BYTES = 32


@dataclass
class _Round:
    """A member's state of the current round."""

    id: RoundId
    next: str = "share"
    cipher: RoundKey = field(default_factory=RoundKey)
    mask: RoundKey = field(default_factory=RoundKey)
    seed: bytes = field(default_factory=lambda: secrets.token_bytes(crypto.SECRET_BYTES))
    offers: dict[str, KeyOffer] = field(default_factory=dict)
    list: bytes = b""  # digest of the offers
    list_signature: bytes = b""
    shares: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)  # (seed, mask key)
    survivors: tuple[str, ...] = ()


class Member:
    """One site's side of the protocol. Carrier-free: messages in, messages out, each step once.

    Privacy:
        Vectors come with their noise, drawn once a stage; a repeated round masks the same one anew.
        A member signs one set of survivors a round, of at least S - k sites, and helps to open one
        round of a stage: with the threshold of `Terms`, one sum at most is opened for each stage.
        A party that sends two sites different messages is named in `Cheated`, and the round is
        over.

    Args:
        name: this site's name in the roster.
        identity: its lasting key.
        terms: what all sites agreed on.
        account: what must outlive this object; in memory by default.

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
        self._attempts: dict[int, int] = {}
        self._round: _Round | None = None

    def __repr__(self) -> str:
        return f"Member({self.name!r})"

    def __reduce__(self) -> str:
        raise TypeError("a member holds private sums and keys and cannot be pickled")

    # -- before the round ------------------------------------------------------------------------

    def contribute(self, stage: int, noisy: IntArray, *, question: str = "") -> None:
        """Fix this site's vector for a stage: integers that carry their noise already."""
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
        if round_id.attempt <= self._attempts.get(round_id.stage, 0):
            raise ProtocolError("this attempt was used already; keys are fresh for every round")
        self._attempts[round_id.stage] = round_id.attempt
        self._round = current = _Round(round_id)
        offer = KeyOffer(
            round=round_id,
            site=self.name,
            cipher_key=current.cipher.public,
            mask_key=current.mask.public,
            signature=b"",
        )
        signature = self._identity.sign(offer_content(self.terms, offer))
        return msgspec.structs.replace(offer, signature=signature)

    def share(self, listed: OfferList) -> SealedShares:
        """Step 2: check everybody's keys; seal shares of the own secrets for each of them."""
        current = self._current("share", listed.round)
        offers = self._checked(listed)
        digest = list_digest(self.terms, current.id, offers.values())
        check_signature(self.terms.coordinator, listed.signature, digest)
        if offers.get(self.name) is None or offers[self.name].mask_key != current.mask.public:
            self._accuse(COORDINATOR, "signed a list of keys that does not hold this site's own")
        self._require(len(offers), self.terms.needed, "offered keys")
        current.offers, current.list, current.list_signature = offers, digest, listed.signature
        points = [self.terms.number(name) + 1 for name in offers]
        threshold = self.terms.threshold
        seeds = crypto.split(current.seed, threshold=threshold, points=points)
        keys = crypto.split(current.mask.secret(), threshold=threshold, points=points)
        current.next = "mask"
        sealed = {}
        for name, offer in offers.items():
            point = self.terms.number(name) + 1
            if name == self.name:
                current.shares[name] = (seeds[point], keys[point])
                continue
            context = share_context(self.terms, current.id, self.name, name)
            key = current.cipher.agree(offer.cipher_key, context)
            content = current.list + current.list_signature + seeds[point] + keys[point]
            sealed[name] = seal(key, content, context)
        return SealedShares(
            round=current.id, site=self.name, sealed=sealed, commitment=commitment(current.seed)
        )

    def mask(self, sealed: Mapping[str, bytes]) -> MaskedVector:
        """Step 3: the noisy vector under its masks.

        Args:
            sealed: the shares that other sites sealed for this one, by sender.
        """
        current = self._current("mask")
        noisy = self.account.stages[current.id.stage].noisy
        if noisy is None:
            raise ProtocolError(
                "this stage was opened already; a second sum would reveal more than was paid for"
            )
        shares = {sender: self._unsealed(sender, content) for sender, content in sealed.items()}
        self._require(1 + len(shares), self.terms.needed, "shared their keys")
        current.next = "confirm"
        current.shares |= shares
        vector = noisy.astype(np.uint64)  # modulo 2^64
        vector += expand(current.seed, len(vector))
        for name in shares:
            other = current.offers[name]
            seed = pair_seed(
                self.terms, current.id, current.list, current.mask, owner=self.name, other=other
            )
            first = self.terms.number(self.name) < self.terms.number(name)
            vector += pairwise(seed, len(vector), first=first)
        return MaskedVector(
            round=current.id,
            site=self.name,
            partners=tuple(current.shares),
            residues=vector.astype("<u8").tobytes(),
        )

    def confirm(self, survivors: Survivors) -> Confirmation:
        """Step 4: sign the set of sites whose vectors arrived; one set a round."""
        current = self._current("confirm", survivors.round, also="unmask")
        place = self.terms, current.id, current.list, survivors.sites
        content = survivors_content("told", *place)
        check_signature(self.terms.coordinator, survivors.signature, content)
        if current.survivors:
            if survivors.sites != current.survivors:
                self._accuse(COORDINATOR, "told this site two different sets of survivors")
            raise ProtocolError("a set of survivors is confirmed once in a round")
        if survivors.sites != tuple(sorted(set(survivors.sites), key=self.terms.number)):
            raise ProtocolError("survivors come in roster order, each once")
        if self.name not in survivors.sites:
            raise ProtocolError("the set of survivors does not hold this site")
        if not set(survivors.sites) <= set(current.shares):
            self._accuse(COORDINATOR, "named survivors that did not share their keys")
        self._require(len(survivors.sites), self.terms.needed, "sent their vectors")
        current.next, current.survivors = "unmask", survivors.sites
        content = survivors_content("confirmed", *place)
        return Confirmation(
            round=current.id,
            site=self.name,
            survivors=survivors.sites,
            told=survivors.signature,
            signature=self._identity.sign(content),
        )

    def unmask(self, confirmations: Sequence[Confirmation]) -> Unmasking:
        """Step 5: help to open the sum that a threshold of sites confirmed, once a stage."""
        current = self._current("unmask")
        signers = {self._agreed(one) for one in confirmations}
        self._require(len(signers), self.terms.threshold, "confirmed the same survivors")
        self._round = None
        self.account.open(current.id.stage)
        alive = set(current.survivors)
        return Unmasking(
            round=current.id,
            site=self.name,
            seeds={name: pair[0] for name, pair in current.shares.items() if name in alive},
            keys={name: pair[1] for name, pair in current.shares.items() if name not in alive},
        )

    # -- checks ------------------------------------------------------------------------------------

    def _checked(self, listed: OfferList) -> dict[str, KeyOffer]:
        """Offers by site, each signed by its site, each site once."""
        offers: dict[str, KeyOffer] = {}
        for offer in listed.offers:
            if offer.round != listed.round:
                raise ProtocolError("a message belongs to another round")
            content = offer_content(self.terms, offer)
            check_signature(self.terms.identity(offer.site), offer.signature, content)
            if offer.site in offers:
                raise ProtocolError("a site offered keys twice")
            offers[offer.site] = offer
        return offers

    def _unsealed(self, sender: str, content: bytes) -> tuple[bytes, bytes]:
        """A sender's two shares, if it was shown the list of keys that this site was shown."""
        assert self._round is not None
        current = self._round
        if sender not in current.offers or sender == self.name:
            raise ProtocolError("a share comes from a site that offered no keys")
        context = share_context(self.terms, current.id, sender, self.name)
        key = current.cipher.agree(current.offers[sender].cipher_key, context)
        opened = unseal(key, content, context)
        shares = opened[_DIGEST_BYTES + SIGNATURE_BYTES :]
        if len(shares) != 2 * crypto.SHARE_BYTES:
            self._accuse(_site(sender), "sealed shares of the wrong length")
        listed = opened[:_DIGEST_BYTES]
        if listed != current.list:
            signature = opened[_DIGEST_BYTES : _DIGEST_BYTES + SIGNATURE_BYTES]
            if signed(self.terms.coordinator, signature, listed):
                self._accuse(COORDINATOR, f"showed {_site(sender)} another list of keys")
            self._accuse(_site(sender), "holds a list of keys that the coordinator did not sign")
        return shares[: crypto.SHARE_BYTES], shares[crypto.SHARE_BYTES :]

    def _agreed(self, one: Confirmation) -> str:
        """The sites that confirmed the same set; all others are named in the error."""
        assert self._round is not None
        current, who = self._round, _site(one.site)
        if one.round != current.id:
            raise ProtocolError("a message belongs to another round")
        place = self.terms, current.id, current.list, one.survivors
        content = survivors_content("confirmed", *place)
        check_signature(self.terms.identity(one.site), one.signature, content)
        if one.survivors != current.survivors:
            if signed(self.terms.coordinator, one.told, survivors_content("told", *place)):
                self._accuse(COORDINATOR, f"told {who} another set of survivors")
            self._accuse(who, "confirmed a set of survivors that the coordinator did not sign")
        if one.site not in one.survivors:
            self._accuse(who, "confirmed a set of survivors that it is not in")
        return one.site

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
