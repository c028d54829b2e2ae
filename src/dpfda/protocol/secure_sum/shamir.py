"""Shamir's secret sharing over a prime field: t shares give the secret, t - 1 give nothing."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from dpfda import _validate
from dpfda.errors import InvalidParameter, ProtocolError

PRIME = (1 << 521) - 1  # a Mersenne prime above every 32-byte secret
SECRET_BYTES = 32
SHARE_BYTES = 66


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
    chosen = sorted(shares)[:threshold]
    total = 0
    for point in chosen:
        top = bottom = 1
        for other in chosen:
            if other != point:
                top = top * other % PRIME
                bottom = bottom * (other - point) % PRIME
        total += int.from_bytes(shares[point], "big") * top * pow(bottom, -1, PRIME)
    try:
        return (total % PRIME).to_bytes(SECRET_BYTES, "big")
    except OverflowError:
        raise ProtocolError("the shares do not belong to one secret") from None


def _evaluate(coefficients: Sequence[int], point: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % PRIME
    return value
