"""A study of two classes from public facts."""

from __future__ import annotations

import math
from typing import Any

from dpfda import _validate
from dpfda.curves import CurveEncoder
from dpfda.local.study.design import AnswersDesign
from dpfda.protocol.plan import Label, StudyPlan

_FEATURES = 12
"""Of a curve: answers find out which of them matter."""


def plan_answers(
    n_people: int,
    epsilon: float,
    *,
    classes: tuple[Label, Label],
    value_range: tuple[float, float] | None = None,
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
        value_range: of curves, the public (low, high) of x(t). It may be far too wide.
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
        low, high = _validate.interval("value_range", value_range)
        start, end = _validate.interval("domain_range", domain_range)
        # |x(t)| ≤ R bounds every coefficient on an orthonormal basis by R √(end - start).
        stretch = math.sqrt(end - start)
        encoder = CurveEncoder(
            "cosine",
            n_basis=_FEATURES,
            domain_range=(start, end),
            rescale="clip",
            center=[(low + high) / 2 * stretch] + [0.0] * (_FEATURES - 1),
            scale=(high - low) / 2 * stretch,
        )
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=encoder,
        classes=tuple(classes),
        design=AnswersDesign(**known).settled(encoder).to_dict(),
        seed=seed,
        title=title,
    )
