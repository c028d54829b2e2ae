"""Members under judgement; several servers share theirs and each asks its own people about all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mrma.conclusion import MRMAFindings, classifier, unknown_model
from dpfda.mrma.designs import ExchangeDesign, JudgedDesign
from dpfda.mrma.members import Candidates, Judgement
from dpfda.protocol.estimate import Estimate, accuracy_estimate
from dpfda.protocol.findings import Phase
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import Progress
from dpfda.protocol.task import Task


class JudgedProgress(Progress):
    """People judge members in turn, others the classifier made of them: all it keeps is sums."""

    design: JudgedDesign
    candidates: Candidates | None = None
    """Who is judged now."""

    def __init__(self, plan: StudyPlan, phases: Sequence[Phase], *, epsilon: float) -> None:
        self._epsilon = epsilon
        # Verdicts of people who judge the finished classifier and nothing else: sum, number.
        self._checked: FloatArray = np.zeros(2)
        super().__init__(plan, phases)

    @property
    def known(self) -> Candidates | None:
        """All that is known of the members; None before there are any."""
        return self.candidates

    def tasks(self, start: int, people: int) -> Task:
        """Verdicts on the members in turn, then on the result."""
        if self.kind == "evaluate":
            assert self.candidates is not None
            asked = self.candidates.rows(start, people)
            return self._ask("member", people, **asked, positive=self._half_of(asked["member"]))
        return self._ask("evaluation", people, **self.model.rows(people))

    def _half_of(self, member: IntArray) -> IntArray:
        """Label numbers that members tell from the others."""
        return np.ones((len(member), 1), dtype=np.int64)

    @property
    def _sides(self) -> FloatArray | None:
        """Of several classes, on which side of each member's half they are, shape (B, K)."""
        return None

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add verdicts to their sums."""
        if self.kind == "evaluate":
            assert self.candidates is not None
            self.candidates.absorb(task.member, reply[:, 0])  # type: ignore[attr-defined]
        else:
            self._checked += reply[:, 0].sum(), len(reply)

    def _learn(self) -> None:
        """Sums say it all."""

    @property
    def judgement(self) -> Judgement | None:
        """What the verdicts so far say about the members; None before there are members."""
        if self.known is None:
            return None
        design = self.design
        return self.known.judged(
            epsilon=self._epsilon, cutoff=design.cutoff, strictness=design.strictness
        )

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        members, judgement = self.known, self.judgement
        if members is None or judgement is None:
            return unknown_model(self.plan)
        return classifier(members, judgement, plan=self.plan, sides=self._sides)

    @property
    def error(self) -> Estimate | None:
        """Of the classifier, unbiased because these people judged nothing before."""
        total, people = float(self._checked[0]), int(self._checked[1])
        found = accuracy_estimate(total=total, people=people, epsilon=self._epsilon)
        return found.complement() if people else None

    def findings(self) -> MRMAFindings:
        """Members, and the error by people who judged nothing else."""
        return MRMAFindings(
            classes=self.plan.classes,
            phases=self.phases,
            error=self.error,
            candidates=self.known,
            judgement=self.judgement,
        )

    def state(self) -> dict[str, Any]:
        """Members and sums of verdicts."""
        return {
            "phase": self.phase,
            "candidates": self.candidates and self.candidates.state(),
            "checked": self._checked.tolist(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase, kept = int(state["phase"]), state["candidates"]
        self.candidates = kept and Candidates(**kept)
        self._checked = np.asarray(state["checked"])


class ExchangeProgress(JudgedProgress, name="exchange"):
    """Shared classifiers under evaluation by one server's people."""

    def __init__(self, design: ExchangeDesign, plan: StudyPlan) -> None:
        self.design = design
        intercepts, coefficients = np.array(design.intercepts), np.array(design.coefficients)
        self.candidates = Candidates(intercepts, coefficients)
        final = round(design.evaluation_share * plan.n_people)
        phases = [Phase("evaluate", plan.n_people - final), Phase("check", final)]
        super().__init__(plan, phases, epsilon=plan.epsilon)
