"""The messages of a round: frozen, public by design, ready for any carrier."""

from __future__ import annotations

import hashlib

import msgspec

from dpfda.errors import ProtocolError


class RoundFailed(ProtocolError):
    """A round ended without a sum. Nothing was learnt.

    Attributes:
        repeatable: a new attempt (new masks, same noise) may succeed.
    """

    def __init__(self, reason: str, *, repeatable: bool) -> None:
        super().__init__(reason)
        self.repeatable = repeatable


class Cheated(ProtocolError):
    """A signature proves that somebody broke the rules; this site leaves the round.

    Attributes:
        culprit: ``the coordinator``, or the site.
    """

    def __init__(self, culprit: str, deed: str) -> None:
        super().__init__(f"{culprit} {deed}")
        self.culprit = culprit


class RoundId(msgspec.Struct, frozen=True):
    """Which round: a stage of the study, which attempt at it, and what is asked in it.

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
    """What every message of a site says: which round, and from whom."""

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
    """Step 4: a site's signature on the set it was told, and the coordinator's on the same."""

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
