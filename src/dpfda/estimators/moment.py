"""`MomentClassifier`: one perturbed product of label and curve from everybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpfda.curves import CurveEncoder
from dpfda.estimators.base import StudyClassifier
from dpfda.privacy.ledger import BaseLedger


@dataclass(eq=False, repr=False)
class MomentClassifier(StudyClassifier):
    """Average y z* over everybody: a linear classifier through the public center (methods 8.1).

    The server keeps two sums, whatever the number of people. Strong where the public center lies
    between the classes, weak where it does not; `LocalCurveClassifier` finds the center itself.

    Args:
        encoder: how a curve becomes a vector; the default suits curves of moderate size.
        epsilon: what each person spends.
        randomizer: registered name of the randomizer of vectors.
        classes: the public label set; must be given unless a seed makes this a simulation.
        ledger: budget of the data over all studies: everybody spends ε before anybody is asked.
        random_state: None draws from the operating system; an integer is a simulation.

    Privacy:
        ε-LDP for curve and label of one person: y z* lies in the box that z* lies in.

    Example:
        >>> from dpfda.datasets import simulate_001
        >>> study = simulate_001(3000, 0)
        >>> classifier = MomentClassifier(epsilon=1.0, random_state=0)
        >>> classifier.fit(study.X, study.y).guarantee_.epsilon
        1.0
    """

    protects = "both"

    epsilon: float = 1.0
    _: KW_ONLY
    encoder: CurveEncoder | None = None
    randomizer: str = "piecewise"
    classes: Sequence[Any] | None = None
    ledger: BaseLedger | None = None
    random_state: int | None = None

    def _study_encoder(self) -> CurveEncoder:
        if self.encoder is None:
            return CurveEncoder("cosine", n_basis=4, rescale="tanh", scale=1.0)
        return self._encoder()

    def _design(self, encoder: CurveEncoder) -> dict[str, Any]:
        return {"name": "moments", "randomizer": self.randomizer}
