"""The linear support vector machine, with hinge or squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dpfda._validate import one_of, positive
from dpfda.local.mrma.learners._arrays import Array, Batch, namespace
from dpfda.local.mrma.learners._design import Design, design, diagonal
from dpfda.local.mrma.learners._hinge import middle_intercept, minimize_hinge
from dpfda.local.mrma.learners._newton import NewtonLearner, SquaredHingeLoss


@dataclass(frozen=True, kw_only=True)
class LinearSVM(NewtonLearner, name="linear_svm"):
    """Linear SVM: minimize ½ ‖coefficients‖² + C Σ w·loss(y·score).

    The loss is the hinge max(0, 1 − m), as in scikit-learn's ``SVC(kernel="linear")``, or its
    square. The intercept is not penalized. Where the hinge does not determine it (no row exactly
    on the margin), it is the middle of the interval of solutions, as in LIBSVM. With noisy features
    and unequal classes the solution is often a constant: its coefficients are then exactly 0.

    Attributes:
        C: weight of the rows against the penalty, above 0.
        loss: ``"hinge"`` or ``"squared_hinge"``.
        tolerance: how far the optimality conditions may be missed (hinge), or the largest change
            of a score in the last Newton step (squared hinge).

    Examples:
        >>> models = LinearSVM(C=10.0).fit([[[-2.0], [-1.0], [1.0], [3.0]]], [[-1, -1, 1, 1]])
        >>> models.scores([[-1.0], [0.5], [1.0]]).round(6)
        array([[-1. ,  0.5,  1. ]])
    """

    margin_loss = SquaredHingeLoss()

    C: float = 1.0
    loss: str = "hinge"
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("C", self.C)
        one_of("loss", self.loss, ("hinge", "squared_hinge"))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Both losses."""
        return (cls(), cls(loss="squared_hinge"))

    def _fit_chunk(self, batch: Batch, gram: Array) -> tuple[Array, Array]:
        if self.loss == "squared_hinge":
            return super()._fit_chunk(batch, gram)
        data = design(batch)
        return data.to_features(self._fit_hinge(batch, data, self._diagonal(data)))

    def _penalty(self, data: Design, gram: Array) -> Array:
        return diagonal(self._diagonal(data))

    def _diagonal(self, data: Design) -> Array:
        """The diagonal of the penalty, where the weights of a member add up to 1."""
        return data.penalty() / (self.C * data.total[:, None])

    def _fit_hinge(self, batch: Batch, data: Design, penalty: Array) -> Array:
        xp = namespace(data.rows)
        count = xp.sum(xp.astype(data.weights > 0, data.weights.dtype), axis=1, keepdims=True)
        count = xp.maximum(count, xp.ones_like(count))
        # The solver likes costs near 1, so the whole problem is multiplied by the rows' number.
        costs = data.weights * count
        parameters, pinned = minimize_hinge(
            data.rows,
            costs,
            penalty=penalty * count,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        # With too little signal the solution has no slope at all; rounding must not pretend one.
        flat = xp.max(xp.abs(parameters[:, 1:]), axis=1, keepdims=True) <= 10.0 * self.tolerance
        slopes = xp.where(flat, xp.zeros_like(parameters[:, 1:]), parameters[:, 1:])
        parameters = xp.concat([parameters[:, :1], slopes], axis=1)
        if bool(xp.all(pinned)):
            return parameters
        middle = middle_intercept(data.rows, costs, parameters, labels=batch.labels)
        intercept = xp.where(pinned, parameters[:, 0], middle)
        return xp.concat([intercept[:, None], parameters[:, 1:]], axis=1)
