"""The first half of MRMA: reports, and the weak classifiers made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.learners import Learner, LinearModels
from dpfda.mrma.members import Candidates, intercept_shrinkage, public_members
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.tasks.vector import VectorTask

ALIASES = {"cg": "conjugate_gradient", "svm": "linear_svm"}
"""The papers' short names of learners."""

_MEMBERS_STREAM = 1 << 32
"""Number of the public random stream that draws members; phases of a study count from 0."""


@dataclass(frozen=True, kw_only=True)
class ReportDesign:
    """What is reported and which weak learner it is for; the fields of `MRMADesign`."""

    member_size: int
    learner: str
    learner_parameters: Mapping[str, Any]
    randomizer: str
    label_share: float | None
    boundary_spread: float | None

    def task(self, plan: StudyPlan, people: int) -> VectorTask:
        """Report the encoded curve and the label, both perturbed."""
        return VectorTask(
            epsilon=plan.epsilon,
            people=people,
            dimension=plan.encoder.n_features,
            randomizer=self.randomizer,
            label_share=self.label_share,
            protects=plan.protects,
        )

    def noise_variance(self, plan: StudyPlan) -> float:
        """Variance of the noise on one coordinate of a report; public."""
        if plan.protects == "labels":
            return 0.0
        middle = np.zeros((1, plan.encoder.n_features))
        return float(self.task(plan, 0).mechanism.parts[0].variance(middle)[0, 0])

    def check(self, plan: StudyPlan) -> None:
        """Refuse unknown learners, randomizers and parameters before anybody reports."""
        task = self.task(plan, 0)
        assert task.mechanism.epsilon > 0
        self.build_learner()

    def build_learner(self) -> Learner:
        """The weak learner."""
        return named_learner(self.learner, self.learner_parameters)


def named_learner(name: str, parameters: Mapping[str, Any] | None = None) -> Learner:
    """A learner by its registered name or the papers' short name.

    Example:
        >>> named_learner("cg") == named_learner("conjugate_gradient")
        True
    """
    return Learner.from_dict({"name": ALIASES.get(name, name), **(parameters or {})})


def train_members(
    reports: FloatArray, *, members: int, plan: StudyPlan, design: ReportDesign, stream: int = 0
) -> Candidates:
    """Fit `members` weak classifiers to public random subsets of the reports, all at once.

    Args:
        reports: noisy z* and noisy ±1 label, shape (N0, d + 1).
        members: B.
        plan: the study.
        design: learner and subset size.
        stream: a different number draws different subsets.
    """
    dimension = plan.encoder.n_features
    if len(reports) == 0:  # nobody answered: candidates that say nothing
        return Candidates(np.zeros(members), np.zeros((members, dimension)))
    size = min(design.member_size, len(reports))
    chosen = public_members(
        seed=plan.seed,
        phase=_MEMBERS_STREAM + stream,
        members=members,
        size=size,
        among=len(reports),
    )
    models = design.build_learner().fit(
        reports[:, :-1][chosen], reports[:, -1][chosen], gram=learner_gram(plan)
    )
    if not isinstance(models, LinearModels):
        raise InvalidParameter("learner", "linear in the encoded curve", design.learner)
    shrunk = intercept_shrinkage(
        design.noise_variance(plan), size=size, spread=design.boundary_spread
    )
    return Candidates(shrunk * np.asarray(models.intercept), np.asarray(models.coefficients))


def learner_gram(plan: StudyPlan) -> FloatArray | None:
    """Gram matrix that functional learners (Method II of 001) measure recovered curves with."""
    return plan.encoder.gram() if plan.encoder.basis.functional else None
