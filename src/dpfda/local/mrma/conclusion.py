"""From judged candidates to the classifier that is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.mrma.members import Candidates, Judgement
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan


def classifier(
    candidates: Candidates,
    judgement: Judgement,
    *,
    plan: StudyPlan,
    sides: FloatArray | None = None,
) -> CurveModel:
    """Σ w_b f*_b over unit-norm candidates: members are linear, so it is one linear rule.

    Args:
        candidates: the members.
        judgement: what people said of them.
        plan: of the study.
        sides: of several classes, +1 where a class is in the half that a member is about and -1
            elsewhere, shape (B, K); a class scores the sum with these signs.
    """
    weight = judgement.signed_weight
    intercept, slopes = candidates.averaged(weight if sides is None else weight * sides.T)
    return CurveModel.linear(
        intercept=np.atleast_1d(intercept), coefficients=np.atleast_2d(slopes), **plan.stamp
    )


def unknown_model(plan: StudyPlan) -> CurveModel:
    """The classifier before anybody said anything: ``classes[1]`` of two, else ``classes[0]``."""
    nothing = np.zeros((plan.n_scores, plan.encoder.n_features))
    return CurveModel.linear(intercept=nothing[:, 0], coefficients=nothing, **plan.stamp)


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
