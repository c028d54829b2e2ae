"""The look behind all linear releases of a mean: clip, average, shrink, add noise along axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.looks import Body, MeanLook, mean_of
from dpfda.central.records import clip_rows
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import number, vector
from dpfda.protocol.query import Records


@dataclass(frozen=True, kw_only=True, eq=False)
class ShrunkMean(MeanLook, name="shrunk_mean"):
    """Mean of coefficients with ‖c‖₂ ≤ τ, softly thresholded and multiplied by public factors.

    Privacy:
        Thresholding is a contraction of each coordinate, so neighbors differ by h with
        |h_j| ≤ s_j|d_j|, ‖d‖₂ ≤ 2τ/n: Σ|h_j|/a_j ≤ (2τ/n)‖s/a‖₂ (Cauchy–Schwarz) for Laplace
        noise, ‖h/a‖₂ ≤ (2τ/n) max s_j/a_j for Gaussian noise. Both are attained.

    Attributes:
        bound: τ.
        factors: s_j.
        thresholds: taken off |mean coefficient|; 0 for none.
        axes: a_j, shape of the noise.
    """

    independent: ClassVar[bool] = True
    linear: ClassVar[bool] = False  # thresholds of sites are not those of the whole

    bound: float = number(least=1e-40, most=1e40)
    factors: FloatArray = vector("coefficients", least=1e-40, most=1e10)
    thresholds: FloatArray = vector("coefficients", least=0.0)
    axes: FloatArray = vector("coefficients", least=1e-25, most=1e10)

    @property
    def columns(self) -> tuple[int, ...]:
        """Coefficients."""
        return (len(self.factors),)

    @property
    def body(self) -> Body:
        """A ball, whose shrunken image is measured in the norm of the noise."""
        return Body(self.bound, 2 * self.bound * self._spread(self.factors / self.axes), self.axes)

    def _spread(self, ratios: FloatArray) -> float:
        return float(np.linalg.norm(ratios) if self.cost.pure else ratios.max())

    def vectors(self, records: Records) -> FloatArray:
        """Clipped coefficients."""
        return clip_rows(records[0][:, : self.size], self.bound)

    def statistic(self, totals: IntArray) -> FloatArray:
        """Threshold, then factors."""
        return self.shrink(mean_of(totals, self.bound, self.n))

    def shrink(self, mean: FloatArray) -> FloatArray:
        """What becomes of mean coefficients."""
        soft = np.sign(mean) * np.maximum(np.abs(mean) - self.thresholds, 0.0)
        return np.asarray(self.factors * soft)

    @classmethod
    def examples(cls) -> list[Self]:
        """Equal axes; steep ones with a small threshold; Gaussian."""
        ones, steep = np.ones(3), np.array([1.0, 0.3, 0.05])
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        none = np.zeros(3)
        return [
            cls(cost=pure, n=4, bound=1.5, factors=ones, thresholds=none, axes=ones),
            cls(cost=pure, n=4, bound=2.0, factors=steep, thresholds=1e-4 * ones, axes=steep**0.5),
            cls(cost=gaussian, n=4, bound=1.0, factors=steep, thresholds=none, axes=steep),
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedShrunkMean(ShrunkMean, name="published_shrunk_mean"):
    """The same with the larger bounds of 003 (Theorem 6): Σ s_j/a_j instead of ‖s/a‖₂.

    Privacy:
        That of `ShrunkMean`, and needlessly more: no pair of curves attains the published bound,
        which is larger by up to √J (0.71 of it is attained with two equal ratios).
    """

    attained: ClassVar[float | None] = 0.7

    def _spread(self, ratios: FloatArray) -> float:
        return float(ratios.sum() if self.cost.pure else ratios.max())

    @classmethod
    def examples(cls) -> list[Self]:
        """Two equal ratios."""
        ones = np.ones(2)
        cost = Cost(epsilon=1.0)
        return [cls(cost=cost, n=4, bound=1.0, factors=ones, thresholds=0 * ones, axes=ones)]
