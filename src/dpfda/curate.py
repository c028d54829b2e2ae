"""One conversation with one curator in one process: read this first, every line opens one file.

`simulate` is its twin for crowds of people, each asked once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Generic, TypeVar

from dpfda.noise import Source
from dpfda.privacy import tally
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.holder import Curator, Gather, Gatherer, Holder, Stream
from dpfda.protocol.query import Query, Records

Result = TypeVar("Result")
Held = TypeVar("Held", bound=Holder)


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
    return _ask(conversation, partial(Curator, records), source, ledger)


def gather(
    conversation: Conversation[Result],
    sums: Gather,
    *,
    n: int,
    source: Source,
    first: Callable[[], int] | None = None,
    ledger: BaseLedger | None = None,
) -> tuple[Result, Gatherer]:
    """The same of records that are read elsewhere: what comes from there is sums.

    Args:
        conversation: public; its looks are additive.
        sums: how many records there are and what they add up to; asked once for each question, when
            that has been paid for.
        n: how many records there are (public).
        source: where noise comes from.
        first: reads and counts all records, where nobody has yet: done when the ledger can pay for
            everything, and before it pays for anything.
        ledger: as in `curate`.
    """
    return _ask(conversation, partial(Gatherer, sums, n=n, first=first), source, ledger)


def _ask(
    conversation: Conversation[Result],
    hold: Callable[..., Held],
    source: Source,
    ledger: BaseLedger | None,
) -> tuple[Result, Held]:
    """All questions to one holder, who pays for them."""
    paying = tally.payer(ledger, source)
    with nullcontext() if paying is None else paying.turn:
        holder = hold(**conversation.agreed(source, paying))
        _note(conversation, source, paying)
        result = converse(conversation, lambda query, number: holder.answer(query, number=number))
    return result, holder


class Passes(Generic[Result]):
    """The same questions about records that pass by in chunks: a pass over all of them for each.

    Holds sums of private rows between `add` and `release`, so it can be neither printed nor pickled
    in a useful way: a half-finished one never leaves the process.
    """

    def __init__(
        self,
        conversation: Conversation[Result],
        *,
        source: Source,
        ledger: BaseLedger | None = None,
    ) -> None:
        self.conversation = conversation
        paying = tally.payer(ledger, source)
        self.stream = Stream(**conversation.agreed(source, paying))
        self.result: Result | None = None  # until every question is answered
        self._questions = conversation.questions()
        self._open(next(self._questions))
        _note(conversation, source, paying)

    def _open(self, query: Query) -> None:
        self.stream.open(query)
        self._query = query

    def add(self, records: Records) -> None:
        """Add a chunk to the open question's sums."""
        self.stream.add(records)

    def release(self) -> None:
        """Answer the open question with noise and go on to the next."""
        answer = self.stream.answer(self._query, number=len(self.stream.transcript))
        try:
            self._open(self._questions.send(answer))
        except StopIteration as end:
            self.result = end.value

    def __repr__(self) -> str:
        return f"Passes({self.stream!r})"

    def __reduce__(self) -> str:
        raise TypeError("a fit in progress holds private sums and cannot be pickled")


def _note(conversation: Conversation[Result], source: Source, ledger: BaseLedger | None) -> None:
    """Record the cost in the tally once the release is accepted."""
    label = type(conversation).__name__
    promise, event = conversation.guarantee, conversation.event
    tally.note(promise, label=label, source=source, ledger=ledger, event=event)
