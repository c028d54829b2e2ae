"""Learners from class moments: functional conjugate gradient, and the nearest class mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dpfda._validate import whole
from dpfda.local.mrma.learners._arrays import (
    Array,
    Batch,
    Moments,
    dot,
    moments,
    namespace,
    times_rows,
)
from dpfda.local.mrma.learners.base import Learner

_BREAKDOWN = 1e-12
"""Curvature or residual below this share of its first size: the Krylov space is used up."""

_NO_VARIATION = 1e-24
"""A covariance below this, for features of size 1, is the rounding of a covariance of 0."""


@dataclass(frozen=True, kw_only=True)
class ConjugateGradient(Learner, name="conjugate_gradient"):
    """Project on ψ, an early conjugate gradient iterate of Kψ = μ₁ − μ₀ (Kraus & Stefanucci 2019).

    K is the covariance operator within the classes and μ₁ − μ₀ the difference of the mean curves.
    Stopping after a few steps regularizes: 1 step projects on μ₁ − μ₀ itself (the nearest
    centroid rule), d steps on K⁻¹(μ₁ − μ₀) (linear discriminant analysis). All inner products are
    those of L²: with the Gram matrix G, K acts on coefficients as SG, S their covariance.
    score = ⟨x − (μ₁ + μ₀)/2, ψ⟩.

    Where K has nothing to say (no variation within the classes) ψ is μ₁ − μ₀ itself, and where
    μ₁ = μ₀ every score is 0. Steps beyond what K's rank allows change nothing.

    Attributes:
        steps: number of steps, at least 1. One step suffers least from noisy reports; about four
            come closest to the published results on curves without noise.

    Examples:
        >>> features = [[[0.0, 0.0], [1.0, 2.0], [3.0, 0.0], [4.0, 2.0]]]
        >>> models = ConjugateGradient(steps=2).fit(features, [[-1, -1, 1, 1]])
        >>> (models.scores([[2.0, 1.0], [3.0, 0.0]]) > 1e-9)
        array([[False,  True]])
    """

    steps: int = 1

    def __post_init__(self) -> None:
        whole("steps", self.steps)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """One, two and more steps than features."""
        return (cls(), cls(steps=2), cls(steps=8))

    def _fit_chunk(self, batch: Batch, gram: Array) -> tuple[Array, Array]:
        found = moments(batch)
        coefficients = self._slope(found, gram) @ gram
        # Features were divided by the scale s: K by s², the difference by s, so ψ grew by s.
        return (
            -dot(coefficients, found.middle),
            coefficients / found.scale[:, None],
        )

    def _slope(self, found: Moments, gram: Array) -> Array:
        """Coefficients (B, d) of ψ."""
        xp = namespace(gram)
        residual = found.difference
        direction = residual
        slope = xp.zeros_like(residual)
        size = first = dot(residual @ gram, residual)
        live = first > 0
        one = xp.ones_like(first)
        variation = xp.linalg.trace(found.covariance @ gram)
        least = xp.where(variation > _NO_VARIATION, _BREAKDOWN * variation, 1e300 * one)
        for step in range(self.steps):
            image = times_rows(found.covariance, direction @ gram)
            curvature = dot(direction @ gram, image)
            length = dot(direction @ gram, direction)
            moving = live & (curvature > least * length)
            share = xp.where(moving, size / xp.where(moving, curvature, one), xp.zeros_like(one))
            if step == 0:
                share = xp.where(moving, share, xp.astype(live, one.dtype))
            slope = slope + share[:, None] * direction
            residual = residual - share[:, None] * image
            smaller = dot(residual @ gram, residual)
            live = moving & (smaller > _BREAKDOWN * first)
            ratio = xp.where(live, smaller / xp.where(live, size, one), xp.zeros_like(one))
            direction = residual + ratio[:, None] * direction
            size = smaller
        return slope


@dataclass(frozen=True, kw_only=True)
class NearestCentroid(Learner, name="nearest_centroid"):
    """Assign a curve to the class whose mean curve is nearer in L².

    With μ₁, μ₀ the class means of the coefficients, m the point halfway and G the Gram matrix of
    the basis, score = (z − m)ᵀ G (μ₁ − μ₀): half the difference of the squared distances.

    Examples:
        >>> models = NearestCentroid().fit([[[0.0, 0.0], [2.0, 0.0]]], [[-1, 1]])
        >>> models.coefficients, models.intercept
        (array([[2., 0.]]), array([-2.]))
    """

    def _fit_chunk(self, batch: Batch, gram: Array) -> tuple[Array, Array]:
        found = moments(batch)
        coefficients = found.difference @ gram
        return (
            -dot(coefficients, found.middle) * found.scale * found.scale,
            coefficients * found.scale[:, None],
        )
