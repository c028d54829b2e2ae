"""Several servers share their classifiers; each asks its own people about all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mrma.conclusion import FinalCheck, MRMAFindings, classifier
from dpfda.mrma.designs import ExchangeDesign
from dpfda.mrma.members import Candidates, Judgement, judge
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import Phase, Progress
from dpfda.protocol.task import Task


class ExchangeProgress(Progress, name="exchange"):
    """Shared classifiers under evaluation by one server's people."""

    def __init__(self, design: ExchangeDesign, plan: StudyPlan) -> None:
        self.design = design
        self.candidates = Candidates(design.intercepts, design.coefficients)
        self._check = FinalCheck(epsilon=plan.epsilon)
        final = round(design.final_share * plan.n_people)
        super().__init__(plan, [Phase("evaluate", plan.n_people - final), Phase("check", final)])

    def tasks(self, start: int, people: int) -> Task:
        """Verdicts on the candidates in turn, then on the result."""
        if self.kind == "evaluate":
            return self._ask("member", people, **self.candidates.rows(start, people))
        return self._ask("evaluation", people, **self.model.rows(people))

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add verdicts to their sums."""
        if self.kind == "evaluate":
            self.candidates.absorb(task.member, reply[:, 0])  # type: ignore[attr-defined]
        else:
            self._check.absorb(reply[:, 0])

    def _learn(self) -> None:
        """Sums say it all."""

    @property
    def judgement(self) -> Judgement:
        """What the verdicts so far say."""
        return judge(
            self.candidates.totals,
            self.candidates.people,
            epsilon=self.plan.epsilon,
            cutoff=self.design.cutoff,
            strictness=self.design.strictness,
        )

    @property
    def model(self) -> CurveModel:
        """This server's classifier as it is now."""
        return classifier(
            self.candidates, self.judgement, plan=self.plan, average=self.design.average
        )

    def findings(self) -> MRMAFindings:
        """Whom this server's people trust, and the error by people who judged nothing else."""
        return MRMAFindings(
            classes=self.plan.classes,
            phases=self.phases,
            error=self._check.error(),
            candidates=self.candidates,
            judgement=self.judgement,
        )

    def state(self) -> dict[str, Any]:
        """Sums of verdicts."""
        return {
            "phase": self.phase,
            "totals": self.candidates.totals.tolist(),
            "people": self.candidates.people.tolist(),
            "check": self._check.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase = int(state["phase"])
        self.candidates.totals = np.asarray(state["totals"], dtype=np.float64)
        self.candidates.people = np.asarray(state["people"], dtype=np.float64)
        self._check = FinalCheck(**state["check"])
