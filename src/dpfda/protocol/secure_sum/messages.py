"""The terms and messages of a secure sum: frozen, public, for any transport.

What a site sends is bound to the round and, from the third step on, to the set of sites that shared
their keys: masks of sites that were told different sets do not cancel, and their signatures do not
match.
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
    """Step 2: encrypted shares for those it chose; and a commitment to the self-mask seed."""

    sealed: dict[str, bytes]
    commitment: bytes


class Sharers(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 2: who shared, signed, one set a round; shares for a site.

    The shares are those that neighbors sealed for the site, by sender.
    """

    round: RoundId
    sites: tuple[str, ...]
    signature: bytes
    sealed: dict[str, bytes]


class MaskedVector(Message, frozen=True):
    """Step 3: residues modulo 2^64, little-endian; a signature on the set of those who shared."""

    residues: bytes
    signature: bytes


class Survivors(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 3: whose vectors arrived, signed, one set a round."""

    round: RoundId
    sites: tuple[str, ...]
    signature: bytes


class Confirmation(Message, frozen=True):
    """Step 4: a site's signature on the set of survivors that it was told."""

    signature: bytes


class Confirmed(msgspec.Struct, frozen=True):
    """The coordinator's answer to step 4: signatures of a threshold of sites on the survivors.

    Attributes:
        confirmed: by site.
        masked: the signatures of step 3, of surviving neighbors whose shares the site holds.
    """

    round: RoundId
    confirmed: dict[str, bytes]
    masked: dict[str, bytes]


class Unmasking(Message, frozen=True):
    """Step 5: shares of seeds (survivors) and of mask keys (the others)."""

    seeds: dict[str, bytes]
    keys: dict[str, bytes]


def commitment(seed: bytes) -> bytes:
    """A hash that fixes the self-mask seed before it is opened."""
    return hashlib.sha256(b"dpfda self mask" + seed).digest()


MOST_SITES = 1024
"""With more sites one site's noise would have fewer than 2^19 lattice steps."""
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
        Each honest site's noise variance is σ²/(S - c - k - m): the noise of the honest survivors
        alone reaches σ². Two groups of t = ⌊(S + c)/2⌋ + 1 sites share an honest one, so that no
        two sets of survivors are confirmed. Many sites choose neighbors (`neighbors`); m of them
        may be cut off by a hostile coordinator, and the choices fail with a probability that is
        part of δ. Among few sites m and this probability are 0.

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
        """The event that the choices of neighbors do not protect, once a study; None: they do."""
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
        """A fingerprint that every key and signature is bound to."""
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
    """The bytes that the coordinator signs when it tells who shared, and a site when it masked."""
    return _named(terms.digest, round_id, purpose, tuple(sharers))


@lru_cache(maxsize=16)  # of many names, for each pair of neighbors
def _named(digest: bytes, round_id: RoundId, purpose: str, names: tuple[str, ...]) -> bytes:
    return round_id.context(digest, purpose, *[name.encode() for name in names])


def survivors_content(
    purpose: Literal["told", "confirmed"],
    terms: Terms,
    round_id: RoundId,
    sharers: Sequence[str],
    survivors: Sequence[str],
) -> bytes:
    """The bytes signed by the coordinator, and by a site, to confirm whose vectors arrived."""
    shared = sharers_content("shared", terms, round_id, sharers)
    names = [name.encode() for name in survivors]
    return round_id.context(terms.digest, purpose, shared, *names)


def share_context(
    terms: Terms, round_id: RoundId, sender: tuple[str, Keys], recipient: tuple[str, Keys]
) -> bytes:
    """The context for the key of one sealed share: opened only by who was shown the same keys."""
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
    """The seed of the mask that two sites share, if they were told the same set of sharers."""
    name, keys = other
    pair = [one.encode() for one in terms.ordered((owner, name))]
    shared = sharers_content("shared", terms, round_id, sharers)
    return key.agree(keys.mask, round_id.context(terms.digest, "mask", shared, *pair))
