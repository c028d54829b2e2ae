"""Arrays of a batch of training sets: library, checks, scaling, Gram matrices and moments.

The solvers are written once against the Python array API standard. They run on numpy by default,
and on torch if they are given torch tensors.

Reports at a small ε contain noise a hundred times as large as the signal, so the scale of features
varies widely. Every solver therefore works on features with mean 0 and variance 1, one row of
numbers per feature. The solution is transformed back at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

import numpy as np

from dpfda.errors import InvalidData, InvalidParameter, MissingExtra

try:
    import array_api_compat
except ImportError:
    raise MissingExtra("array-api-compat", "learn") from None

Array = Any
"""An array of any library that follows the array API standard."""

_LARGEST = 1e100
"""Limit above which squares of products overflow; it is far above any report."""

_CACHE = 250_000
"""Entries of a design matrix that are processed together: 1 to 2 MB, the size of a core's cache."""

_CHUNK = 8 * _CACHE
"""Entries that are prepared together, which bounds memory for any number of members."""

_DEVICE = 1 << 26
"""Both numbers on an accelerator, where starting a kernel is expensive."""


@dataclass(frozen=True, eq=False)
class Batch:
    """B training sets of the same shape: features (B, n, d), labels and weights (B, n)."""

    features: Array
    labels: Array
    weights: Array

    def parts(self, size: int) -> Iterator[Batch]:
        """The same members in order, `size` at a time."""
        members = self.features.shape[0]
        for start in range(0, members, size):
            part = slice(start, min(start + size, members))
            yield Batch(self.features[part, :, :], self.labels[part, :], self.weights[part, :])

    def chunks(self) -> Iterator[Batch]:
        """The same members in order, in groups of bounded memory."""
        _, n, d = self.features.shape
        limit = _CHUNK if on_cpu(self.features) else _DEVICE
        return self.parts(max(1, limit // (n * (d + 1))))


_NAMESPACES: dict[type, ModuleType] = {}


def namespace(array: Array) -> ModuleType:
    """The array library that `array` belongs to.

    The result is cached by type, because solvers call this function for every operation.
    """
    try:
        return _NAMESPACES[type(array)]
    except KeyError:
        _NAMESPACES[type(array)] = array_api_compat.array_namespace(array)
        return _NAMESPACES[type(array)]


def checked(features: Array, labels: Array, weights: Array | None) -> Batch:
    """Check the arguments of `fit`, and convert them to double-precision arrays of one library."""
    features = as_double("features", features)
    xp = namespace(features)
    if features.ndim != 3 or 0 in features.shape:
        raise InvalidData("features", "an array (B, n, d) without empty axes", _shape(features))
    labels = as_double("labels", labels, like=features)
    if labels.shape != features.shape[:2]:
        raise InvalidData("labels", f"an array of shape {features.shape[:2]}", _shape(labels))
    if weights is None:
        weights = xp.ones_like(labels)
    weights = as_double("weights", weights, like=features)
    if weights.shape != labels.shape:
        raise InvalidData("weights", f"an array of shape {labels.shape}", _shape(weights))
    if not bool(xp.all(xp.abs(features) <= _LARGEST)):
        raise InvalidData("features", f"finite and at most {_LARGEST:g} in size")
    if not bool(xp.all(xp.abs(labels) == 1.0)):
        raise InvalidData("labels", "made of -1 and +1 only")
    if not bool(xp.all((weights >= 0.0) & (weights <= _LARGEST))):
        raise InvalidData("weights", f"between 0 and {_LARGEST:g}")
    return Batch(features, labels, weights)


def checked_gram(gram: Array | None, *, like: Array) -> Array:
    """Check that a Gram matrix is symmetric and positive definite; None means the identity."""
    xp = namespace(like)
    d = like.shape[-1]
    if gram is None:
        return identity(d, like=like)
    matrix = as_double("gram", gram, like=like)
    if matrix.shape != (d, d):
        raise InvalidParameter("gram", f"a matrix of shape {(d, d)}", _shape(matrix))
    values = to_numpy(matrix)
    size = float(np.max(np.abs(values)))
    if not np.isfinite(size) or float(np.max(np.abs(values - values.T))) > 1e-9 * size:
        raise InvalidParameter("gram", "finite and symmetric", values.tolist())
    if float(np.linalg.eigvalsh(values)[0]) <= 1e-14 * size:
        raise InvalidParameter("gram", "positive definite", values.tolist())
    return xp.asarray(matrix, copy=True)


def identity(size: int, *, like: Array) -> Array:
    """The identity matrix with the library, precision and device of `like`."""
    xp = namespace(like)
    return xp.eye(size, dtype=like.dtype, device=device(like))


def members_in_cache(numbers: int, *, on_cpu: bool = True) -> int:
    """Number of members of this size that are processed together."""
    return max(1, (_CACHE if on_cpu else _DEVICE) // numbers)


def scalar(value: float, *, like: Array) -> Array:
    """A number as an array of `like`'s library, for functions that accept only arrays."""
    xp = namespace(like)
    return xp.asarray(value, dtype=like.dtype, device=device(like))


def placed(values: Array, on: str) -> Array:
    """A numpy array on a device: unchanged on ``cpu``, otherwise as a torch tensor.

    Examples:
        >>> placed(np.ones(2), "cpu")
        array([1., 1.])
    """
    if on == "cpu":
        return values
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "gpu") from None
    if not torch.cuda.is_available():
        raise InvalidParameter("device", "cpu here: torch sees no accelerator", on)
    return torch.asarray(values, device=on)


def device(array: Array) -> object:
    """The device of the array."""
    return array_api_compat.device(array)


def to_numpy(array: Array) -> np.ndarray[Any, np.dtype[Any]]:
    """A numpy copy in main memory, for messages and files."""
    if isinstance(array, np.ndarray):
        return array.copy()
    here = array if on_cpu(array) else array_api_compat.to_device(array, "cpu")
    return np.from_dlpack(here).copy()


def as_double(name: str, values: Array, *, like: Array | None = None) -> Array:
    """Convert a sequence or array to double precision, in the library of `like`.

    Without `like` an array keeps its own library and a list becomes a numpy array.
    """
    if like is None:
        like = values if array_api_compat.is_array_api_obj(values) else np.zeros(1)
    xp = namespace(like)
    try:
        array = xp.asarray(values, device=device(like))
        if xp.isdtype(array.dtype, "complex floating"):
            raise TypeError
        return xp.astype(array, xp.float64, copy=False)
    except (TypeError, ValueError, RuntimeError):
        # `from None`: the array library's own message may quote the values.
        raise InvalidData(name, "a rectangular array of real numbers") from None


def _shape(array: Array) -> str:
    return f"shape {tuple(array.shape)}"


def on_cpu(array: Array) -> bool:
    """Whether the array is in main memory."""
    return "cpu" in str(device(array)).lower()


_CONSTANT = 1e-12
"""A feature that varies by less than this fraction of its size is constant up to rounding."""

_SMALLEST = 1e-100
"""The same limit in absolute terms, because squares would underflow."""


@dataclass(frozen=True, eq=False)
class Design:
    """Standardized rows of B members, multiplied by their labels.

    Attributes:
        rows: (B, d + 1, n), the label times (1, standardized features); 0 where the weight is 0.
        weights: (B, n), adding up to 1 (all 0 for a member without rows).
        total: (B,), the sum of the original weights; 1 for a member without rows.
        center: (B, d), subtracted from the features.
        scale: (B, d), the features were then divided by it; 1 for a constant feature, whose
            standardized values are 0.
    """

    rows: Array
    weights: Array
    total: Array
    center: Array
    scale: Array

    def to_features(self, parameters: Array) -> tuple[Array, Array]:
        """Intercept (B,) and coefficients (B, d) for the original features."""
        coefficients = parameters[:, 1:] / self.scale
        intercept = parameters[:, 0] - dot(coefficients, self.center)
        return intercept, coefficients

    def penalty(self) -> Array:
        """Factors (B, d + 1) of the squared parameters in ‖coefficients‖²."""
        xp = namespace(self.scale)
        free = xp.zeros_like(self.scale[:, :1])
        return xp.concat([free, 1.0 / (self.scale * self.scale)], axis=1)


def design(batch: Batch) -> Design:
    """Standardize a batch by its (weighted) means and variances."""
    xp = namespace(batch.features)
    numbers = batch.features.shape[1] * (batch.features.shape[2] + 1)
    size = members_in_cache(numbers, on_cpu=on_cpu(batch.features))
    made = [_standardized(part) for part in batch.parts(size)]
    if len(made) == 1:
        return made[0]
    joined = {
        field.name: xp.concat([getattr(part, field.name) for part in made])
        for field in fields(Design)
    }
    return Design(**joined)


def _standardized(batch: Batch) -> Design:
    xp = namespace(batch.features)
    total = xp.sum(batch.weights, axis=1)
    total = xp.where(total > 0, total, xp.ones_like(total))
    share = batch.weights / total[:, None]
    columns = contiguous(xp.matrix_transpose(batch.features))
    center = times_weights(columns, share)
    columns = columns - center[:, :, None]
    deviation = xp.sqrt(times_weights(columns * columns, share))
    smallest = xp.maximum(_CONSTANT * xp.abs(center), scalar(_SMALLEST, like=total))
    varies = deviation > smallest
    scale = xp.where(varies, deviation, xp.ones_like(deviation))
    factor = xp.astype(varies, total.dtype) / scale
    present = batch.labels * xp.astype(batch.weights > 0, total.dtype)
    columns *= factor[:, :, None]
    columns *= present[:, None, :]
    return Design(
        rows=contiguous(xp.concat([present[:, None, :], columns], axis=1)),
        weights=share,
        total=total,
        center=center,
        scale=scale,
    )


def diagonal(values: Array) -> Array:
    """Diagonal matrices (B, p, p) with `values` (B, p) on the diagonal."""
    return values[:, :, None] * identity(values.shape[1], like=values)


def contiguous(array: Array) -> Array:
    """The same array in row-major order, in which the products below are several times faster."""
    xp = namespace(array)
    return xp.reshape(xp.reshape(array, (-1,)), array.shape)


def times_rows(rows: Array, parameters: Array) -> Array:
    """Σ_k parameters[b, k] rows[b, k, i], shape (B, n): the margins of `parameters`."""
    return (parameters[:, None, :] @ rows)[:, 0, :]


def times_weights(rows: Array, weights: Array) -> Array:
    """Σ_i rows[b, k, i] weights[b, i], shape (B, d + 1)."""
    return (rows @ weights[:, :, None])[:, :, 0]


def dot(left: Array, right: Array) -> Array:
    """Σ_i left[b, i] right[b, i], shape (B,)."""
    xp = namespace(left)
    return xp.vecdot(left, right)


def gram(rows: Array, weights: Array) -> Array:
    """Σ_i weights[b, i] rows[b, j, i] rows[b, k, i], shape (B, d + 1, d + 1)."""
    xp = namespace(rows)
    return (rows * weights[:, None, :]) @ xp.matrix_transpose(rows)


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted moments of features divided by `scale`.

    Attributes:
        difference: (B, d), mean of class +1 minus mean of class −1; 0 unless both have rows.
        middle: (B, d), the point halfway between them.
        covariance: (B, d, d), pooled within the classes (divisor: the total weight).
        scale: (B,), the largest feature in size; products of four features must not overflow.
    """

    difference: Array
    middle: Array
    covariance: Array
    scale: Array


def moments(batch: Batch) -> Moments:
    """Moments of every member of the batch."""
    xp = namespace(batch.features)
    columns = contiguous(xp.matrix_transpose(batch.features))
    present = xp.astype(batch.weights > 0, columns.dtype)[:, None, :]
    largest = xp.max(xp.abs(columns * present), axis=(1, 2))
    scale = xp.where(largest > 0, largest, xp.ones_like(largest))
    columns = columns * (present / scale[:, None, None])
    zero, least = xp.zeros_like(batch.weights), scalar(1e-300, like=scale)
    shares = []
    for mask in (batch.labels > 0, batch.labels < 0):
        weights = xp.where(mask, batch.weights, zero)
        total = xp.maximum(xp.sum(weights, axis=1, keepdims=True), least)
        shares.append(weights / total)
    high, low = (times_weights(columns, share) for share in shares)
    is_high = xp.astype(batch.labels > 0, scale.dtype)[:, None, :]
    centered = columns - high[:, :, None] * is_high - low[:, :, None] * (1.0 - is_high)
    total = xp.maximum(xp.sum(batch.weights, axis=1, keepdims=True), least)
    return Moments(
        difference=high - low,
        middle=0.5 * (high + low),
        covariance=gram(centered, batch.weights / total),
        scale=scale,
    )
