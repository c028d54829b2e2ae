"""A study of two classes by yes/no answers, from the first participant to the last.

Batches of participants answer the currently most informative questions (`worth`), their answers
update the posterior (`posterior`), and the classifier is computed from it (`rule`). At the end,
some participants calibrate the probabilities of the classifier, and others evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.local.study.answers import Answers, mean_answers
from dpfda.local.study.beliefs import Prior
from dpfda.local.study.design import AnswersDesign
from dpfda.local.study.posterior import Posterior
from dpfda.local.study.rule import result
from dpfda.local.study.worth import CANDIDATES, Batch, best_batch
from dpfda.protocol.estimate import accuracy_estimate
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import public_subsets, public_uniforms
from dpfda.protocol.study import Phase, Result, Study, Summary, study
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.questions import (
    BATCHES,
    StumpTask,
    Temperature,
    asked,
    confidence_questions,
)
from dpfda.protocol.verdict import liars_behind

_BATCHES = 8
"""Number of batches; the questions of each depend on all earlier answers, later ones are larger."""
_LEAST = 25
"""Least mean number of people in a batch; smaller ones take as long and are less informative."""
_FEWEST = 5
"""Least number of people with one kind of question, if there are so many."""
_FIRST, _LAST = 0.4, 1.6  # sizes of the first and the last batch beside their mean
_ALWAYS = -2.0
"""A threshold below all features, used instead of -∞; the labelled answer is then the label."""

_Tasks = Callable[[int, int], Task]
_Count = Callable[[StumpTask, FloatArray], Summary]


@study("answers")
def answers(design: AnswersDesign, plan: StudyPlan) -> Study:
    """Ask in batches and update the posterior after each; then calibrate and evaluate."""
    evaluation, calibration = design.last_steps(plan)
    people = plan.n_people - evaluation.people - calibration.people
    posterior, phase, answered, left = Posterior(prior_of(design, plan.encoder)), 0, 0, people

    def so_far() -> Result:
        return result(posterior, plan, people=answered)

    for size in filter(None, batch_sizes(people)):
        batch, summaries = best_batch(posterior, size, left=left - size, epsilon=plan.epsilon), []
        for group, labelled in groups_of(batch, size):
            left, phase = left - group, phase + 1
            tasks, count = asking(batch, plan, phase - 1, labelled=labelled)
            then = [Step("answers", left), calibration, evaluation]
            summaries.append((yield Phase("answers", group, tasks, count, so_far, then=then)))
        posterior.update(batch_answers(batch, summaries))
        answered += int(sum(summary["people"][0] for summary in summaries))
    learned = yield from tempered(so_far(), plan, calibration.people, phase, [evaluation])
    return (yield from evaluated(learned, plan, evaluation.people))


def prior_of(design: AnswersDesign, encoder: CurveEncoder) -> Prior:
    """The prior for the features of an encoder.

    Examples:
        >>> prior_of(AnswersDesign(), CurveEncoder("cosine", n_basis=3)).turns
        (0, 1, 2)
    """
    size = design.dimension(encoder)
    waves = encoder.basis.ordered  # the level is first; features of several channels alternate
    turns = tuple(j // encoder.channels if waves else 0 for j in range(size))
    return Prior(
        turns=turns,
        levels=tuple(turn == 0 for turn in turns),
        ordered=bool(design.settled(encoder).ordered),
        center_known=design.center_known,
        class_share=design.class_share,
        spread_differs=design.spread_differs,
    )


def batch_sizes(people: int) -> list[int]:
    """The number of participants in each batch.

    Examples:
        >>> sizes = batch_sizes(1000)
        >>> sizes[0], sizes[-1], sum(sizes), sum(batch_sizes(7))
        (50, 200, 1000, 7)
    """
    number = max(1, min(_BATCHES, people // _LEAST))
    rising = np.cumsum(np.linspace(_FIRST, _LAST, number))
    ends = np.round(people * rising / rising[-1]).astype(int)
    return [int(size) for size in np.diff(ends, prepend=0)]


def groups_of(batch: Batch, people: int) -> list[tuple[int, bool]]:
    """The numbers of people with plain and with labelled questions.

    If participants answer several questions, all answers are multiplied by the label, from which
    plain answers can be recovered.
    """
    plain = round(people * float(batch.shares[:, 0].sum()))
    if batch.per_person > 1 or plain < _FEWEST:
        plain = 0
    elif people - plain < _FEWEST:
        plain = people
    return [group for group in ((plain, False), (people - plain, True)) if group[0]]


def asking(batch: Batch, plan: StudyPlan, phase: int, *, labelled: bool) -> tuple[_Tasks, _Count]:
    """The tasks of a group, and the function that counts its replies."""
    feature, threshold, center = batch.questions
    coordinates = feature + (feature.max() + 1) * np.isfinite(center)
    thresholds = np.maximum(threshold, _ALWAYS)
    key, rows = 8 * coordinates + thresholds, batch.per_person > 1
    order = np.argsort(key)
    answers = np.tile([rows or not labelled, labelled], (len(key), 1))
    answers[0, 0] = False  # the plain question with threshold -2 is uninformative

    def tasks(start: int, people: int) -> Task:
        width = len(key) // CANDIDATES + batch.per_person - 1 if rows else 1
        chances = public_uniforms(
            seed=plan.seed, phase=phase, start=start, people=people, width=width
        )
        shares = batch.shares[:, int(labelled)]
        which = _several(batch, chances) if rows else _single(shares, chances)
        return plan.ask(
            "stump",
            people,
            coordinates=coordinates[which],
            thresholds=thresholds[which],
            positive=np.ones(people, dtype=np.int64),
            uses_label=labelled,
            **({"folds": batch.folds} if len(batch.folds) else {}),
        )

    def count(task: StumpTask, reply: FloatArray) -> Summary:
        which = order[np.searchsorted(key[order], 8 * task.coordinates + task.thresholds)]
        # Every answer of a reply is multiplied by the label, and the first answer is the label.
        plain = reply * reply[:, :1] if rows else reply
        each, *totals = (
            np.bincount(which.ravel(), values.ravel(), len(key)).astype(np.float64)
            for values in (np.ones_like(reply), plain, reply)
        )
        return {
            "count": each[:, None] * answers,
            "total": np.column_stack(totals) * answers,
            "people": np.array([float(len(reply))]),
        }

    return tasks, count


def _single(shares: FloatArray, chances: FloatArray) -> IntArray:
    """One random question for each person."""
    rising = np.cumsum(shares)
    which = np.searchsorted(rising, chances * rising[-1])
    return np.asarray(np.minimum(which, np.flatnonzero(shares)[-1]))


def _several(batch: Batch, chances: FloatArray) -> IntArray:
    """Questions about the label and k - 1 different features for each person."""
    rising = np.cumsum(batch.shares[1:, 0].reshape(-1, CANDIDATES), axis=1)
    often, features = rising[:, -1], len(rising)
    feature = public_subsets(chances[:, :features], choose=batch.per_person - 1, weights=often)
    within = chances[:, features:] * often[feature]
    place = np.minimum((rising[feature] < within[..., None]).sum(axis=2), CANDIDATES - 1)
    return np.insert(1 + feature * CANDIDATES + place, 0, 0, axis=1)


def batch_answers(batch: Batch, summaries: Sequence[Summary]) -> Answers:
    """Mean answers to the questions of a batch."""
    count, total = (
        np.sum([summary[name] for summary in summaries], axis=0) for name in ("count", "total")
    )
    label = float(total[0, 1] / max(count[0, 1], 1)) if batch.per_person > 1 else None
    return mean_answers(
        batch.questions, count, total, alpha=batch.alpha, expected=batch.expected, label=label
    )


def tempered(
    learned: Result, plan: StudyPlan, people: int, phase: int, then: Sequence[Step]
) -> Study:
    """Calibrate the probabilities by the answers of some participants, in a few batches."""
    temperature = Temperature()
    for batch in range(BATCHES if people else 0):
        size = people // BATCHES + (batch < people % BATCHES)
        summary = yield _confidence(learned, plan, size, phase + batch, then)
        total, count = float(summary["total"][0]), int(summary["people"][0])
        temperature = temperature.updated(total, people=count, plan=plan)
        learned = learned._replace(model=replace(learned.model, damping=temperature.factor))
    return learned


def _confidence(
    learned: Result, plan: StudyPlan, people: int, phase: int, then: Sequence[Step]
) -> Phase:
    width = confidence_questions(plan)

    def tasks(start: int, people: int) -> Task:
        chances = public_uniforms(
            seed=plan.seed, phase=phase, start=start, people=people, width=width
        )
        return plan.ask("confidence", people, **asked(learned.model, chances))

    return Phase("temperature", people, tasks, added_up, lambda: learned, then=then)


def evaluated(learned: Result, plan: StudyPlan, people: int) -> Study:
    """Other participants evaluate whether the finished classifier is right about them."""

    def tasks(start: int, people: int) -> Task:
        return plan.ask("evaluation", people, **learned.model.rows(people))

    summary = yield Phase("evaluation", people, tasks, added_up, lambda: learned)
    total, count = float(summary["total"][0]), int(summary["people"][0])
    if not count:
        return learned
    # Unbiased: these participants answered nothing from which the classifier was fitted.
    error = accuracy_estimate(total=total, people=count, epsilon=plan.epsilon).complement()
    findings, liars = learned.findings, None
    if findings.classes:
        liars = liars_behind(error, findings.guessing, epsilon=plan.epsilon)
        liars = max(liars, findings.liars or 0.0)  # liars must forge both kinds of replies
    return learned._replace(findings=replace(findings, error=error, liars=liars))


def added_up(task: Task, reply: FloatArray) -> Summary:
    """The sum of replies, and their number."""
    return {"total": np.array([reply.sum()]), "people": np.array([float(len(reply))])}
