"""The regression design: a number instead of a label, in one column beside the features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from dpfda.linear.design import LENGTHS, FeatureDesign
from dpfda.linear.regression_schedule import RegressionSchedule
from dpfda.mechanisms.question_response import best_questions
from dpfda.protocol.design import Terms
from dpfda.protocol.plan import StudyPlan


@dataclass(frozen=True, kw_only=True)
class RegressionDesign(FeatureDesign, name="local_regression"):
    """Find where target and features lie, then how the target goes with the features.

    The target is the first column of what people hold, so that all questions about features can be
    asked about it too, and every vector may be made of both.

    Example:
        >>> from dpfda.curves import CurveEncoder
        >>> design = RegressionDesign().settled(CurveEncoder("cosine", n_basis=3))
        >>> design.ordered, design.reaches
        (True, (1.0, 1.0, 0.5))
    """

    predicts_numbers: ClassVar[bool] = True

    def schedule(self, plan: StudyPlan) -> RegressionSchedule:
        """The phases and their sizes."""
        judges = self.judges(plan)
        return RegressionSchedule(
            people=plan.n_people - judges,
            epsilon=plan.epsilon,
            columns=1 + len(self.half_widths(plan)),
            judges=judges,
        )

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single columns, vectors, and how far the finished model is off.

        Each of them protects curve and target, whatever the plan promises.
        """
        columns = 1 + len(self.half_widths(plan))
        return {
            "stump": {
                "k": best_questions(plan.epsilon, most=columns),
                "coordinates": range(columns),
                "positive": 1,
                "uses_label": False,
            },
            "summary": {
                "classes": 1,
                "d": columns,
                "q": range(1, columns + 1),
                "statistic": ("products", "cross"),
                "clip": self.schedule(plan).clip,
                "c": 1,
                "w": range(1, columns + 1),
                "t": 1,
                "reach": LENGTHS,
                "limit": LENGTHS,
            },
            "evaluation": {"dimension": columns, "clipped": True, "m": 3},
        }
