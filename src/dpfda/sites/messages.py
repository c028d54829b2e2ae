"""Messages between coordinator and sites: data with declared types, never code."""

from __future__ import annotations

from typing import Any

import msgspec

from dpfda.errors import ProtocolError
from dpfda.protocol.secure_sum import messages as secure

MOST_BYTES = 1 << 28
"""Largest size of a message."""


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message with declared types; other fields are refused."""


class _Signed(_Message, frozen=True):
    """A message that a site sends in its own name."""

    site: str


class SiteAnswer(_Message, frozen=True):
    """The public opened sum of an earlier question, in lattice steps."""

    question: str
    total: tuple[int, ...]
    survivors: tuple[str, ...]


class Ask(_Message, frozen=True):
    """A question for one attempt at its secure sum, and the answers to all earlier questions."""

    round: secure.RoundId
    query: dict[str, Any]
    answers: tuple[SiteAnswer, ...]


class AskOwners(_Message, frozen=True):
    """A task for the owners of a site with the places start, ..., stop - 1 in the study."""

    number: int
    start: int
    stop: int
    query: dict[str, Any]


class Shares(_Signed, frozen=True):
    """Replies of a site's owners: noisy numbers of eight bytes each, one row per owner."""

    number: int
    values: bytes


class Model(_Signed, frozen=True):
    """A server's own model: a public document, signed for this plan."""

    document: bytes
    signature: bytes


class Models(_Message, frozen=True):
    """The models of all servers, which each server's participants evaluate."""

    models: dict[str, Model]


class Verdicts(_Signed, frozen=True):
    """For each model, the sum and the number of randomized evaluations (±1)."""

    totals: tuple[int, ...]
    people: tuple[int, ...]


class StoredReplies(_Message, frozen=True):
    """Noisy public replies to an earlier query, in the form that a coordinator stores."""

    question: str
    survivors: tuple[str, ...]
    replies: tuple[bytes, ...]


class Agreement(_Signed, frozen=True):
    """A site's signature on the plan."""

    signature: bytes


class Envelope(_Message, frozen=True):
    """A step of a plan, from the coordinator to one site."""

    plan: str
    step: str
    body: bytes


class Reply(_Message, frozen=True):
    """A site's reply: the signed content that the step requires, or the reason of a refusal."""

    body: bytes = b""
    refused: str = ""
    signature: bytes = b""


ASKED: dict[str, Any] = {
    "agree": str,
    "over": str,
    "advertise": Ask,
    "share": secure.OfferList,
    "mask": secure.Sharers,
    "confirm": secure.Survivors,
    "unmask": secure.Confirmed,
    "owners": AskOwners,
    "model": str,
    "judge": Models,
}
"""The type of the coordinator's message in each step."""

REPLIED: dict[str, Any] = {
    "agree": Agreement,
    "over": Agreement,
    "advertise": secure.KeyOffer,
    "share": secure.SealedShares,
    "mask": secure.MaskedVector,
    "confirm": secure.Confirmation,
    "unmask": secure.Unmasking,
    "owners": Shares,
    "model": Model,
    "judge": Verdicts,
}
"""The type of a site's reply in each step."""


def encode(message: object) -> bytes:
    """Encode a message as bytes."""
    return msgspec.msgpack.encode(message)


def decode(content: bytes, kind: object) -> Any:
    """Decode a message of this type, or refuse it."""
    if len(content) > MOST_BYTES:
        raise ProtocolError(f"a message is longer than {MOST_BYTES} bytes")
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise ProtocolError("a message does not have the form that its step requires") from None
