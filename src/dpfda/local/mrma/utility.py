"""The utility of noisy reports (001, Proposition 2)."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax

from dpfda import _validate
from dpfda._validate import ArrayLike
from dpfda.errors import InvalidData
from dpfda.protocol.tasks.vector import VectorTask


def report_utility(
    features: ArrayLike, labels: ArrayLike, *, epsilon: float, label_share: float | None = None
) -> float:
    """The mean of g (001, Proposition 2) over public rows; ½ if reports are uninformative.

    g(z) is the probability that the label in a report of features z agrees with the label of a
    person with features z. It depends on how ε is divided between features and label. The
    probability that a report of z comes from a person with features z' is proportional to the
    density of Laplace noise at z - z'; the row z itself is left out. In a study, the accuracies of
    members estimate the same quantity from private answers (`MRMAClassifier.result_.members()`).

    Args:
        features: encoded public or simulated rows in [-1, 1], shape (n, d).
        labels: -1 or +1 for each row.
        epsilon: the ε of a report.
        label_share: ε_y/ε; None means 1/(d + 1), as in the papers.

    Examples:
        >>> z = np.linspace(-1, 1, 200)[:, None]
        >>> [round(report_utility(z, np.sign(z[:, 0]), epsilon=e), 3) for e in (1, 5, 20)]
        [0.509, 0.656, 0.897]
    """
    rows = _validate.batch("features", features)
    signs = np.asarray(labels, dtype=np.float64)
    if signs.shape != rows.shape[:1] or len(rows) < 2 or not (np.abs(signs) == 1).all():
        raise InvalidData("labels", "-1 or +1 for each of two rows or more", f"shape {signs.shape}")
    size = rows.shape[1]
    task = VectorTask(epsilon=epsilon, people=1, dimension=size, label_share=label_share)
    of_features, of_label = (part.epsilon for part in task.mechanism.parts)
    # Laplace noise of scale 2d/ε_z on each of d numbers.
    likely = -of_features / (2 * size) * cdist(rows, rows, "cityblock")
    np.fill_diagonal(likely, -np.inf)
    shown = softmax(likely, axis=1) @ signs
    return float(0.5 + 0.5 * math.tanh(of_label / 2) * np.mean(signs * shown))
