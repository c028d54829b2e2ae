"""MRMA as studies: some people report, and others evaluate the members fitted to the reports.

`mrma` is the method of one server, from its first person to its last. In `exchange`, people
evaluate given classifiers. `stream` is one round of an unlimited study: every batch of new people
has its own plan, which contains the public state after earlier rounds.

With several classes, every member separates a public half of the classes from the others. A
classifier of two classes that is mostly wrong becomes mostly right when it is reversed. This fails
for a classifier that predicts one of many classes (001 leaves this open). People therefore report
and evaluate whether their label is in the half, and reversal works as for two classes. The score of
a class is the sum of the members' scores, with positive signs for halves that contain it. For three
classes, each half is a single class; for two classes, the half is the second class.

Privacy:
    The guarantee is the same as for two classes: the randomized label and evaluation concern a
    public half instead of label 1. More people are needed, because reports are divided among the
    halves, and a half is less informative than a class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.local.mrma.averaging import accuracies
from dpfda.local.mrma.designs import (
    ExchangeDesign,
    MRMADesign,
    ReportedDesign,
    StreamDesign,
    VoteDesign,
    public_halves,
    signs,
)
from dpfda.local.mrma.learners import Learner
from dpfda.local.mrma.learners.rule_learners import RuleLearner
from dpfda.local.mrma.members import (
    Candidates,
    Judgement,
    Memory,
    RuleCandidates,
    in_turn,
    intercept_shrinkage,
    public_members,
)
from dpfda.local.mrma.result import MRMAFindings, classifier, unknown_model
from dpfda.local.mrma.rules import RuleTask, VoteModel
from dpfda.protocol.estimate import accuracy_estimate
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.study import Phase, Result, Study, Summary, study
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.questions import MemberTask, verdict_epsilon
from dpfda.protocol.tasks.vector import VectorTask

_SoFar = Callable[[], Result]
_Fitted = Callable[[Task, FloatArray], Summary]
_MEMBERS_STREAM = 1 << 32
"""Number of the public random stream of members; phases have the numbers 0, 1, ..."""


@study("mrma")
def mrma(design: MRMADesign, plan: StudyPlan) -> Study:
    """Model reversal and model averaging (000 and 001, Algorithm 1).

    With several classes, each half of the classes has its own reports and members.
    """
    training = _Training(design, plan)
    return (yield from _one_server(design, plan, training, _Evaluations))


@study("mrma_votes")
def mrma_votes(design: VoteDesign, plan: StudyPlan) -> Study:
    """MRMA with nonlinear members, which vote."""
    training = _RuleTraining(design, plan)
    return (yield from _one_server(design, plan, training, _RuleEvaluations))


def _one_server(
    design: MRMADesign, plan: StudyPlan, training: _Training, kind: type[_Evaluations]
) -> Study:
    halves = public_halves(plan.n_classes, seed=plan.seed, most=design.n_classifiers)
    counts = _shared(design.n_classifiers, len(halves))
    evaluations = kind(
        design,
        plan,
        epsilon=plan.epsilon * design.verdict_share,
        halves=np.repeat(halves, counts, axis=0),
        each=design.classifiers_per_person,
    )
    reporting = design.n_reports(plan.n_people)
    final = round(design.evaluation_share * plan.n_people)
    steps = [
        *(Step("report", people) for people in _shared(reporting, len(halves))),
        Step("evaluate", max(0, plan.n_people - reporting - final)),
        Step("check", final),
    ]
    members: Any = None

    def so_far() -> Result:
        return evaluations.result(members)

    for number, half in enumerate(halves):
        step, then = steps[number], steps[number + 1 :]
        fitted = training.fitting(counts[number], stream=number)
        made = yield training.phase(step.people, fitted, so_far, then, half=half)
        new = training.candidates(made)
        members = new if members is None else members.joined_by(new)
    assert members is not None
    return (yield from evaluations.phases(members, *steps[-2:]))


@study("exchange")
def exchange(design: ExchangeDesign, plan: StudyPlan) -> Study:
    """Evaluation of shared classifiers by the people of one server."""
    members = Candidates(np.array(design.intercepts), np.array(design.coefficients))
    evaluations = _Evaluations(design, plan, epsilon=plan.epsilon, halves=design.halves_of(plan))
    final = round(design.evaluation_share * plan.n_people)
    return (
        yield from evaluations.phases(
            members, Step("evaluate", plan.n_people - final), Step("check", final)
        )
    )


@study("mrma_stream")
def stream(design: StreamDesign, plan: StudyPlan) -> Study:
    """One round: evaluate old members again, add new ones, and detect drift.

    Nobody takes part in two rounds. Evaluations are used at the end of the round.
    """
    memory = Memory.from_dict(design.carried, plan.encoder.n_features, half=plan.n_classes // 2)
    halves = public_halves(plan.n_classes, seed=plan.seed, most=design.new_classifiers)
    counts = _shared(design.new_classifiers, len(halves))
    evaluations = _Evaluations(design, plan, epsilon=plan.epsilon, halves=memory.halves)
    training, reporting = _Training(design, plan), design.n_reports(plan.n_people)
    steps = [Step("report", people) for people in _shared(reporting, len(halves))]
    evaluation = Step("evaluate", plan.n_people - reporting)

    def so_far() -> Result:
        return evaluations.result(memory if len(memory) else None)

    # New members replace the weakest ones.
    room = design.n_classifiers - design.new_classifiers
    kept = memory.strongest(room, epsilon=plan.epsilon)
    for number, half in enumerate(halves):
        count, then = counts[number], [*steps[number + 1 :], evaluation]
        fitted = training.fitting(count, stream=design.round * len(halves) + number)
        made = yield training.phase(steps[number].people, fitted, so_far, then, half=half)
        kept = kept.joined_by(Candidates(**made), halves=np.repeat(half[None], count, axis=0))
    memory, evaluations = kept, replace(evaluations, halves=kept.halves)
    answers = yield evaluations.phase(memory, evaluation.people, so_far)
    drifted = _contradicted(evaluations.judgement(memory), answers, memory, design, plan)
    # Older evaluations are discounted; all of them are dropped if new ones contradict them.
    fading = 0.0 if drifted else design.memory
    memory = memory.updated(answers["totals"], answers["people"], keep=fading)
    model, findings = so_far()
    following = design.after(memory.state())
    return Result(model, replace(findings, drifted=drifted, following=following))


def _contradicted(
    judgement: Judgement,
    answers: Summary,
    memory: Memory,
    design: StreamDesign,
    plan: StudyPlan,
) -> bool:
    """Whether the classifier of earlier rounds is worse than chance in the new evaluations.

    Its weights were fixed before these people answered, so A = Σ w_b (r̃_b - ½) is unbiased.
    """
    if not memory.people.any():
        return False
    weight = judgement.signed_weight
    new = accuracies(answers["totals"], answers["people"], epsilon=plan.epsilon)
    answered = (weight != 0) & (new.people > 0)
    agreement = float(weight[answered] @ (new.value[answered] - 0.5))
    error = math.sqrt(float(weight[answered] ** 2 @ new.standard_error[answered] ** 2))
    return agreement < -design.alarm * error


class _Training:
    """Reports, and the weak classifiers fitted to them.

    Unknown learners, mechanisms and parameters are refused before anybody reports.
    """

    def __init__(self, design: ReportedDesign, plan: StudyPlan) -> None:
        self._design, self._plan = design, plan
        self._learner = self._fitter(design.learner, design.learner_parameters)
        # Functional learners (Method II of 001) need it for inner products of curves.
        self._gram = plan.encoder.gram() if plan.encoder.basis.functional else None
        report = plan.ask("vector", 0)
        assert isinstance(report, VectorTask)
        # Public variance of the noise on one coordinate of a report.
        self._variance = 0.0
        if report.protects != "labels":
            of_curves, nowhere = report.mechanism.parts[0], np.zeros((1, report.dimension))
            self._variance = float(of_curves.variance(nowhere)[0, 0])

    def phase(
        self, people: int, fitted: _Fitted, so_far: _SoFar, then: Sequence[Step], *, half: IntArray
    ) -> Phase:
        """People report their curve, and whether their label is in a half of the classes."""

        def tasks(start: int, people: int) -> Task:
            return self._plan.ask("vector", people, positive=half)

        return Phase("report", people, tasks, fitted, so_far, at_once=True, then=then)

    def fitting(self, count: int, *, stream: int) -> _Fitted:
        """A function that fits `count` weak classifiers to public random subsets of reports.

        A different `stream` draws different subsets.
        """

        def fitted(task: Task, reports: FloatArray) -> Summary:
            if len(reports) == 0:  # nobody answered: uninformative members
                return self._nothing(count)
            size = min(self._design.member_size, len(reports))
            chosen = public_members(
                seed=self._plan.seed,
                phase=_MEMBERS_STREAM + stream,
                members=count,
                size=size,
                among=len(reports),
            )
            return self._made(reports[:, :-1][chosen], reports[:, -1][chosen])

        return fitted

    def candidates(self, made: Summary) -> Any:
        """The members in a summary, without evaluations."""
        return Candidates(**made)

    def _fitter(self, name: str, parameters: Mapping[str, Any]) -> Any:
        return Learner.from_dict({"name": name, **parameters})

    def _nothing(self, count: int) -> Summary:
        """Uninformative members, for a phase without reports."""
        nothing = np.zeros((count, self._plan.encoder.n_features))
        return {"intercept": nothing[:, 0], "coefficients": nothing}

    def _made(self, features: FloatArray, labels: FloatArray) -> Summary:
        """Fit one member to each row of reports, (B, n0, d) and (B, n0)."""
        models = self._learner.fit(features, labels, gram=self._gram)
        spread = self._design.boundary_spread
        shrunk = intercept_shrinkage(self._variance, size=labels.shape[1], spread=spread)
        intercept = shrunk * np.asarray(models.intercept)
        return {"intercept": intercept, "coefficients": np.asarray(models.coefficients)}


class _RuleTraining(_Training):
    """Reports, and nonlinear members fitted to them."""

    def candidates(self, made: Summary) -> RuleCandidates:
        """The rules with the fields of a summary."""
        assert isinstance(self._design, VoteDesign)
        rules = self._learner.rules(dict(made))
        return RuleCandidates(rules, soft=self._design.average == "chances")

    def _fitter(self, name: str, parameters: Mapping[str, Any]) -> Any:
        return RuleLearner.from_dict({"name": name, **parameters})

    def _nothing(self, count: int) -> Summary:
        """Uninformative members, fitted to two equal rows with different labels."""
        rows = np.zeros((count, 2, self._plan.encoder.n_features))
        return self._made(rows, np.tile([-1.0, 1.0], (count, 1)))

    def _made(self, features: FloatArray, labels: FloatArray) -> Summary:
        return dict(self._learner.fit(features, labels))


@dataclass(frozen=True, eq=False)
class _Evaluations:
    """Evaluations of members in turn, and of the finished classifier by other people.

    Attributes:
        design: the design, with the cutoff of accuracies.
        plan: the plan of the study.
        epsilon: total ε of a person's evaluations.
        halves: label numbers that each member separates from the others, shape (B, h).
        each: the number of members that a person evaluates.
    """

    design: ReportedDesign | ExchangeDesign
    plan: StudyPlan
    epsilon: float
    halves: IntArray
    each: int = 1

    def phases(self, members: Any, evaluation: Step, checking: Step) -> Study:
        """Evaluations of the members, then of the result."""
        answers = yield self.phase(
            members, evaluation.people, lambda: self.result(members), then=[checking]
        )
        judged = replace(members, **answers)
        known = self.result(judged)

        def tasks(start: int, people: int) -> Task:
            return self._about_result(known.model, people)

        def count(task: Task, reply: FloatArray) -> Summary:
            return {"total": reply[:, 0].sum(), "people": np.array(len(reply))}

        found = yield Phase("check", checking.people, tasks, count, lambda: known)
        total, people = float(found["total"]), int(found["people"])
        if not people:
            return known
        # Unbiased, because these people evaluated nothing before.
        right = accuracy_estimate(total=total, people=people, epsilon=self.epsilon)
        return Result(known.model, replace(known.findings, error=right.complement()))

    def phase(self, members: Any, people: int, so_far: _SoFar, then: Sequence[Step] = ()) -> Phase:
        """Evaluations of members in turn: sums of ±1, and their numbers."""

        def tasks(start: int, people: int) -> Task:
            return self._about_members(members, start, people)

        def count(task: MemberTask | RuleTask, reply: FloatArray) -> Summary:
            size, about = len(members), task.member.ravel()
            return {
                "totals": np.bincount(about, reply.ravel(), size).astype(np.float64),
                "people": np.bincount(about, minlength=size).astype(np.float64),
            }

        return Phase("evaluate", people, tasks, count, so_far, then=then)

    def _about_members(self, members: Any, start: int, people: int) -> Task:
        """The task to evaluate some members."""
        asked = members.rows(start, people, each=self.each)
        return self.plan.ask("member", people, **asked, positive=self.halves[asked["member"]])

    def _about_result(self, model: Any, people: int) -> Task:
        """The task to evaluate the finished classifier."""
        return self.plan.ask("evaluation", people, **model.rows(people))

    def judgement(self, members: Any) -> Judgement:
        """The estimates for the members so far."""
        design, epsilon = self.design, verdict_epsilon(self.epsilon, self.each)
        known = {"cutoff": design.cutoff, "strictness": design.strictness}
        found: Judgement = members.judged(epsilon=epsilon, **known)
        return found

    def result(self, members: Any) -> Result:
        """The classifier from the members, if there are any."""
        plan, found = self.plan, MRMAFindings(classes=self.plan.classes)
        if members is None:
            return Result(unknown_model(plan), found)
        judgement, sides = self.judgement(members), None
        if plan.n_classes > 2:
            sides = signs(self.halves[: len(members)], plan.n_classes)
        model = self._model(members, judgement, sides)
        return Result(model, replace(found, candidates=members, judgement=judgement))

    def _model(self, members: Any, judgement: Judgement, sides: FloatArray | None) -> Any:
        return classifier(members, judgement, plan=self.plan, sides=sides)


class _RuleEvaluations(_Evaluations):
    """Evaluations of nonlinear members in turn, and of their vote by other people."""

    def _about_members(self, members: RuleCandidates, start: int, people: int) -> Task:
        member = in_turn(start, people, each=self.each, among=len(members))
        inside = signs(self.halves[: len(members)], self.plan.n_classes) > 0
        return self.plan.ask(
            "rule", people, rules=members.rules, member=member, right=inside.astype(np.int64)
        )

    def _about_result(self, model: VoteModel, people: int) -> Task:
        return self.plan.ask(
            "rule",
            people,
            rules=model.rules,
            weights=model.weights.ravel(),
            member=np.zeros((people, 1), dtype=np.int64),
            right=np.arange(self.plan.n_classes)[None],
        )

    def _model(
        self, members: RuleCandidates, judgement: Judgement, sides: FloatArray | None
    ) -> VoteModel:
        weight = judgement.signed_weight
        weights = np.atleast_2d(weight if sides is None else weight * sides.T)
        rules = tuple(members.rules)
        return VoteModel(rules=rules, weights=weights, soft=members.soft, **self.plan.stamp)


def _shared(number: int, parts: int) -> list[int]:
    """Sizes of groups that differ by at most one."""
    return [number // parts + (part < number % parts) for part in range(parts)]
