"""Cryptography of secure sums: keys, masks and secret sharing.

The primitives come from the library `cryptography`; this module defines which key is derived for
which purpose. A site has a long-term identity, and X25519 key pairs for a single round. Masks are
vectors that are uniform modulo 2^64, expanded from a 32-byte seed by ChaCha20. Secrets are shared
by Shamir's method over a prime field: t shares determine the secret, t - 1 reveal nothing.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dpfda import _validate
from dpfda.errors import InvalidParameter, ProtocolError

_NONCE = bytes(12)  # safe, because every sealing key encrypts only one message


class Identity:
    """A site's long-term Ed25519 key, which authenticates its keys of each round.

    Examples:
        >>> identity = Identity()
        >>> check_signature(identity.public, identity.sign(b"round 1"), b"round 1")
    """

    def __init__(self, private: Ed25519PrivateKey | None = None) -> None:
        self._private = Ed25519PrivateKey.generate() if private is None else private
        self.public = self._private.public_key().public_bytes_raw()

    def sign(self, content: bytes) -> bytes:
        """The signature of this key on the content."""
        return self._private.sign(content)

    def derive(self, purpose: bytes, *, length: int) -> bytes:
        """Secret bytes for one purpose, always the same (HKDF-SHA256 of the private key)."""
        derived = HKDF(algorithm=hashes.SHA256(), length=length, salt=None, info=purpose)
        return derived.derive(self._private.private_bytes_raw())

    def __repr__(self) -> str:
        return f"Identity({self.public.hex()[:8]})"


def check_signature(public: bytes, signature: bytes, content: bytes) -> None:
    """Refuse content that the owner of `public` did not sign."""
    if not signed(public, signature, content):
        raise ProtocolError("a signature does not match its sender")


def signed(public: bytes, signature: bytes, content: bytes) -> bool:
    """Whether the owner of `public` signed the content."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


class RoundKey:
    """An X25519 pair for one round."""

    def __init__(self, private: bytes | None = None) -> None:
        self._private = (
            X25519PrivateKey.generate()
            if private is None
            else X25519PrivateKey.from_private_bytes(private)
        )
        self.public = self._private.public_key().public_bytes_raw()

    def secret(self) -> bytes:
        """The private key's bytes, to be shared among the sites."""
        return self._private.private_bytes_raw()

    def agree(self, public: bytes, purpose: bytes) -> bytes:
        """A 32-byte key for one purpose, which both sites derive (HKDF-SHA256)."""
        try:
            raw = self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise ProtocolError("a round key is not a valid X25519 key") from None
        return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose).derive(raw)

    def __repr__(self) -> str:
        return "RoundKey()"


def seal(key: bytes, content: bytes, context: bytes) -> bytes:
    """Encrypt and authenticate one message under a single-use key."""
    return ChaCha20Poly1305(key).encrypt(_NONCE, content, context)


def unseal(key: bytes, sealed: bytes, context: bytes) -> bytes:
    """Decrypt a message; refuse it if it was changed in transit."""
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed, context)
    except InvalidTag:
        raise ProtocolError("a sealed share was changed on its way") from None


Residues = npt.NDArray[np.uint64]


def expand(seed: bytes, size: int) -> Residues:
    """`size` pseudorandom residues modulo 2^64 from a seed that is used for nothing else.

    Examples:
        >>> bool((expand(bytes(32), 2) == expand(bytes(32), 2)).all())
        True
    """
    stream = Cipher(ChaCha20(seed, bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * size)), dtype="<u8").astype(np.uint64)


def pairwise(seed: bytes, size: int, *, first: bool) -> Residues:
    """The mask that two sites share: the first adds it, the other one subtracts it."""
    mask = expand(seed, size)
    return mask if first else (~mask) + np.uint64(1)  # the negative modulo 2^64


PRIME = (1 << 256) + 297  # the smallest prime above every 32-byte secret
SECRET_BYTES = 32
SHARE_BYTES = 33


def split(secret: bytes, *, threshold: int, points: Sequence[int]) -> dict[int, bytes]:
    """One share for each point; any `threshold` of them recover the secret.

    Examples:
        >>> shares = split(bytes(31) + b"!", threshold=2, points=[1, 2, 3])
        >>> recover({1: shares[1], 3: shares[3]}, threshold=2)[-1:]
        b'!'
    """
    if len(secret) != SECRET_BYTES:
        raise InvalidParameter("secret", f"{SECRET_BYTES} bytes long", len(secret))
    _validate.whole("threshold", threshold, most=len(points))
    if len(set(points)) != len(points) or min(points) < 1:
        raise InvalidParameter("points", "different whole numbers above 0", points)
    coefficients = [int.from_bytes(secret, "big")]
    coefficients += [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    return {point: _evaluate(coefficients, point).to_bytes(SHARE_BYTES, "big") for point in points}


def recover(shares: Mapping[int, bytes], *, threshold: int) -> bytes:
    """The secret, by Lagrange interpolation at 0 from the first `threshold` shares."""
    if len(shares) < threshold:
        raise ProtocolError(f"{len(shares)} shares are fewer than the threshold {threshold}")
    if any(len(share) != SHARE_BYTES for share in shares.values()):
        raise ProtocolError(f"a share is not {SHARE_BYTES} bytes long")
    chosen = tuple(sorted(shares)[:threshold])
    total = sum(
        weight * int.from_bytes(shares[point], "big")
        for point, weight in zip(chosen, _weights(chosen), strict=True)
    )
    try:
        return (total % PRIME).to_bytes(SECRET_BYTES, "big")
    except OverflowError:
        raise ProtocolError("the shares do not belong to one secret") from None


@lru_cache(maxsize=1 << 10)
def _weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange weights at 0 modulo the prime, cached for many secrets with the same points."""
    whole = math.prod(points)
    return tuple(
        whole
        // point
        * pow(math.prod(other - point for other in points if other != point), -1, PRIME)
        % PRIME
        for point in points
    )


def _evaluate(coefficients: Sequence[int], point: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % PRIME
    return value
