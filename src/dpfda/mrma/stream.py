"""One round of an endless study: old members are judged again, new ones join, drift is noticed.

Every batch of new people is a study with a plan of its own; what earlier rounds learnt is public
and travels in the plan. Nobody takes part in two rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.mrma.averaging import AVERAGES, DEFAULT_STRICTNESS, check_cutoff
from dpfda.mrma.conclusion import classifier, require_two_classes, unknown_model
from dpfda.mrma.evaluation import accuracies
from dpfda.mrma.members import DEFAULT_SPREAD, Candidates, Judgement
from dpfda.mrma.memory import Memory
from dpfda.mrma.training import ReportDesign, train_members
from dpfda.protocol.design import Design, Phase, Progress
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask


@dataclass(frozen=True, kw_only=True)
class StreamDesign(Design, name="mrma_stream"):
    """MRMA on a stream (001 §3.5, online data), for two classes.

    Attributes:
        n_classifiers: how many members are kept at most.
        new_classifiers: how many join in a round.
        member_size: reports a new member is made of.
        learner: registered name of the weak learner; it must be linear.
        learner_parameters: its parameters.
        training_share: share of a round's people who report.
        randomizer: registered name of the randomizer of encoded curves.
        label_share: ε_y/ε of a report; None is 1/(d+1).
        boundary_spread: as in `MRMADesign`.
        memory: what a verdict still counts one round later; below 1, so that weights follow drift.
        alarm: how many standard errors below chance the old classifier must do on new verdicts for
            all older verdicts to be forgotten at once.
        cutoff: a fixed r0; None is the public default (C3).
        strictness: constant c of the default cutoff.
        average: as in `MRMADesign`.
        carried: what earlier rounds learnt, from `StreamProgress.memory`.
        round: number of this round.

    Example:
        >>> StreamDesign(memory=0.8).to_dict()["round"]
        0
    """

    n_classifiers: int = 50
    new_classifiers: int = 10
    member_size: int = 50
    learner: str = "conjugate_gradient"
    learner_parameters: Mapping[str, Any] = field(default_factory=dict)
    training_share: float = 1 / 6
    randomizer: str = "laplace"
    label_share: float | None = None
    boundary_spread: float | None = DEFAULT_SPREAD
    memory: float = 0.7
    alarm: float = 2.0
    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    average: str = "parameters"
    carried: Mapping[str, Any] | None = None
    round: int = 0

    def __post_init__(self) -> None:
        _validate.whole("n_classifiers", self.n_classifiers)
        _validate.whole("new_classifiers", self.new_classifiers, most=self.n_classifiers)
        _validate.whole("member_size", self.member_size, least=2)
        _validate.whole("round", self.round, least=0)
        _validate.fraction("training_share", self.training_share)
        _validate.fraction("memory", self.memory)
        _validate.positive("alarm", self.alarm)
        if self.boundary_spread is not None:
            _validate.positive("boundary_spread", self.boundary_spread)
        check_cutoff(self.cutoff)
        _validate.non_negative("strictness", self.strictness)
        _validate.one_of("average", self.average, AVERAGES)
        object.__setattr__(self, "learner_parameters", dict(self.learner_parameters))

    @property
    def reports(self) -> ReportDesign:
        """The first half of the round."""
        return ReportDesign(
            member_size=self.member_size,
            learner=self.learner,
            learner_parameters=self.learner_parameters,
            randomizer=self.randomizer,
            label_share=self.label_share,
            boundary_spread=self.boundary_spread,
        )

    def after(self, progress: StreamProgress) -> StreamDesign:
        """The design of the round that follows a finished one."""
        return replace(self, carried=progress.memory.to_dict(), round=self.round + 1)

    def begin(self, plan: StudyPlan) -> StreamProgress:
        """A round before its first person."""
        return StreamProgress(self, plan)


class StreamProgress(Progress):
    """A round under way."""

    def __init__(self, design: StreamDesign, plan: StudyPlan) -> None:
        require_two_classes(plan)
        design.reports.check(plan)
        self.design = design
        self.memory = Memory.from_dict(design.carried, dimension=plan.encoder.n_features)
        self.drifted = False
        self._fresh: Candidates | None = None
        self._reports: list[FloatArray] = []
        reports = max(1, round(design.training_share * plan.n_people))
        super().__init__(
            plan, [Phase("report", reports), Phase("evaluate", plan.n_people - reports)]
        )

    def tasks(self, start: int, people: int) -> Task:
        """Reports for new members, then verdicts on old and new ones."""
        if self.kind == "report":
            return self.design.reports.task(self.plan, people)
        assert self._fresh is not None
        return self._fresh.task(start, people, epsilon=self.plan.epsilon)

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Keep a report, or add a verdict to its sum."""
        if isinstance(task, VectorTask):
            self._reports.append(reply)
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
        width = self.plan.encoder.n_features + 1
        reports = np.concatenate([np.empty((0, width)), *self._reports])
        joining = train_members(
            reports,
            members=self.design.new_classifiers,
            plan=self.plan,
            design=self.design.reports,
            stream=self.design.round,
        )
        self._reports = []
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

    def state(self) -> dict[str, Any]:
        """Reports or verdicts of the present round, and the memory."""
        return {
            "phase": self.phase,
            "reports": [row for part in self._reports for row in part.tolist()],
            "memory": self.memory.to_dict(),
            "fresh": None if self._fresh is None else self._fresh.state(),
            "drifted": self.drifted,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase = int(state["phase"])
        rows = state["reports"]
        self._reports = [np.asarray(rows, dtype=np.float64)] if rows else []
        self.memory = Memory.from_dict(state["memory"], dimension=self.plan.encoder.n_features)
        self._fresh = None if state["fresh"] is None else Candidates(**state["fresh"])
        self.drifted = bool(state["drifted"])
