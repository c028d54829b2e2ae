"""One round of an endless study: old members are judged again, new ones join, drift is noticed.

Every batch of new people is a study with a plan of its own; what earlier rounds learnt is public
and travels in the plan. Nobody takes part in two rounds.
"""

from __future__ import annotations

import math
from typing import Any

from dpfda._validate import FloatArray
from dpfda.mrma.conclusion import MRMAFindings, classifier, unknown_model
from dpfda.mrma.designs import StreamDesign
from dpfda.mrma.evaluation import accuracies
from dpfda.mrma.members import Candidates, Judgement
from dpfda.mrma.memory import Memory
from dpfda.mrma.training import Reports
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import Phase, Progress
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask


class StreamProgress(Progress, name="mrma_stream"):
    """A round under way."""

    def __init__(self, design: StreamDesign, plan: StudyPlan) -> None:
        self.design = design
        self.memory = Memory.from_dict(design.carried, dimension=plan.encoder.n_features)
        self.drifted = False
        self._fresh: Candidates | None = None
        reports = design.n_reports(plan.n_people)
        super().__init__(
            plan, [Phase("report", reports), Phase("evaluate", plan.n_people - reports)]
        )
        self._reports = Reports(plan, design, self._ask("vector", 0))

    def tasks(self, start: int, people: int) -> Task:
        """Reports for new members, then verdicts on old and new ones."""
        if self.kind == "report":
            return self._ask("vector", people)
        assert self._fresh is not None
        return self._ask("member", people, **self._fresh.rows(start, people))

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Keep a report, or add a verdict to its sum."""
        if isinstance(task, VectorTask):
            self._reports.absorb(reply)
        else:
            assert self._fresh is not None
            self._fresh.absorb(task.member, reply[:, 0])  # type: ignore[attr-defined]

    def _learn(self) -> None:
        if self.kind == "report":
            self._train()
        else:
            self._remember()

    def _train(self) -> None:
        """New members take the places of the weakest."""
        joining = self._reports.members(self.design.new_classifiers, stream=self.design.round)
        room = self.design.n_classifiers - self.design.new_classifiers
        self.memory = self.memory.strongest(room, epsilon=self.plan.epsilon).joined_by(joining)
        self._fresh = Candidates(self.memory.intercept, self.memory.coefficients)

    def _remember(self) -> None:
        """Old verdicts fade; those that the new ones contradict are dropped."""
        assert self._fresh is not None
        self.drifted = self._contradicted(self._fresh)
        kept = 0.0 if self.drifted else self.design.memory
        self.memory = self.memory.updated(self._fresh.totals, self._fresh.people, keep=kept)

    def _contradicted(self, fresh: Candidates) -> bool:
        """Whether the classifier of earlier rounds does worse than chance on the new verdicts.

        Its weights were fixed before these people answered, so A = Σ w_b (r̃_b - ½) is unbiased.
        """
        if not self.memory.people.any():
            return False
        weight = self._judge(self.memory).signed_weight
        new = accuracies(fresh.totals, fresh.people, epsilon=self.plan.epsilon)
        heard = (weight != 0) & (new.people > 0)
        agreement = float(weight[heard] @ (new.value[heard] - 0.5))
        error = math.sqrt(float(weight[heard] ** 2 @ new.standard_error[heard] ** 2))
        return agreement < -self.design.alarm * error

    def _judge(self, memory: Memory) -> Judgement:
        return memory.judged(
            epsilon=self.plan.epsilon,
            cutoff=self.design.cutoff,
            strictness=self.design.strictness,
        )

    @property
    def judgement(self) -> Judgement | None:
        """What all remembered verdicts say about the members; None before there are members."""
        return self._judge(self.memory) if len(self.memory) else None

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now; verdicts of the present round count when it ends."""
        if not len(self.memory):
            return unknown_model(self.plan)
        return classifier(
            self.memory.candidates,
            self._judge(self.memory),
            plan=self.plan,
            average=self.design.average,
        )

    def findings(self) -> MRMAFindings:
        """Members as they are remembered, whether they were turned, and the next round."""
        return MRMAFindings(
            classes=self.plan.classes,
            phases=self.phases,
            drifted=self.drifted,
            following=self.design.after(self.memory.to_dict()) if self.finished else None,
            candidates=self.memory.candidates if len(self.memory) else None,
            judgement=self.judgement,
        )

    def state(self) -> dict[str, Any]:
        """Reports or verdicts of the present round, and the memory."""
        return {
            "phase": self.phase,
            "reports": self._reports.state(),
            "memory": self.memory.to_dict(),
            "fresh": None if self._fresh is None else self._fresh.state(),
            "drifted": self.drifted,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase = int(state["phase"])
        self._reports.restore(state["reports"])
        self.memory = Memory.from_dict(state["memory"], dimension=self.plan.encoder.n_features)
        self._fresh = None if state["fresh"] is None else Candidates(**state["fresh"])
        self.drifted = bool(state["drifted"])
