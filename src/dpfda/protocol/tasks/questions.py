"""Yes/no tasks: about single coordinates, and about a candidate classifier.

`StumpTask` asks k questions about coordinates (docs/methods/answers.md). `EvaluationTask` asks
whether a classifier is right about the person, and `MemberTask` asks the same about one or several
numbered classifiers (000 and 001, step 4). `ConfidenceTask` recalibrates a finished classifier. If
its scores are wrong by a factor T, its probabilities are too large or too small. People report the
difference between the largest probability and the indicator that the classifier is right about
them; each batch updates the posterior of log T.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.composed import Joined
from dpfda.mechanisms.randomized_response import (
    QuestionResponse,
    RandomizedResponse,
    best_questions,
)
from dpfda.noise import Source
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import array, flag, number
from dpfda.protocol.linear_scores import NUMBERS, class_chances, decided, linear_scores
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan, Terms
from dpfda.protocol.query import Records
from dpfda.protocol.task import Task, fold_centers, folded


def rule_scores(task: EvaluationTask | MemberTask | ConfidenceTask, z: FloatArray) -> FloatArray:
    """Scores of encoded curves under the public linear rule of a task, one row per person.

    The task contains one row of a `CurveModel` for each person; curves are `folded` by the task.
    """
    numbers = {name: getattr(task, name) for name in NUMBERS}
    return linear_scores(z, **numbers, clipped=task.clipped)


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationTask(Task, name="evaluation"):
    """Answer whether a candidate classifier predicts my label, through randomized response.

    The largest of m scores determines the predicted label; a single score does so by its sign.

    Privacy:
        ε-LDP for curve and label together: the reply is one randomized bit.

    Attributes:
        folds: centers of the first f features; if given, the rule uses `folded` features.
        intercept: shape (n, m), m scores.
        coefficients: shape (n, m, d), for the first d features.
        centers: shape (n, m, d).
        scales: shape (n, m, d).
        clipped: whether centered and scaled features are clipped to ±1.

    Examples:
        >>> task = EvaluationTask(
        ...     epsilon=1.0, people=1, intercept=[[0.1]], coefficients=[[[1.0, -1.0]]],
        ...     centers=[[[0.0, 0.0]]], scales=[[[1.0, 1.0]]],
        ... )
        >>> task.width
        1
    """

    bits: ClassVar[bool] = True

    folds: FloatArray = fold_centers()
    intercept: FloatArray = array("real", "people", "m")
    coefficients: FloatArray = array("real", "people", "m", "dimension")
    centers: FloatArray = array("real", "people", "m", "dimension")
    scales: FloatArray = array("real", "people", "m", "dimension", least=1e-50)
    clipped: bool = flag(default=False)

    @cached_property
    def mechanism(self) -> RandomizedResponse:
        """Randomized response on one bit."""
        return RandomizedResponse(epsilon=self.epsilon)

    @property
    def width(self) -> int:
        """The number of values in a reply: one bit."""
        return 1

    def exact(self, records: Records, source: Source) -> FloatArray:
        """+1 if the candidate is right about the person, -1 if it is wrong."""
        z, y = records
        scores = rule_scores(self, folded(z, self.folds))
        return np.where(decided(scores) == y, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """A linear rule, three scores, and a rule of a feature and a distance."""
        scored = [cls(**example_fields(scores)) for scores in (1, 3)]
        return [*scored, cls(**example_fields(1), folds=[0.2])]  # type: ignore[arg-type]


def example_fields(scores: int) -> dict[str, Any]:
    """The fields of a small candidate with so many scores, for examples."""
    return {
        "epsilon": 1.0,
        "people": 1,
        "intercept": np.linspace(-0.1, 0.1, scores)[None],
        "coefficients": np.linspace(-1.0, 1.0, 2 * scores).reshape(1, scores, 2),
        "centers": np.zeros((1, scores, 2)),
        "scales": np.ones((1, scores, 2)),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberTask(Task, name="member"):
    """Answer for each of m numbered candidates whether it is right about my label.

    A candidate has one score; its sign predicts whether the label is among `positive`.

    Privacy:
        ε-LDP for curve and label together: each of m bits goes through its own randomized response
        with ε/m (000, after Theorem 2; basic composition).

    Attributes:
        folds: centers of the first f features; if given, the rules use `folded` features.
        intercept: shape (n, m), one score of each candidate.
        coefficients: shape (n, m, d), for the first d features.
        centers: shape (n, m, d).
        scales: shape (n, m, d).
        clipped: whether centered and scaled features are clipped to ±1.
        member: the candidates' numbers, shape (n, m); groups are chosen before anybody answers.
        positive: the label numbers that each candidate separates from the others, shape (n, m, p).

    Examples:
        >>> task = MemberTask(
        ...     epsilon=1.0, people=1, intercept=[[0.1]], coefficients=[[[1.0, -1.0]]],
        ...     centers=[[[0.0, 0.0]]], scales=[[[1.0, 1.0]]], member=[[7]], positive=[[[1]]],
        ... )
        >>> task.member.tolist(), task.width
        ([[7]], 1)
    """

    bits: ClassVar[bool] = True

    folds: FloatArray = fold_centers()
    intercept: FloatArray = array("real", "people", "m")
    coefficients: FloatArray = array("real", "people", "m", "dimension")
    centers: FloatArray = array("real", "people", "m", "dimension")
    scales: FloatArray = array("real", "people", "m", "dimension", least=1e-50)
    clipped: bool = flag(default=False)
    member: IntArray = array("whole", "people", "m", least=0)
    positive: IntArray = array("whole", "people", "m", "positives", least=0, most=1 << 20)

    @cached_property
    def mechanism(self) -> Joined:
        """Randomized response on each bit."""
        each = RandomizedResponse(epsilon=verdict_epsilon(self.epsilon, self.width))
        return Joined(parts=(each,) * self.width)

    @property
    def width(self) -> int:
        """The number of values in a reply: m."""
        return self.sizes["m"]

    def exact(self, records: Records, source: Source) -> FloatArray:
        """+1 if the candidate is right about the person, -1 if it is wrong."""
        z, y = records
        mine = (y[:, None, None] == self.positive).any(axis=2)
        scores = rule_scores(self, folded(z, self.folds))
        return np.where(decided(scores[..., None]) == mine, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """One candidate, for one class and for two, and three candidates."""
        given: list[tuple[list[list[int]], list[list[list[int]]]]] = [
            ([[7]], [[[1]]]),
            ([[7]], [[[0, 2]]]),
            ([[7, 0, 1]], [[[1], [1], [0]]]),
        ]
        return [
            cls(**example_fields(len(member[0])), member=member, positive=positive)  # type: ignore[arg-type]
            for member, positive in given
        ]


def verdict_epsilon(epsilon: float, number: int) -> float:
    """ε of each of a person's answers about several candidates: equal parts, rounded down.

    Examples:
        >>> verdict_epsilon(1.0, 1), verdict_epsilon(1.0, 4)
        (1.0, 0.25)
    """
    return Cost(epsilon=epsilon).part(Fraction(1, number)).epsilon_spent


@dataclass(frozen=True, kw_only=True, eq=False)
class StumpTask(Task, name="stump"):
    """Answer sgn(z_j - t) or, with `uses_label`, y sgn(z_j - t) ("is this stump right about you?").

    Privacy:
        ε-LDP for curve and label together: all k answers go through one k-question response.

    Attributes:
        folds: centers of the first f features; if given, questions are about `folded` features.
        coordinates: which z_j are asked about, shape (n, k).
        thresholds: the t, shape (n, k).
        positive: the label number that counts as y = +1, shape (n,).
        uses_label: whether the answer is multiplied by y.

    Examples:
        >>> task = StumpTask(
        ...     epsilon=1.0, people=1, coordinates=[[2]], thresholds=[[0.1]], positive=[1]
        ... )
        >>> task.mechanism.questions
        1
    """

    bits: ClassVar[bool] = True

    folds: FloatArray = fold_centers()
    coordinates: IntArray = array("whole", "people", "k", least=0, most=1 << 20)
    thresholds: FloatArray = array("real", "people", "k")
    positive: IntArray = array("whole", "people", least=0, most=1 << 20)
    uses_label: bool = flag(default=True)

    @cached_property
    def mechanism(self) -> QuestionResponse:
        """One response to all questions."""
        return QuestionResponse(epsilon=self.epsilon, questions=self.width)

    @property
    def width(self) -> int:
        """The number of values in a reply: k."""
        return self.sizes["k"]

    @property
    def looks_at(self) -> int:
        """Number of features up to the last one that is used."""
        return int(self.coordinates.max(initial=-1)) + 1

    def exact(self, records: Records, source: Source) -> FloatArray:
        """True answers, ±1."""
        z, y = records
        asked = np.take_along_axis(folded(z, self.folds), self.coordinates, axis=1)
        answers = np.where(asked > self.thresholds, 1.0, -1.0)
        if self.uses_label:
            answers *= np.where(y == self.positive, 1.0, -1.0)[:, None]
        return answers

    @classmethod
    def examples(cls) -> list[Self]:
        """One question and three, with and without the label, and about a distance."""
        three: dict[str, Any] = {
            "coordinates": [[0, 1, 2]],
            "thresholds": [[0.0, 0.3, -0.2]],
            "positive": [1],
        }
        return [
            cls(epsilon=1.0, people=1, coordinates=[[1]], thresholds=[[0.1]], positive=[1]),  # type: ignore[arg-type]
            cls(epsilon=2.0, people=1, **three, uses_label=False),
            cls(epsilon=1.0, people=1, **three, folds=[0.1, -0.3]),  # type: ignore[arg-type]
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfidenceTask(Task, name="confidence"):
    """Answer sgn(v - U) for public U, where v = 1{classifier is right} - its largest probability.

    If the mean of v is 0, the probabilities are calibrated (docs/methods/probabilities.md).

    Privacy:
        ε-LDP for curve and label together: all k answers go through one k-question response.

    Attributes:
        folds: centers of the first f features; if given, the rule uses `folded` features.
        intercept: shape (n, m), m scores.
        coefficients: shape (n, m, d), for the first d features.
        centers: shape (n, m, d).
        scales: shape (n, m, d).
        clipped: whether centered and scaled features are clipped to ±1.
        variances: variances of intercept and coefficients, shape (n, m, 1 + d), as in a model.
        damping: factor of the scores in the computation of probabilities.
        dithers: the U, shape (n, k).

    Examples:
        >>> task = ConfidenceTask(
        ...     epsilon=2.0, people=1, intercept=[[0.0]], coefficients=[[[1.0]]],
        ...     centers=[[[0.0]]], scales=[[[0.5]]], variances=[[[0.0, 0.1]]], damping=0.8,
        ...     dithers=[[0.3, -0.2]],
        ... )
        >>> task.mechanism.questions
        2
    """

    bits: ClassVar[bool] = True

    folds: FloatArray = fold_centers()
    intercept: FloatArray = array("real", "people", "m")
    coefficients: FloatArray = array("real", "people", "m", "dimension")
    centers: FloatArray = array("real", "people", "m", "dimension")
    scales: FloatArray = array("real", "people", "m", "dimension", least=1e-50)
    clipped: bool = flag(default=False)
    variances: FloatArray = array("real", "people", "m", "known", least=0)
    damping: float = number(least=1e-6, most=1e6)
    dithers: FloatArray = array("real", "people", "k", least=-1, most=1)

    @cached_property
    def mechanism(self) -> QuestionResponse:
        """One response to all questions."""
        return QuestionResponse(epsilon=self.epsilon, questions=self.width)

    @property
    def width(self) -> int:
        """The number of values in a reply: k."""
        return self.sizes["k"]

    def exact(self, records: Records, source: Source) -> FloatArray:
        """True answers, ±1."""
        z, y = folded(records[0], self.folds), records[1]
        rule: dict[str, Any] = {name: getattr(self, name) for name in NUMBERS}
        rule |= {"clipped": self.clipped, "variances": self.variances, "damping": self.damping}
        sure = class_chances(z, **rule).max(axis=1)
        off = (decided(rule_scores(self, z)) == y) - sure
        return np.where(off[:, None] > self.dithers, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """One question about a single score, and two about three scores."""
        more: dict[str, Any] = {"damping": 0.7, "epsilon": 2.0}
        return [
            cls(
                **example_fields(scores) | more,
                variances=np.full((1, scores, 3), 0.1),
                dithers=np.linspace(-0.6, 0.3, questions)[None],
            )
            for scores, questions in ((1, 1), (3, 2))
        ]


BATCHES = 4
"""Number of calibration batches; each uses the result of the earlier ones."""

_QUESTIONS = 4  # most questions to one person
_PRIOR = 0.5**2  # prior variance of log T, as on four data sets and the simulation of 001
_REACTION = 0.15  # derivative of the mean probability by log T; 0.03 to 0.25 on these data
_FURTHEST = 2.0
_FACTORS = range(10**6 + 1)  # any factor of scores: it does not affect privacy


class Temperature(NamedTuple):
    """Posterior of log T, the logarithm of a factor by which scores are multiplied.

    Examples:
        >>> Temperature(mean=-0.5).factor.__round__(2)
        0.61
    """

    mean: float = 0.0
    variance: float = _PRIOR

    @property
    def factor(self) -> float:
        """The factor T."""
        return math.exp(self.mean)

    def updated(self, total: float, *, people: int, plan: StudyPlan) -> Temperature:
        """Posterior after randomized answers from so many people with this sum."""
        if not people:
            return self
        questions = confidence_questions(plan)
        alpha = QuestionResponse(epsilon=plan.epsilon, questions=questions).truth_probability
        answers = people * questions
        low, high = reach(plan.n_classes)
        half = (high - low) / 2
        # The mean of sgn(v - U) for U uniform on [low, high] is (v - middle)/half.
        off = half * total / answers / alpha + (high + low) / 2
        noise = (half / alpha / _REACTION) ** 2 / answers
        kept = self.variance / (self.variance + noise)
        mean = self.mean + kept * off / _REACTION
        return Temperature(min(max(mean, -_FURTHEST), _FURTHEST), (1 - kept) * self.variance)


def reach(classes: int) -> tuple[float, float]:
    """Range of 1{right} minus the largest probability.

    Examples:
        >>> reach(2)
        (-1.0, 0.5)
    """
    return -1.0, 1 - 1 / classes


def confidence_questions(plan: StudyPlan) -> int:
    """Number of questions for one person."""
    return best_questions(plan.epsilon, most=_QUESTIONS)


def asks_confidence(
    design: Any, plan: StudyPlan, *, dimension: int, folds: int = 0
) -> Mapping[str, Terms]:
    """The questions about the probabilities of the finished classifier, if there are any."""
    if not design.temperature_share:
        return {}
    terms = {"dimension": dimension, "known": dimension + 1, "clipped": True, "m": plan.n_scores}
    terms["f"] = folds
    return {"confidence": terms | {"k": confidence_questions(plan), "damping": _FACTORS}}


def asked(model: CurveModel, uniforms: FloatArray) -> dict[str, Any]:
    """The fields of a task about a model, for people with these public uniforms (n, k)."""
    low, high = reach(len(model.classes))
    assert model.variances is not None
    shape = (len(uniforms), *model.variances.shape)
    return model.rows(len(uniforms)) | {
        "variances": np.broadcast_to(model.variances, shape),
        "damping": model.damping,
        "dithers": low + (high - low) * uniforms,
    }
