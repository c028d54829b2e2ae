"""How sure a finished classifier may be: one number, fixed by some people who answer privately.

A classifier whose scores are right but for a factor T has chances that are too large or too small.
People say, through a `ConfidenceTask`, how far the mean of its largest chance is from how often it
is right; each batch moves T to where both would agree, by as much as its answers can be believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mechanisms.question_response import QuestionResponse, best_questions
from dpfda.protocol.design import Terms
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan

BATCHES = 4
"""Each is asked about what those before found."""

_QUESTIONS = 4  # to one person at most
_PRIOR = 0.5**2  # of log T: as on adult, diabetes, phishing, phoneme and the simulation of 001
_REACTION = 0.15  # how much the mean chance rises by log T; there it is 0.03 to 0.25
_FURTHEST = 2.0
_FACTORS = range(10**6 + 1)  # any: what scores are multiplied by costs nobody anything


class Temperature(NamedTuple):
    """What is believed of log T: scores are multiplied by T before they become chances.

    Examples:
        >>> Temperature(mean=-0.5).factor.__round__(2)
        0.61
    """

    mean: float = 0.0
    variance: float = _PRIOR

    @property
    def factor(self) -> float:
        """T."""
        return math.exp(self.mean)

    def told(self, total: float, *, people: int, plan: StudyPlan) -> Temperature:
        """After randomized answers of so many people, that add up to `total`."""
        if not people:
            return self
        questions = confidence_questions(plan)
        alpha = QuestionResponse(epsilon=plan.epsilon, questions=questions).truth_probability
        answers = people * questions
        low, high = reach(plan.n_classes)
        half = (high - low) / 2
        # The mean of sgn(v - U) for U uniform on [low, high] is (v - middle)/half.
        off = half * total / answers / alpha + (high + low) / 2
        noise = (half / alpha / _REACTION) ** 2 / answers
        kept = self.variance / (self.variance + noise)
        mean = self.mean + kept * off / _REACTION
        return Temperature(min(max(mean, -_FURTHEST), _FURTHEST), (1 - kept) * self.variance)


def reach(classes: int) -> tuple[float, float]:
    """Where 1{right} - largest chance can lie.

    Examples:
        >>> reach(2)
        (-1.0, 0.5)
    """
    return -1.0, 1 - 1 / classes


def confidence_questions(plan: StudyPlan) -> int:
    """How many one person answers."""
    return best_questions(plan.epsilon, most=_QUESTIONS)


def asks_confidence(
    design: Any, plan: StudyPlan, *, dimension: int, folds: int = 0
) -> Mapping[str, Terms]:
    """What may be asked of the finished classifier's chances, if anybody is asked at all."""
    if not design.temperature_share:
        return {}
    terms = {"dimension": dimension, "known": dimension + 1, "clipped": True, "m": plan.n_scores}
    terms["f"] = folds
    return {"confidence": terms | {"k": confidence_questions(plan), "damping": _FACTORS}}


def asked(model: CurveModel, uniforms: FloatArray) -> dict[str, Any]:
    """The fields of a task about a model, for people with these public uniforms (n, k)."""
    low, high = reach(len(model.classes))
    assert model.variances is not None
    shape = (len(uniforms), *model.variances.shape)
    return model.rows(len(uniforms)) | {
        "variances": np.broadcast_to(model.variances, shape),
        "damping": model.damping,
        "dithers": low + (high - low) * uniforms,
    }
