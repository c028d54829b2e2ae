"""Send a vector of features and label as one codeword (docs/methods/vector-reports.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.mechanisms.class_index import ClassIndex
from dpfda.noise import Source
from dpfda.protocol.fields import array, choice, number, whole
from dpfda.protocol.folds import FoldedTask
from dpfda.protocol.query import Records

_MOST = 1e50  # of a public number: no square of a sum of products overflows
_CLIP = 1e9
_ALONE = (1.0,)


@dataclass(frozen=True, kw_only=True, eq=False)
class SummaryTask(FoldedTask, name="summary"):
    """Report a vector of public design through one cap-index or class-index report.

    ψ = T clip((z* - center)/scale, ±clip) + offset, with the offset of one's own class where
    there is one for each; of `folded` z* where there are folds. The vector is, by `statistic`,

    * spread: (ψ, ψ² - 1);
    * products: the diagonal and √2 times the upper triangle of ψψᵀ, ψ cut at the limit, in units of
      its square;
    * residual: (y - p) w(1, ψ), y = 1 for label 1 and else 0, p = 1/(1 + e^{-θ(1, ψ)}), w(1, ψ) cut
      at the reach (by its own length: so no fixed point of a fit moves);
    * classes: w(1, ψ), told together with the class;
    * cross: r w(1, ψ'), where r is the first entry of ψ and ψ' the others, w(1, ψ') cut at the
      reach.

    All but the products are cut at the limit and told in units of it.

    Privacy:
        ε-LDP for curve and label together: whatever is computed, one report of a vector of the unit
        ball (`CapIndex`), or of a class and a vector (`ClassIndex`), is all that leaves.

    Attributes:
        statistic: which vector.
        classes: K.
        centers: shape (d,).
        scales: shape (d,).
        clip: how many scales to either side are looked at.
        matrix: T, shape (q, d).
        offsets: shape (1, q), or (K, q) by class.
        weights: w, shape (q + 1,), or (q,) for cross; (1,) for spread and products.
        theta: θ, shape (q + 1,) for the residual and else (1,).
        reach: length at which w(1, ψ) is cut in a residual, w(1, ψ') in cross.
        limit: length at which the vector is cut.

    Examples:
        >>> task = SummaryTask(
        ...     epsilon=1.0, people=1, statistic="products", classes=2, centers=[0.0, 0.1],
        ...     scales=[0.5, 0.5], clip=2.0, matrix=[[1.0, 0.0], [0.5, 0.5]], offsets=[[0.0, 0.0]],
        ...     limit=2.0**0.5)
        >>> task.mechanism.dimension
        3
    """

    boxed: ClassVar[bool] = False

    statistic: str = choice("spread", "products", "residual", "classes", "cross")
    classes: int = whole(most=1 << 12)
    centers: FloatArray = array("real", "d", least=-_MOST, most=_MOST)
    scales: FloatArray = array("real", "d", least=1 / _MOST, most=_MOST)
    clip: float = number(least=1 / _CLIP, most=_CLIP)
    matrix: FloatArray = array("real", "q", "d", least=-_MOST, most=_MOST)
    offsets: FloatArray = array("real", "c", "q", least=-_MOST, most=_MOST)
    weights: FloatArray = array("real", "w", least=-_MOST, most=_MOST, default=_ALONE)
    theta: FloatArray = array("real", "t", least=-_MOST, most=_MOST, default=_ALONE)
    reach: float = number(least=1 / _MOST, most=_MOST, default=_MOST)
    limit: float = number(least=1 / _MOST, most=_MOST)

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = self.sizes
        if not sizes["q"] or not sizes["d"]:
            raise InvalidParameter("matrix", "of a row and a column at least", self.matrix.shape)
        if sizes["c"] not in (1, self.classes):
            raise InvalidParameter("offsets", f"of 1 or {self.classes} rows", self.offsets.shape)
        weighted = ("residual", "classes", "cross")
        for name, where in (("weights", weighted), ("theta", weighted[:1])):
            shape = (self._entries if self.statistic in where else 1,)
            if getattr(self, name).shape != shape:
                raise InvalidParameter(name, f"of shape {shape}", getattr(self, name).shape)

    @cached_property
    def mechanism(self) -> CapIndex | ClassIndex:
        """The most informative report of such a vector."""
        size: dict[str, Any] = {"epsilon": self.epsilon, "dimension": self._entries}
        if self.statistic == "classes":
            return ClassIndex.best(**size, classes=self.classes)
        return CapIndex.best(**size)

    @property
    def _entries(self) -> int:
        """D, of the vector."""
        q = self.sizes["q"]
        known = {"spread": 2 * q, "products": q * (q + 1) // 2, "cross": q}
        return known.get(self.statistic, q + 1)

    @property
    def width(self) -> int:
        """Number of the codebook and of the codeword."""
        return 2

    @property
    def looks_at(self) -> int:
        """d."""
        return self.sizes["d"]

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The vector, clipped to the unit ball, after the class if that is reported too."""
        z, y = records
        labels = np.clip(y, 0, self.classes - 1)
        psi = self._features(z, labels)
        if self.statistic == "spread":
            return _cut(np.concatenate([psi, psi**2 - 1], axis=1), self.limit)
        if self.statistic == "products":
            psi = _cut(psi, self.limit)
            rows, columns = np.triu_indices(psi.shape[1])
            scale = np.where(rows == columns, 1.0, np.sqrt(2))
            return np.asarray(psi[:, rows] * psi[:, columns] * scale)
        if self.statistic == "cross":
            vector = np.insert(psi[:, 1:], 0, 1.0, axis=1) * self.weights
            return _cut(psi[:, :1] * (_cut(vector, self.reach) * self.reach), self.limit)
        with_one = np.insert(psi, 0, 1.0, axis=1)
        vector = with_one * self.weights
        if self.statistic == "classes":
            return np.column_stack([labels, _cut(vector, self.limit)])
        residual = (y == 1) - expit(with_one @ self.theta)
        return _cut(residual[:, None] * (_cut(vector, self.reach) * self.reach), self.limit)

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Numbers of a codebook and of a codeword in it."""
        return self.mechanism.allows(reply)

    def total(self, replies: FloatArray) -> FloatArray:
        """Sum of unbiased estimates of the vectors, shape (D,); of `classes`, (K, D)."""
        return self.mechanism.totals(replies)

    def _features(self, z: FloatArray, labels: IntArray) -> FloatArray:
        """ψ."""
        standard = (z[:, : self.looks_at] - self.centers) / self.scales
        inside = np.clip(standard, -self.clip, self.clip)
        own = self.offsets[labels] if len(self.offsets) > 1 else self.offsets
        return np.asarray(inside @ self.matrix.T + own)

    @classmethod
    def examples(cls) -> list[Self]:
        """Every statistic, and one of a feature and a distance."""
        common: dict[str, Any] = {
            "epsilon": 1.0,
            "people": 1,
            "classes": 3,
            "centers": [0.0, 0.1],
            "scales": [0.5, 0.4],
            "clip": 2.0,
            "matrix": [[1.0, 0.0], [-0.5, 1.2]],
            "offsets": [[0.1, -0.2]],
            "limit": 1.4,
        }
        by_class = [[0.1, -0.2], [0.0, 0.3], [-0.4, 0.0]]
        weights = {"weights": [0.5, 1.0, 0.8]}
        theta = {"theta": [0.2, 1.0, -0.5], "reach": 1.5}
        return [
            cls(statistic="spread", **common),
            cls(statistic="products", **common | {"offsets": by_class}),
            cls(statistic="residual", **common | weights | theta),
            cls(statistic="classes", **common | weights | {"epsilon": 3.0, "offsets": by_class}),
            cls(statistic="cross", **common | {"weights": [0.5, 1.0], "reach": 1.5}),
            cls(statistic="residual", **common | weights | theta, folds=[0.2]),  # type: ignore[arg-type]
        ]


def _cut(vectors: FloatArray, limit: float) -> FloatArray:
    """Shortened to the limit where they are longer, in units of it."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, limit))
