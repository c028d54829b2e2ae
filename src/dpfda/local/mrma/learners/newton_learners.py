"""Learners by Newton's method: logistic regression, functional distance weighted discrimination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda._validate import non_negative
from dpfda.errors import InvalidParameter
from dpfda.local.mrma.learners._arrays import Array, Design, as_double, diagonal, namespace
from dpfda.local.mrma.learners._newton import DistanceWeightedLoss, LogisticLoss, NewtonLearner


@dataclass(frozen=True, kw_only=True)
class Logistic(NewtonLearner, name="logistic"):
    """Logistic regression: minimize Σ w log(1 + e^{−y·score}) + ½ l2 ‖coefficients‖².

    The intercept is not penalized; `l2` is the 1/C of scikit-learn's ``LogisticRegression``.
    With l2 = 0 and separable classes no maximum exists; the result is then the one for a ridge of
    1e-10 on standardized features, finite and on the separating side. The same ridge chooses the
    answer of least norm when features repeat each other or outnumber the rows; where the data
    determine the answer it changes nothing that six digits show.

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
        """Plain and penalized."""
        return (cls(), cls(l2=1.0))

    def _penalty(self, data: Design, gram: Array) -> Array:
        return diagonal(self.l2 / data.total[:, None] * data.penalty())


@dataclass(frozen=True, kw_only=True)
class DWD(NewtonLearner, name="dwd"):
    """Distance weighted discrimination with a penalized slope function (Sang et al. 2022).

    The score of a curve x = Σ z_k φ_k is α + ∫ x β with β = Σ b_k φ_k, that is α + bᵀGz with G the
    Gram matrix of the basis. Minimizes the mean of V(y·score) plus `smoothing` · J(β), where
    V(m) = 1 − m up to m = ½ and 1/(4m) beyond: every row keeps pulling, near ones more.

    J(β) = bᵀΩb. Without `roughness`, Ω = G and J is the squared L² norm of β (a ridge). With
    Ω_kl = ∫ φ_k'' φ_l'' it is the penalty of the reproducing kernel Hilbert space W₂² in which
    Sang et al. work; straight lines β then go unpenalized. Coefficients of the returned model act
    on z: they are Gb.

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
        """2λ G⁻¹ΩG⁻¹ in the standardized coefficients, with the intercept free."""
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


def _plain_matrix(values: Any) -> tuple[tuple[float, ...], ...]:
    """A public matrix as tuples (frozen, ready for JSON), symmetric positive semidefinite."""
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
