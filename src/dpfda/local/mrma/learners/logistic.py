"""Logistic regression by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dpfda._validate import non_negative
from dpfda.local.mrma.learners._arrays import Array
from dpfda.local.mrma.learners._design import Design, diagonal
from dpfda.local.mrma.learners._losses import LogisticLoss
from dpfda.local.mrma.learners._newton import NewtonLearner


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
