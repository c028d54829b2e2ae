"""The regression design: a number instead of a label, in one column beside the features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpfda._validate import IntArray
from dpfda.errors import InvalidParameter
from dpfda.linear.design import LENGTHS, FeatureDesign
from dpfda.linear.regression_schedule import RegressionSchedule
from dpfda.linear.reports import effective_people
from dpfda.mechanisms.question_response import best_questions
from dpfda.protocol.design import Terms
from dpfda.protocol.plan import StudyPlan
from dpfda.questions import ranging, sizes

_RANGED = {"answers": 60.0, "most": 0.33}  # a target's place need not be known so well


@dataclass(frozen=True, kw_only=True)
class RegressionDesign(FeatureDesign, name="local_regression"):
    """Find where target and features lie, then how the target goes with the features.

    The target is the first column of what people hold, so that all questions about features can be
    asked about it too, and every vector may be made of both.

    Attributes:
        range_is_loose: target and features may lie anywhere in their public ranges and be far
            narrower, so that the first people say where.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> design = RegressionDesign().settled(CurveEncoder("cosine", n_basis=3))
        >>> design.ordered, design.reaches
        (True, (1.0, 1.0, 0.5))
    """

    predicts_numbers: ClassVar[bool] = True

    range_is_loose: bool = False

    def channels(self, plan: StudyPlan) -> list[IntArray]:
        """What the first people are asked about where ranges are loose: target, curves' channels.

        Columns of a table are not among them: each has a place of its own, and is asked about next.
        """
        curves = ranging.channels(plan.encoder) if plan.encoder.basis.functional else []
        return [np.zeros(1, dtype=np.int64), *(1 + own for own in curves)]

    def ranged(self, plan: StudyPlan) -> int:
        """How many people say where target and curves lie."""
        if not self.range_is_loose:
            return 0
        effective = effective_people(plan.n_people, plan.epsilon)
        share = sizes.range_share(effective, channels=len(self.channels(plan)), **_RANGED)
        return int(share * plan.n_people)

    def schedule(self, plan: StudyPlan) -> RegressionSchedule:
        """The phases and their sizes."""
        judges = self.judges(plan)
        return RegressionSchedule(
            people=plan.n_people - judges - self.ranged(plan),
            epsilon=plan.epsilon,
            columns=1 + len(self.half_widths(plan)),
            judges=judges,
            loose=self.range_is_loose and not plan.encoder.basis.functional,
        )

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single columns, vectors, and how far the finished model is off.

        Each of them protects curve and target, whatever the plan promises.
        """
        basis = plan.encoder.basis
        if self.range_is_loose and basis.functional and not basis.ordered:
            rule = "False but for curves on waves, or tables"
            raise InvalidParameter("range_is_loose", rule, True)
        columns = 1 + len(self.half_widths(plan))
        k = best_questions(plan.epsilon, most=columns)
        width = ranging.waves(self.channels(plan)).shape[1]
        reach = {"k": k, "coordinates": range(1 + plan.encoder.n_features), "w": width}
        return {
            **({"reach": reach} if self.range_is_loose and width else {}),
            "stump": {
                "k": k,
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
