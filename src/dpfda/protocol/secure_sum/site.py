"""A site of a secure sum: holds one noisy vector a stage and never shows it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda.errors import InvalidData, ProtocolError
from dpfda.noise import SecureSource, Source, discrete_gaussian
from dpfda.protocol.secure_sum import shamir
from dpfda.protocol.secure_sum.keys import Identity, RoundKey, check_signature, seal, unseal
from dpfda.protocol.secure_sum.masks import Residues, expand, pairwise, to_residues
from dpfda.protocol.secure_sum.messages import (
    Confirmation,
    KeyOffer,
    MaskedVector,
    RoundId,
    SealedShares,
    Unmasking,
    commitment,
)
from dpfda.protocol.secure_sum.terms import Terms

Integers = npt.NDArray[np.int64]


@dataclass
class _Round:
    """What a site remembers of the round in progress."""

    id: RoundId
    cipher: RoundKey = field(default_factory=RoundKey)
    mask: RoundKey = field(default_factory=RoundKey)
    seed: bytes = field(default_factory=lambda: secrets.token_bytes(shamir.SECRET_BYTES))
    offers: dict[str, KeyOffer] = field(default_factory=dict)
    shares: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)  # (seed, mask key)
    confirmed: tuple[str, ...] = ()


class Site:
    """One site's side of the protocol. Carrier-free: messages in, messages out.

    Privacy:
        `contribute` adds discrete-Gaussian noise once per stage; a repeated round masks the same
        noisy vector anew. A site confirms one set of survivors a round, of at least S - k sites,
        and helps to open one round of a stage: with the threshold of `Terms`, one sum at most is
        opened for each stage.

    Args:
        name: this site's name in the roster.
        identity: its lasting key.
        terms: what all sites agreed on.
        source: where the noise comes from (keys and masks always come from the operating system).

    Example:
        >>> from dpfda.protocol.secure_sum import add_up
        >>> identities = {name: Identity() for name in ("north", "south", "west")}
        >>> roster = tuple((name, one.public) for name, one in identities.items())
        >>> terms = Terms(study="beds", roster=roster)
        >>> sites = [Site(name, one, terms) for name, one in identities.items()]
        >>> for site in sites:
        ...     site.contribute(0, np.array([10, -3]), sigma=1)
        >>> result = add_up(sites, terms, stage=0, size=2)
        >>> result.survivors, result.total.shape
        (('north', 'south', 'west'), (2,))
    """

    def __init__(
        self, name: str, identity: Identity, terms: Terms, source: Source | None = None
    ) -> None:
        if terms.identity(name) != identity.public:
            raise ProtocolError("the roster lists another identity key for this site")
        self.name = name
        self._identity = identity
        self._terms = terms
        self._source = SecureSource() if source is None else source
        self._vectors: dict[int, Residues] = {}
        self._opened: set[int] = set()
        self._attempts: dict[int, int] = {}
        self._round: _Round | None = None

    def __repr__(self) -> str:
        return f"Site({self.name!r})"

    def __reduce__(self) -> str:
        raise TypeError("a site holds private sums and keys and cannot be pickled")

    # -- before the round ------------------------------------------------------------------------

    def contribute(self, stage: int, values: Integers, *, sigma: int) -> None:
        """Fix this site's vector for a stage: exact integers plus noise, drawn only here."""
        if stage in self._vectors:
            raise ProtocolError("this stage's noise is drawn already and is never drawn again")
        exact = np.asarray(values)
        if exact.ndim != 1 or exact.dtype.kind != "i" or len(exact) == 0:
            raise InvalidData("values", "a one-dimensional array of signed integers")
        _validate.whole("sigma", sigma)
        noise = discrete_gaussian(len(exact), sigma=sigma, source=self._source)
        self._vectors[stage] = to_residues(exact.astype(np.int64)) + to_residues(noise)

    # -- the five steps ---------------------------------------------------------------------------

    def advertise(self, round_id: RoundId) -> KeyOffer:
        """Step 1: new keys for a new round."""
        stage = round_id.stage
        if stage not in self._vectors:
            raise ProtocolError("this site has nothing to contribute to the stage")
        if stage in self._opened:
            raise ProtocolError("this stage was opened already; a second sum would tell too much")
        if round_id.attempt <= self._attempts.get(stage, 0):
            raise ProtocolError("this attempt was used already; keys are fresh for every round")
        self._attempts[stage] = round_id.attempt
        self._round = current = _Round(round_id)
        return KeyOffer(
            round=round_id,
            site=self.name,
            cipher_key=current.cipher.public,
            mask_key=current.mask.public,
            signature=self._identity.sign(
                offer_content(
                    self._terms, round_id, self.name, current.cipher.public, current.mask.public
                )
            ),
        )

    def share(self, offers: Sequence[KeyOffer]) -> SealedShares:
        """Step 2: check everybody's keys; seal shares of the own secrets for each of them."""
        current = self._current()
        for offer in offers:
            self._check(offer.round)
            content = offer_content(
                self._terms, offer.round, offer.site, offer.cipher_key, offer.mask_key
            )
            check_signature(self._terms.identity(offer.site), offer.signature, content)
            if offer.site in current.offers:
                raise ProtocolError("a site offered keys twice in one round")
            current.offers[offer.site] = offer
        mine = current.offers.get(self.name)
        if mine is None or mine.mask_key != current.mask.public:
            raise ProtocolError("the list of keys does not hold this site's own")
        self._require(len(current.offers), self._terms.needed, "offered keys")
        points = [self._terms.number(name) + 1 for name in current.offers]
        threshold = self._terms.threshold
        seeds = shamir.split(current.seed, threshold=threshold, points=points)
        keys = shamir.split(current.mask.secret(), threshold=threshold, points=points)
        sealed = {}
        for name, offer in current.offers.items():
            point = self._terms.number(name) + 1
            if name == self.name:
                current.shares[name] = (seeds[point], keys[point])
                continue
            context = self._context("share", self.name, name)
            key = current.cipher.agree(offer.cipher_key, context)
            sealed[name] = seal(key, seeds[point] + keys[point], context)
        return SealedShares(
            round=current.id, site=self.name, sealed=sealed, commitment=commitment(current.seed)
        )

    def mask(self, sealed: Mapping[str, bytes]) -> MaskedVector:
        """Step 3: the noisy vector under its masks.

        Args:
            sealed: the shares that other sites sealed for this one, by sender.
        """
        current = self._current()
        if len(current.shares) != 1:
            raise ProtocolError("this step comes once, after the keys were shared")
        for sender, content in sealed.items():
            if sender not in current.offers or sender == self.name:
                raise ProtocolError("a share comes from a site that offered no keys")
            context = self._context("share", sender, self.name)
            key = current.cipher.agree(current.offers[sender].cipher_key, context)
            opened = unseal(key, content, context)
            current.shares[sender] = (
                opened[: shamir.SHARE_BYTES],
                opened[shamir.SHARE_BYTES :],
            )
        self._require(len(current.shares), self._terms.needed, "shared their keys")
        vector = self._vectors[current.id.stage].copy()
        vector += expand(current.seed, len(vector))
        for name in current.shares:
            if name != self.name:
                seed = pair_seed(
                    self._terms, current.id, current.mask, self.name, current.offers[name]
                )
                first = self._terms.number(self.name) < self._terms.number(name)
                vector += pairwise(seed, len(vector), first=first)
        return MaskedVector(
            round=current.id,
            site=self.name,
            partners=tuple(sorted(current.shares, key=self._terms.number)),
            residues=vector.astype("<u8").tobytes(),
        )

    def confirm(self, survivors: Sequence[str]) -> Confirmation:
        """Step 4: sign the set of sites whose vectors arrived; one set a round."""
        current = self._current()
        chosen = tuple(sorted(set(survivors), key=self._terms.number))
        if current.confirmed and current.confirmed != chosen:
            raise ProtocolError("another set of survivors was confirmed in this round")
        if not set(chosen) <= set(current.shares) or self.name not in chosen:
            raise ProtocolError("the set of survivors holds sites that did not share their keys")
        self._require(len(chosen), self._terms.needed, "sent their vectors")
        current.confirmed = chosen
        signature = self._identity.sign(survivor_content(self._terms, current.id, chosen))
        return Confirmation(round=current.id, site=self.name, survivors=chosen, signature=signature)

    def unmask(self, confirmations: Sequence[Confirmation]) -> Unmasking:
        """Step 5: help to open the sum that a threshold of sites confirmed, once a stage."""
        current = self._current()
        if not current.confirmed or current.id.stage in self._opened:
            raise ProtocolError("this stage was opened already, or no set was confirmed")
        content = survivor_content(self._terms, current.id, current.confirmed)
        signers = set()
        for one in confirmations:
            self._check(one.round)
            check_signature(self._terms.identity(one.site), one.signature, content)
            signers.add(one.site)
        self._require(len(signers), self._terms.threshold, "confirmed the same survivors")
        self._opened.add(current.id.stage)
        alive = set(current.confirmed)
        return Unmasking(
            round=current.id,
            site=self.name,
            seeds={name: pair[0] for name, pair in current.shares.items() if name in alive},
            keys={name: pair[1] for name, pair in current.shares.items() if name not in alive},
        )

    # -- helpers -----------------------------------------------------------------------------------

    def _current(self) -> _Round:
        if self._round is None:
            raise ProtocolError("no round is in progress at this site")
        return self._round

    def _check(self, round_id: RoundId) -> None:
        if round_id != self._current().id:
            raise ProtocolError("a message belongs to another round")

    def _context(self, purpose: str, sender: str, recipient: str) -> bytes:
        return self._current().id.context(
            self._terms.digest, purpose, sender.encode(), recipient.encode()
        )

    @staticmethod
    def _require(count: int, least: int, deed: str) -> None:
        if count < least:
            raise ProtocolError(f"{count} sites {deed}; {least} are needed")


def offer_content(
    terms: Terms, round_id: RoundId, site: str, cipher_key: bytes, mask_key: bytes
) -> bytes:
    """What a site signs when it offers keys."""
    return round_id.context(terms.digest, "offer", site.encode(), cipher_key, mask_key)


def survivor_content(terms: Terms, round_id: RoundId, survivors: Sequence[str]) -> bytes:
    """What a site signs when it confirms a set of survivors."""
    return round_id.context(terms.digest, "survivors", *[name.encode() for name in survivors])


def pair_seed(terms: Terms, round_id: RoundId, key: RoundKey, owner: str, other: KeyOffer) -> bytes:
    """The seed of the mask that two sites share."""
    pair = sorted((owner, other.site), key=terms.number)
    purpose = round_id.context(terms.digest, "mask", *[name.encode() for name in pair])
    return key.agree(other.mask_key, purpose)
