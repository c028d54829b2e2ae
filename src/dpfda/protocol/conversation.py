"""A method that asks records questions: public from beginning to end."""

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
"""Yields queries, is sent their answers, returns a public result. Parts go on by `yield from`."""
Ask = Callable[[Query, int], Answer]
"""The transport: brings query number k to the data holder, and the answer back."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Conversation(
    Registered,
    Generic[Result],
    family="conversation",
    homes=("dpfda.central", "dpfda.central.regression", "dpfda.central.moments"),
):
    """A frozen, public plan of questions. It has no argument for a record, so it may run anywhere.

    Attributes:
        epsilon, delta: what all questions together may cost: announced before the first.
        unit: whose data one record is.
        either: whether noise may be pure although a δ is given, where that is smaller: for one
            curator; sites that add up their noise need Gaussian noise.
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
        """Ask, learn, ask again, conclude."""

    @classmethod
    @abstractmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One for every kind of course it may take with these numbers, for checks and audits."""

    @abstractmethod
    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Two neighboring data sets that the conversation distinguishes well, for audits."""

    def among_sites(self) -> Self:
        """The same questions for sites that add up their noise: Gaussian, where a δ is given."""
        return replace(self, either=False)

    @property
    def whole(self) -> Cost:
        """The budget, to be divided with `Cost.part`: Gaussian, or pure ε where that is better."""
        given = Cost(epsilon=self.epsilon, delta=self.delta)
        if given.pure or not self.either:
            return given
        return self.better(Cost(epsilon=self.epsilon), given)

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The budget with which the result is expected to be better, from public facts alone."""
        return gaussian

    @property
    def pure(self) -> bool:
        """Whether no question uses δ: then it is announced, and paid for, as pure ε."""
        return self.whole.pure

    @property
    def most(self) -> Price:
        """The limit that holders keep it to."""
        return limit(epsilon=self.epsilon, delta=0.0 if self.pure else self.delta)

    @property
    def event(self) -> Event:
        """All of it as one release: what `dpfda.spent` counts."""
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
    """Any central release over any transport."""
    questions = conversation.questions()
    query, number = next(questions), 0
    while True:
        answer = ask(query, number)
        try:
            query, number = questions.send(answer), number + 1
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
