"""Answers of many people to questions about one feature."""

from __future__ import annotations

import numpy as np

from dpfda.local.study.answers import Answers, Questions, above, label_answers, single_answers
from dpfda.local.study.posterior import Posterior


def answered(
    posterior: Posterior, truth: tuple[float, float, float], share: float, number: float = 600.0
) -> None:
    """Means as expected of so many answers of each kind at three thresholds, and of labels."""
    m, s, d = truth
    threshold = np.array([m - s, m, m + s])
    ones, others = above(threshold, *map(np.array, (m, s, d, 0.0)))
    feature, asked, alpha = np.zeros(3, np.int64), np.full(3, number), 0.5
    for joined, mean in (
        (False, share * ones + (1 - share) * others),
        (True, share * ones - (1 - share) * others),
    ):
        told = single_answers(
            Questions(feature, threshold, np.full(3, np.nan)), alpha * number * mean, asked,
            alpha=alpha, expected=np.zeros(3), labelled=joined,
        )  # fmt: skip
        posterior.update(told, [])
    total = alpha * number * (2 * share - 1)
    none = Answers.none()
    posterior.update(none, [label_answers(total, number, alpha=alpha, expected=0.0)])
