"""The request for a gradient of the logistic model, and the model of K classes.

See docs/methods/gradient-boosting.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.feature_map import FeatureMap
from dpfda.local.boosting.request import OwnerRows, Request
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.noise import Source
from dpfda.protocol.fields import array, number, part
from dpfda.protocol.query import Records

_STEPS, _LONGEST_STEP, _TOLERANCE = 50, 3.0, 1e-6


def probabilities(features: FloatArray, coefficients: FloatArray) -> FloatArray:
    """P(y = 1), ..., P(y = K - 1) for features (..., D) and θ (K - 1, D); class 0 has the rest."""
    scores = features @ coefficients.T
    top = np.maximum(scores.max(axis=-1, keepdims=True), 0.0)
    powers = np.exp(scores - top)
    return np.asarray(powers / (np.exp(-top) + powers.sum(axis=-1, keepdims=True)))


def prior_precision(variances: FloatArray, *, classes: int) -> FloatArray:
    """Inverse prior covariance of θ: the K classes are alike, θ_k is class k against class 0."""
    contrasts = 0.5 * (np.eye(classes - 1) + 1)
    return np.kron(np.linalg.inv(contrasts), np.diag(1 / variances))


def information(features: FloatArray, chances: FloatArray) -> FloatArray:
    """Mean over rows of (diag p - p pᵀ) ⊗ φ φᵀ: the Fisher information of one row."""
    scores, size = chances.shape[1], features.shape[1]
    blocks = np.empty((scores, size, scores, size))
    for one in range(scores):
        for other in range(one + 1):
            weight = chances[:, one] * ((one == other) - chances[:, other])
            block = (features * weight[:, None]).T @ features / len(features)
            blocks[one, :, other, :] = block
            blocks[other, :, one, :] = block
    return blocks.reshape(scores * size, scores * size)


def most_likely(
    features: FloatArray, labels: IntArray, *, precision: FloatArray, classes: int
) -> tuple[FloatArray, FloatArray]:
    """Posterior mode θ (K - 1, D) and posterior precision from clean labels (the data user's).

    Examples:
        >>> theta, _ = most_likely(np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([0, 1]),
        ...                        precision=np.eye(2), classes=2)
        >>> theta.round(2)
        array([[0.  , 0.67]])
    """
    n, size = features.shape
    theta = np.zeros((classes - 1, size))
    hit = labels[:, None] == np.arange(1, classes)
    hessian = precision
    for _ in range(_STEPS):
        chances = probabilities(features, theta)
        hessian = n * information(features, chances) + precision
        uphill = ((hit - chances).T @ features).ravel() - precision @ theta.ravel()
        step = np.linalg.solve(hessian, uphill)
        length = float(np.abs(step).max())
        theta += (step * min(1.0, _LONGEST_STEP / max(length, 1e-12))).reshape(theta.shape)
        if length < _TOLERANCE:
            break
    return theta, hessian


_LARGEST = 1e50  # of a coefficient or a direction: no product or square of sums overflows


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientRequest(Request, name="gradient"):
    """Each owner sends one codeword near the gradient of the log-likelihood of their rows.

    Privacy:
        ε-LDP for everything the owner holds, labels included: whatever the gradient, one cap-index
        report (`CapIndex`) is all that leaves.

    Attributes:
        features: how a row becomes φ.
        coefficients: θ, shape (K - 1, D).
        projection: k directions in which to look at the gradient, shape ((K - 1) D, k).
        radius: the gradient of an owner with n rows is cut at radius · √(k/n).

    Examples:
        >>> from dpfda.noise import SimulationSource
        >>> rows = np.random.default_rng(0).normal(size=(100, 2))
        >>> request = GradientRequest(
        ...     epsilon=3.0, people=25, dimension=2, n_classes=2, n_rows=4,
        ...     features=FeatureMap.learnt(rows, products=0), coefficients=np.zeros((1, 3)),
        ...     projection=np.eye(3))
        >>> owners = OwnerRows.grouped(rows, rows[:, 0] > 0, groups=np.arange(100) // 4)
        >>> replies = request.answer(owners, SimulationSource(0)).values
        >>> replies.shape, request.estimates(replies).shape
        ((25, 2), (25, 3))
    """

    sent = 2  # number of the codebook and of the codeword

    features: FeatureMap = part(lambda: FeatureMap)
    coefficients: FloatArray = array("real", "scores", "size", least=-_LARGEST, most=_LARGEST)
    projection: FloatArray = array("real", "slopes", "directions", least=-_LARGEST, most=_LARGEST)
    radius: float = number(least=1e-6, most=1e6, default=0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.features.center) != self.dimension:
            raise InvalidParameter("features", f"of {self.dimension} columns", "others")
        if self.coefficients.shape != (self.n_classes - 1, self.features.size):
            rule = f"of shape {(self.n_classes - 1, self.features.size)}"
            raise InvalidParameter("coefficients", rule, self.coefficients.shape)
        if len(self.projection) != self.coefficients.size or not self.directions:
            rule = f"of {self.coefficients.size} rows and at least one column"
            raise InvalidParameter("projection", rule, self.projection.shape)

    @property
    def directions(self) -> int:
        """k."""
        return int(self.projection.shape[1])

    @cached_property
    def mechanism(self) -> CapIndex:
        """A codeword near a direction."""
        return CapIndex.best(epsilon=self.epsilon, dimension=self.directions)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The mean gradient, projected, in units of the length at which it is cut."""
        rows = OwnerRows(*records)
        phi = self.features(rows.features)
        residual = -probabilities(phi, self.coefficients)
        residual += rows.labels[..., None] == np.arange(1, self.n_classes)
        residual *= rows.present[..., None]
        sizes = rows.sizes
        gradient = np.einsum("hnk,hnd->hkd", residual, phi, optimize=True)
        projected = gradient.reshape(rows.owners, -1) @ self.projection / sizes[:, None]
        cut = projected / self.longest(sizes)[:, None]
        return np.asarray(cut / np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), 1.0))

    def longest(self, sizes: IntArray) -> FloatArray:
        """ρ, the length at which a gradient of n rows is cut."""
        return np.asarray(self.radius * np.sqrt(self.directions / sizes))

    def possible(self, sent: FloatArray) -> npt.NDArray[np.bool_]:
        """Numbers of a codebook and of a codeword in it."""
        return self.mechanism.allows(sent)

    def decode(self, sent: FloatArray) -> FloatArray:
        """Unbiased estimates of the shortened gradients, in units of ρ, shape (H, k)."""
        return self.mechanism.debias(sent)

    @classmethod
    def examples(cls) -> list[Self]:
        """Three classes, two of all directions."""
        rows = np.random.default_rng(0).normal(size=(50, 2))
        features = FeatureMap.learnt(rows, products=1)
        return [
            cls(
                epsilon=1.0, people=1, dimension=2, n_classes=3, n_rows=2, features=features,
                coefficients=np.zeros((2, features.size)),
                projection=np.eye(2 * features.size)[:, :2],
            )
        ]  # fmt: skip


def report_gain(epsilon: float, *, directions: int) -> float:
    """m of a report with ε."""
    return CapIndex.best(epsilon=epsilon, dimension=directions).gain


def mean_variance(
    mean: FloatArray, weights: FloatArray, epsilons: FloatArray, kind: IntArray
) -> float:
    """Variance of a weighted mean of reports along one direction, by their known law.

    A report about no gradient at all has a known variance V. Reports about gradients with mean ḡ
    vary by |ḡ|²/k less, however their owners differ; |ḡ| ≤ 1 is what the mean shows beyond noise.

    Args:
        mean: of the reports, shape (k,).
        weights: of each report, their sum 1.
        epsilons: what reports cost, each price once.
        kind: for each report, its place in `epsilons`.
    """
    k = len(mean)
    words = [CapIndex.best(epsilon=float(epsilon), dimension=k) for epsilon in epsilons]
    noise = np.array([one.variance(np.zeros((1, k))).mean() for one in words])[kind]
    shown = float(np.clip(mean @ mean - k * (weights**2 @ noise), 0.0, 1.0))
    return float(weights**2 @ (noise - shown / k))
