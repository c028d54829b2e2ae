"""A study of two classes by yes/no answers, from the first participant to the last.

Batches of participants answer the questions that are worth most at the time (`worth`), their
answers update the posterior (`posterior`), and the classifier follows from it (`rule`). At the end
some participants calibrate the probabilities of the classifier, and others evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.local.study.answers import Answers, Labels, label_answers, row_answers, single_answers
from dpfda.local.study.beliefs import Prior
from dpfda.local.study.design import AnswersDesign
from dpfda.local.study.posterior import Posterior
from dpfda.local.study.rule import result
from dpfda.local.study.worth import Batch, best_batch
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
"""The questions of each follow from all earlier answers; later batches are larger."""
_LEAST = 25
"""People in a batch, on average: a smaller one takes as long to collect and says little."""
_FEWEST = 5
"""People with one kind of question, unless there are fewer in all: nobody waits for one person."""
_FIRST, _LAST = 0.4, 1.6  # sizes of the first and the last batch beside their mean
_ALWAYS = -2.0
"""A threshold that every feature exceeds: the labelled answer to it is the label."""

_SoFar = Callable[[], Result]


@study("answers")
def answers(design: AnswersDesign, plan: StudyPlan) -> Study:
    """Ask in batches, learn from each, calibrate, evaluate."""
    evaluation, calibration = design.last_steps(plan)
    people = plan.n_people - evaluation.people - calibration.people
    posterior, phase, answered, left = Posterior(prior_of(design, plan.encoder)), 0, 0, people

    def so_far() -> Result:
        return result(posterior, plan, people=answered)

    for size in filter(None, batch_sizes(people)):
        batch = best_batch(posterior, size, left=left - size, epsilon=plan.epsilon)
        received: list[Answers] = []
        labels: list[Labels] = []
        count = 0
        for group in groups_of(batch, size):
            left -= group.people
            then = [Step("answers", left), calibration, evaluation]
            summary = yield group.phase(plan, phase, so_far, then)
            about_features, about_labels, replies = group.answers(summary)
            received.append(about_features)
            labels += about_labels
            phase, count = phase + 1, count + replies
        posterior.update(Answers.all_of(received), labels)
        answered += count
    learned = yield from tempered(so_far(), plan, calibration.people, phase, [evaluation])
    return (yield from evaluated(learned, plan, evaluation.people))


def prior_of(design: AnswersDesign, encoder: CurveEncoder) -> Prior:
    """The prior for the features of an encoder.

    Examples:
        >>> prior_of(AnswersDesign(), CurveEncoder("cosine", n_basis=3)).turns
        (0, 1, 2)
    """
    size = design.dimension(encoder)
    waves = encoder.basis.ordered  # the level first; features of several channels alternate
    turns = tuple(j // encoder.channels if waves else 0 for j in range(size))
    return Prior(
        turns=turns,
        levels=tuple(turn == 0 for turn in turns),
        ordered=bool(design.settled(encoder).ordered),
        center_known=design.center_known,
        class_share=design.class_share,
        spread_differs=design.spread_differs,
    )


def batch_sizes(people: int, *, most: int = _BATCHES) -> list[int]:
    """The number of participants in each batch.

    Examples:
        >>> sizes = batch_sizes(1000)
        >>> sizes[0], sizes[-1], sum(sizes), sum(batch_sizes(7))
        (50, 200, 1000, 7)
    """
    number = max(1, min(most, people // _LEAST))
    rising = np.cumsum(np.linspace(_FIRST, _LAST, number))
    ends = np.round(people * rising / rising[-1]).astype(int)
    return [int(size) for size in np.diff(ends, prepend=0)]


@dataclass(frozen=True, eq=False)
class Group:
    """Participants of a batch with one kind of question: plain, labelled, or rows of k.

    The last question of a group with labelled answers is the label alone.

    Attributes:
        batch: their batch.
        people: how many.
        labelled: whether answers are multiplied by the label.
    """

    batch: Batch
    people: int
    labelled: bool

    @property
    def _weights(self) -> FloatArray:
        """Frequency of each question."""
        batch = self.batch
        if batch.per_person > 1 or not self.labelled:
            return np.append(batch.plain, 0.0)
        return np.append(batch.labelled, batch.label)

    def phase(self, plan: StudyPlan, number: int, so_far: _SoFar, then: Sequence[Step]) -> Phase:
        """The phase in which they answer."""
        batch, label = self.batch, len(self.batch.plain)
        chosen = self._rows if batch.per_person > 1 else self._single
        width = label // batch.offsets + batch.per_person - 1 if batch.per_person > 1 else 1

        def tasks(start: int, people: int) -> Task:
            which = chosen(
                public_uniforms(
                    seed=plan.seed, phase=number, start=start, people=people, width=width
                )
            )
            feature = np.where(which == label, 0, which // batch.offsets)
            threshold = np.append(batch.questions.threshold, _ALWAYS)[which]
            return plan.ask(
                "stump",
                people,
                coordinates=feature,
                thresholds=threshold,
                positive=np.ones(people, dtype=np.int64),
                uses_label=self.labelled,
                **({"folds": batch.folds} if len(batch.folds) else {}),
            )

        def count(task: StumpTask, reply: FloatArray) -> Summary:
            which = self._index(task.coordinates, task.thresholds).reshape(reply.shape)

            def summed(values: FloatArray) -> FloatArray:
                return np.bincount(which.ravel(), values.ravel(), label + 1).astype(np.float64)

            summary = {"count": summed(np.ones_like(reply)), "total": summed(reply)}
            if batch.per_person > 1:
                # Every answer of a row is multiplied by the label, and the first is the label.
                summary["plain"] = summed(reply * reply[:, :1])
            return summary

        return Phase("answers", self.people, tasks, count, so_far, then=then)

    def _single(self, chances: FloatArray) -> IntArray:
        """One question each."""
        rising = np.cumsum(self._weights)
        which = np.searchsorted(rising, chances * rising[-1])
        return np.asarray(np.minimum(which, len(rising) - 1))

    def _rows(self, chances: FloatArray) -> IntArray:
        """The label, and k - 1 different features: one feature twice would count as two people."""
        rising = np.cumsum(self.batch.plain.reshape(-1, self.batch.offsets), axis=1)
        often, features = rising[:, -1], len(rising)
        choose = self.batch.per_person - 1
        feature = public_subsets(chances[:, :features], choose=choose, weights=often)
        within = chances[:, features:] * often[feature]
        offset = (rising[feature] < within[..., None]).sum(axis=2)
        which = feature * self.batch.offsets + np.minimum(offset, self.batch.offsets - 1)
        return np.insert(which, 0, len(self.batch.plain), axis=1)

    def _index(self, features: IntArray, thresholds: FloatArray) -> IntArray:
        """Which question has this feature and threshold."""
        grid = self.batch.questions.threshold.reshape(-1, self.batch.offsets)
        offset = np.abs(grid[features] - thresholds[..., None]).argmin(axis=-1)
        about = features * self.batch.offsets + offset
        return np.where(thresholds == _ALWAYS, grid.size, about)

    def answers(self, summary: Summary) -> tuple[Answers, list[Labels], int]:
        """Answers about features, answers about the label, and the number of replies."""
        batch = self.batch
        count, total = summary["count"][:-1], summary["total"][:-1]
        which, alpha, (plain, labelled, label) = count > 0, batch.alpha, batch.expected
        questions, some = batch.questions.at(which), count[which]
        labels, named, of_label = [], float(summary["count"][-1]), float(summary["total"][-1])
        if named:
            labels = [label_answers(of_label, named, alpha=alpha, expected=label)]
        if batch.per_person > 1:
            both = row_answers(
                questions,
                (summary["plain"][:-1][which], total[which]),
                some,
                alpha=alpha,
                expected=(plain[which], labelled[which]),
                label=of_label / max(named, 1.0),
            )
            return both, labels, int(named)
        single = single_answers(
            questions,
            total[which],
            some,
            alpha=alpha,
            expected=(labelled if self.labelled else plain)[which],
            labelled=self.labelled,
        )
        return single, labels, int(summary["count"].sum())


def groups_of(batch: Batch, people: int) -> list[Group]:
    """One group of rows, or two: plain questions, and questions with the label."""
    if batch.per_person > 1:
        return [Group(batch, people, labelled=True)]
    plain = round(people * float(batch.plain.sum()))
    if plain < _FEWEST:
        plain = 0
    elif people - plain < _FEWEST:
        plain = people
    both = Group(batch, plain, labelled=False), Group(batch, people - plain, labelled=True)
    return [group for group in both if group.people]


def tempered(
    learned: Result, plan: StudyPlan, people: int, phase: int, then: Sequence[Step]
) -> Study:
    """Calibrate the probabilities by some participants, in a few batches."""
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
    """Evaluate: other participants say whether the finished classifier is right about them."""

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
        liars = max(liars, findings.liars or 0.0)  # both kinds of replies must be forged
    return learned._replace(findings=replace(findings, error=error, liars=liars))


def added_up(task: Task, reply: FloatArray) -> Summary:
    """The sum of replies, and their number."""
    return {"total": np.array([reply.sum()]), "people": np.array([float(len(reply))])}
