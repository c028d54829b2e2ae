"""What all sites agreed on before the first round."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from dpfda import _validate
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.privacy.guarantee import SITE_SIZES_ARE_PUBLIC

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
        """How many sites must help to open a sum."""
        return (self.sites + self.colluders) // 2 + 1

    @property
    def needed(self) -> int:
        """How many vectors a sum has at least: S - k."""
        return self.sites - self.dropouts

    @property
    def noisy_sites(self) -> int:
        """How many honest survivors the noise can count on: S - c - k."""
        return self.sites - self.colluders - self.dropouts

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the noise of all sites together protects against, in words."""
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
