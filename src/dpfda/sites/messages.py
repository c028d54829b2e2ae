"""Messages between coordinator and sites: data with declared types, never code."""

from __future__ import annotations

from typing import Any

import msgspec

from dpfda.errors import ProtocolError
from dpfda.protocol.secure_sum.messages import (
    Confirmation,
    KeyOffer,
    MaskedVector,
    OfferList,
    RoundId,
    SealedShares,
    Survivors,
    Unmasking,
)

MOST_BYTES = 1 << 28
"""No message is longer."""


class SiteAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An earlier question's opened sum: public, in lattice steps."""

    question: str
    total: tuple[int, ...]
    survivors: tuple[str, ...]


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, for one attempt at its secure sum, and what earlier ones were answered with."""

    round: RoundId
    query: dict[str, Any]
    answers: tuple[SiteAnswer, ...]


class AskOwners(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request to those owners of a site whose turn is start, ..., or stop - 1."""

    number: int
    start: int
    stop: int
    query: dict[str, Any]


class Shares(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replies of a site's owners: noisy numbers of eight bytes each, one row per owner."""

    site: str
    number: int
    values: bytes


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server's own model: a public document, signed as this plan's."""

    site: str
    document: bytes
    signature: bytes


class Models(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The models of all servers, which each server's participants evaluate."""

    models: dict[str, Model]


class Verdicts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For each model, the sum of randomized evaluations (±1), and their number."""

    site: str
    totals: tuple[int, ...]
    people: tuple[int, ...]


class StoredReplies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replies to an earlier query, as a coordinator stores them: public, each with its noise."""

    question: str
    survivors: tuple[str, ...]
    replies: tuple[bytes, ...]


class Agreement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site's signature on the plan."""

    site: str
    signature: bytes


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a plan, from the coordinator to one site."""

    plan: str
    step: str
    body: bytes


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site's: what the step asks for, signed as the reply to these bytes; or why not."""

    body: bytes = b""
    refused: str = ""
    signature: bytes = b""


ASKED: dict[str, Any] = {
    "agree": str,
    "over": str,
    "advertise": Ask,
    "share": OfferList,
    "mask": dict[str, bytes],
    "confirm": Survivors,
    "unmask": tuple[Confirmation, ...],
    "owners": AskOwners,
    "model": str,
    "judge": Models,
}
"""Step -> what the coordinator sends."""

REPLIED: dict[str, Any] = {
    "agree": Agreement,
    "over": Agreement,
    "advertise": KeyOffer,
    "share": SealedShares,
    "mask": MaskedVector,
    "confirm": Confirmation,
    "unmask": Unmasking,
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
        raise ProtocolError("a message is not what its step asks for") from None
