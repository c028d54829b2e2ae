"""What studies by one posterior are told in advance, and all that they may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from dpfda import _validate
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.randomized_response import best_questions
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import Design, StudyPlan, Terms, check_shares
from dpfda.protocol.tasks.questions import asks_confidence

_MOST = 30  # questions in one row
_LENGTHS = range(10**51)  # any: where vectors are cut costs nobody anything
CLIP = 3.0
"""Standard deviations of a feature that vectors are made of."""


def most_questions(features: int) -> int:
    """k at most: the label, and one question about each feature.

    Examples:
        >>> most_questions(12), most_questions(100)
        (13, 30)
    """
    return min(features + 1, _MOST)


@dataclass(frozen=True, kw_only=True)
class FeatureDesign(Design):
    """What is told in advance of features.

    Attributes:
        ordered: whether the first features matter most; by default where the encoder's functions
            are ordered.
        center_known: the middle of each feature is 0 by construction.
        n_features: only the first so many features are asked about; by default all.
        evaluation_share: share of people kept for an honest error estimate at the end.
    """

    ordered: bool | None = None
    center_known: bool = False
    n_features: int | None = None
    evaluation_share: float = 0.0

    def __post_init__(self) -> None:
        check_shares(self)
        if self.n_features is not None:
            _validate.whole("n_features", self.n_features)

    def settled(self, encoder: CurveEncoder) -> Self:
        """The same design with nothing left to a default that depends on the encoder."""
        if self.n_features is not None:
            _validate.whole("n_features", self.n_features, most=encoder.n_features)
        return replace(
            self, ordered=encoder.basis.ordered if self.ordered is None else self.ordered
        )

    def dimension(self, encoder: CurveEncoder) -> int:
        """d, how many features are asked about."""
        return self.n_features or encoder.n_features

    def kept(self, plan: StudyPlan) -> tuple[Step, Step]:
        """Who judges the finished model, and who says how sure it may be."""
        sure = int(getattr(self, "temperature_share", 0.0) * plan.n_people)
        judges = Step("evaluation", int(self.evaluation_share * plan.n_people))
        return judges, Step("temperature", sure)


@dataclass(frozen=True, kw_only=True)
class ClassDesign(FeatureDesign):
    """And of classes.

    Attributes:
        class_share: of two classes, the public share of class 1.
        temperature_share: share of people who say how sure the finished classifier may be.
        spread_differs: classes may differ in how far people are from the middle of a feature, so
            that distances from it are told beside the features.
    """

    class_share: float | None = None
    temperature_share: float = 0.0
    spread_differs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.class_share is not None:
            _validate.fraction("class_share", self.class_share)


@dataclass(frozen=True, kw_only=True)
class AnswersDesign(ClassDesign, name="answers"):
    """Yes-or-no questions to two classes of people, chosen by what earlier answers said.

    Examples:
        >>> AnswersDesign().settled(CurveEncoder("cosine", n_basis=3)).ordered
        True
    """

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single features and the label, and about the finished classifier.

        Each of them protects curve and label, whatever the plan promises.
        """
        if plan.n_classes != 2:
            raise InvalidParameter("classes", "two for a study of answers", plan.n_classes)
        d = self.settled(plan.encoder).dimension(plan.encoder)
        folds = d if self.spread_differs else 0
        return {
            "stump": {
                "k": range(1, most_questions(d) + 1),
                "coordinates": range(d + folds),
                "positive": plan.positives,
                "uses_label": (False, True),
                **({"f": (0, folds)} if folds else {}),
            },
            "evaluation": {"dimension": d + folds, "f": folds, "clipped": True, "m": 1},
            **asks_confidence(self, plan, dimension=d + folds, folds=folds),
        }


@dataclass(frozen=True, kw_only=True)
class VectorDesign(ClassDesign, name="vectors"):
    """Vectors of features and label, of two or more classes."""

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single features, vectors of features, and the finished classifier.

        Each of them protects curve and label, whatever the plan promises.
        """
        if self.class_share is not None and plan.n_classes != 2:
            rule = f"left out with {plan.n_classes} classes"
            raise InvalidParameter("class_share", rule, self.class_share)
        d = self.settled(plan.encoder).dimension(plan.encoder)
        folds = d if self.spread_differs else 0
        told = d + folds
        labelled = ("residual",) if plan.n_classes == 2 else ("residual", "classes")
        return {
            **_about_columns(plan, d, told=told, folds=folds, statistics=("spread", *labelled)),
            "evaluation": {"dimension": told, "f": folds, "clipped": True, "m": plan.n_scores},
            **asks_confidence(self, plan, dimension=told, folds=folds),
        }


@dataclass(frozen=True, kw_only=True)
class NumberDesign(FeatureDesign, name="vector_numbers"):
    """Vectors of features and a number that is predicted instead of a label.

    The number is the first column of what people hold, so that all questions about features can be
    asked about it too, and every vector may be made of both.
    """

    predicts_numbers: ClassVar[bool] = True

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single columns, vectors, and how far the finished model is off.

        Each of them protects curve and target, whatever the plan promises.
        """
        d = 1 + self.settled(plan.encoder).dimension(plan.encoder)
        return {
            **_about_columns(plan, d, told=d, folds=0, statistics=("spread", "cross")),
            "evaluation": {"dimension": d, "clipped": True, "m": 3},
        }


def _about_columns(
    plan: StudyPlan, d: int, *, told: int, folds: int, statistics: tuple[str, ...]
) -> dict[str, Terms]:
    """Questions about single columns, and vectors of them."""
    own = {"d": (d, told), "f": (0, folds)} if folds else {"d": d}
    return {
        "stump": {
            "k": best_questions(plan.epsilon, most=d),
            "coordinates": range(d),
            "positive": 1,
            "uses_label": False,
        },
        "summary": {
            **own,
            "classes": max(plan.n_classes, 1),
            "q": range(1, told + 1),
            "statistic": ("products", *statistics),
            "clip": CLIP,
            "c": (1, max(plan.n_classes, 1)),
            "w": range(1, told + 2),
            "s": (1, max(plan.n_scores, 1)),
            "t": range(1, told + 2),
            "reach": _LENGTHS,
            "limit": _LENGTHS,
        },
    }
