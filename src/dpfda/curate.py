"""Run one conversation with one curator in one process; each line leads to one file.

`simulate` does the same for many people who each answer one query.
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
        conversation: the public queries, with their announced cost.
        records: the records of all people; only the curator holds them.
        source: where noise comes from.
        ledger: the budget of the data set over all conversations; by default the budget of an
            enclosing `dpfda.budget`, if any. `dpfda.spent()` lists releases with real noise in any
            case.

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
    """Ask all questions of a conversation about records of which only sums arrive here.

    Args:
        conversation: as in `curate`; all its queries are additive.
        sums: returns the number of records and their sums; called once for each question, after the
            ledger has paid for it.
        n: the public number of records.
        source: where noise comes from.
        first: reads and counts all records, if they are not counted yet; called after the check
            that the ledger can pay for everything, and before it pays for anything.
        ledger: as in `curate`.
    """
    return _ask(conversation, partial(Gatherer, sums, n=n, first=first), source, ledger)


def _ask(
    conversation: Conversation[Result],
    hold: Callable[..., Held],
    source: Source,
    ledger: BaseLedger | None,
) -> tuple[Result, Held]:
    """Ask one data holder all questions; its ledger pays for them."""
    paying = tally.payer(ledger, source)
    with nullcontext() if paying is None else paying.turn:
        holder = hold(**conversation.agreed(source, paying))
        _note(conversation, source, paying)
        result = converse(conversation, lambda query, number: holder.answer(query, number=number))
    return result, holder


class Passes(Generic[Result]):
    """A conversation about records that arrive in chunks, with one pass for each question.

    Between `add` and `release` the object holds sums of private rows. Its repr does not show them,
    and it cannot be pickled.
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
        """Answer the open question with noise and open the next one."""
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
