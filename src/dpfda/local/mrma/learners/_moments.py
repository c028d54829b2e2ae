"""Class means and pooled covariance of every member, for the learners built on centroids."""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.local.mrma.learners._arrays import Array, Batch, namespace, scalar
from dpfda.local.mrma.learners._design import contiguous, gram, times_weights


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
