"""Studies that are not generators yet: to be deleted with `questions`.

Their `Progress` says how to store and restore what it has learnt; `AdaptedRun` lets a server run
it like any other study.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.protocol.findings import Findings, Step
from dpfda.protocol.model import StudyModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.study import Phase, Result, Run, Summary
from dpfda.protocol.task import Task


class Progress(
    Registered,
    ABC,
    family="progress",
    homes=("dpfda.questions",),
):
    """A study under way: its phases and what was learnt so far. It bears its design's name.

    People of one phase may be asked at the same time and answer in any order; the tasks of the next
    phase depend on their replies. How many people each phase wants follows from public numbers.
    """

    def __init__(self, plan: StudyPlan, phases: Sequence[Step]) -> None:
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
        return self.plan.ask(name, people, **free)

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


class AdaptedRun(Run):
    """A `Progress` in the place of a generator: what it has learnt is stored, and not replayed.

    Attributes:
        progress: the study under way.
    """

    def __init__(self, plan: StudyPlan) -> None:
        _ = plan.asks  # refused here, under python -O too
        design = plan.built_design
        self.plan, self.progress = plan, Progress.named(design.name)(design, plan)  # type: ignore[arg-type]
        self._look()

    def _look(self) -> None:
        now = self.progress
        self.phase, self._present, self._hash = now.phase, None, None
        if not now.finished:
            asked = Phase(now.kind, now.quota, now.tasks, _not_counted, lambda: self.result)
            self._present, self._hash = replace(asked, averaged=now.averaged), asked.hash

    @property
    def steps(self) -> list[Step]:
        """All phases."""
        return list(self.progress.phases)

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Take in some replies."""
        self.progress.absorb(task, reply)

    def close(self) -> None:
        """End the present phase."""
        self.progress.close()
        self._look()

    @property
    def result(self) -> Result:
        """What is known now, within a phase too."""
        return Result(self.progress.model, self.progress.findings())

    def state(self) -> dict[str, Any]:
        """What was learnt."""
        return {"asked": self._hash, "progress": self.progress.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.progress.restore(state["progress"])
        self._look()
        self._require(state["asked"])


def _not_counted(task: Task, reply: FloatArray) -> Summary:
    raise NotImplementedError  # absorbed instead


_ADAPTED = ("dpfda.questions",)
"""Packages whose designs still have a `Progress`."""


def begin(plan: StudyPlan) -> Run:
    """A study before its first person; a plan that its design cannot serve is refused."""
    adapted = type(plan.built_design).__module__.startswith(_ADAPTED)
    return AdaptedRun(plan) if adapted else Run(plan)
