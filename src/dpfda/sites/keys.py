"""Keys on a disk: made once, readable by their owner only."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpfda.errors import ProtocolError
from dpfda.privacy import durable
from dpfda.protocol.secure_sum import Identity


def kept(path: Path, make: bytes) -> bytes:
    """What the file holds; `make` is written first where there is none."""
    durable.claim(path, make)
    return secret(path)


def secret(path: Path) -> bytes:
    """What a file of ours holds that nobody else may read."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise ProtocolError(f"{path.name} may be read by others: chmod 600 {path.name}")
    return path.read_bytes()


def kept_identity(path: Path) -> Identity:
    """The lasting identity in a file; a new one where there is none.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "identity.key"
        >>> kept_identity(path).public == kept_identity(path).public
        True
    """
    raw = kept(path, Ed25519PrivateKey.generate().private_bytes_raw())
    try:
        return Identity(Ed25519PrivateKey.from_private_bytes(raw))
    except ValueError:
        raise ProtocolError(f"{path.name} is not an identity key") from None
