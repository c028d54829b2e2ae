"""Linear learners from class moments and by Newton's method.

Class moments: functional conjugate gradient, and the nearest class mean. Newton's method: logistic
regression, and functional distance weighted discrimination.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import non_negative, whole
from dpfda.errors import InvalidParameter
from dpfda.local.mrma.learners._arrays import (
    Array,
    Batch,
    Design,
    Moments,
    as_double,
    diagonal,
    dot,
    moments,
    namespace,
    times_rows,
)
from dpfda.local.mrma.learners._newton import DistanceWeightedLoss, LogisticLoss, NewtonLearner
from dpfda.local.mrma.learners.base import Learner

_BREAKDOWN = 1e-12
"""If curvature or residual are below this share of their first size, the iteration stops."""

_NO_VARIATION = 1e-24
"""A covariance below this, for features of size 1, is a rounding error."""


@dataclass(frozen=True, kw_only=True)
class ConjugateGradient(Learner, name="conjugate_gradient"):
    """Project on ψ, an early conjugate gradient iterate of Kψ = μ₁ − μ₀ (Kraus & Stefanucci 2019).

    K is the covariance operator within the classes and μ₁ − μ₀ the difference of the mean curves.
    Stopping after a few steps regularizes: one step projects on μ₁ − μ₀ itself (the nearest
    centroid rule), and d steps project on K⁻¹(μ₁ − μ₀) (linear discriminant analysis). All inner
    products are those of L²: with the Gram matrix G, K acts on coefficients as SG, where S is their
    covariance. The score is ⟨x − (μ₁ + μ₀)/2, ψ⟩.

    If K = 0 (no variation within the classes), ψ is μ₁ − μ₀ itself, and if μ₁ = μ₀, every score is
    0. Steps beyond the rank of K change nothing.

    Attributes:
        steps: number of steps, at least 1. One step is best for noisy reports; about four steps
            reproduce the published results on curves without noise best.

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
        # Features were divided by s, so K by s², the difference by s, and ψ was multiplied by s.
        return (
            -dot(coefficients, found.middle),
            coefficients / found.scale[:, None],
        )

    def _slope(self, found: Moments, gram: Array) -> Array:
        """The coefficients (B, d) of ψ."""
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
    the basis, the score is (z − m)ᵀ G (μ₁ − μ₀), half the difference of the squared distances.

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


@dataclass(frozen=True, kw_only=True)
class Logistic(NewtonLearner, name="logistic"):
    """Logistic regression: minimize Σ w log(1 + e^{−y·score}) + ½ l2 ‖coefficients‖².

    The intercept is not penalized; `l2` is the 1/C of scikit-learn's ``LogisticRegression``.
    With l2 = 0 and separable classes no maximum exists. The result is then the separating solution
    with a ridge of 1e-10 on standardized features, which is finite. If features are repeated or
    outnumber the rows, the ridge selects the solution with least norm. If the data determine the
    solution, the ridge does not change its first six digits.

    Attributes:
        l2: weight of the penalty, at least 0.

    Examples:
        >>> models = Logistic().fit([[[-2.0], [-1.0], [1.0], [2.0]]], [[-1, 1, -1, 1]])
        >>> models.coefficients.round(4)
        array([[0.4196]])
    """

    margin_loss = LogisticLoss()

    l2: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative("l2", self.l2)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Without and with a penalty."""
        return (cls(), cls(l2=1.0))

    def _penalty(self, data: Design, gram: Array) -> Array:
        return diagonal(self.l2 / data.total[:, None] * data.penalty())


@dataclass(frozen=True, kw_only=True)
class DWD(NewtonLearner, name="dwd"):
    """Distance weighted discrimination with a penalized slope function (Sang et al. 2022).

    The score of a curve x = Σ z_k φ_k is α + ∫ x β with β = Σ b_k φ_k, that is α + bᵀGz with G the
    Gram matrix of the basis. Minimizes the mean of V(y·score) plus `smoothing` · J(β), where
    V(m) = 1 − m for m ≤ ½ and 1/(4m) otherwise: all rows contribute, those near the boundary more.

    J(β) = bᵀΩb. Without `roughness`, Ω = G and J is the squared L² norm of β (a ridge). With
    Ω_kl = ∫ φ_k'' φ_l'' it is the penalty of the reproducing kernel Hilbert space W₂² in which
    Sang et al. work; straight lines β are then not penalized. The coefficients of the returned
    model are Gb, because they are applied to z.

    Attributes:
        smoothing: λ, weight of the penalty against the mean loss, at least 0.
        roughness: Ω as rows of a symmetric positive semidefinite matrix, or None.

    Examples:
        >>> models = DWD(smoothing=0.1).fit([[[-2.0], [-1.0], [1.0], [2.0]]], [[-1, -1, 1, 1]])
        >>> models.scores([[2.0]]).round(3)
        array([[1.957]])
    """

    margin_loss = DistanceWeightedLoss()

    smoothing: float = 0.01
    roughness: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative("smoothing", self.smoothing)
        if self.roughness is not None:
            object.__setattr__(self, "roughness", _plain_matrix(self.roughness))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Ridge, weak ridge, and a roughness penalty that leaves one direction free (d = 3)."""
        return (cls(), cls(smoothing=1e-4), cls(roughness=((1, -1, 0), (-1, 2, -1), (0, -1, 1))))

    def _penalty(self, data: Design, gram: Array) -> Array:
        """2λ G⁻¹ΩG⁻¹ for the standardized coefficients, without a penalty on the intercept."""
        xp = namespace(gram)
        inverse = xp.linalg.inv(gram)
        middle = inverse
        if self.roughness is not None:
            omega = as_double("roughness", self.roughness, like=gram)
            if omega.shape != gram.shape:
                raise InvalidParameter(
                    "roughness", f"a matrix of shape {tuple(gram.shape)}", tuple(omega.shape)
                )
            middle = inverse @ omega @ inverse
        rescaled = 1.0 / data.scale
        block = (2.0 * self.smoothing) * rescaled[:, :, None] * middle * rescaled[:, None, :]
        column = xp.zeros_like(block[:, :, :1])
        row = xp.concat([column[:, :1, :], xp.zeros_like(block[:, :1, :])], axis=2)
        return xp.concat([row, xp.concat([column, block], axis=2)], axis=1)


def _plain_matrix(values: Array) -> tuple[tuple[float, ...], ...]:
    """Check a public, symmetric positive semidefinite matrix, and convert it to tuples for JSON."""
    rule = "a symmetric positive semidefinite matrix"
    try:
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("roughness", rule, values) from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.all(np.isfinite(matrix)):
        raise InvalidParameter("roughness", rule, values)
    size = float(np.max(np.abs(matrix))) or 1.0
    skew, least = np.max(np.abs(matrix - matrix.T)), np.linalg.eigvalsh(matrix)[0]
    if skew > 1e-9 * size or least < -1e-9 * size:
        raise InvalidParameter("roughness", rule, values)
    return tuple(tuple(float(value) for value in row) for row in matrix)
