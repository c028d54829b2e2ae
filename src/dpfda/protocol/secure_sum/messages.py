"""The terms and messages of a secure sum: frozen, public, for any transport.

Everything after the first step is bound to the whole list of keys that a site received. The masks
of sites that received different lists do not cancel, and their signatures do not match.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec

from dpfda import _validate
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.privacy.guarantee import SITE_SIZES_ARE_PUBLIC
from dpfda.protocol.secure_sum.crypto import RoundKey


class RoundFailed(ProtocolError):
    """A round ended without a sum. Nothing was learnt.

    Attributes:
        repeatable: a new attempt (new masks, same noise) may succeed.
    """

    def __init__(self, reason: str, *, repeatable: bool) -> None:
        super().__init__(reason)
        self.repeatable = repeatable


class Cheated(ProtocolError):
    """A signature proves a violation of the protocol; this site leaves the round.

    Attributes:
        culprit: ``the coordinator``, or the site.
    """

    def __init__(self, culprit: str, deed: str) -> None:
        super().__init__(f"{culprit} {deed}")
        self.culprit = culprit


class RoundId(msgspec.Struct, frozen=True):
    """Identifies a round: the stage of the study, the attempt, and the query.

    Examples:
        >>> RoundId(stage=1, attempt=2)
        RoundId(stage=1, attempt=2, question='')
    """

    stage: int
    attempt: int
    question: str = ""
    """Digest of the query: vectors that answer different ones are never added."""

    def context(self, digest: bytes, purpose: str, *parts: bytes) -> bytes:
        """Bytes that name the terms, the round and a purpose, without ambiguity."""
        pieces = [digest, str(self.stage).encode(), str(self.attempt).encode()]
        pieces += [self.question.encode(), purpose.encode(), *parts]
        return hashlib.sha256(b"".join(len(p).to_bytes(4, "big") + p for p in pieces)).digest()


class Message(msgspec.Struct, frozen=True):
    """Common fields of a site's messages: the round and the sender."""

    round: RoundId
    site: str


class KeyOffer(Message, frozen=True):
    """Step 1: fresh keys, signed by the site's identity."""

    cipher_key: bytes
    mask_key: bytes
    signature: bytes


class OfferList(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 1: everybody's keys, signed, one list a round."""

    round: RoundId
    offers: tuple[KeyOffer, ...]
    signature: bytes


class SealedShares(Message, frozen=True):
    """Step 2: for each other site, an encrypted share; and a commitment to the self-mask seed."""

    sealed: dict[str, bytes]
    commitment: bytes


class MaskedVector(Message, frozen=True):
    """Step 3: residues modulo 2^64, little-endian, and whose masks are in them."""

    partners: tuple[str, ...]
    residues: bytes


class Survivors(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 3: whose vectors arrived, signed, one set a round."""

    round: RoundId
    sites: tuple[str, ...]
    signature: bytes


class Confirmation(Message, frozen=True):
    """Step 4: signatures of a site and of the coordinator on the same set of sites."""

    survivors: tuple[str, ...]
    told: bytes
    signature: bytes


class Unmasking(Message, frozen=True):
    """Step 5: shares of seeds (survivors) and of mask keys (the others)."""

    seeds: dict[str, bytes]
    keys: dict[str, bytes]


def commitment(seed: bytes) -> bytes:
    """A hash that fixes the self-mask seed before it is opened."""
    return hashlib.sha256(b"dpfda self mask" + seed).digest()


MOST_SITES = 256
"""With more sites one site's noise would have fewer than 2^20 lattice steps."""
_KEY_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public terms of a secure sum: who takes part, and whom the noise must survive.

    Attributes:
        study: a name that no other study has.
        coordinator: identity key of the coordinator, who signs what it tells the sites.
        roster: (site, identity key) pairs; the order gives each site its number.
        colluders: c, how many sites may pool all they know with the aggregator.
        dropouts: k, how many sites may fall silent in a round.

    Privacy:
        Each honest site's noise variance is σ²/(S - c - k): the noise of the honest survivors alone
        reaches σ². The threshold t = ⌊(S + c)/2⌋ + 1 of the secret sharing is above c, and two
        groups of t sites share an honest one, so that nothing can be opened twice.

    Examples:
        >>> roster = tuple((f"hospital {i}", bytes([i]) * 32) for i in range(5))
        >>> terms = Terms(study="s", coordinator=b"k" * 32, roster=roster, dropouts=1)
        >>> terms.threshold, terms.needed
        (3, 4)
    """

    study: str
    coordinator: bytes
    roster: tuple[tuple[str, bytes], ...]
    colluders: int = 0
    dropouts: int = 0

    def __post_init__(self) -> None:
        names = [name for name, _ in self.roster]
        _validate.whole("sites", len(names), least=2, most=MOST_SITES)
        if len(set(names)) != len(names):
            raise InvalidParameter("roster", "made of different names", names)
        keys = [self.coordinator, *[key for _, key in self.roster]]
        if any(not isinstance(key, bytes) or len(key) != _KEY_BYTES for key in keys):
            raise InvalidParameter("keys", f"{_KEY_BYTES} bytes each", sorted(set(map(len, keys))))
        if len(set(keys)) != len(keys):
            # One party under two names would count twice among those who are noisy or honest.
            raise InvalidParameter("keys", "different for everybody in the terms", names)
        _validate.whole("colluders", self.colluders, least=0)
        _validate.whole("dropouts", self.dropouts, least=0)
        if self.threshold > self.needed:
            rule = f"such that sites > colluders + 2·dropouts (sites = {len(names)})"
            raise InvalidParameter("colluders, dropouts", rule, (self.colluders, self.dropouts))

    @property
    def sites(self) -> int:
        """S."""
        return len(self.roster)

    @property
    def threshold(self) -> int:
        """Number of sites that must help to open a sum."""
        return (self.sites + self.colluders) // 2 + 1

    @property
    def needed(self) -> int:
        """Smallest number of vectors in a sum: S - k."""
        return self.sites - self.dropouts

    @property
    def noisy_sites(self) -> int:
        """Number of honest remaining sites on whose noise the guarantee relies: S - c - k."""
        return self.sites - self.colluders - self.dropouts

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the guarantee against colluding sites, in words."""
        return (
            SITE_SIZES_ARE_PUBLIC,
            f"at most {self.colluders} of {self.sites} sites collude with the coordinator",
            f"at most {self.dropouts} fall silent in a stage",
            f"{self.threshold} sites are needed to open a sum",
            "X25519, HKDF-SHA256 and ChaCha20 are secure",
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The sites, in order."""
        return tuple(name for name, _ in self.roster)

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint that every key and signature is bound to."""
        parts = [self.study.encode(), str((self.colluders, self.dropouts)).encode()]
        parts.append(self.coordinator)
        parts += [piece for name, key in self.roster for piece in (name.encode(), key)]
        return hashlib.sha256(b"".join(len(p).to_bytes(4, "big") + p for p in parts)).digest()

    def number(self, name: str) -> int:
        """A site's place in the roster."""
        try:
            return self.names.index(name)
        except ValueError:
            raise ProtocolError("a message names a site that is not in the roster") from None

    def identity(self, name: str) -> bytes:
        """A site's identity key."""
        return self.roster[self.number(name)][1]


def offer_content(terms: Terms, offer: KeyOffer) -> bytes:
    """The bytes that a site signs when it offers keys."""
    keys = offer.cipher_key, offer.mask_key
    return offer.round.context(terms.digest, "offer", offer.site.encode(), *keys)


def list_digest(terms: Terms, round_id: RoundId, offers: Iterable[KeyOffer]) -> bytes:
    """A fingerprint of all offers, in roster order: what the coordinator signs once a round."""
    ordered = sorted(offers, key=lambda offer: terms.number(offer.site))
    pieces = [
        piece
        for offer in ordered
        for piece in (offer.site.encode(), offer.cipher_key, offer.mask_key, offer.signature)
    ]
    return round_id.context(terms.digest, "offers", *pieces)


def survivors_content(
    purpose: Literal["told", "confirmed"],
    terms: Terms,
    round_id: RoundId,
    offers: bytes,
    survivors: Sequence[str],
) -> bytes:
    """The bytes signed by the coordinator, and by a site, to confirm whose vectors arrived."""
    names = [name.encode() for name in survivors]
    return round_id.context(terms.digest, purpose, offers, *names)


def share_context(terms: Terms, round_id: RoundId, sender: str, recipient: str) -> bytes:
    """The context for the derivation of the key of one sealed share.

    The list of keys is sealed inside instead: a recipient who was shown another one can then open
    the message and see who signed which list.
    """
    return round_id.context(terms.digest, "share", sender.encode(), recipient.encode())


def pair_seed(
    terms: Terms, round_id: RoundId, offers: bytes, key: RoundKey, *, owner: str, other: KeyOffer
) -> bytes:
    """The seed of the mask that two sites share."""
    pair = sorted((owner, other.site), key=terms.number)
    names = [name.encode() for name in pair]
    return key.agree(other.mask_key, round_id.context(terms.digest, "mask", offers, *names))
