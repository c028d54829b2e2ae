"""The local linear design: what it is told in advance, and all that it may ask."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.linear.schedule import Schedule
from dpfda.mechanisms.question_response import best_questions
from dpfda.protocol.design import Design, Terms, check_shares, require_features
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.temperature import asks_confidence

LENGTHS = range(10**51)
"""Any: where vectors are cut costs nobody anything."""


@dataclass(frozen=True, kw_only=True)
class FeatureDesign(Design):
    """What is told in advance of features whose location, spread and correlations are sought.

    Attributes:
        reaches: public half-width of each feature of the encoder in units of z*, most important
            feature first. By default what is usual for the encoder.
        ordered: whether the first features matter most. By default where the encoder's functions
            are ordered.
        center_known: the middle of each feature is 0 by construction.
        evaluation_share: share of people kept for an honest error estimate at the end.
        n_features: use the first so many features only.
    """

    reaches: tuple[float, ...] | None = None
    ordered: bool | None = None
    center_known: bool = False
    evaluation_share: float = 0.0
    n_features: int | None = None

    def __post_init__(self) -> None:
        if self.reaches is not None:
            if not len(self.reaches):
                rule = "one positive number for each feature"
                raise InvalidParameter("reaches", rule, self.reaches)
            reaches = tuple(_validate.positive("reaches", reach) for reach in self.reaches)
            object.__setattr__(self, "reaches", reaches)
        check_shares(self)
        if self.n_features is not None:
            most = None if self.reaches is None else len(self.reaches)
            _validate.whole("n_features", self.n_features, most=most)

    def settled(self, encoder: CurveEncoder) -> Self:
        """The same design with nothing left to a default that depends on the encoder.

        Coefficients of smooth curves on waves shrink like 1/j; columns of a table fill their range.
        """
        require_features(encoder, reaches=self.reaches)
        reaches = self.reaches
        ordered = encoder.basis.ordered if self.ordered is None else self.ordered
        if reaches is None:
            turns = (j // encoder.channels for j in range(encoder.n_features))
            reaches = tuple(1 / max(j, 1) if encoder.basis.ordered else 1.0 for j in turns)
        return replace(self, reaches=reaches, ordered=ordered)

    def half_widths(self, plan: StudyPlan) -> FloatArray:
        """Of the features that are used."""
        settled = self.settled(plan.encoder)
        assert settled.reaches is not None
        return np.array(settled.reaches[: self.n_features])

    def favor(self, plan: StudyPlan) -> FloatArray:
        """How much each feature is expected to say about the label."""
        d = len(self.half_widths(plan))
        return 1 / (1.0 + np.arange(d)) if self.settled(plan.encoder).ordered else np.ones(d)

    @abstractmethod
    def schedule(self, plan: StudyPlan) -> Schedule:
        """The phases and their sizes."""

    def judges(self, plan: StudyPlan) -> int:
        """How many people judge the result."""
        return int(self.evaluation_share * plan.n_people)


@dataclass(frozen=True, kw_only=True)
class LinearDesign(FeatureDesign, name="linear"):
    """Find location, spread and correlations of the features, then a linear classifier of them.

    Rounds of two classes weigh directions by what is unknown of their slopes. Tried without gain:
    to count doubt about whether a slope is there at all as unknown, and to let the last people find
    the intercept alone where there are too few for rounds.

    Attributes:
        class_share: of two classes, the public share of the second; otherwise some are asked.
        temperature_share: share of people who say how sure the finished classifier may be.
        range_is_loose: features may lie anywhere in their public ranges and be far narrower, so
            that people are asked where, however few they are.
        spread_differs: classes may differ in how far people are from the middle of a feature, so
            that distances from it are told beside the features.

    Examples:
        >>> design = LinearDesign().settled(CurveEncoder("cosine", n_basis=3))
        >>> design.ordered, design.reaches
        (True, (1.0, 1.0, 0.5))
    """

    class_share: float | None = None
    temperature_share: float = 0.0
    range_is_loose: bool = False
    spread_differs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.class_share is not None:
            _validate.fraction("class_share", self.class_share)

    def schedule(self, plan: StudyPlan) -> Schedule:
        """The phases and their sizes."""
        judges, tempered = self.judges(plan), int(self.temperature_share * plan.n_people)
        return Schedule(
            people=plan.n_people - judges - tempered,
            epsilon=plan.epsilon,
            columns=len(self.half_widths(plan)),
            n_classes=plan.n_classes,
            judges=judges,
            tempered=tempered,
            share_known=self.class_share is not None,
            ordered=bool(self.settled(plan.encoder).ordered),
            loose=self.range_is_loose,
            distances=self.spread_differs,
        )

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single features, vectors of features, and the finished classifier.

        Each of them protects curve and label, whatever the plan promises.
        """
        if self.class_share is not None and plan.n_classes != 2:
            rule = f"left out with {plan.n_classes} classes"
            raise InvalidParameter("class_share", rule, self.class_share)
        d = len(self.half_widths(plan))
        folds = d if self.spread_differs else 0
        told = d + folds
        own = {"classes": plan.n_classes, "d": d, "q": range(1, told + 1)}
        own |= {"d": (d, told), "f": (0, folds)} if folds else {}
        labelled = ("residual",) if plan.n_classes == 2 else ("classes",)
        return {
            "stump": {
                "k": (1, best_questions(plan.epsilon, most=d)),
                "coordinates": range(d),
                "positive": 1,
                "uses_label": (False, True),
            },
            "summary": {
                **own,
                "statistic": ("spread", "products", *labelled),
                "clip": self.schedule(plan).clip,
                "c": (1, plan.n_classes),
                "w": range(1, told + 2),
                "t": range(1, told + 2),
                "reach": LENGTHS,
                "limit": LENGTHS,
            },
            "evaluation": {"dimension": told, "f": folds, "clipped": True, "m": plan.n_scores},
            **asks_confidence(self, plan, dimension=told, folds=folds),
        }
