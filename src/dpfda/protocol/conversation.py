"""Conversations: public methods that send queries to a data holder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from dpfda._registry import Registered
from dpfda.errors import InvalidParameter
from dpfda.noise import Source
from dpfda.privacy.cost import Cost, limit
from dpfda.privacy.events import Event
from dpfda.privacy.guarantee import NUMBER_IS_PUBLIC, Guarantee, further_assumptions
from dpfda.privacy.ledger import BaseLedger
from dpfda.privacy.price import Price
from dpfda.protocol.holder import Agreed
from dpfda.protocol.query import Answer, Query, Records

Result = TypeVar("Result")
Questions = Generator[Query, Answer, Result]
"""A generator that yields queries, receives their answers, and returns a public result. It can
delegate to other generators by `yield from`."""
Ask = Callable[[Query, int], Answer]
"""The transport: sends query number k to the data holder, and returns the answer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Conversation(
    Registered,
    Generic[Result],
    family="conversation",
    homes=("dpfda.central", "dpfda.central.regression", "dpfda.central.moments"),
):
    """A frozen, public plan of questions. It has no argument for a record, so it may run anywhere.

    Attributes:
        epsilon: limit of the total ε of all questions, announced before the first question.
        delta: limit of the total δ, announced as well.
        unit: the unit of protection: what one record belongs to, such as a person.
        either: whether pure noise may be used although δ > 0, if it is smaller. This requires one
            curator: sites that add up their noise need Gaussian noise.
    """

    epsilon: float
    delta: float = 0.0
    unit: str = "person"
    either: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise InvalidParameter("unit", "a word for whose data one row is", self.unit)
        _ = self.whole  # checks ε and δ

    @abstractmethod
    def questions(self) -> Questions[Result]:
        """The generator of queries, which returns the result."""

    @classmethod
    @abstractmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """An instance for each possible sequence of queries, for checks and audits."""

    @abstractmethod
    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Two neighboring data sets that the conversation distinguishes well, for audits."""

    def among_sites(self) -> Self:
        """The same questions for sites that add up their noise: Gaussian noise if δ > 0."""
        return replace(self, either=False)

    @property
    def whole(self) -> Cost:
        """The budget, to be divided with `Cost.part`: Gaussian, or pure ε if that is better."""
        given = Cost(epsilon=self.epsilon, delta=self.delta)
        if given.pure or not self.either:
            return given
        return self.better(Cost(epsilon=self.epsilon), given)

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The budget with the smaller expected error of the result, computed from public facts."""
        return gaussian

    @property
    def pure(self) -> bool:
        """Whether no question uses δ; the conversation is then announced and paid for as pure ε."""
        return self.whole.pure

    @property
    def most(self) -> Price:
        """The limit of the total cost, which holders enforce."""
        return limit(epsilon=self.epsilon, delta=0.0 if self.pure else self.delta)

    @property
    def event(self) -> Event:
        """The event of the whole conversation, which `dpfda.spent` counts."""
        return Cost(epsilon=self.epsilon, delta=0.0 if self.pure else self.delta).event

    def agreed(self, source: Source, ledger: BaseLedger | None) -> Agreed:
        """The terms that every participating holder agrees to."""
        return {
            "most": self.most,
            "source": source,
            "unit": self.unit,
            "accepts": self.assumptions,
            "ledger": ledger,
            "label": type(self).__name__,
        }

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the guarantee; holders refuse queries with others."""
        return (NUMBER_IS_PUBLIC, *further_assumptions())

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the result."""
        return Guarantee(
            epsilon=self.epsilon,
            delta=0.0 if self.pure else self.delta,
            model="central",
            unit=self.unit,
            assumptions=self.assumptions,
        )


def converse(conversation: Conversation[Result], ask: Ask) -> Result:
    """Run a conversation over a transport, and return its result."""
    questions = conversation.questions()
    query, number = next(questions), 0
    while True:
        answer = ask(query, number)
        try:
            query, number = questions.send(answer), number + 1
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
