"""What the MRMA estimators share: parameters of weak classifiers, and the plan of a study."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from dpfda.curves import CurveEncoder
from dpfda.estimators.local_classifier_base import EncodedClassifier, plain_classes
from dpfda.local.mrma.averaging import DEFAULT_STRICTNESS
from dpfda.local.mrma.designs import ReportedDesign
from dpfda.local.mrma.members import DEFAULT_SPREAD
from dpfda.protocol.design import Design
from dpfda.protocol.plan import StudyPlan

D = TypeVar("D", bound=ReportedDesign)


@dataclass(eq=False, repr=False, kw_only=True)
class MRMAEstimator(EncodedClassifier):
    """Weak classifiers are made of noisy reports, and judged by people."""

    learner: str = "conjugate_gradient"
    learner_parameters: Any = None
    n_classifiers: int = 50
    member_size: int = 50
    training_share: float = 1 / 6
    boundary_spread: float | None = DEFAULT_SPREAD
    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS

    def _design(self, kind: type[D], **more: Any) -> D:
        """The design with those parameters that bear the names of its own, and `more`."""
        known = {field.name for field in fields(kind)}
        parameters = self.get_params(deep=False)
        given = {name: value for name, value in parameters.items() if name in known} | more
        given["learner_parameters"] = given["learner_parameters"] or {}
        return kind(**given)

    def _plan(
        self, encoder: CurveEncoder, n_people: int, design: Design, *, seed: int, **more: Any
    ) -> StudyPlan:
        """A study of as many people; `more` replaces what the parameters say."""
        said: dict[str, Any] = {"epsilon": self.epsilon, "encoder": encoder, "unit": self.unit}
        return StudyPlan(
            n_people=n_people,
            classes=plain_classes(self.classes_),
            design=design.to_dict(),
            seed=seed,
            **(said | more),
        )
