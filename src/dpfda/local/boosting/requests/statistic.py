"""Local statistic: cross tables of classes and sides of public thresholds (004, Algorithm 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.local.boosting.owner_rows import OwnerRows
from dpfda.local.boosting.requests.share import ShareRequest
from dpfda.local.boosting.weak_rules import StumpRule
from dpfda.protocol.fields import array


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticRequest(ShareRequest, name="statistic"):
    """For each public threshold: the mean weight of each class on either side of it.

    With two classes the difference of the two is enough. Tables are divided by the public `cap`, or
    by the owner's mean weight where that is larger, so entries lie in [-1, 1] (C17).

    Privacy:
        ε-LDP for everything the owner holds.

    Attributes:
        thresholds: on the scaled features, shape (d, T).
    """

    room: ClassVar[float] = 1.0

    thresholds: FloatArray = array("real", "dimension", "cuts", least=-2, most=2)

    @property
    def sent(self) -> int:
        """Scores × 2 sides × thresholds."""
        return self.scores * 2 * self.thresholds.size

    def weighted(self, rows: OwnerRows) -> tuple[FloatArray, FloatArray]:
        """The bound is on an owner's mean weight: single rows may weigh more."""
        inside, weights = self.ensemble.prepared(rows, cap=1.0)
        mean = weights.sum(axis=1) / rows.sizes
        return inside, weights / np.maximum(mean, self.cap)[:, None]

    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """Mean signed weight on either side of every threshold."""
        if self.n_classes == 2:
            signed = (weights * (2 * labels - 1))[..., None]
        else:
            signed = weights[..., None] * (labels[..., None] == np.arange(self.n_classes))
        present = np.maximum((weights > 0).sum(axis=1), 1)[:, None, None]
        total = signed.sum(axis=1)[:, :, None] / present
        above, signs = [], np.swapaxes(signed, 1, 2)
        for cut in range(self.thresholds.shape[1]):
            side = (inside >= self.thresholds[:, cut]).astype(np.float64)
            above.append(signs @ side / present)
        over = np.stack(above, axis=3)  # (H, S, d, T)
        return np.stack([total[..., None] - over, over], axis=2).reshape(len(labels), -1)

    def base_learner(self, mean: FloatArray) -> StumpRule:
        """The threshold that separates best, with the leaf classes of the same table."""
        table = mean.reshape(self.scores, 2, *self.thresholds.shape)
        if self.n_classes == 2:
            below, above = table[0]
            worth = np.abs(below) + np.abs(above)  # φ of Eq. (8)
        else:
            below, above = table[:, 0], table[:, 1]
            worth = below.max(axis=0) + above.max(axis=0)
        j, t = np.unravel_index(np.argmax(worth), worth.shape)
        return StumpRule(
            feature=int(j),
            threshold=float(self.thresholds[j, t]),
            **self._leaves(below[..., j, t], above[..., j, t]),
        )

    def _leaves(self, below: FloatArray, above: FloatArray) -> dict[str, int]:
        if self.n_classes > 2:
            return {"below": int(below.argmax()), "above": int(above.argmax())}
        left, right = int(below >= 0), int(above >= 0)
        if left == right:  # a constant rule teaches nothing: go by the contrast
            right = int(above >= below)
            left = 1 - right
        return {"below": left, "above": right}

    @classmethod
    def example_fields(cls, **fields: Any) -> dict[str, Any]:
        """Two thresholds for each of two features."""
        return super().example_fields(thresholds=[[-0.2, 0.3]] * 2, **fields)
