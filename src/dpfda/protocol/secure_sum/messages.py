"""The terms and messages of a secure sum: frozen, public, for any transport.

A site's messages are bound to the round and, from the third step on, to the set of sites that
shared their keys. If sites received different sets, their masks do not cancel and their signatures
do not match.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import msgspec

from dpfda import _validate
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.privacy.events import ApproximateEvent
from dpfda.privacy.guarantee import SITE_SIZES_ARE_PUBLIC
from dpfda.protocol.secure_sum.crypto import RoundKey
from dpfda.protocol.secure_sum.neighbors import CHOICE_BYTES, Neighbors, drawn, neighbors


class RoundFailed(ProtocolError):
    """A round ended without a sum; the coordinator learnt nothing.

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
    """Digest of the query, so that answers to different queries are never added."""

    def context(self, digest: bytes, purpose: str, *parts: bytes) -> bytes:
        """Bytes that identify the terms, the round and a purpose unambiguously."""
        pieces = [digest, str(self.stage).encode(), str(self.attempt).encode()]
        pieces += [self.question.encode(), purpose.encode(), *parts]
        return hashlib.sha256(b"".join(len(p).to_bytes(4, "big") + p for p in pieces)).digest()


class Message(msgspec.Struct, frozen=True):
    """Common fields of a site's messages: the round and the sender."""

    round: RoundId
    site: str


class Keys(msgspec.Struct, frozen=True, array_like=True):
    """Fresh keys of a site, and the seed of its choice of neighbors, signed by its identity."""

    cipher: bytes
    mask: bytes
    choice: bytes
    signature: bytes = b""


class KeyOffer(Message, frozen=True):
    """Step 1: fresh keys."""

    keys: Keys


class OfferList(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 1: the keys of a site, and of its neighbors."""

    round: RoundId
    offers: dict[str, Keys]


class SealedShares(Message, frozen=True):
    """Step 2: encrypted shares for the chosen sites, and a commitment to the self-mask seed."""

    sealed: dict[str, bytes]
    commitment: bytes


class Sharers(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 2: the signed set of sites that shared, one per round.

    It contains the shares that neighbors sealed for the receiving site, by sender.
    """

    round: RoundId
    sites: tuple[str, ...]
    signature: bytes
    sealed: dict[str, bytes]


class MaskedVector(Message, frozen=True):
    """Step 3: residues modulo 2^64, little-endian, and a signature on the set of `Sharers`."""

    residues: bytes
    signature: bytes


class Survivors(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 3: the signed set of sites whose vectors arrived."""

    round: RoundId
    sites: tuple[str, ...]
    signature: bytes


class Confirmation(Message, frozen=True):
    """Step 4: a site's signature on the set of survivors that it received."""

    signature: bytes


class Confirmed(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 4: enough sites' signatures on the survivors.

    Attributes:
        confirmed: the signatures of step 4 by site.
        masked: the signatures of step 3, from surviving neighbors whose shares the site has.
    """

    round: RoundId
    confirmed: dict[str, bytes]
    masked: dict[str, bytes]


class Unmasking(Message, frozen=True):
    """Step 5: shares of the seeds of survivors and of the mask keys of other sites."""

    seeds: dict[str, bytes]
    keys: dict[str, bytes]


def commitment(seed: bytes) -> bytes:
    """A hash that fixes the self-mask seed before it is opened."""
    return hashlib.sha256(b"dpfda self mask" + seed).digest()


MOST_SITES = 1024
"""With more sites, the noise of one site would have fewer than 2^19 lattice steps."""
_KEY_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public terms of a secure sum: the sites, and how many may collude or stop replying.

    Attributes:
        study: a unique name of the study.
        coordinator: identity key of the coordinator, which signs its announcements.
        roster: (site, identity key) pairs; the order gives each site its number.
        colluders: c, how many sites may share all their knowledge with the aggregator.
        dropouts: k, how many sites may stop replying in a round.

    Privacy:
        Each honest site's noise variance is σ²/(S - c - k - m), so the noise of the honest
        survivors alone reaches σ². Any two groups of t = ⌊(S + c)/2⌋ + 1 sites have an honest site
        in common, so that no two sets of survivors are both confirmed. If there are many sites,
        they choose neighbors (`neighbors`). A hostile coordinator may then cut off m of them, and
        the choices fail with a probability that is part of δ. Among few sites, m and this
        probability are 0.

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
            # A party with two names would be counted as two noisy or honest sites.
            raise InvalidParameter("keys", "different for everybody in the terms", names)
        _validate.whole("colluders", self.colluders, least=0)
        _validate.whole("dropouts", self.dropouts, least=0)
        if self.threshold > self.needed:
            rule = f"such that sites > colluders + 2·dropouts (sites = {len(names)})"
            raise InvalidParameter("colluders, dropouts", rule, (self.colluders, self.dropouts))

    @property
    def sites(self) -> int:
        """The number of sites S."""
        return len(self.roster)

    @property
    def threshold(self) -> int:
        """Number of sites that must confirm the survivors before a sum is opened."""
        return (self.sites + self.colluders) // 2 + 1

    @property
    def needed(self) -> int:
        """Smallest number of vectors in a sum: S - k."""
        return self.sites - self.dropouts

    @property
    def noisy_sites(self) -> int:
        """Number of honest sites on whose noise the guarantee relies: S - c - k - m."""
        return self.sites - self.colluders - self.dropouts - self.neighbors.cut_off

    @cached_property
    def neighbors(self) -> Neighbors:
        """How many neighbors each site chooses, and how many shares recover a secret."""
        return neighbors(self.sites, self.colluders, self.dropouts)

    @property
    def lapse(self) -> ApproximateEvent | None:
        """The event that random choices of neighbors fail, once per study; None without choices."""
        failure = self.neighbors.failure
        return ApproximateEvent(epsilon=0.0, delta=failure) if failure else None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the guarantee against colluding sites, in words."""
        stated = (
            SITE_SIZES_ARE_PUBLIC,
            f"at most {self.colluders} of {self.sites} sites collude with the coordinator",
            f"at most {self.dropouts} fall silent in a stage",
            f"{self.threshold} sites are needed to open a sum",
            "X25519, HKDF-SHA256 and ChaCha20 are secure",
        )
        if not self.neighbors.failure:
            return stated
        return (
            *stated,
            "who colludes is fixed before sites choose their neighbors: each of them "
            f"{self.neighbors.degree} others, of which {self.neighbors.threshold} recover its masks"
            f"; the choices fail with a probability of at most {self.neighbors.failure:.1g}, which "
            "is part of δ",
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The sites, in order."""
        return tuple(name for name, _ in self.roster)

    @cached_property
    def digest(self) -> bytes:
        """The hash of the terms, to which every key and signature is bound."""
        parts = [self.study.encode(), str((self.colluders, self.dropouts)).encode()]
        parts.append(self.coordinator)
        parts += [piece for name, key in self.roster for piece in (name.encode(), key)]
        return hashlib.sha256(b"".join(len(p).to_bytes(4, "big") + p for p in parts)).digest()

    def number(self, name: str) -> int:
        """A site's place in the roster."""
        try:
            return self._places[name]
        except KeyError:
            raise ProtocolError("a message names a site that is not in the roster") from None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def ordered(self, names: Sequence[str]) -> tuple[str, ...]:
        """Different names of sites, in roster order."""
        return tuple(sorted(set(names), key=self.number))

    def chosen(self, name: str, choice: bytes) -> tuple[str, ...]:
        """The neighbors that a site chose, in roster order, from the seed of its choice."""
        if len(choice) != CHOICE_BYTES:
            raise ProtocolError(f"the seed of a choice is not {CHOICE_BYTES} bytes long")
        seed = self.digest + name.encode() + choice
        degree = self.neighbors.degree
        places = drawn(self.number(name), sites=self.sites, degree=degree, seed=seed)
        return tuple(self.names[place] for place in places)

    def identity(self, name: str) -> bytes:
        """A site's identity key."""
        return self.roster[self.number(name)][1]


def offer_content(terms: Terms, round_id: RoundId, site: str, keys: Keys) -> bytes:
    """The bytes that a site signs when it offers keys."""
    parts = keys.cipher, keys.mask, keys.choice
    return round_id.context(terms.digest, "offer", site.encode(), *parts)


def sharers_content(
    purpose: Literal["shared", "masked"], terms: Terms, round_id: RoundId, sharers: Sequence[str]
) -> bytes:
    """The bytes on the set of sharers that the coordinator signs in step 2, a site in step 3."""
    return _named(terms.digest, round_id, purpose, tuple(sharers))


@lru_cache(maxsize=16)  # the same many names for each pair of neighbors
def _named(digest: bytes, round_id: RoundId, purpose: str, names: tuple[str, ...]) -> bytes:
    return round_id.context(digest, purpose, *[name.encode() for name in names])


def survivors_content(
    purpose: Literal["told", "confirmed"],
    terms: Terms,
    round_id: RoundId,
    sharers: Sequence[str],
    survivors: Sequence[str],
) -> bytes:
    """The bytes that the coordinator signs in step 3, and a site in step 4, on the survivors."""
    shared = sharers_content("shared", terms, round_id, sharers)
    names = [name.encode() for name in survivors]
    return round_id.context(terms.digest, purpose, shared, *names)


def share_context(
    terms: Terms, round_id: RoundId, sender: tuple[str, Keys], recipient: tuple[str, Keys]
) -> bytes:
    """The context of the key of a sealed share, which binds it to the keys of both sites."""
    (one, own), (other, theirs) = sender, recipient
    parts = one.encode(), own.cipher, own.mask, other.encode(), theirs.cipher, theirs.mask
    return round_id.context(terms.digest, "share", *parts)


def pair_seed(
    terms: Terms,
    round_id: RoundId,
    sharers: Sequence[str],
    key: RoundKey,
    *,
    owner: str,
    other: tuple[str, Keys],
) -> bytes:
    """The seed of the mask of two sites; equal for both if they received the same sharers."""
    name, keys = other
    pair = [one.encode() for one in terms.ordered((owner, name))]
    shared = sharers_content("shared", terms, round_id, sharers)
    return key.agree(keys.mask, round_id.context(terms.digest, "mask", shared, *pair))
