"""MRMA as a study: some people report, others judge what was learnt from the reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.mrma.averaging import AVERAGES, DEFAULT_STRICTNESS, check_cutoff
from dpfda.mrma.conclusion import FinalCheck, classifier, require_two_classes, unknown_model
from dpfda.mrma.members import DEFAULT_SPREAD, Candidates, Judgement, judge
from dpfda.mrma.training import ReportDesign, train_members
from dpfda.protocol.design import Design, Phase, Progress
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask


@dataclass(frozen=True, kw_only=True)
class MRMADesign(Design, name="mrma"):
    """Model reversal and model averaging (000 and 001, Algorithm 1), for two classes.

    Attributes:
        n_classifiers: B, how many weak classifiers.
        member_size: n0, how many reports each of them is made of, drawn without replacement.
        learner: registered name of the weak learner; it must be linear.
        learner_parameters: its parameters.
        training_share: share of people who report; the others judge.
        randomizer: registered name of the randomizer of encoded curves.
        label_share: ε_y/ε of a report; None is the papers' 1/(d+1).
        boundary_spread: how far from the middle of the encoded box a good boundary is expected;
            noisy intercepts are shrunk accordingly (`intercept_shrinkage`). None: as fitted.
        verdict_share: ε_v/ε of a verdict; below 1 where the same people answer another study.
        cutoff: a fixed r0; None is the public default (C3).
        strictness: constant c of the default cutoff.
        average: ``parameters``, ``scores``, ``probabilities`` or ``votes``.
        final_share: share of people who only judge the finished classifier.

    Example:
        >>> MRMADesign(n_classifiers=24, cutoff=0.9).to_dict()["n_classifiers"]
        24
    """

    n_classifiers: int = 50
    member_size: int = 50
    learner: str = "conjugate_gradient"
    learner_parameters: Mapping[str, Any] = field(default_factory=dict)
    training_share: float = 1 / 6
    randomizer: str = "laplace"
    label_share: float | None = None
    boundary_spread: float | None = DEFAULT_SPREAD
    verdict_share: float = 1.0
    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    average: str = "parameters"
    final_share: float = 0.0

    def __post_init__(self) -> None:
        _validate.whole("n_classifiers", self.n_classifiers)
        _validate.whole("member_size", self.member_size, least=2)
        _validate.fraction("training_share", self.training_share)
        if self.verdict_share != 1:
            _validate.fraction("verdict_share", self.verdict_share)
        if self.boundary_spread is not None:
            _validate.positive("boundary_spread", self.boundary_spread)
        check_cutoff(self.cutoff)
        _validate.non_negative("strictness", self.strictness)
        _validate.one_of("average", self.average, AVERAGES)
        if self.final_share:
            _validate.fraction("final_share", self.final_share)
            if self.average in ("probabilities", "votes"):
                rule = "'parameters' or 'scores' where final_share is given"
                raise InvalidParameter("average", rule, self.average)
        if self.training_share + self.final_share >= 1:
            rule = "below 1 together with training_share, so that somebody judges"
            raise InvalidParameter("final_share", rule, self.final_share)
        object.__setattr__(self, "learner_parameters", dict(self.learner_parameters))

    @property
    def reports(self) -> ReportDesign:
        """The first half of the study."""
        return ReportDesign(
            member_size=self.member_size,
            learner=self.learner,
            learner_parameters=self.learner_parameters,
            randomizer=self.randomizer,
            label_share=self.label_share,
            boundary_spread=self.boundary_spread,
        )

    def phases(self, n_people: int) -> list[Phase]:
        """How many people report, judge members, and judge the result."""
        reports = max(1, round(self.training_share * n_people))
        final = round(self.final_share * n_people)
        return [
            Phase("report", reports),
            Phase("evaluate", max(0, n_people - reports - final)),
            Phase("check", final),
        ]

    def begin(self, plan: StudyPlan) -> MRMAProgress:
        """A study before its first person."""
        return MRMAProgress(self, plan)


class MRMAProgress(Progress):
    """An MRMA study under way: reports until members are made of them, then sums of verdicts."""

    def __init__(self, design: MRMADesign, plan: StudyPlan) -> None:
        require_two_classes(plan)
        self.design = design
        self.candidates: Candidates | None = None
        self._reports: list[FloatArray] = []
        self._verdict_epsilon = plan.epsilon * design.verdict_share
        self._check = FinalCheck(epsilon=self._verdict_epsilon)
        design.reports.check(plan)
        super().__init__(plan, design.phases(plan.n_people))

    # -- asking and listening -------------------------------------------------------------------

    def tasks(self, start: int, people: int) -> Task:
        """Reports first, then verdicts on members, then on the finished classifier."""
        if self.kind == "report":
            return self.design.reports.task(self.plan, people)
        assert self.candidates is not None
        if self.kind == "evaluate":
            return self.candidates.task(start, people, epsilon=self._verdict_epsilon)
        return self._check.task(self.model, people)

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
            reports, members=self.design.n_classifiers, plan=self.plan, design=self.design.reports
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

    @property
    def error_estimate(self) -> Estimate | None:
        """Error of the finished classifier, from people who judged nothing else; None without."""
        return self._check.error()

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
