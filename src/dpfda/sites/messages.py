"""Messages between coordinator and sites: data with declared types, never code."""

from __future__ import annotations

from typing import Any

import msgspec

from dpfda.errors import ProtocolError
from dpfda.protocol.secure_sum import messages as secure

MOST_BYTES = 1 << 28
"""No message is longer."""


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Data of declared types; other fields are refused."""


class _Signed(_Message, frozen=True):
    """What a site sends in its own name."""

    site: str


class SiteAnswer(_Message, frozen=True):
    """An earlier question's opened sum: public, in lattice steps."""

    question: str
    total: tuple[int, ...]
    survivors: tuple[str, ...]


class Ask(_Message, frozen=True):
    """A question, for one attempt at its secure sum, and what earlier ones were answered with."""

    round: secure.RoundId
    query: dict[str, Any]
    answers: tuple[SiteAnswer, ...]


class AskOwners(_Message, frozen=True):
    """A request to those owners of a site whose turn is start, ..., or stop - 1."""

    number: int
    start: int
    stop: int
    query: dict[str, Any]


class Shares(_Signed, frozen=True):
    """Replies of a site's owners: noisy numbers of eight bytes each, one row per owner."""

    number: int
    values: bytes


class Model(_Signed, frozen=True):
    """A server's own model: a public document, signed as this plan's."""

    document: bytes
    signature: bytes


class Models(_Message, frozen=True):
    """The models of all servers, which each server's participants evaluate."""

    models: dict[str, Model]


class Verdicts(_Signed, frozen=True):
    """For each model, the sum of randomized evaluations (±1), and their number."""

    totals: tuple[int, ...]
    people: tuple[int, ...]


class StoredReplies(_Message, frozen=True):
    """Replies to an earlier query, as a coordinator stores them: public, each with its noise."""

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
"""Step -> what the coordinator sends."""

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
"""Step -> what a site replies."""


def encode(message: object) -> bytes:
    """A message as bytes."""
    return msgspec.msgpack.encode(message)


def decode(content: bytes, kind: object) -> Any:
    """A message of this kind, or a refusal."""
    if len(content) > MOST_BYTES:
        raise ProtocolError(f"a message is longer than {MOST_BYTES} bytes")
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise ProtocolError("a message does not have the form that its step requires") from None
