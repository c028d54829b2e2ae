"""The nearest class mean."""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.local.mrma.learners._arrays import Array, Batch
from dpfda.local.mrma.learners._design import dot
from dpfda.local.mrma.learners._moments import moments
from dpfda.local.mrma.learners.base import Learner


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
