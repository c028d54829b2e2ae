"""Members under judgement; several servers share theirs and each asks its own people about all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dpfda._validate import FloatArray
from dpfda.mrma.conclusion import FinalCheck, MRMAFindings, classifier, unknown_model
from dpfda.mrma.designs import ExchangeDesign, MRMADesign
from dpfda.mrma.members import Candidates, Judgement, judge
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import Phase, Progress
from dpfda.protocol.task import Task


class JudgedProgress(Progress):
    """People judge members in turn, others the classifier made of them: all it keeps is sums."""

    design: MRMADesign | ExchangeDesign
    candidates: Candidates | None

    def __init__(self, plan: StudyPlan, phases: Sequence[Phase], *, epsilon: float) -> None:
        self._epsilon = epsilon
        self._check = FinalCheck(epsilon=epsilon)
        super().__init__(plan, phases)

    def tasks(self, start: int, people: int) -> Task:
        """Verdicts on the members in turn, then on the result."""
        if self.kind == "evaluate":
            assert self.candidates is not None
            return self._ask("member", people, **self.candidates.rows(start, people))
        return self._ask("evaluation", people, **self.model.rows(people))

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add verdicts to their sums."""
        if self.kind == "evaluate":
            assert self.candidates is not None
            self.candidates.absorb(task.member, reply[:, 0])  # type: ignore[attr-defined]
        else:
            self._check.absorb(reply[:, 0])

    def _learn(self) -> None:
        """Sums say it all."""

    @property
    def judgement(self) -> Judgement | None:
        """What the verdicts so far say about the members; None before there are members."""
        if self.candidates is None:
            return None
        return judge(
            self.candidates.totals,
            self.candidates.people,
            epsilon=self._epsilon,
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

    def state(self) -> dict[str, Any]:
        """Members and sums of verdicts."""
        return {
            "phase": self.phase,
            "candidates": None if self.candidates is None else self.candidates.state(),
            "check": asdict(self._check),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase = int(state["phase"])
        kept = state["candidates"]
        self.candidates = None if kept is None else Candidates(**kept)
        self._check = FinalCheck(**state["check"])


class ExchangeProgress(JudgedProgress, name="exchange"):
    """Shared classifiers under evaluation by one server's people."""

    def __init__(self, design: ExchangeDesign, plan: StudyPlan) -> None:
        self.design = design
        self.candidates = Candidates(design.intercepts, design.coefficients)
        final = round(design.final_share * plan.n_people)
        phases = [Phase("evaluate", plan.n_people - final), Phase("check", final)]
        super().__init__(plan, phases, epsilon=plan.epsilon)
