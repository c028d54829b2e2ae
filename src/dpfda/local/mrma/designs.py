"""The designs of model reversal and model averaging: their public parameters and allowed tasks.

If there are several classes, every member separates a public half of them from the other classes
(see `study`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.mrma.averaging import DEFAULT_STRICTNESS, check_cutoff
from dpfda.local.mrma.members import DEFAULT_SPREAD
from dpfda.protocol.plan import MOST_PEOPLE, Design, StudyPlan, Terms
from dpfda.protocol.public_randomness import public_uniforms
from dpfda.protocol.task import box_mechanisms

MOST_CLASSIFIERS = 10**5
MOST_FITTED = 10**8  # limit, because all members are fitted at once
_HALVES_STREAM = 1 << 33
"""Number of the public random stream of halves, different from those of phases and members."""


def public_halves(n_classes: int, *, seed: int, most: int = MOST_CLASSIFIERS) -> IntArray:
    """Label numbers in each half of the classes, shape (G, K // 2): all halves, or 2 K random ones.

    Args:
        n_classes: K.
        seed: seed of the plan.
        most: the largest number of halves.

    Examples:
        >>> public_halves(4, seed=0).tolist()  # the other halves are complements
        [[1, 2], [1, 3], [2, 3]]
    """
    k = n_classes
    # If K is even, a half and its complement are equivalent: use the one without label 0.
    free = range(1 - k % 2, k)
    if math.comb(len(free), k // 2) <= 2 * k:
        return np.array(list(combinations(free, k // 2)))[:most]
    drawn = public_uniforms(seed=seed, phase=_HALVES_STREAM, start=0, people=2 * k, width=k)
    return np.asarray(np.sort(drawn.argsort(axis=1)[:, : k // 2])[:most])


def signs(halves: IntArray, n_classes: int) -> FloatArray:
    """+1 for the classes in each half, -1 for the others, shape (G, K).

    Examples:
        >>> signs(np.array([[1, 2]]), 4).tolist()
        [[-1.0, 1.0, 1.0, -1.0]]
    """
    inside = (halves[:, :, None] == np.arange(n_classes)).any(axis=1)
    return np.where(inside, 1.0, -1.0)


@dataclass(frozen=True, kw_only=True)
class ReportedDesign(Design):
    """Members are fitted to noisy reports, and evaluated by other people.

    Attributes:
        cutoff: a fixed r0; None is the public default (C3).
        strictness: constant c of the default cutoff.
        n_classifiers: B, the number of weak classifiers.
        member_size: n0, the number of reports to which each of them is fitted, drawn without
            replacement.
        learner: registered name of the weak learner; it must be linear.
        learner_parameters: its parameters.
        training_share: share of people who report; the others evaluate members.
        mechanism: registered name of the mechanism of encoded curves.
        label_share: ε_y/ε of a report; None means 1/(d+1), as in the papers.
        boundary_spread: expected distance of a good boundary from the center of the encoded box;
            noisy intercepts are shrunk accordingly (`intercept_shrinkage`). None: no shrinkage.
    """

    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    n_classifiers: int = 50
    member_size: int = 50
    learner: str = "conjugate_gradient"
    learner_parameters: Mapping[str, Any] = field(default_factory=dict)
    training_share: float = 1 / 6
    mechanism: str = "laplace"
    label_share: float | None = None
    boundary_spread: float | None = DEFAULT_SPREAD

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff)
        _validate.non_negative("strictness", self.strictness)
        _validate.whole("n_classifiers", self.n_classifiers, most=MOST_CLASSIFIERS)
        _validate.whole("member_size", self.member_size, least=2, most=MOST_PEOPLE)
        _validate.fraction("training_share", self.training_share)
        _validate.one_of("mechanism", self.mechanism, box_mechanisms())
        if self.boundary_spread is not None:
            _validate.positive("boundary_spread", self.boundary_spread)
        if not isinstance(self.learner_parameters, Mapping):
            raise InvalidParameter("learner_parameters", "a mapping", self.learner_parameters)
        object.__setattr__(self, "learner_parameters", dict(self.learner_parameters))

    def _reports(self, plan: StudyPlan) -> dict[str, Terms]:
        """The report task: the encoded curve and the label, both perturbed."""
        size = min(self.member_size, self.n_reports(plan.n_people))
        fitted = self.n_classifiers * size * (plan.encoder.n_features + 1)
        if fitted > MOST_FITTED:
            rule = f"so few that they are made of at most {MOST_FITTED} numbers together"
            raise InvalidParameter("n_classifiers", rule, self.n_classifiers)
        report = {
            "dimension": plan.encoder.n_features,
            "mechanism_name": self.mechanism,
            "label_share": self.label_share,
            "protects": plan.protects,
        }
        return {"vector": report | _of_half(plan)}

    def n_reports(self, n_people: int) -> int:
        """Number of people who report."""
        return max(1, round(self.training_share * n_people))


@dataclass(frozen=True, kw_only=True)
class MRMADesign(ReportedDesign, name="mrma"):
    """Model reversal and model averaging (000 and 001, Algorithm 1), with halves of the classes.

    Attributes:
        verdict_share: ε_v/ε of an evaluation; below 1 if the same people answer another study.
        classifiers_per_person: k, the number of members that a person evaluates, each with ε_v/k.
        evaluation_share: share of people who only evaluate the finished classifier.

    Examples:
        >>> MRMADesign(n_classifiers=24, cutoff=0.9).to_dict()["n_classifiers"]
        24
    """

    verdict_share: float = 1.0
    classifiers_per_person: int = 1
    evaluation_share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        each = self.classifiers_per_person
        _validate.whole("classifiers_per_person", each, most=self.n_classifiers)
        if self.verdict_share != 1:
            _validate.fraction("verdict_share", self.verdict_share)
        _check_evaluation_share(self.evaluation_share)
        if self.training_share + self.evaluation_share >= 1:
            rule = (
                "below 1 together with training_share, so that participants remain for the "
                "evaluation"
            )
            raise InvalidParameter("evaluation_share", rule, self.evaluation_share)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """A report, or an evaluation of a member or of the finished classifier."""
        epsilon = plan.epsilon * self.verdict_share
        known = {"members": self.n_classifiers, "each": self.classifiers_per_person}
        return self._reports(plan) | _evaluation_terms(plan, epsilon=epsilon, **known)


AVERAGES = ("votes", "chances")
"""The quantities that can be averaged over nonlinear members."""


@dataclass(frozen=True, kw_only=True)
class VoteDesign(MRMADesign, name="mrma_votes"):
    """MRMA with nonlinear members: they vote, or their probabilities are averaged.

    Attributes:
        learner: registered name of a learner of nonlinear members.
        average: ``votes`` or ``chances``.

    Examples:
        >>> VoteDesign(average="chances").to_dict()["learner"]
        'shallow_tree'
    """

    learner: str = "shallow_tree"
    average: str = "votes"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.one_of("average", self.average, AVERAGES)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """A report, or an evaluation of a member or of the vote of all members."""
        verdict = {
            "epsilon": plan.epsilon * self.verdict_share,
            "dimension": plan.encoder.n_features,
            "m": (self.classifiers_per_person, 1),
            "soft": self.average == "chances",
            "member": range(self.n_classifiers),
            "votes": (0, plan.n_scores * self.n_classifiers),
            "asked": (1, self.n_classifiers),
            "right": range(plan.n_classes),
            "labels": plan.n_classes,
        }
        return self._reports(plan) | {"rule": verdict}


@dataclass(frozen=True, kw_only=True)
class StreamDesign(ReportedDesign, name="mrma_stream"):
    """One round of MRMA on a stream (001 §3.5), with at most `n_classifiers` members.

    Attributes:
        new_classifiers: the number of new members per round.
        memory: factor of the weight of evaluations per round; below 1, so that weights follow
            drift.
        alarm: all older evaluations are discarded if the accuracy of the old classifier in new
            evaluations is this many standard errors below chance.
        carried: the state after earlier rounds, from the findings of the last one.
        round: number of this round.

    Examples:
        >>> StreamDesign(memory=0.8).to_dict()["round"]
        0
    """

    new_classifiers: int = 10
    memory: float = 0.7
    alarm: float = 2.0
    carried: Mapping[str, Any] | None = None
    round: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("new_classifiers", self.new_classifiers, most=self.n_classifiers)
        _validate.whole("round", self.round, least=0, most=MOST_PEOPLE)
        _validate.fraction("memory", self.memory)
        _validate.positive("alarm", self.alarm)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """A report, or an evaluation of an old or new member."""
        terms = _evaluation_terms(plan, members=self.n_classifiers, epsilon=plan.epsilon)
        return self._reports(plan) | {"member": terms["member"]}

    def after(self, carried: Mapping[str, Any]) -> StreamDesign:
        """The design of the round that follows a finished one."""
        return replace(self, carried=carried, round=self.round + 1)


@dataclass(frozen=True, kw_only=True)
class ExchangeDesign(Design, name="exchange"):
    """Evaluate given public classifiers, then reverse and average them.

    The candidates are part of the plan, so participants can see them. People who already evaluated
    this server's own members may take part if both studies together stay within their budget:
    ε/2 + ε/2, as in 001 §6.2.

    Attributes:
        cutoff: a fixed r0; None is the public default (C3).
        strictness: constant c of the default cutoff.
        intercepts: α of every candidate.
        coefficients: b of every candidate.
        halves: for more than two classes, the label numbers that each candidate separates from the
            others.
        evaluation_share: share of people who only evaluate the finished classifier.

    Examples:
        >>> ExchangeDesign(intercepts=(0.0, 0.1), coefficients=((1.0,), (-1.0,))).cutoff is None
        True
    """

    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    intercepts: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    halves: tuple[tuple[int, ...], ...] | None = None
    evaluation_share: float = 0.0

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff)
        _validate.non_negative("strictness", self.strictness)
        alpha = tuple(_validate.finite("intercepts", value) for value in self.intercepts)
        rows = tuple(
            tuple(_validate.finite("coefficients", value) for value in row)
            for row in self.coefficients
        )
        if not alpha or len(alpha) != len(rows) or len({len(row) for row in rows}) != 1:
            rule = "one row of equal length for each intercept"
            raise InvalidParameter("coefficients", rule, self.coefficients)
        object.__setattr__(self, "intercepts", alpha)
        object.__setattr__(self, "coefficients", rows)
        if self.halves is not None:
            halves = tuple(
                tuple(_validate.whole("halves", label, least=0) for label in half)
                for half in self.halves
            )
            object.__setattr__(self, "halves", halves)
        _check_evaluation_share(self.evaluation_share)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """An evaluation of a candidate or of the finished classifier."""
        _ = self.halves_of(plan)
        if len(self.coefficients[0]) != plan.encoder.n_features:
            rule = f"rows of length {plan.encoder.n_features}"
            raise InvalidParameter("coefficients", rule, len(self.coefficients[0]))
        return _evaluation_terms(plan, members=len(self.intercepts), epsilon=plan.epsilon)

    def halves_of(self, plan: StudyPlan) -> IntArray:
        """Label numbers that each candidate separates from the others, shape (B, K // 2)."""
        k, size = plan.n_classes, len(self.intercepts)
        if self.halves is None and k == 2:
            return np.ones((size, 1), dtype=np.int64)
        given = self.halves or ()
        sound = k > 2 and len(given) == size
        for half in given:
            inside = set(half) <= set(range(k)) and len(half) == k // 2
            sound = sound and inside and list(half) == sorted(set(half))
        if not sound:
            rule = f"left out for two classes, else {k // 2} increasing labels a candidate"
            raise InvalidParameter("halves", rule, self.halves)
        return np.array(given, dtype=np.int64)


def _check_evaluation_share(share: float) -> None:
    if share:
        _validate.fraction("evaluation_share", share)


def _evaluation_terms(
    plan: StudyPlan, *, members: int, epsilon: float, each: int = 1
) -> dict[str, Terms]:
    """The terms of the evaluations of members and of the finished classifier."""
    line = {"epsilon": epsilon, "dimension": plan.encoder.n_features}
    member = {"m": each, "member": range(members)} | _of_half(plan)
    return {"member": line | member, "evaluation": line | {"m": plan.n_scores}}


def _of_half(plan: StudyPlan) -> dict[str, Any]:
    """Terms of evaluations of halves of the classes; for two classes, of label 1."""
    k = plan.n_classes
    return {"positive": range(1, 2) if k == 2 else range(k), "positives": k // 2}
