"""MRMA as a study: some people report, others judge what was learnt from the reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mrma.conclusion import FinalCheck, MRMAFindings, classifier, unknown_model
from dpfda.mrma.designs import MRMADesign
from dpfda.mrma.members import Candidates, Judgement, judge
from dpfda.mrma.training import check_training, train_members
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import Phase, Progress
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask


class MRMAProgress(Progress, name="mrma"):
    """An MRMA study under way: reports until members are made of them, then sums of verdicts."""

    def __init__(self, design: MRMADesign, plan: StudyPlan) -> None:
        self.design = design
        self.candidates: Candidates | None = None
        self._reports: list[FloatArray] = []
        self._verdict_epsilon = plan.epsilon * design.verdict_share
        self._check = FinalCheck(epsilon=self._verdict_epsilon)
        reports = design.n_reports(plan.n_people)
        final = round(design.final_share * plan.n_people)
        judging = max(0, plan.n_people - reports - final)
        phases = [Phase("report", reports), Phase("evaluate", judging), Phase("check", final)]
        super().__init__(plan, phases)
        self._noise = check_training(design, self._ask("vector", 0))

    # -- asking and listening -------------------------------------------------------------------

    def tasks(self, start: int, people: int) -> Task:
        """Reports first, then verdicts on members, then on the finished classifier."""
        if self.kind == "report":
            return self._ask("vector", people)
        assert self.candidates is not None
        if self.kind == "evaluate":
            return self._ask("member", people, **self.candidates.rows(start, people))
        return self._ask("evaluation", people, **self.model.rows(people))

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Keep a report, or add a verdict to its sum."""
        if isinstance(task, VectorTask):
            self._reports.append(reply)
        elif self.kind == "evaluate":
            assert self.candidates is not None
            self.candidates.absorb(task.member, reply[:, 0])  # type: ignore[attr-defined]
        else:
            self._check.absorb(reply[:, 0])

    def _learn(self) -> None:
        if self.kind != "report":
            return  # verdicts are sums already
        width = self.plan.encoder.n_features + 1
        reports = np.concatenate([np.empty((0, width)), *self._reports])
        self.candidates = train_members(
            reports,
            members=self.design.n_classifiers,
            plan=self.plan,
            design=self.design,
            noise_variance=self._noise,
        )
        self._reports = []

    # -- what was learnt --------------------------------------------------------------------------

    @property
    def judgement(self) -> Judgement | None:
        """What the verdicts so far say about the members; None before there are members."""
        if self.candidates is None:
            return None
        return judge(
            self.candidates.totals,
            self.candidates.people,
            epsilon=self._verdict_epsilon,
            cutoff=self.design.cutoff,
            strictness=self.design.strictness,
        )

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        judgement = self.judgement
        if self.candidates is None or judgement is None:
            return unknown_model(self.plan)
        return classifier(self.candidates, judgement, plan=self.plan, average=self.design.average)

    def findings(self) -> MRMAFindings:
        """Members, and the error by people who judged nothing else."""
        return MRMAFindings(
            classes=self.plan.classes,
            phases=self.phases,
            error=self._check.error(),
            candidates=self.candidates,
            judgement=self.judgement,
        )

    # -- keeping ----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Reports of an unfinished first phase, or members and sums."""
        return {
            "phase": self.phase,
            "reports": [row for part in self._reports for row in part.tolist()],
            "candidates": None if self.candidates is None else self.candidates.state(),
            "check": self._check.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase = int(state["phase"])
        rows = state["reports"]
        self._reports = [np.asarray(rows, dtype=np.float64)] if rows else []
        kept = state["candidates"]
        self.candidates = None if kept is None else Candidates(**kept)
        self._check = FinalCheck(**state["check"])
