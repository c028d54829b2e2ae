"""A batch of training sets as solvers want it: centered, scaled, one row of numbers per feature.

Reports at a small ε carry noise a hundred times the signal, so features arrive on any scale.
Every solver works on features of mean 0 and variance 1; what it finds is carried back at the end.

Class means and pooled covariance of every member, for the learners built on centroids.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from dpfda.local.mrma.learners._arrays import (
    Array,
    Batch,
    identity,
    members_in_cache,
    namespace,
    on_cpu,
    scalar,
)

_CONSTANT = 1e-12
"""A feature that varies by less than this fraction of its size is constant up to rounding."""

_SMALLEST = 1e-100
"""The same in absolute terms, where squares would underflow."""


@dataclass(frozen=True, eq=False)
class Design:
    """Standardized rows of B members, multiplied by their labels.

    Attributes:
        rows: (B, d + 1, n), the label times (1, standardized features); 0 where the weight is 0.
        weights: (B, n), adding up to 1 (all 0 for a member without rows).
        total: (B,), what they added up to before; 1 for a member without rows.
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
        """Intercept (B,) and coefficients (B, d) of what was fitted on the standardized rows."""
        coefficients = parameters[:, 1:] / self.scale
        intercept = parameters[:, 0] - dot(coefficients, self.center)
        return intercept, coefficients

    def penalty(self) -> Array:
        """(B, d + 1): the parameters' share in ‖coefficients‖²."""
        xp = namespace(self.scale)
        free = xp.zeros_like(self.scale[:, :1])
        return xp.concat([free, 1.0 / (self.scale * self.scale)], axis=1)


def design(batch: Batch) -> Design:
    """Standardize a batch with its own (weighted) means and variances."""
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
    """The same numbers laid out row by row: the products below run several times faster on it."""
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
