"""The distance of a feature from its center, as a further feature: a public map of z*.

Classes whose means are the same and whose spreads differ are told apart by |z - m|, the distance
from the middle m, by the same yes/no questions, vectors and linear rules as others are by z. It
does what centered squares do, and no single far value outweighs all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.protocol.fields import array
from dpfda.protocol.query import Records
from dpfda.protocol.task import Task


def folded(features: FloatArray, folds: FloatArray) -> FloatArray:
    """The first f features, then their distances from the folds m_1, ..., m_f; all, without folds.

    Examples:
        >>> folded(np.array([[0.5, -0.2, 0.9]]), np.array([0.1, 0.0]))
        array([[ 0.5, -0.2,  0.4,  0.2]])
        >>> folded(np.array([[0.5, -0.2, 0.9]]), np.zeros(0))
        array([[ 0.5, -0.2,  0.9]])
    """
    if not len(folds):
        return features
    own = features[..., : len(folds)]
    return np.concatenate([own, np.abs(own - folds)], axis=-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldedTask(Task):
    """A task about features that may be distances from a middle, too.

    Privacy:
        The map is public and made before the task's mechanism, which takes any features.

    Attributes:
        folds: middles of the first f features; where there are any, `folded` ones are asked about.
    """

    folds: FloatArray = array("real", "f", least=-1, most=1, default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.folds) and self.looks_at > 2 * len(self.folds):
            rule = f"left out, or enough for {self.looks_at} features and distances"
            raise InvalidParameter("folds", rule, f"{len(self.folds)} of them")

    @property
    def looks_at(self) -> int:
        """Number of features and distances that a task needs."""
        return self.sizes["dimension"]

    @property
    def columns(self) -> int:
        """Number of features from which those are computed."""
        return len(self.folds) or self.looks_at

    def fitting(self, records: Records) -> Records:
        """Features in the box, and how far they are from the folds."""
        features, labels = super().fitting(records)
        return folded(features, self.folds), labels
