"""A study of two classes from public facts."""

from __future__ import annotations

from typing import Any

from dpfda.curves import CurveEncoder
from dpfda.curves.waved import smooth_curves
from dpfda.local.study.design import AnswersDesign
from dpfda.protocol.plan import Label, StudyPlan

_FEATURES = 12
"""Of a curve: answers find out which of them matter."""


def plan_answers(
    n_people: int,
    epsilon: float,
    *,
    classes: tuple[Label, Label],
    value_range: Any = None,
    feature_ranges: Any = None,
    domain_range: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    title: str = "",
    **known: Any,
) -> StudyPlan:
    """A plan of yes-or-no answers about curves, or rows of a table.

    Args:
        n_people: how many take part.
        epsilon: what each of them spends, once.
        classes: both labels.
        value_range: of curves, the public (low, high) of x(t), or one pair a channel; it may
            be far too wide.
        feature_ranges: of a table instead, as `CurveEncoder` takes them.
        domain_range: public (start, end) of t.
        seed: of the study's public randomness.
        title: for people to read.
        known: what else `AnswersDesign` takes.

    Examples:
        >>> plan = plan_answers(3000, 1.0, classes=("no", "yes"), value_range=(40, 200))
        >>> plan.design["name"], plan.encoder.n_features
        ('answers', 12)
    """
    if value_range is None:
        encoder = CurveEncoder("identity", feature_ranges=feature_ranges)
    else:
        encoder = smooth_curves(value_range, domain_range, features=_FEATURES)
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=encoder,
        classes=tuple(classes),
        design=AnswersDesign(**known).settled(encoder).to_dict(),
        seed=seed,
        title=title,
    )
