"""Small hostile parties: each tries everything that its position allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda.checks.fuzz import hostile_queries
from dpfda.errors import DpfdaError
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.holder import Holder
from dpfda.protocol.query import Query

Victim = Callable[[Ledger], Holder]
"""Makes a holder of some private records, who has this ledger and fresh noise of one seed."""


@dataclass(frozen=True)
class Outcome:
    """All that a hostile party sees of one attempt, and what the victim spent on it."""

    seen: tuple[Any, ...]
    spent: int


class HostileAsker:
    """Writes queries: a collector to people, a data user to owners, an analyst to a curator.

    Args:
        honest: a query that the victim agreed to, to start from.
    """

    def __init__(self, honest: Query) -> None:
        self.honest = honest

    def messages(self) -> Iterator[tuple[str, bytes]]:
        """Queries as JSON: broken, at the edge of what is allowed, and other queries."""
        for told, data in hostile_queries(self.honest):
            yield told, json.dumps(data).encode()
        for name, member in Query.members().items():
            for other in member.examples()[:1]:
                yield f"a {name} instead", json.dumps(other.to_dict()).encode()
        for body in (b"", b"null", b"[]", b"1", b'"x"', b'{"name": {}}', b'{"name": "moment"}'):
            yield f"{body!r}", body

    @staticmethod
    def ask(victim: Victim, body: bytes) -> Outcome:
        """Send one query to a fresh victim; what comes back, or in which words it refuses."""
        ledger = Ledger(5.0)
        try:
            data = json.loads(body)
            if not isinstance(data, dict):
                return Outcome(("no query",), 0)  # never reaches a holder
            holder = victim(ledger)
            answer = holder.answer(Query.from_dict(data), number=0)
        except (DpfdaError, json.JSONDecodeError) as refusal:
            return Outcome((type(refusal).__name__, str(refusal)), len(ledger.entries))
        return Outcome(("answer", answer.values.shape), len(ledger.entries))


class HostileParticipant:
    """Sends replies to a server that is not theirs to trust."""

    def __init__(self, width: int) -> None:
        self.width = width

    def replies(self) -> Iterator[Any]:
        """Wrong shapes, wrong kinds, numbers that spoil sums."""
        width = self.width
        yield from (None, "reply", [[]], [[1.0], [1.0, 2.0]], [["a"] * width])
        yield np.zeros((41, width))
        yield np.zeros((1, width + 1))
        for value in (np.nan, np.inf, -np.inf):
            yield np.full((1, width), value)


def seeded() -> SimulationSource:
    """The same noise for every victim: outcomes are compared."""
    return SimulationSource(0)
