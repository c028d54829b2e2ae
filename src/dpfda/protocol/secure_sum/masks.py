"""Masks: vectors that are uniform modulo 2^64, expanded from a 32-byte seed by ChaCha20."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

Residues = npt.NDArray[np.uint64]


def expand(seed: bytes, size: int) -> Residues:
    """`size` residues modulo 2^64; the seed is used for nothing else.

    Examples:
        >>> bool((expand(bytes(32), 2) == expand(bytes(32), 2)).all())
        True
    """
    stream = Cipher(ChaCha20(seed, bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * size)), dtype="<u8").astype(np.uint64)


def pairwise(seed: bytes, size: int, *, first: bool) -> Residues:
    """The mask two sites share: one adds it, the other takes it away."""
    mask = expand(seed, size)
    return mask if first else (~mask) + np.uint64(1)  # the negative modulo 2^64
