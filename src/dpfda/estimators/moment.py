"""`MomentClassifier`: one perturbed product of label and curve from everybody."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from dpfda.curves import CurveEncoder
from dpfda.estimators.base import StudyClassifier
from dpfda.face.curve_classifier import EncodedClassifier
from dpfda.protocol.plan import Protects, StudyPlan


@dataclass(eq=False, repr=False)
class MomentClassifier(EncodedClassifier, StudyClassifier):
    """Average y z* over everybody: a linear classifier through the public center (methods 8.1).

    The server keeps two sums, whatever the number of people. Strong where the public center lies
    between the classes, weak where it does not; `LocalCurveClassifier` finds the center itself.

    Args:
        epsilon: what each person spends.
        encoder: how a row becomes a vector in [-1, 1]^d; by default made of the public ranges, or,
            without any, four cosines that suit curves of moderate size.
        value_range: public (low, high) of x(t); values outside are clipped.
        domain_range: public (start, end) of t; by default that of the shared grid points, [0, 1]
            without any, and an FDataGrid's own; must be given for pairs (t, x).
        feature_ranges: for a table instead of curves: (low, high) of all columns, one pair a
            column, or a mapping from column to (low, high) or to its categories.
        mechanism: registered name of the mechanism of vectors.
        classes: the public label set; must be given unless a seed makes this a simulation.
        unit: whose data a row is, or all rows of one group.
        ledger: budget of the data over all studies: everybody spends ε before anybody is asked.
        random_state: None draws from the operating system; an integer, a seed sequence or a source
            makes a simulation.

    Privacy:
        ε-LDP for curve and label of one person: y z* lies in the box that z* lies in.

    Example:
        >>> from dpfda.datasets import simulate_001
        >>> study = simulate_001(3000, 0)
        >>> classifier = MomentClassifier(epsilon=1.0, random_state=0)
        >>> classifier.fit(study.X, study.y).guarantee_.epsilon
        1.0
    """

    protects: ClassVar[Protects] = "both"  # type: ignore[misc]

    epsilon: float = 1.0
    _: KW_ONLY
    mechanism: str = "piecewise"

    def _curve_encoder(self, value_range: Any, domain: tuple[float, float]) -> CurveEncoder:
        if value_range is not None:
            return super()._curve_encoder(value_range, domain)
        return CurveEncoder("cosine", n_basis=4, domain_range=domain, rescale="tanh", scale=1.0)

    def _plan(self, X: Any, grid_points: Any, **known: Any) -> StudyPlan:
        design = {"name": "moments", "mechanism": self.mechanism}
        return StudyPlan(encoder=self._encoder(X, grid_points), design=design, **known)
