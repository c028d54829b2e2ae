"""From judged candidates to the classifier that is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda.mrma.members import Candidates, Judgement
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan


def classifier(candidates: Candidates, judgement: Judgement, *, plan: StudyPlan) -> CurveModel:
    """Σ w_b f*_b over unit-norm candidates: members are linear, so it is one linear rule."""
    intercept, slopes = candidates.averaged(judgement.signed_weight)
    return CurveModel.linear(intercept=intercept[None], coefficients=slopes[None, :], **plan.stamp)


def unknown_model(plan: StudyPlan) -> CurveModel:
    """The classifier before anybody said anything: always ``classes[1]``."""
    return CurveModel.linear(
        intercept=np.zeros(1), coefficients=np.zeros((1, plan.encoder.n_features)), **plan.stamp
    )


@dataclass(frozen=True, kw_only=True)
class MRMAFindings(Findings):
    """What people said about members.

    Attributes:
        candidates: the members and the sums of their verdicts; None before there are any.
        judgement: what follows for each.
    """

    candidates: Candidates | None = None
    judgement: Judgement | None = None

    def members(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row a member: accuracy as made, with its interval, reversal and weight."""
        return [] if self.judgement is None else self.judgement.table(level)

    @property
    def judged(self) -> tuple[Candidates, Judgement]:
        """Members and judgement of a study that got so far."""
        assert self.candidates is not None
        assert self.judgement is not None
        return self.candidates, self.judgement
