"""One conversation with one curator in one process: read this first, every line opens one file.

`simulate` is its twin for crowds of people, each asked once.
"""

from __future__ import annotations

from typing import Any, TypeVar

from dpfda.noise import Source
from dpfda.privacy import tally
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.holder import Curator, Stream
from dpfda.protocol.query import Records

Result = TypeVar("Result")


def curate(
    conversation: Conversation[Result],
    records: Records,
    *,
    source: Source,
    ledger: BaseLedger | None = None,
) -> tuple[Result, Curator]:
    """Ask a curator all questions of a conversation.

    Args:
        conversation: public; what it may cost is announced in it.
        records: everybody's, held by the curator and by nobody else.
        source: where noise comes from.
        ledger: the data set's budget over all conversations; by default that of a `dpfda.budget`
            around it, if any. What real noise was drawn for is in `dpfda.spent()` either way.

    Returns:
        The public result, and the curator with its transcript.
    """
    paying = tally.payer(ledger, source)
    curator = Curator(records, **conversation.agreed(source, paying))
    _note(conversation, source, paying)
    result = converse(conversation, lambda query, number: curator.answer(query, number=number))
    return result, curator


def stream(
    conversation: Conversation[Any], *, source: Source, ledger: BaseLedger | None = None
) -> Stream:
    """Whom to ask the same questions where records pass by in chunks."""
    paying = tally.payer(ledger, source)
    holder = Stream(**conversation.agreed(source, paying))
    _note(conversation, source, paying)
    return holder


def _note(conversation: Conversation[Any], source: Source, ledger: BaseLedger | None) -> None:
    """Whoever was not refused has spent."""
    label = type(conversation).__name__
    tally.note(conversation.guarantee, label=label, source=source, ledger=ledger)
