"""Replies on their way into the storage: as they came, as they are kept, and who judges them."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Self

import msgspec

from dpfda.collector.open_phase import OpenPhase
from dpfda.collector.refusal import Refused
from dpfda.collector.storage.base import NewReply, Storage, Stored
from dpfda.protocol.wire import ReplyMessage, token_hash

_LARGEST = 2**31 - 1  # number that every database can hold
_encode = msgspec.json.Encoder().encode


class Sent(msgspec.Struct, frozen=True, gc=False):
    """A reply as it came: hash of the token, what it says, and a digest of the bytes that said it.

    The digest is keyed with the token itself, which the storage does not have, and covers the
    nonce, which is not kept: neither whoever asks with another token, nor whoever has the token and
    reads the storage, can try which reply it belongs to.
    """

    token: bytes
    message: ReplyMessage
    digest: bytes

    @classmethod
    def by(
        cls, token: str, message: ReplyMessage, body: bytes, *, hashed: bytes | None = None
    ) -> Self:
        """Of whoever has the token; `hashed` is its hash, where that is known."""
        digest = hmac.digest(token.encode(), body, "sha256")
        return cls(hashed or token_hash(token), message, digest)

    def stored(self, study: str) -> NewReply:
        """The same as it is kept: what it says, without nonce, spaces, or digits without end."""
        message = self.message
        number = min(message.ticket, _LARGEST)
        body = _encode(message.kept())
        return NewReply(self.token, study, message.phase, number, self.digest, body)


Arrived = tuple[OpenPhase, ReplyMessage, NewReply]
"""A reply on its way into the storage, and who judges it."""


def store(storage: Storage, arrived: Sequence[Arrived]) -> list[Stored | Refused]:
    """Judge a group of replies phase by phase, and store those that are none's fault."""
    refused: dict[int, Refused] = {}
    for phase in dict.fromkeys(phase for phase, *_ in arrived):
        places = [place for place, one in enumerate(arrived) if one[0] is phase]
        verdicts = phase.judge([arrived[place][1] for place in places])
        for place, verdict in zip(places, verdicts, strict=True):
            if verdict is not None:
                refused[place] = verdict
    good = [reply for place, (*_, reply) in enumerate(arrived) if place not in refused]
    stored = iter(storage.add_replies(good) if good else [])
    return [refused[place] if place in refused else next(stored) for place in range(len(arrived))]
