"""The messages between a person and a collector, as JSON."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import msgspec


class Ticketed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What belongs to one ticket.

    Attributes:
        plan: hash of the study's plan.
        phase: number of the phase.
        ticket: the person's number in it.
    """

    plan: str
    phase: int
    ticket: int


class TaskMessage(Ticketed, frozen=True):
    """What a person is asked: the public task, for one person."""

    task: dict[str, Any]


class ReplyMessage(Ticketed, frozen=True, gc=False):
    """What a person sends: the randomized values."""

    values: list[float]


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """What a collector answers when a reply is stored for good."""

    receipt: str


class Counted(msgspec.Struct, frozen=True):
    """What a collector answers to whoever shows a receipt.

    Attributes:
        phase: the phase that the reply belongs to.
        counted: the phase is concluded, with this reply.
    """

    phase: int
    counted: bool


def receipt_of(phase: int, ticket: int, digest: bytes, *, seal: str) -> Receipt:
    """The same for the same reply, so that a repeated one gets the same answer.

    Only who has the seal can make one: nobody can try the few replies that a ticket may have and
    ask which of them was sent.

    Example:
        >>> receipt_of(0, 17, bytes(32), seal="secret").receipt
        '0-17-1b2e0c38e2b11a9d0968be640b971b5f'
    """
    named = f"{phase}-{ticket}"
    mark = hmac.digest(seal.encode(), f"{named}-{digest.hex()}".encode(), "sha256")
    return Receipt(f"{named}-{mark[:16].hex()}")


def token_hash(token: str) -> bytes:
    """What a collector keeps of a token. Tokens are 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode()).digest()
