"""The request for a gradient of the logistic model for K classes, and the features of the model.

See docs/methods/gradient-boosting.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._registry import Registered
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.request import OwnerRows, Request
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.noise import Source
from dpfda.protocol.fields import LARGEST, array, check_fields, number, part, vector, whole
from dpfda.protocol.query import Records

_CLIP = 4.0
_SMALLEST_SHARE = 1e-3  # of the largest eigenvalue; smaller ones are rounding errors
_RIDGE = 0.02
_MOST_DIRECTIONS = 50
_INTERCEPT_VARIANCE, _LINEAR_VARIANCE, _PRODUCT_VARIANCE = 4.0, 16.0, 8.0


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureMap(Registered, family="feature map", name="whitened"):
    """φ(x) = (1, z, products of the first z): z = (x - center) W, clipped at ±4.

    The map is computed from the data user's own rows, without labels; owners only apply it.

    Attributes:
        center: shape (d,).
        whitening: W, shape (d, r).
        products: the number of leading coordinates whose pairwise products are features.
        product_center: mean of each product over the data user's rows.
        product_scale: standard deviation of each product.
        prior_variance: prior variance of each coefficient of the logistic model, shape (D,).

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(200, 3)) * [5.0, 1.0, 0.5]
        >>> FeatureMap.learnt(rows, products=2)(rows).shape
        (200, 7)
    """

    center: FloatArray = vector("columns")
    whitening: FloatArray = array("real", "columns", "directions")
    products: int = whole(least=0, most=1 << 8)
    product_center: FloatArray = vector("pairs", least=-1e3, most=1e3)
    product_scale: FloatArray = vector("pairs", least=1e-9, most=1e3)
    prior_variance: FloatArray = vector("size", least=1e-300)

    def __post_init__(self) -> None:
        sizes = check_fields(self)
        pairs = self.products * (self.products + 1) // 2
        wanted = {"pairs": pairs, "size": 1 + sizes["directions"] + pairs}
        if self.products > sizes["directions"] or wanted.items() - sizes.items():
            raise InvalidParameter("products", "as many as there are scales", self.products)

    @classmethod
    def learnt(cls, rows: ArrayLike, *, products: int | None = None) -> Self:
        """Compute the whitening from the data user's rows.

        Args:
            rows: the data user's own rows, shape (n, d).
            products: the number of leading coordinates whose products are features; by default 10
                if the rows span at most 20 directions, otherwise 0.
        """
        x = _validate.batch("rows", rows)
        center = x.mean(axis=0)
        covariance = np.atleast_2d(np.cov(x.T)) if len(x) > 1 else np.eye(x.shape[1])
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = max(1, min(int((values > _SMALLEST_SHARE * values[0]).sum()), _MOST_DIRECTIONS))
        spread = np.maximum(values[:kept], 1e-300)
        whitening = vectors[:, :kept] / np.sqrt(spread + _RIDGE * spread.mean())
        whitening = np.clip(whitening, -LARGEST, LARGEST)  # rows may have no spread
        share = spread / spread.sum()
        if products is None:
            products = min(kept, 10) if kept <= 20 else 0
        products = min(_validate.whole("products", products, least=0), kept)
        first, second = np.triu_indices(products)
        whitened = np.clip((x - center) @ whitening, -_CLIP, _CLIP)
        multiplied = whitened[:, first] * whitened[:, second]
        weight = np.sqrt(share[first] * share[second])
        return cls(
            center=center,
            whitening=whitening,
            products=products,
            product_center=multiplied.mean(axis=0),
            product_scale=multiplied.std(axis=0) + 1e-9,
            # Prior variances follow the eigenvalues (docs/methods/gradient-boosting.md).
            prior_variance=np.concatenate(
                [
                    [_INTERCEPT_VARIANCE],
                    _LINEAR_VARIANCE * share,
                    _PRODUCT_VARIANCE * weight / max(weight.sum(), 1e-300),
                ]
            ),
        )

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Features φ of rows (..., d), shape (..., D)."""
        z = np.clip((rows - self.center) @ self.whitening, -_CLIP, _CLIP)
        parts = [np.ones((*z.shape[:-1], 1)), z]
        if self.products:
            first, second = np.triu_indices(self.products)
            multiplied = z[..., first] * z[..., second]
            scaled = (multiplied - self.product_center) / self.product_scale
            parts.append(np.clip(scaled, -_CLIP, _CLIP))
        return np.concatenate(parts, axis=-1)

    @property
    def size(self) -> int:
        """The number of features D."""
        return len(self.prior_variance)


_STEPS, _LONGEST_STEP, _TOLERANCE = 50, 3.0, 1e-6


def probabilities(features: FloatArray, coefficients: FloatArray) -> FloatArray:
    """P(y = 1), ..., P(y = K - 1) for features (..., D) and θ (K - 1, D)."""
    scores = features @ coefficients.T
    top = np.maximum(scores.max(axis=-1, keepdims=True), 0.0)
    powers = np.exp(scores - top)
    return np.asarray(powers / (np.exp(-top) + powers.sum(axis=-1, keepdims=True)))


def prior_precision(variances: FloatArray, *, classes: int) -> FloatArray:
    """Inverse prior covariance of θ; θ_k compares class k with class 0, all classes are alike."""
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
    """Posterior mode θ (K - 1, D) and precision from the data user's labels, which have no noise.

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


_LARGEST = 1e50  # limit of coefficients and directions, so that products do not overflow


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientRequest(Request, name="gradient"):
    """Each owner sends one codeword near the gradient of the log-likelihood of its rows.

    Privacy:
        ε-LDP for all data of the owner, including labels: the reply is only one cap-index report
        (`CapIndex`), for any gradient.

    Attributes:
        features: maps a row to φ.
        coefficients: θ, shape (K - 1, D).
        projection: the k directions of the gradient that are reported, shape ((K - 1) D, k).
        radius: the gradient of an owner with n rows is shortened to length radius · √(k/n).

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
        """The number of directions k."""
        return int(self.projection.shape[1])

    @cached_property
    def mechanism(self) -> CapIndex:
        """The cap-index mechanism in k dimensions."""
        return CapIndex.best(epsilon=self.epsilon, dimension=self.directions)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The projected mean gradient, divided by its largest length ρ."""
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
        """ρ, the largest length of a gradient of n rows."""
        return np.asarray(self.radius * np.sqrt(self.directions / sizes))

    def possible(self, sent: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether each row is the number of a codebook and of a codeword in it."""
        return self.mechanism.allows(sent)

    def decode(self, sent: FloatArray) -> FloatArray:
        """Unbiased estimates of the shortened gradients divided by ρ, shape (H, k)."""
        return self.mechanism.debias(sent)

    @classmethod
    def examples(cls) -> list[Self]:
        """Three classes, and two of all directions."""
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
    """The gain m of a report with ε."""
    return CapIndex.best(epsilon=epsilon, dimension=directions).gain


def mean_variance(
    mean: FloatArray, weights: FloatArray, epsilons: FloatArray, kind: IntArray
) -> float:
    """Variance of a weighted mean of reports along one direction, by their known law.

    The report of a zero gradient has a known variance V. The variance of reports of gradients with
    mean ḡ is smaller by |ḡ|²/k for any distribution of the gradients. |ḡ| ≤ 1 is estimated from the
    length of the mean, corrected for noise.

    Args:
        mean: mean of the reports, shape (k,).
        weights: weights of the reports, with sum 1.
        epsilons: the different ε of the reports.
        kind: for each report, the position of its ε in `epsilons`.
    """
    k = len(mean)
    words = [CapIndex.best(epsilon=float(epsilon), dimension=k) for epsilon in epsilons]
    noise = np.array([one.variance(np.zeros((1, k))).mean() for one in words])[kind]
    shown = float(np.clip(mean @ mean - k * (weights**2 @ noise), 0.0, 1.0))
    return float(weights**2 @ (noise - shown / k))
