"""A study under way, on the server's side: phases, and what was learnt from their replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.protocol.fields import declared
from dpfda.protocol.findings import Findings, Phase
from dpfda.protocol.model import StudyModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task


class Progress(
    Registered,
    ABC,
    family="progress",
    homes=(
        "dpfda.questions",
        "dpfda.linear",
        "dpfda.mrma.exchange",
        "dpfda.mrma.progress",
        "dpfda.mrma.stream",
        "dpfda.boosting",
    ),
):
    """A study under way: its phases and what was learnt so far. It bears its design's name.

    People of one phase may be asked at the same time and answer in any order; the tasks of the next
    phase depend on their replies. How many people each phase wants follows from public numbers.
    """

    def __init__(self, plan: StudyPlan, phases: Sequence[Phase]) -> None:
        self.plan = plan
        self.phases = list(phases)
        self.phase = 0
        self._pass_empty_phases()

    @property
    def finished(self) -> bool:
        """Whether every phase is over."""
        return self.phase >= len(self.phases)

    @property
    def quota(self) -> int:
        """How many people the present phase wants; 0 when the study is finished."""
        return 0 if self.finished else self.phases[self.phase].people

    @property
    def kind(self) -> str:
        """What the present phase asks; ``finished`` at the end."""
        return "finished" if self.finished else self.phases[self.phase].kind

    @property
    def averaged(self) -> bool:
        """Whether all that the present phase makes of its replies is their mean."""
        return False

    def close(self) -> None:
        """End the present phase, with however many replies came, and begin the next."""
        self._learn()
        self.phase += 1
        self._pass_empty_phases()

    def _pass_empty_phases(self) -> None:
        while not self.finished and self.quota == 0:
            self._learn()
            self.phase += 1

    @abstractmethod
    def tasks(self, start: int, people: int) -> Task:
        """The tasks of tickets start, ..., start + people - 1 of the present phase."""

    def _ask(self, name: str, people: int, **free: Any) -> Task:
        """A task as the design says it, and what it leaves free."""
        kind, terms = Task.named(name), self.plan.asks[name]
        fixed = {
            field: terms[field]
            for field in declared(kind)
            if field in terms and not isinstance(terms[field], (range, tuple))
        }
        return kind(**(fixed | {"people": people} | free))

    @abstractmethod
    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Take in the replies to some tickets of the present phase (checked, in any order)."""

    @abstractmethod
    def _learn(self) -> None:
        """Draw the conclusions from the present phase; it may have had no replies at all."""

    @property
    @abstractmethod
    def model(self) -> StudyModel:
        """The classifier as it is now."""

    def findings(self) -> Findings:
        """What was estimated so far, with its uncertainty."""
        return Findings(classes=self.plan.classes, phases=self.phases)

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything learnt so far, as plain values: with the plan, enough to resume the study."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""


def begin(plan: StudyPlan) -> Progress:
    """A study before its first person; a plan that its design cannot serve is refused."""
    _ = plan.asks  # refused here, under python -O too
    design = plan.built_design
    return Progress.named(design.name)(design, plan)  # type: ignore[arg-type]
