"""MRMA as a study: some people report, others judge what was learnt from the reports."""

from __future__ import annotations

from typing import Any

from dpfda._validate import FloatArray
from dpfda.mrma.designs import MRMADesign
from dpfda.mrma.exchange import JudgedProgress
from dpfda.mrma.members import Candidates
from dpfda.mrma.training import Reports
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import Phase
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask


class MRMAProgress(JudgedProgress, name="mrma"):
    """An MRMA study under way: reports until members are made of them, then sums of verdicts."""

    design: MRMADesign

    def __init__(self, design: MRMADesign, plan: StudyPlan) -> None:
        self.design = design
        self.candidates: Candidates | None = None
        reports = design.n_reports(plan.n_people)
        final = round(design.final_share * plan.n_people)
        judging = max(0, plan.n_people - reports - final)
        phases = [Phase("report", reports), Phase("evaluate", judging), Phase("check", final)]
        super().__init__(plan, phases, epsilon=plan.epsilon * design.verdict_share)
        self._reports = Reports(plan, design, self._ask("vector", 0))

    def tasks(self, start: int, people: int) -> Task:
        """Reports first, then verdicts on members, then on the finished classifier."""
        return (
            self._ask("vector", people) if self.kind == "report" else super().tasks(start, people)
        )

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Keep a report, or add a verdict to its sum."""
        if isinstance(task, VectorTask):
            self._reports.absorb(reply)
        else:
            super().absorb(task, reply)

    def _learn(self) -> None:
        if self.kind == "report":  # verdicts are sums already
            self.candidates = self._reports.members(self.design.n_classifiers)

    def state(self) -> dict[str, Any]:
        """Reports of an unfinished first phase, or members and sums."""
        return super().state() | {"reports": self._reports.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        self._reports.restore(state["reports"])
