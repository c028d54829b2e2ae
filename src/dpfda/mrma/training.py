"""The first half of MRMA: reports, and the weak classifiers made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from dpfda._validate import FloatArray
from dpfda.learners import Learner
from dpfda.mrma.designs import ReportedDesign
from dpfda.mrma.members import Candidates, intercept_shrinkage, public_members
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask

ALIASES = {"cg": "conjugate_gradient", "svm": "linear_svm"}
"""The papers' short names of learners."""

_MEMBERS_STREAM = 1 << 32
"""Number of the public random stream that draws members; phases of a study count from 0."""


def check_training(design: ReportedDesign, report: Task) -> float:
    """Refuse unknown learners, randomizers and parameters before anybody reports.

    Returns:
        The variance of the noise on one coordinate of a report; public.
    """
    named_learner(design.learner, design.learner_parameters)
    assert isinstance(report, VectorTask)
    randomizer = report.mechanism.parts[0]
    if report.protects == "labels":
        return 0.0
    return float(randomizer.variance(np.zeros((1, report.dimension)))[0, 0])


D = TypeVar("D", bound=ReportedDesign)


def design_of(kind: type[D], parameters: Mapping[str, Any], **more: Any) -> D:
    """The design with those of an estimator's parameters that bear the names of its own."""
    known = {field.name for field in fields(kind)}
    given = {name: value for name, value in parameters.items() if name in known} | more
    given["learner"] = ALIASES.get(given["learner"], given["learner"])
    given["learner_parameters"] = given["learner_parameters"] or {}
    return kind(**given)


def named_learner(name: str, parameters: Mapping[str, Any] | None = None) -> Learner:
    """A learner by its registered name or the papers' short name.

    Example:
        >>> named_learner("cg") == named_learner("conjugate_gradient")
        True
    """
    return Learner.from_dict({"name": ALIASES.get(name, name), **(parameters or {})})


def train_members(
    reports: FloatArray,
    *,
    members: int,
    plan: StudyPlan,
    design: ReportedDesign,
    noise_variance: float,
    stream: int = 0,
) -> Candidates:
    """Fit `members` weak classifiers to public random subsets of the reports, all at once.

    Args:
        reports: noisy z* and noisy ±1 label, shape (N0, d + 1).
        members: B.
        plan: the study.
        design: learner and subset size.
        noise_variance: of one coordinate of a report.
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
    models = named_learner(design.learner, design.learner_parameters).fit(
        reports[:, :-1][chosen], reports[:, -1][chosen], gram=learner_gram(plan)
    )
    shrunk = intercept_shrinkage(noise_variance, size=size, spread=design.boundary_spread)
    return Candidates(shrunk * np.asarray(models.intercept), np.asarray(models.coefficients))


def learner_gram(plan: StudyPlan) -> FloatArray | None:
    """Gram matrix that functional learners (Method II of 001) measure recovered curves with."""
    return plan.encoder.gram() if plan.encoder.basis.functional else None
