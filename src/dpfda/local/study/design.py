"""Yes-or-no questions to two classes of people, chosen by what earlier answers said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpfda import _validate
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.protocol.design import Design, Terms, check_shares
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.temperature import asks_confidence

_MOST = 30  # questions in one row


def most_questions(features: int) -> int:
    """k at most: the label, and one question about each feature.

    Examples:
        >>> most_questions(12), most_questions(100)
        (13, 30)
    """
    return min(features + 1, _MOST)


@dataclass(frozen=True, kw_only=True)
class AnswersDesign(Design, name="answers"):
    """What is public beside the encoder, and kept back for the end.

    Attributes:
        ordered: whether the first features matter most; by default where the encoder's functions
            are ordered.
        center_known: the middle of each feature is 0 by construction.
        class_share: the public share of class 1.
        n_features: only the first so many features are asked about; by default all.
        evaluation_share: share of people kept for an honest error estimate at the end.
        temperature_share: share of people who say how sure the finished classifier may be.

    Examples:
        >>> AnswersDesign().settled(CurveEncoder("cosine", n_basis=3)).ordered
        True
    """

    ordered: bool | None = None
    center_known: bool = False
    class_share: float | None = None
    n_features: int | None = None
    evaluation_share: float = 0.0
    temperature_share: float = 0.0

    def __post_init__(self) -> None:
        check_shares(self)
        if self.n_features is not None:
            _validate.whole("n_features", self.n_features)
        if self.class_share is not None:
            _validate.fraction("class_share", self.class_share)

    def settled(self, encoder: CurveEncoder) -> AnswersDesign:
        """The same design with nothing left to a default that depends on the encoder."""
        if self.n_features is not None:
            _validate.whole("n_features", self.n_features, most=encoder.n_features)
        return replace(
            self, ordered=encoder.basis.ordered if self.ordered is None else self.ordered
        )

    def dimension(self, encoder: CurveEncoder) -> int:
        """d, how many features are asked about."""
        return self.n_features or encoder.n_features

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single features and the label, and about the finished classifier.

        Each of them protects curve and label, whatever the plan promises.
        """
        if plan.n_classes != 2:
            raise InvalidParameter("classes", "two for a study of answers", plan.n_classes)
        d = self.settled(plan.encoder).dimension(plan.encoder)
        return {
            "stump": {
                "k": range(1, most_questions(d) + 1),
                "coordinates": range(d),
                "positive": plan.positives,
                "uses_label": (False, True),
            },
            "evaluation": {"dimension": d, "clipped": True, "m": 1},
            **asks_confidence(self, plan, dimension=d),
        }
