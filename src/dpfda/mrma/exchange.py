"""Several servers share their classifiers; each asks its own people about all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.mrma.averaging import AVERAGES, DEFAULT_STRICTNESS, check_cutoff
from dpfda.mrma.conclusion import FinalCheck, classifier, require_two_classes
from dpfda.mrma.members import Candidates, Judgement, judge
from dpfda.protocol.design import Design, Phase, Progress
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task


@dataclass(frozen=True, kw_only=True)
class ExchangeDesign(Design, name="exchange"):
    """Judge public classifiers that came from elsewhere, then reverse and average them.

    The candidates are part of the plan: whoever takes part can see what they will be asked about.
    People who already judged this server's own members may take part if both studies together stay
    within their budget: ε/2 + ε/2 (C22; 001 §6.2 read literally spends ε + ε/2).

    Attributes:
        intercepts: α of every candidate.
        coefficients: b of every candidate.
        cutoff: this server's own r0*; None is the public default (C3).
        strictness: constant c of the default cutoff.
        average: ``parameters``, ``scores``, ``probabilities`` or ``votes``.
        final_share: share of people who only judge the finished classifier.

    Example:
        >>> ExchangeDesign(intercepts=(0.0, 0.1), coefficients=((1.0,), (-1.0,))).cutoff is None
        True
    """

    intercepts: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    average: str = "parameters"
    final_share: float = 0.0

    def __post_init__(self) -> None:
        alpha = tuple(_validate.finite("intercepts", value) for value in self.intercepts)
        rows = tuple(
            tuple(_validate.finite("coefficients", value) for value in row)
            for row in self.coefficients
        )
        if not alpha or len(alpha) != len(rows) or len({len(row) for row in rows}) != 1:
            rule = "one row of equal length for each intercept"
            raise InvalidParameter("coefficients", rule, self.coefficients)
        object.__setattr__(self, "intercepts", alpha)
        object.__setattr__(self, "coefficients", rows)
        check_cutoff(self.cutoff)
        _validate.non_negative("strictness", self.strictness)
        _validate.one_of("average", self.average, AVERAGES)
        if self.final_share:
            _validate.fraction("final_share", self.final_share)

    def begin(self, plan: StudyPlan) -> ExchangeProgress:
        """A study before its first person."""
        return ExchangeProgress(self, plan)


class ExchangeProgress(Progress):
    """Shared classifiers under evaluation by one server's people."""

    def __init__(self, design: ExchangeDesign, plan: StudyPlan) -> None:
        require_two_classes(plan)
        if len(design.coefficients[0]) != plan.encoder.n_features:
            rule = f"rows of length {plan.encoder.n_features}"
            raise InvalidParameter("coefficients", rule, len(design.coefficients[0]))
        self.design = design
        self.candidates = Candidates(design.intercepts, design.coefficients)
        self._check = FinalCheck(epsilon=plan.epsilon)
        final = round(design.final_share * plan.n_people)
        super().__init__(plan, [Phase("evaluate", plan.n_people - final), Phase("check", final)])

    def tasks(self, start: int, people: int) -> Task:
        """Verdicts on the candidates in turn, then on the result."""
        if self.kind == "evaluate":
            return self.candidates.task(start, people, epsilon=self.plan.epsilon)
        return self._check.task(self.model, people)

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

    @property
    def error_estimate(self) -> Estimate | None:
        """Error of the result, from people who judged nothing else here."""
        return self._check.error()

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
