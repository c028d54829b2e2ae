"""Keys of a site: a lasting identity, and X25519 pairs that live for one round.

Everything cryptographic comes from `cryptography`; here is only which key is derived for what.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dpfda.errors import ProtocolError

SIGNATURE_BYTES = 64
_NONCE = bytes(12)  # every sealing key is derived for one message only


class Identity:
    """A site's lasting Ed25519 key, by which the others know its round keys are its own.

    Examples:
        >>> identity = Identity()
        >>> check_signature(identity.public, identity.sign(b"round 1"), b"round 1")
    """

    def __init__(self, private: Ed25519PrivateKey | None = None) -> None:
        self._private = Ed25519PrivateKey.generate() if private is None else private
        self.public = self._private.public_key().public_bytes_raw()

    def sign(self, content: bytes) -> bytes:
        """Sign."""
        return self._private.sign(content)

    def __repr__(self) -> str:
        return f"Identity({self.public.hex()[:8]})"


def check_signature(public: bytes, signature: bytes, content: bytes) -> None:
    """Refuse what the owner of `public` did not sign."""
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
        """A 32-byte key that both ends derive, for one purpose (HKDF-SHA256)."""
        try:
            raw = self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise ProtocolError("a round key is not a valid X25519 key") from None
        return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose).derive(raw)

    def __repr__(self) -> str:
        return "RoundKey()"


def seal(key: bytes, content: bytes, context: bytes) -> bytes:
    """Encrypt and authenticate one message under a key of its own."""
    return ChaCha20Poly1305(key).encrypt(_NONCE, content, context)


def unseal(key: bytes, sealed: bytes, context: bytes) -> bytes:
    """Decrypt, or refuse what was changed on its way."""
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed, context)
    except InvalidTag:
        raise ProtocolError("a sealed share was changed on its way") from None
