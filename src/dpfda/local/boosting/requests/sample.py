"""Local sample: every row is perturbed; class centroids come out (004, Algorithm 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.local.boosting.owner_rows import OwnerRows
from dpfda.local.boosting.requests.share import ShareRequest
from dpfda.local.boosting.weak_rules import CentroidRule
from dpfda.mechanisms.repeated import Repeated
from dpfda.noise import Source
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import LABELS_ARE_PUBLIC
from dpfda.protocol.answer import Answer
from dpfda.protocol.fields import choice
from dpfda.protocol.query import Records

_LEAST_SHARE = 0.02  # of the total weight, for a class whose noisy weight came out too small


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleRequest(ShareRequest, name="sample"):
    """Each of N rows becomes a class × (features, 1) vector times its weight, sent with ε/N.

    An owner with fewer than N rows takes them in turns, so that all of them send N.

    Privacy:
        ε for the owner, ε/N for a row that is sent once: only the row's class has entries other
        than 0 *before* perturbation, so the label is hidden, and so is the weight (C16). With
        ``protects="features"`` each row's class travels in clear, which an owner must have
        accepted; features and weight are protected.

    Attributes:
        protects: what is private.
    """

    protects: str = choice("both", "features", default="both")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That labels which travel in clear are public anyway."""
        return () if self.protects == "both" else (LABELS_ARE_PUBLIC,)

    @property
    def _block(self) -> int:
        """Protected numbers of one row."""
        return (self.dimension + 1) * (self.n_classes if self.protects == "both" else 1)

    @property
    def sent(self) -> int:
        """The rows' numbers, and their classes if these are public."""
        return self.n_rows * (self._block + (self.protects == "features"))

    @cached_property
    def mechanism(self) -> Repeated:
        """ε/N for each row."""
        one = Cost(epsilon=self.epsilon).part(Fraction(1, self.n_rows)).epsilon_spent
        return Repeated(part=self._box(one, self._block), times=self.n_rows)

    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """All rows side by side."""
        weighted = np.concatenate([inside, np.ones((*labels.shape, 1))], axis=2)
        weighted *= weights[..., None]
        if self.protects == "both":
            blocks = np.zeros((*labels.shape, self.n_classes, self.dimension + 1))
            np.put_along_axis(blocks, labels[..., None, None], weighted[:, :, None, :], axis=2)
            weighted = blocks
        return weighted.reshape(len(labels), -1)

    def fitting(self, records: Records) -> OwnerRows:
        """Rows in turns where an owner has fewer than N."""
        rows = super().fitting(records)
        if rows.present.all():
            return rows
        return rows.at(np.arange(self.n_rows) % rows.sizes[:, None])

    def answer(self, records: Records, source: Source) -> Answer:
        """Noisy rows; classes as they are where they are public."""
        answer = super().answer(records, source)
        if self.protects == "both":
            return answer
        told = self.fitting(records).labels.astype(np.float64)
        return replace(answer, values=np.concatenate([answer.values, told], axis=1))

    def _sent(self, answer: Answer) -> FloatArray:
        noisy = super()._sent(answer)
        return noisy if self.protects == "both" else noisy[:, : -self.n_rows]

    def possible(self, sent: FloatArray) -> npt.NDArray[np.bool_]:
        """Any numbers, and classes that exist."""
        if self.protects == "both":
            return super().possible(sent)
        told = np.isin(sent[:, -self.n_rows :], np.arange(self.n_classes))
        return np.asarray(told.all(axis=1) & super().possible(sent))

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
        """Noisy sums over noisy weights, inside the box that true centroids lie in."""
        table = mean.reshape(self.n_classes, -1)
        weight = table[:, -1]
        least = max(_LEAST_SHARE * float(np.abs(weight).sum()), 1e-9)
        return CentroidRule(
            centroids=self._kept(table[:, :-1] / np.maximum(weight, least)[:, None])
        )

    def _kept(self, centroids: FloatArray) -> FloatArray:
        return np.clip(centroids, -1.0, 1.0)
