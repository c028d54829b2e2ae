"""What a server does with replies: a design, and a study of that design in progress."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task


@dataclass(frozen=True, kw_only=True)
class Design(Registered, family="design"):
    """The public parameters of a way to learn: MRMA, moments, questions, ...

    A new design is one file: its parameters in a `Design`, its phases in a `Progress`.
    """

    @abstractmethod
    def begin(self, plan: StudyPlan) -> Progress:
        """A study of this design, before its first person."""


@dataclass(frozen=True)
class Phase:
    """A part of a study whose tasks are all known when it begins.

    Attributes:
        kind: what is asked in this phase.
        people: how many people it wants.
    """

    kind: str
    people: int


class Progress(ABC):
    """A study under way: its phases and what was learnt so far.

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

    @abstractmethod
    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Take in the replies to some tickets of the present phase (checked, in any order)."""

    @abstractmethod
    def _learn(self) -> None:
        """Draw the conclusions from the present phase; it may have had no replies at all."""

    @property
    @abstractmethod
    def model(self) -> CurveModel:
        """The classifier as it is now."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything learnt so far, as plain values: with the plan, enough to resume the study."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
