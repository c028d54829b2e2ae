"""Weak learners that fit a whole batch of small training sets at once.

`Learner` is the family; one file holds one learner, registered by name:

    >>> sorted(Learner.members())
    ['conjugate_gradient', 'dwd', 'linear_svm', 'logistic', 'nearest_centroid']
    >>> import numpy as np
    >>> features = np.array([[[0.0], [1.0], [3.0], [4.0]]] * 2)  # two members, the same rows
    >>> models = Learner.named("nearest_centroid")().fit(features, [[-1, -1, 1, 1], [1, 1, -1, -1]])
    >>> models.scores([[2.5]]) > 0
    array([[ True],
           [False]])
"""

from dpfda._registry import discover
from dpfda.local.mrma.learners.base import Learner, LinearModels

discover(__name__, __path__)

__all__ = ["Learner", "LinearModels"]
