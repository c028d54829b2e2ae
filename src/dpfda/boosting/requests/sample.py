"""Local sample: every row is perturbed; class centroids come out (004, Algorithm 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests.share import ShareRequest
from dpfda.boosting.rules import CentroidRule
from dpfda.mechanisms import Mechanism
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee

_LEAST_SHARE = 0.02  # of the total weight, for a class whose noisy weight came out too small


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleRequest(ShareRequest, name="sample"):
    """Each row becomes a class × (features, 1) vector times its weight, perturbed with ε/N.

    Privacy:
        ε/N-LDP for each of an owner's N rows, ε for the owner: only the row's class has entries
        other than 0 *before* perturbation, so the label is hidden, and so is the weight (C16). With
        ``labels="public"`` the class is told in clear and only features and weight are protected.
    """

    @property
    def width(self) -> int:
        """A block of features and weight for each class, and class counts if labels are public."""
        return self.classes * (self.columns + 1) + self.classes * (self.labels == "public")

    def answer(self, rows: OwnerRows, *, epsilon: float, rng: Source) -> FloatArray:
        """Perturb every row with ε/N; send the sum over rows divided by N."""
        inside, weights = self.weighted(rows)
        sizes = rows.sizes
        replies = np.zeros((len(rows), self.width))
        for size in np.unique(sizes):
            who = np.flatnonzero(sizes == size)
            owner, row = np.nonzero(rows.present[who])
            owner = who[owner]
            x, y, w = inside[owner, row], rows.labels[owner, row], weights[owner, row]
            weighted = np.column_stack([x * w[:, None], w])
            hidden = self.labels == "private"
            shares = self._blocks(weighted, y) if hidden else weighted
            noisy = self._randomizer(epsilon / size, shares.shape[1]).randomize(shares, rng)
            blocks = noisy if hidden else self._blocks(noisy, y)
            np.add.at(replies[:, : blocks.shape[1]], owner, blocks / size)
            if not hidden:
                np.add.at(replies, (owner, blocks.shape[1] + y), 1 / size)
        return replies

    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """The mean share of an owner without noise, for comparison."""
        x = np.concatenate([inside, np.ones((*labels.shape, 1))], axis=2) * weights[..., None]
        own = labels[..., None] == np.arange(self.classes)
        sums = np.einsum("hnd,hnk->hkd", x, own)
        present = np.maximum((weights > 0).sum(axis=1), 1)
        return np.asarray(sums.reshape(len(labels), -1) / present[:, None])

    def base_learner(self, mean: FloatArray) -> CentroidRule:
        """Noisy sums over noisy weights, inside the box that true centroids lie in."""
        table = mean[: self.classes * (self.columns + 1)].reshape(self.classes, -1)
        weight = table[:, -1]
        least = max(_LEAST_SHARE * float(np.abs(weight).sum()), 1e-9)
        return CentroidRule(
            centroids=self._kept(table[:, :-1] / np.maximum(weight, least)[:, None])
        )

    def _kept(self, centroids: FloatArray) -> FloatArray:
        return np.clip(centroids, -1.0, 1.0)

    def guarantee(self, epsilon: float) -> Guarantee:
        """ε for the owner, less where labels are public."""
        promise = super().guarantee(epsilon)
        return promise.assuming("labels are public") if self.labels == "public" else promise

    def sample_guarantee(self, epsilon: float, *, rows: int) -> Guarantee:
        """ε/N for a single one of an owner's N rows (C18)."""
        promise = self.guarantee(epsilon)
        return replace(promise, epsilon=epsilon / rows, unit="sample")

    def _blocks(self, weighted: FloatArray, labels: IntArray) -> FloatArray:
        blocks = np.zeros((len(weighted), self.classes, self.columns + 1))
        blocks[np.arange(len(weighted)), labels] = weighted
        return blocks.reshape(len(weighted), -1)

    def _randomizer(self, epsilon: float, dimension: int) -> Mechanism:
        made: Mechanism = Mechanism.named(self.mechanism)(epsilon=epsilon, dimension=dimension)  # type: ignore[call-arg]
        return made
