"""What the MRMA estimators share: parameters of weak classifiers, and the plan of a study."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpfda.face.curve_classifier import CurveClassifierBase, plain_classes
from dpfda.face.curves import count_rows
from dpfda.mrma.averaging import DEFAULT_STRICTNESS
from dpfda.mrma.members import DEFAULT_SPREAD
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.design import Design
from dpfda.protocol.plan import StudyPlan


@dataclass(eq=False, repr=False)
class MRMAEstimator(CurveClassifierBase):
    """Weak classifiers are made of noisy reports, and judged by people."""

    encoder: Any = None
    _: KW_ONLY
    epsilon: float = 1.0
    learner: str = "cg"
    learner_parameters: Any = None
    n_classifiers: int = 50
    member_size: int = 50
    training_share: float = 1 / 6
    boundary_spread: float | None = DEFAULT_SPREAD
    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    classes: Any = None
    ledger: BaseLedger | None = None
    random_state: int | None = None

    def _read(self, curves: Any, labels: Any, *, reset: bool = True) -> tuple[Any, Any]:
        """Curves and as many labels."""
        curves = self._read_curves(curves, reset=reset)
        return curves, self._read_labels(labels, count_rows(curves))

    def _plan(self, n_people: int, design: Design, *, seed: int, **more: Any) -> StudyPlan:
        """A study of as many people; `more` replaces what the parameters say."""
        said: dict[str, Any] = {"epsilon": self.epsilon, "encoder": self._encoder()}
        return StudyPlan(
            n_people=n_people,
            classes=plain_classes(self.classes_),
            design=design.to_dict(),
            seed=seed,
            **(said | more),
        )
