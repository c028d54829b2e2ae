"""Public maps from a row to the features of a logistic model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.protocol.fields import LARGEST, Declared, array, vector, whole

_CLIP = 4.0
_SMALLEST_SHARE = 1e-3  # of the largest eigenvalue; directions below carry rounding, not signal
_RIDGE = 0.02
_MOST_DIRECTIONS = 50
_INTERCEPT_VARIANCE, _LINEAR_VARIANCE, _PRODUCT_VARIANCE = 4.0, 16.0, 8.0


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureMap(Registered, Declared, family="feature map", name="whitened"):
    """φ(x) = (1, z, products of the first z): z = (x - center) W, clipped at ±4.

    Learnt from the data user's own rows, without labels; owners only apply it.

    Attributes:
        center: shape (d,).
        whitening: W, shape (d, r).
        products: how many leading coordinates are multiplied with each other.
        product_center: mean of each product over the data user's rows.
        product_scale: standard deviation of each product.
        prior_variance: of each coefficient of the logistic model, shape (D,).

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
        super().__post_init__()
        pairs = self.products * (self.products + 1) // 2
        wanted = {"pairs": pairs, "size": 1 + self.sizes["directions"] + pairs}
        if self.products > self.sizes["directions"] or wanted.items() - self.sizes.items():
            raise InvalidParameter("products", "as many as there are scales", self.products)

    @classmethod
    def learnt(cls, rows: Any, *, products: int | None = None) -> Self:
        """Whiten by the data user's rows.

        Args:
            rows: the data user's own rows, shape (n, d).
            products: how many leading coordinates to multiply; by default 10 where the rows span
                at most 20 directions, else none.
        """
        x = _validate.batch("rows", rows)
        center = x.mean(axis=0)
        covariance = np.atleast_2d(np.cov(x.T)) if len(x) > 1 else np.eye(x.shape[1])
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = max(1, min(int((values > _SMALLEST_SHARE * values[0]).sum()), _MOST_DIRECTIONS))
        spread = np.maximum(values[:kept], 1e-300)
        whitening = vectors[:, :kept] / np.sqrt(spread + _RIDGE * spread.mean())
        whitening = np.clip(whitening, -LARGEST, LARGEST)  # rows without any spread
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
        """D."""
        return len(self.prior_variance)
