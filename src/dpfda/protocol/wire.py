"""The messages between a person and a collector, as JSON."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Annotated, Any, Self

import msgspec

Natural = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
"""An integer that every implementation of JSON represents exactly."""


class Ticketed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of one ticket.

    Attributes:
        plan: hash of the study's plan.
        phase: number of the phase.
        ticket: the person's number in it.
    """

    plan: str
    phase: Natural
    ticket: Natural


class TaskMessage(Ticketed, frozen=True):
    """A task for one person."""

    task: dict[str, Any]


class Reply(Ticketed, frozen=True, gc=False):
    """The stored part of a reply: the randomized values."""

    values: list[float]


# `$` also matches before a newline; the length excludes it.
Nonce = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$", max_length=32)]
"""Random hexadecimal digits that a device draws for one reply; only the device stores them."""


class ReplyMessage(Reply, frozen=True, gc=False):
    """A reply: the randomized values, and a secret random nonce.

    A collector recognizes a repeated message by a digest of the whole message. Without the nonce,
    the organizer who issued a token could send guessed replies with it, and observe which one the
    collector recognizes.

    Attributes:
        nonce: 16 random bytes as hexadecimal digits, drawn for this message alone.
    """

    nonce: Nonce

    @classmethod
    def saying(
        cls, plan: str, phase: int, ticket: int, values: list[float], *, secret: str | None = None
    ) -> Self:
        """A message with a new nonce from the operating system.

        Args:
            plan: hash of the study's plan.
            phase: number of the phase.
            ticket: the person's number in it.
            values: the randomized values.
            secret: determines the nonce (`nonce_of`), so that it can withdraw the reply.

        Examples:
            >>> len(ReplyMessage.saying("0" * 64, 0, 17, [0.5]).nonce)
            32
        """
        return cls(plan, phase, ticket, values, nonce_of(secret or new_secret()))

    def kept(self) -> Reply:
        """The part of the reply that is stored: all but the nonce."""
        return Reply(self.plan, self.phase, self.ticket, self.values)


# The length is needed for the same reason as in `Nonce`.
Secret = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
"""Random hexadecimal digits that stay on a device until it withdraws a reply."""


def new_secret() -> str:
    """32 random bytes of the operating system, as hexadecimal digits."""
    return secrets.token_hex(32)


def nonce_of(secret: str) -> str:
    """The nonce of a reply that can be withdrawn with a secret: the first half of its SHA-256.

    The secret cannot be computed from the reply, for example by a gateway.

    Examples:
        >>> nonce_of("00" * 32)
        '66687aadf862bd776c8fc18b8e9f8e20'
    """
    return hashlib.sha256(bytes.fromhex(secret)).digest()[:16].hex()


class Withdrawal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person's wish that their reply does not count.

    Attributes:
        reply: the exact text of the reply.
        secret: the secret from which its nonce was computed.
    """

    reply: str
    secret: Secret


class Withdrawn(msgspec.Struct, frozen=True):
    """The answer of a collector when a reply was removed."""

    withdrawn: bool


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The answer of a collector when a reply is stored."""

    receipt: str


class Counted(msgspec.Struct, frozen=True):
    """The answer of a collector to a receipt.

    Attributes:
        phase: the phase that the reply belongs to.
        counted: whether the phase has ended and includes this reply.
    """

    phase: int
    counted: bool


RECEIPT = "^[0-9a-f]{48}$"
"""The form of a receipt: a mark of 16 bytes, and 8 bytes with the masked phase and ticket."""
_MARK = 16


def receipt_of(phase: int, ticket: int, digest: bytes, *, seal: str) -> Receipt:
    """The receipt of a reply; a repeated reply gets the same receipt.

    Only the holder of the seal can create a receipt, or read phase and ticket from it
    (`ticket_of`). Others can neither test guessed replies against a receipt nor find its reply
    among stored ones, because the mark is a keyed hash. It also keys the mask of phase and ticket.

    Examples:
        >>> receipt_of(0, 17, bytes(32), seal="secret").receipt
        '5a62510dc9149a4181c901dcd9c2411fe2e724c761a461e6'
    """
    place = phase.to_bytes(4, "big") + ticket.to_bytes(4, "big")
    mark = hmac.digest(seal.encode(), b"mark" + place + digest, "sha256")[:_MARK]
    return Receipt((mark + _masked(place, mark, seal)).hex())


def ticket_of(receipt: str, *, seal: str) -> tuple[int, int]:
    """Phase and ticket in a receipt; the receipt is genuine if `receipt_of` gives the same one.

    Examples:
        >>> ticket_of(receipt_of(2, 17, bytes(32), seal="secret").receipt, seal="secret")
        (2, 17)
    """
    given = bytes.fromhex(receipt)
    place = _masked(given[_MARK:], given[:_MARK], seal)
    return int.from_bytes(place[:4], "big"), int.from_bytes(place[4:], "big")


def _masked(place: bytes, mark: bytes, seal: str) -> bytes:
    mask = hmac.digest(seal.encode(), b"mask" + mark, "sha256")
    length = min(len(place), len(mask))
    first, second = (int.from_bytes(one[:length], "big") for one in (place, mask))
    return (first ^ second).to_bytes(length, "big")


def token_hash(token: str) -> bytes:
    """The stored hash of a token. Tokens have 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode()).digest()
