"""Question reports: everybody answers k yes/no questions, nobody sends a noisy curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpfda import _validate
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.question_response import best_questions, effective_answers
from dpfda.protocol.design import Design, Terms, check_shares, require_features
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.temperature import asks_confidence
from dpfda.questions import sizes
from dpfda.questions.ranging import channels, waves

INTERCEPT_QUESTIONS = 4


@dataclass(frozen=True, kw_only=True)
class QuestionDesign(Design, name="questions"):
    """Find the middle of each feature, then which stumps are right, then the intercept.

    Of two classes whose spread does not differ, the design `answers` finds all of it at once.

    Attributes:
        scales: h_j, the public typical half-width of each feature of the encoder in units of z*,
            most important feature first. By default what is usual for the encoder, see `settled`.
        ordered: whether the first features matter most; if not, all of them are used. By default
            where scales are given, or where the encoder's functions are ordered.
        center_known: the middle of each feature is 0 by construction, so nobody is asked for it.
        evaluation_share: share of people kept for an honest error estimate at the end.
        n_features: overrides the rule for the number of features: the first so many are used.
        temperature_share: share of people who say how sure the finished classifier may be.
        class_share: the public share of class 1 among two, so that nobody is asked for it.
        range_is_loose: curves may lie anywhere in their public range and be far narrower, so that
            the first people say where; then `scales` follow from their answers.
        spread_differs: classes may differ in how far people are from the middle of a feature: some
            people say how far, and every feature is asked about twice, as it is and folded there.

    Examples:
        >>> design = QuestionDesign().settled(CurveEncoder("cosine", n_basis=3))
        >>> design.ordered, [round(h, 2) for h in design.scales]
        (True, [0.33, 0.33, 0.17])
    """

    scales: tuple[float, ...] | None = None
    ordered: bool | None = None
    center_known: bool = False
    evaluation_share: float = 0.0
    n_features: int | None = None
    class_share: float | None = None
    temperature_share: float = 0.0
    range_is_loose: bool = False
    spread_differs: bool = False

    def __post_init__(self) -> None:
        if self.scales is not None:
            if not len(self.scales):
                rule = "one positive number for each feature"
                raise InvalidParameter("scales", rule, self.scales)
            scales = tuple(_validate.positive("scales", scale) for scale in self.scales)
            object.__setattr__(self, "scales", scales)
        check_shares(self)
        if self.n_features is not None:
            most = None if self.scales is None else len(self.scales)
            _validate.whole("n_features", self.n_features, most=most)
        if self.class_share is not None:
            _validate.fraction("class_share", self.class_share)

    def settled(self, encoder: CurveEncoder) -> QuestionDesign:
        """The same design with nothing left to a default that depends on the encoder.

        The public range is rarely filled: coefficients of curves are a third of it wide, and those
        of smooth curves on waves shrink like 1/j. Columns of a table have ranges of their own.
        """
        require_features(encoder, scales=self.scales)
        basis, scales, ordered = encoder.basis, self.scales, self.ordered
        if ordered is None:
            ordered = basis.ordered or scales is not None
        if scales is None and not basis.functional:
            scales = (1.0,) * encoder.n_features
        elif scales is None:
            turns = (j // encoder.channels for j in range(encoder.n_features))
            speed = [max(j, 1) if basis.ordered else 1 for j in turns]
            scales = tuple(1 / (3 * j) for j in speed)
        return replace(self, scales=scales, ordered=ordered)

    def dimension(self, plan: StudyPlan) -> int:
        """d, how many features are asked about."""
        design = self.settled(plan.encoder)
        most = plan.encoder.n_features
        if self.n_features is not None:
            return self.n_features
        effective = effective_answers(plan.n_people, plan.epsilon)
        effective *= (1 - self.range_share(plan)) * (1 - self.width_share(plan))
        by_rule = sizes.number_of_features(effective / plan.n_scores, most=most)
        return by_rule if design.ordered else most

    def range_share(self, plan: StudyPlan) -> float:
        """Of all people, who say where curves lie; nobody where the range is said to fit."""
        if not self.range_is_loose:
            return 0.0
        effective = effective_answers(plan.n_people, plan.epsilon)
        return sizes.range_share(effective, channels=plan.encoder.channels)

    def width_share(self, plan: StudyPlan) -> float:
        """Of the others, who say how far they are from the middle; nobody where it says nothing."""
        if not self.spread_differs:
            return 0.0
        return sizes.width_share(effective_answers(plan.n_people, plan.epsilon))

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Questions about single features, about the intercept, and about the finished classifier.

        Each of them protects curve and label, whatever the plan promises.
        """
        if self.class_share is not None and plan.n_classes > 2:
            raise InvalidParameter("class_share", "None but for two classes", self.class_share)
        if self.range_is_loose and not plan.encoder.basis.ordered:
            raise InvalidParameter("range_is_loose", "False but for curves on waves", True)
        d = self.dimension(plan)
        k = best_questions(plan.epsilon, most=d)
        folds = d if self.spread_differs else 0
        asked = {"positive": plan.positives}
        stump = {"k": k, "coordinates": range(d + folds), "uses_label": (False, True)}
        dithers = {"k": best_questions(plan.epsilon, most=INTERCEPT_QUESTIONS)}
        rule = {"dimension": d + folds, "f": folds, "clipped": True}
        width = waves(channels(plan.encoder)).shape[1]
        reach = {"k": k, "coordinates": range(plan.encoder.n_features), "w": width}
        return {
            **({"reach": reach} if self.range_is_loose and width else {}),
            "stump": asked | stump | ({"f": (0, folds)} if folds else {}),
            "calibration": asked | dithers | rule | {"m": 1},
            "evaluation": rule | {"m": plan.n_scores},
            **asks_confidence(self, plan, dimension=d + folds, folds=folds),
        }
