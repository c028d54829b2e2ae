"""The messages between a person and a collector, as JSON."""

from __future__ import annotations

import hashlib
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


class ReplyMessage(Ticketed, frozen=True):
    """What a person sends: the randomized values."""

    values: list[float]


class Receipt(msgspec.Struct, frozen=True):
    """What a collector answers when a reply is stored for good."""

    receipt: str


def receipt_of(message: ReplyMessage, body: bytes) -> Receipt:
    """The same for the same bytes, so that a repeated reply gets the same answer."""
    digest = hashlib.sha256(body).hexdigest()
    named = f"{message.plan}/{message.phase}/{message.ticket}/{digest}"
    return Receipt(hashlib.sha256(named.encode()).hexdigest()[:32])


def token_hash(token: str) -> bytes:
    """What a collector keeps of a token. Tokens are 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode()).digest()
