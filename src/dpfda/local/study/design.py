"""Designs of the studies by one posterior: public settings, and allowed questions."""

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

_MOST = 30  # questions in one reply
_LENGTHS = range(10**51)  # any length: it does not affect the guarantee
CLIP = 3.0
"""Standard deviations at which features of vectors are clipped."""


def most_questions(features: int) -> int:
    """The largest number of questions in a reply: the label, and one question about each feature.

    Examples:
        >>> most_questions(12), most_questions(100)
        (13, 30)
    """
    return min(features + 1, _MOST)


@dataclass(frozen=True, kw_only=True)
class FeatureDesign(Design):
    """Settings about features.

    Attributes:
        ordered: whether early features are more likely to differ; by default, whether the basis
            functions of the encoder are ordered.
        center_known: whether the center of each feature is 0 by construction.
        n_features: number of first features that are used; by default all.
        evaluation_share: share of participants who evaluate the finished model.
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
        """The same design, with defaults that depend on the encoder filled in."""
        if self.n_features is not None:
            _validate.whole("n_features", self.n_features, most=encoder.n_features)
        return replace(
            self, ordered=encoder.basis.ordered if self.ordered is None else self.ordered
        )

    def dimension(self, encoder: CurveEncoder) -> int:
        """d, the number of features that are used."""
        return self.n_features or encoder.n_features

    def last_steps(self, plan: StudyPlan) -> tuple[Step, Step]:
        """The two last steps: evaluation of the finished model, and calibration before it."""
        calibration = int(getattr(self, "temperature_share", 0.0) * plan.n_people)
        evaluation = int(self.evaluation_share * plan.n_people)
        return Step("evaluation", evaluation), Step("temperature", calibration)


@dataclass(frozen=True, kw_only=True)
class ClassDesign(FeatureDesign):
    """Settings about features and classes.

    Attributes:
        class_share: for two classes, the public share of class 1.
        temperature_share: share of participants who calibrate the probabilities.
        spread_differs: whether classes may differ in spread; distances of features from their
            centers are then used as well.
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
    """Two classes by yes/no questions, each batch chosen by the answers to earlier ones.

    Examples:
        >>> AnswersDesign().settled(CurveEncoder("cosine", n_basis=3)).ordered
        True
    """

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single features and the label, and about the finished classifier.

        All of them protect curve and label, even if the plan promises less.
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
    """Two or more classes by vectors of features and label."""

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single features, vectors of features, and the finished classifier.

        All of them protect curve and label, even if the plan promises less.
        """
        if self.class_share is not None and plan.n_classes != 2:
            rule = f"left out with {plan.n_classes} classes"
            raise InvalidParameter("class_share", rule, self.class_share)
        d = self.settled(plan.encoder).dimension(plan.encoder)
        folds = d if self.spread_differs else 0
        columns = d + folds
        labelled = ("residual",) if plan.n_classes == 2 else ("residual", "classes")
        statistics = ("spread", *labelled)
        return {
            **_about_columns(plan, d, columns=columns, folds=folds, statistics=statistics),
            "evaluation": {"dimension": columns, "f": folds, "clipped": True, "m": plan.n_scores},
            **asks_confidence(self, plan, dimension=columns, folds=folds),
        }


@dataclass(frozen=True, kw_only=True)
class NumberDesign(FeatureDesign, name="vector_numbers"):
    """A number instead of a label, by vectors of features and this number.

    The number is the first column of a participant's data, so all questions about features can be
    asked about it too, and every vector may contain both.
    """

    predicts_numbers: ClassVar[bool] = True

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single columns, vectors, and the error of the finished model.

        All of them protect curve and target, even if the plan promises less.
        """
        d = 1 + self.settled(plan.encoder).dimension(plan.encoder)
        return {
            **_about_columns(plan, d, d, folds=0, statistics=("spread", "cross")),
            "evaluation": {"dimension": d, "clipped": True, "m": 3},
        }


def _about_columns(
    plan: StudyPlan, d: int, columns: int, *, folds: int, statistics: tuple[str, ...]
) -> dict[str, Terms]:
    """Questions about single columns, and vectors of them."""
    dimensions = {"d": (d, columns), "f": (0, folds)} if folds else {"d": d}
    return {
        "stump": {
            "k": best_questions(plan.epsilon, most=d),
            "coordinates": range(d),
            "positive": 1,
            "uses_label": False,
        },
        "summary": {
            **dimensions,
            "classes": max(plan.n_classes, 1),
            "q": range(1, columns + 1),
            "statistic": ("products", *statistics),
            "clip": CLIP,
            "c": (1, max(plan.n_classes, 1)),
            "w": range(1, columns + 2),
            "s": (1, max(plan.n_scores, 1)),
            "t": range(1, columns + 2),
            "reach": _LENGTHS,
            "limit": _LENGTHS,
        },
    }
