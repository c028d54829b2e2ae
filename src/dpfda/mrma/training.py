"""The first half of MRMA: reports, and the weak classifiers made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from dpfda._validate import FloatArray
from dpfda.learners import Learner
from dpfda.mrma.designs import ReportedDesign
from dpfda.mrma.exchange import JudgedProgress
from dpfda.mrma.members import Candidates, intercept_shrinkage, public_members
from dpfda.protocol.findings import Phase
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask

_MEMBERS_STREAM = 1 << 32
"""Number of the public random stream that draws members; phases of a study count from 0."""


D = TypeVar("D", bound=ReportedDesign)


def design_of(kind: type[D], parameters: Mapping[str, Any], **more: Any) -> D:
    """The design with those of an estimator's parameters that bear the names of its own."""
    known = {field.name for field in fields(kind)}
    given = {name: value for name, value in parameters.items() if name in known} | more
    given["learner_parameters"] = given["learner_parameters"] or {}
    return kind(**given)


class ReportedProgress(JudgedProgress):
    """Reports are kept until weak classifiers are made of them; people judge those.

    Unknown learners, mechanisms and parameters are refused before anybody reports.
    """

    design: ReportedDesign

    def __init__(
        self,
        design: ReportedDesign,
        plan: StudyPlan,
        judging: Sequence[Phase],
        *,
        epsilon: float,
        groups: int = 1,
    ) -> None:
        self.design = design
        self._reports: list[FloatArray] = []
        self._learner = Learner.from_dict({"name": design.learner, **design.learner_parameters})
        reports = shared(design.n_reports(plan.n_people), groups)
        phases = [*(Phase("report", people) for people in reports), *judging]
        super().__init__(plan, phases, epsilon=epsilon)
        report = self._ask("vector", 0)
        assert isinstance(report, VectorTask)
        of_curves, nowhere = report.mechanism.parts[0], np.zeros((1, report.dimension))
        # Of the noise on one coordinate of a report; public.
        self._variance = 0.0
        if report.protects != "labels":
            self._variance = float(of_curves.variance(nowhere)[0, 0])

    def tasks(self, start: int, people: int) -> Task:
        """Reports first, then verdicts."""
        if self.kind == "report":
            return self._ask("vector", people)
        return super().tasks(start, people)

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Keep noisy z* and noisy ±1 label, shape (n, d + 1), or add a verdict to its sum."""
        if isinstance(task, VectorTask):
            self._reports.append(reply)
        else:
            super().absorb(task, reply)

    def _fit(self, count: int, *, stream: int = 0) -> Candidates:
        """`count` weak classifiers of public random subsets, all at once; forget the reports.

        A different `stream` draws different subsets.
        """
        dimension = self.plan.encoder.n_features
        reports = np.concatenate([np.empty((0, dimension + 1)), *self._reports])
        self._reports = []
        if len(reports) == 0:  # nobody answered: candidates that say nothing
            return Candidates(np.zeros(count), np.zeros((count, dimension)))
        size = min(self.design.member_size, len(reports))
        chosen = public_members(
            seed=self.plan.seed,
            phase=_MEMBERS_STREAM + stream,
            members=count,
            size=size,
            among=len(reports),
        )
        models = self._learner.fit(
            reports[:, :-1][chosen], reports[:, -1][chosen], gram=learner_gram(self.plan)
        )
        spread = self.design.boundary_spread
        shrunk = intercept_shrinkage(self._variance, size=size, spread=spread)
        return Candidates(shrunk * np.asarray(models.intercept), np.asarray(models.coefficients))

    def state(self) -> dict[str, Any]:
        """Reports of an unfinished first phase, or members and sums."""
        reports = [row for part in self._reports for row in part.tolist()]
        return super().state() | {"reports": reports}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        rows = state["reports"]
        self._reports = [np.asarray(rows, dtype=np.float64)] if rows else []


def shared(number: int, parts: int) -> list[int]:
    """Sizes of groups that differ by at most one."""
    return [number // parts + (part < number % parts) for part in range(parts)]


def learner_gram(plan: StudyPlan) -> FloatArray | None:
    """Gram matrix that functional learners (Method II of 001) measure recovered curves with."""
    return plan.encoder.gram() if plan.encoder.basis.functional else None
