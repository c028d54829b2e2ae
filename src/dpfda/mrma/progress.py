"""MRMA as a study: some people report, others judge what was learnt from the reports."""

from __future__ import annotations

from dpfda.mrma.designs import MRMADesign
from dpfda.mrma.training import ReportedProgress
from dpfda.protocol.findings import Phase
from dpfda.protocol.plan import StudyPlan


class MRMAProgress(ReportedProgress, name="mrma"):
    """An MRMA study under way: reports until members are made of them, then sums of verdicts."""

    def __init__(self, design: MRMADesign, plan: StudyPlan) -> None:
        final = round(design.evaluation_share * plan.n_people)
        judging = max(0, plan.n_people - design.n_reports(plan.n_people) - final)
        phases = [Phase("evaluate", judging), Phase("check", final)]
        super().__init__(design, plan, phases, epsilon=plan.epsilon * design.verdict_share)

    def _learn(self) -> None:
        if self.kind == "report":  # verdicts are sums already
            self.candidates = self._fit(self.design.n_classifiers)
