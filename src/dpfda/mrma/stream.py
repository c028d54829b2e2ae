"""One round of an endless study: old members are judged again, new ones join, drift is noticed.

Every batch of new people is a study with a plan of its own; what earlier rounds learnt is public
and travels in the plan. Nobody takes part in two rounds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dpfda.mrma.conclusion import MRMAFindings
from dpfda.mrma.designs import StreamDesign
from dpfda.mrma.evaluation import accuracies
from dpfda.mrma.members import Candidates
from dpfda.mrma.memory import Memory
from dpfda.mrma.training import ReportedProgress
from dpfda.protocol.findings import Phase
from dpfda.protocol.plan import StudyPlan


class StreamProgress(ReportedProgress, name="mrma_stream"):
    """A round under way; its verdicts count when it ends."""

    design: StreamDesign

    def __init__(self, design: StreamDesign, plan: StudyPlan) -> None:
        self.memory = Memory.from_dict(design.carried, dimension=plan.encoder.n_features)
        self.drifted = False
        judging = [Phase("evaluate", plan.n_people - design.n_reports(plan.n_people))]
        super().__init__(design, plan, judging, epsilon=plan.epsilon)

    @property
    def known(self) -> Candidates | None:
        """Old and new ones, with what is remembered of the verdicts on them."""
        return self.memory if len(self.memory) else None

    def _learn(self) -> None:
        if self.kind == "report":
            self._train()
        else:
            self._remember()

    def _train(self) -> None:
        """New members take the places of the weakest."""
        joining = self._fit(self.design.new_classifiers, stream=self.design.round)
        room = self.design.n_classifiers - self.design.new_classifiers
        self.memory = self.memory.strongest(room, epsilon=self.plan.epsilon).joined_by(joining)
        self.candidates = Candidates(self.memory.intercept, self.memory.coefficients)

    def _remember(self) -> None:
        """Old verdicts fade; those that the new ones contradict are dropped."""
        fresh = self.candidates
        assert fresh is not None
        self.drifted = self._contradicted(fresh)
        kept = 0.0 if self.drifted else self.design.memory
        self.memory = self.memory.updated(fresh.totals, fresh.people, keep=kept)

    def _contradicted(self, fresh: Candidates) -> bool:
        """Whether the classifier of earlier rounds does worse than chance on the new verdicts.

        Its weights were fixed before these people answered, so A = Σ w_b (r̃_b - ½) is unbiased.
        """
        judgement = self.judgement
        if judgement is None or not self.memory.people.any():
            return False
        weight = judgement.signed_weight
        new = accuracies(fresh.totals, fresh.people, epsilon=self.plan.epsilon)
        heard = (weight != 0) & (new.people > 0)
        agreement = float(weight[heard] @ (new.value[heard] - 0.5))
        error = math.sqrt(float(weight[heard] ** 2 @ new.standard_error[heard] ** 2))
        return agreement < -self.design.alarm * error

    def findings(self) -> MRMAFindings:
        """Members as they are remembered, whether they were turned, and the next round."""
        following = self.design.after(self.memory.state()) if self.finished else None
        return replace(super().findings(), drifted=self.drifted, following=following)

    def state(self) -> dict[str, Any]:
        """Reports or verdicts of the present round, and the memory."""
        return super().state() | {"memory": self.memory.state(), "drifted": self.drifted}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        self.memory = Memory.from_dict(state["memory"], dimension=self.plan.encoder.n_features)
        self.drifted = bool(state["drifted"])
