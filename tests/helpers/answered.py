"""Answers of many people to questions about one feature."""

from __future__ import annotations

import numpy as np

from dpfda.local.study.answers import Questions, above, mean_answers
from dpfda.local.study.posterior import Posterior


def answered(
    posterior: Posterior, truth: tuple[float, float, float], share: float, number: float = 600.0
) -> None:
    """Means as expected of so many answers of each kind at three thresholds, and of labels."""
    m, s, d = truth
    threshold, alpha = np.array([m - s, m, m + s, -np.inf]), 0.5
    ones, others = above(threshold, *map(np.array, (m, s, d, 0.0)))
    plain, labelled = share * ones + (1 - share) * others, share * ones - (1 - share) * others
    for asked in ([[1, 0]] * 3 + [[0, 0]], [[0, 1]] * 3 + [[0, 0]], [[0, 0]] * 3 + [[0, 1]]):
        count = number * np.array(asked, dtype=np.float64)
        total = alpha * count * np.column_stack([plain, labelled])
        about = Questions(np.zeros(4, np.int64), threshold, np.full(4, np.nan))
        posterior.update(mean_answers(about, count, total, alpha=alpha, expected=np.zeros((4, 2))))
