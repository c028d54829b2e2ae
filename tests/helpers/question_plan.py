"""Plans of the design `questions`, which no recipe makes."""

from __future__ import annotations

from typing import Any

from dpfda.curves import CurveEncoder
from dpfda.curves.waved import smooth_curves
from dpfda.protocol.plan import StudyPlan
from dpfda.questions.design import QuestionDesign


def question_plan(
    n_people: int,
    epsilon: float,
    *,
    classes: Any,
    value_range: Any = None,
    feature_ranges: Any = None,
    domain_range: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    **known: Any,
) -> StudyPlan:
    """Of curves with eight features, or of a table."""
    if value_range is None:
        encoder = CurveEncoder("identity", feature_ranges=feature_ranges)
    else:
        encoder = smooth_curves(value_range, domain_range, features=8)
    design = QuestionDesign(**{"ordered": encoder.basis.ordered, **known}).settled(encoder)
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=encoder,
        classes=tuple(sorted(classes)),
        design=design.to_dict(),
        seed=seed,
    )
