"""MRMA as a study: some people report, others judge what was learnt from the reports."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mrma.designs import MRMADesign
from dpfda.mrma.halves import public_halves, signs
from dpfda.mrma.training import ReportedProgress, shared
from dpfda.protocol.findings import Phase
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task


class MRMAProgress(ReportedProgress, name="mrma"):
    """An MRMA study under way: reports until members are made of them, then sums of verdicts.

    Each half of the classes has reports and members of its own.
    """

    def __init__(self, design: MRMADesign, plan: StudyPlan) -> None:
        halves = public_halves(plan, most=design.n_classifiers)
        self._halves, self._counts = halves, shared(design.n_classifiers, len(halves))
        self._of_member: IntArray = np.repeat(halves, self._counts, axis=0)
        final = round(design.evaluation_share * plan.n_people)
        judging = max(0, plan.n_people - design.n_reports(plan.n_people) - final)
        phases = [Phase("evaluate", judging), Phase("check", final)]
        verdict = plan.epsilon * design.verdict_share
        super().__init__(design, plan, phases, epsilon=verdict, groups=len(halves))

    def tasks(self, start: int, people: int) -> Task:
        """Reports about one half after the other, then verdicts."""
        if self.kind == "report":
            return self._ask("vector", people, positive=self._halves[self.phase])
        return super().tasks(start, people)

    def _half_of(self, member: IntArray) -> IntArray:
        return self._of_member[member]

    @property
    def _sides(self) -> FloatArray | None:
        if self.plan.n_classes == 2 or self.candidates is None:
            return None
        return signs(self._of_member[: len(self.candidates)], self.plan.n_classes)

    def _learn(self) -> None:
        if self.kind == "report":  # verdicts are sums already
            made = self._fit(self._counts[self.phase], stream=self.phase)
            known = self.candidates
            self.candidates = made if known is None else known.joined_by(made)
