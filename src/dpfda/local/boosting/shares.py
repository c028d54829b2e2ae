"""The requests for weak rules: local sample and local statistic (004, Algorithms 5 and 6).

Local sample: every row is perturbed, and class centroids are estimated. Local statistic: tables of
classes and sides of public thresholds are perturbed. Rows are weighted by the current ensemble, and
replies go through a mechanism for the box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.ensemble import CentroidRule, Ensemble, StumpRule
from dpfda.local.boosting.request import OwnerRows, Request
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.composed import Repeated
from dpfda.noise import Source
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import LABELS_ARE_PUBLIC
from dpfda.protocol.fields import array, choice, number, part
from dpfda.protocol.query import Answer, Records
from dpfda.protocol.task import box_mechanisms


def require_vote_for(request: Request, vote: Ensemble) -> None:
    """Refuse an ensemble whose features or classes differ from those of the request."""
    if (vote.columns, vote.classes) != (request.dimension, request.n_classes):
        raise InvalidParameter(
            "ensemble", f"for {request.dimension} columns and {request.n_classes} classes", "others"
        )


def example_fields(**fields: Any) -> dict[str, Any]:
    """Two features, two rows per owner, during a study; for checks and audits."""
    vote = Ensemble.empty([(-1.0, 1.0)] * 2, classes=2)
    vote = vote.joined(StumpRule(feature=0, threshold=0.1, below=0, above=1), alpha=0.7)
    common = {"epsilon": 1.0, "people": 1, "dimension": 2, "n_classes": 2, "n_rows": 2}
    return common | {"ensemble": vote, "cap": 0.9} | fields


def box_mechanism(name: str, *, epsilon: float, dimension: int) -> Mechanism:
    """A registered mechanism of vectors in [-1, 1]^s (004, Algorithm 4)."""
    return Mechanism.from_dict({"name": name, "epsilon": epsilon, "dimension": dimension})


def scores(classes: int) -> int:
    """The number of scores: 1 for two classes, otherwise one per class."""
    return 1 if classes == 2 else classes


def largest_variance(mechanism: Mechanism, size: int) -> float:
    """The largest variance of an entry if all entries are 0."""
    return float(mechanism.variance(np.zeros((1, size))).max())


_LEAST_SHARE = 0.02  # of the total weight: the least weight of a class, because of noise


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleRequest(Request, name="sample"):
    """Each of N rows is a table of classes × (features, 1), times its weight, and sent with ε/N.

    An owner with fewer than N rows repeats them in turn, so that all owners send N.

    Privacy:
        ε-LDP for the owner, and ε/N for a row that is sent once. Before perturbation, only entries
        of the row's class differ from 0, and all entries are perturbed. The label and the weight
        are therefore protected (C16). With ``protects="features"``, each row's class is sent
        without noise, which an owner must have accepted; features and weight are protected.

    Attributes:
        ensemble: the current ensemble, which determines the weights of an owner's rows.
        cap: weights are divided by this public number and clipped at 1.
        mechanism_name: registered name of the mechanism of the box.
        protects: which data are private: ``both`` or ``features``.
    """

    room: ClassVar[float] = 2.0
    """Recommended `cap` in units of the mean weight; larger weights are clipped."""

    ensemble: Ensemble = part(lambda: Ensemble)
    cap: float = number(least=1e-12, most=1.0, default=1.0)
    mechanism_name: str = choice(box_mechanisms, default="piecewise")
    protects: str = choice("both", "features", default="both")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_vote_for(self, self.ensemble)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumption that labels are public, if they are sent without noise."""
        return () if self.protects == "both" else (LABELS_ARE_PUBLIC,)

    @property
    def _block(self) -> int:
        """The number of protected numbers of one row."""
        return (self.dimension + 1) * (self.n_classes if self.protects == "both" else 1)

    @property
    def sent(self) -> int:
        """The number of values in a reply, including classes if these are public."""
        return self.n_rows * (self._block + (self.protects == "features"))

    @cached_property
    def mechanism(self) -> Repeated:
        """A box mechanism with ε/N for each row."""
        one = Cost(epsilon=self.epsilon).part(Fraction(1, self.n_rows)).epsilon_spent
        row = box_mechanism(self.mechanism_name, epsilon=one, dimension=self._block)
        return Repeated(part=row, times=self.n_rows)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The share, computed from weighted rows."""
        rows = OwnerRows(*records)
        inside, weights = self.weighted(rows)
        return np.clip(self.share(inside, rows.labels, weights), -1.0, 1.0)

    def weighted(self, rows: OwnerRows) -> tuple[FloatArray, FloatArray]:
        """Scaled rows, and weights with which the share is inside the box."""
        return self.ensemble.prepared(rows, cap=self.cap)

    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """The tables of all rows, side by side."""
        weighted = np.concatenate([inside, np.ones((*labels.shape, 1))], axis=2)
        weighted *= weights[..., None]
        if self.protects == "both":
            blocks = np.zeros((*labels.shape, self.n_classes, self.dimension + 1))
            np.put_along_axis(blocks, labels[..., None, None], weighted[:, :, None, :], axis=2)
            weighted = blocks
        return weighted.reshape(len(labels), -1)

    def fitting(self, records: Records) -> OwnerRows:
        """Repeat the rows in turn for owners with fewer than N."""
        rows = super().fitting(records)
        if rows.present.all():
            return rows
        return rows.at(np.arange(self.n_rows) % rows.sizes[:, None])

    def answer(self, records: Records, source: Source) -> Answer:
        """Noisy rows; public classes are sent without noise."""
        answer = super().answer(records, source)
        if self.protects == "both":
            return answer
        labels = self.fitting(records).labels.astype(np.float64)
        return replace(answer, values=np.concatenate([answer.values, labels], axis=1))

    def _sent(self, answer: Answer) -> FloatArray:
        noisy = super()._sent(answer)
        return noisy if self.protects == "both" else noisy[:, : -self.n_rows]

    def possible(self, sent: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether each row consists of finite numbers and valid classes."""
        if self.protects == "both":
            return super().possible(sent)
        valid = np.isin(sent[:, -self.n_rows :], np.arange(self.n_classes))
        return np.asarray(valid.all(axis=1) & super().possible(sent))

    def decode(self, sent: FloatArray) -> FloatArray:
        """The mean over rows, shape (H, K (d + 1))."""
        if self.protects == "both":
            blocks = sent.reshape(len(sent), self.n_rows, -1)
            return np.asarray(blocks.sum(axis=1) / self.n_rows)
        noisy, labels = sent[:, : -self.n_rows], sent[:, -self.n_rows :]
        own = labels[..., None] == np.arange(self.n_classes)
        rows = noisy.reshape(len(sent), self.n_rows, -1)
        sums = np.einsum("hnd,hnk->hkd", rows, own)
        return np.asarray(sums.reshape(len(sent), -1) / self.n_rows)

    def base_learner(self, mean: FloatArray) -> CentroidRule:
        """Centroids: noisy sums divided by noisy weights, clipped to the box of true centroids."""
        table = mean.reshape(self.n_classes, -1)
        weight = table[:, -1]
        least = max(_LEAST_SHARE * float(np.abs(weight).sum()), 1e-9)
        return CentroidRule(
            centroids=self._kept(table[:, :-1] / np.maximum(weight, least)[:, None])
        )

    @property
    def noise_variance(self) -> float:
        """Variance of a number in `decode`, a mean of N reports, whose true value is 0."""
        return largest_variance(self.mechanism, self.n_rows * self._block) / self.n_rows

    def evidence(self, mean: FloatArray, variance: float) -> tuple[float, float]:
        """The smallest distance of two centroids, and the noise of one (004, Eq. (7)).

        The noise increases squared distances, and its expectation is subtracted.
        """
        table = mean.reshape(self.n_classes, -1)
        centroids = self.base_learner(mean).centroids
        size = np.maximum(np.abs(table[:, -1]), 1e-9)
        noises = self.dimension * variance / size**2
        squares = [
            float(np.sum((centroids[i] - centroids[j]) ** 2) - noises[i] - noises[j])
            for i, j in combinations(range(self.n_classes), 2)
        ]
        return math.sqrt(max(min(squares), 0.0)), math.sqrt(float(noises.max()))

    def _kept(self, centroids: FloatArray) -> FloatArray:
        return np.clip(centroids, -1.0, 1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """One instance for each mechanism."""
        return [cls(**example_fields(mechanism_name=name)) for name in box_mechanisms()]


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticRequest(Request, name="statistic"):
    """Each owner sends the mean weight of each class on both sides of public thresholds.

    With two classes, the difference of the two weights suffices. Tables are divided by the public
    `cap` or, if larger, by the owner's mean weight, so entries lie in [-1, 1] (C17).

    Privacy:
        ε-LDP for all data of the owner.

    Attributes:
        ensemble: the current ensemble, which determines the weights of an owner's rows.
        cap: weights are divided by this public number and clipped at 1.
        mechanism_name: registered name of the mechanism of the box.
        thresholds: thresholds of the scaled features, shape (d, T).
    """

    room: ClassVar[float] = 1.0
    """Recommended `cap` in units of the mean weight; larger weights are clipped."""

    ensemble: Ensemble = part(lambda: Ensemble)
    cap: float = number(least=1e-12, most=1.0, default=1.0)
    mechanism_name: str = choice(box_mechanisms, default="piecewise")
    thresholds: FloatArray = array("real", "dimension", "cuts", least=-2, most=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_vote_for(self, self.ensemble)

    @property
    def sent(self) -> int:
        """The number of entries: scores × 2 sides × thresholds."""
        return scores(self.n_classes) * 2 * self.thresholds.size

    @cached_property
    def mechanism(self) -> Mechanism:
        """The box mechanism for the whole share, with the whole budget."""
        name = self.mechanism_name
        return box_mechanism(name, epsilon=self.epsilon, dimension=self.sent)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The share, computed from weighted rows."""
        rows = OwnerRows(*records)
        inside, weights = self.weighted(rows)
        return np.clip(self.share(inside, rows.labels, weights), -1.0, 1.0)

    def weighted(self, rows: OwnerRows) -> tuple[FloatArray, FloatArray]:
        """Scaled rows and weights; the bound is on the mean weight, not on single rows."""
        inside, weights = self.ensemble.prepared(rows, cap=1.0)
        mean = weights.sum(axis=1) / rows.sizes
        return inside, weights / np.maximum(mean, self.cap)[:, None]

    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """Mean signed weight on each side of every threshold."""
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

    def decode(self, sent: FloatArray) -> FloatArray:
        """The replies, because box mechanisms are unbiased."""
        return sent

    def base_learner(self, mean: FloatArray) -> StumpRule:
        """The stump at the threshold that separates best, with leaf classes from the same table."""
        below, above, worth = self._worth(mean)
        j, t = np.unravel_index(np.argmax(worth), worth.shape)
        return StumpRule(
            feature=int(j),
            threshold=float(self.thresholds[j, t]),
            **self._leaves(below[..., j, t], above[..., j, t]),
        )

    def _worth(self, mean: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The tables of both sides of every threshold, and the criterion φ, shape (d, T)."""
        table = mean.reshape(scores(self.n_classes), 2, *self.thresholds.shape)
        if self.n_classes == 2:
            below, above = table[0]
            return below, above, np.abs(below) + np.abs(above)  # φ of Eq. (8)
        below, above = table[:, 0], table[:, 1]
        return below, above, below.max(axis=0) + above.max(axis=0)

    @property
    def noise_variance(self) -> float:
        """Variance of a number in `decode` whose true value is 0."""
        return largest_variance(self.mechanism, self.sent)

    def evidence(self, mean: FloatArray, variance: float) -> tuple[float, float]:
        """φ of the best feature minus φ of the second one, and its noise (004, after Alg. 6).

        For a single feature, φ itself. A difference of two φ contains four noisy numbers.
        """
        best = np.sort(self._worth(mean)[2].max(axis=1))[::-1]
        gap = best[0] - best[1] if len(best) > 1 else best[0]
        return float(gap), math.sqrt((4 if len(best) > 1 else 2) * variance)

    def _leaves(self, below: FloatArray, above: FloatArray) -> dict[str, int]:
        if self.n_classes > 2:
            return {"below": int(below.argmax()), "above": int(above.argmax())}
        left, right = int(below >= 0), int(above >= 0)
        if left == right:  # a constant rule is useless: use the contrast of the sides
            right = int(above >= below)
            left = 1 - right
        return {"below": left, "above": right}

    @classmethod
    def examples(cls) -> list[Self]:
        """One instance for each mechanism."""
        public = example_fields(thresholds=[[-0.2, 0.3]] * 2)
        return [cls(**public, mechanism_name=name) for name in box_mechanisms()]
