"""A study of two classes, from its first person to its last.

Batches of people are asked what is worth most by then (`worth`); their answers move what is
believed (`posterior`); the classifier is the rule that follows (`rule`). At the end some people say
how sure it may be, and others whether it is right about them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.local.study.answers import (
    Answers,
    Labels,
    Questions,
    both_kinds,
    label_answers,
    one_kind,
)
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
"""Each is asked what the answers before it make worth most; later ones are larger."""
_LEAST = 25
"""People in a batch, on average: fewer would wait for each other and say little."""
_FEWEST = 5
"""People of one kind of question, unless there are fewer in all: a phase of one waits for one."""
_FIRST, _LAST = 0.4, 1.6  # sizes of the first and the last beside their mean
_BELOW = -2.0
"""A threshold that every feature exceeds: such an answer, with the label, is the label."""

_SoFar = Callable[[], Result]


@study("answers")
def answers(design: AnswersDesign, plan: StudyPlan) -> Study:
    """Ask, learn and ask again; then judge the classifier."""
    judges, sure = design.kept(plan)
    learning, last = plan.n_people - judges.people - sure.people, [sure, judges]
    posterior, phase, done, heard = Posterior(prior_of(design, plan.encoder)), 0, 0, 0

    def so_far() -> Result:
        return result(posterior, plan, heard=heard)

    for people in filter(None, batch_sizes(learning)):
        left = learning - done
        batch = best_batch(posterior, people, left=left - people, epsilon=plan.epsilon)
        about: list[Answers] = []
        labels: list[Labels] = []
        came = 0
        for part in parts_of(batch, people):
            left -= part.people
            then = [Step("answers", left), *last]
            told = yield part.phase(plan, phase, so_far, then)
            some, label = part.heard(told, batch)
            about.append(some)
            labels += label
            phase, came = phase + 1, came + part.people_of(told)
        posterior.told(Answers.all_of(about), labels)
        done, heard = done + people, heard + came
    found = so_far()
    found = yield from tempered(found, plan, sure.people, phase, [judges])
    return (yield from evaluated(found, plan, judges.people))


def prior_of(design: AnswersDesign, encoder: CurveEncoder) -> Prior:
    """The prior for the features of an encoder.

    Examples:
        >>> prior_of(AnswersDesign(), CurveEncoder("cosine", n_basis=3)).turns
        (0, 1, 2)
    """
    size = design.dimension(encoder)
    smooth = encoder.basis.ordered  # waves, level first; channels take turns
    turns = tuple(j // encoder.channels if smooth else 0 for j in range(size))
    return Prior(
        turns=turns,
        levels=tuple(turn == 0 for turn in turns),
        ordered=bool(design.settled(encoder).ordered),
        center_known=design.center_known,
        class_share=design.class_share,
        spread_differs=design.spread_differs,
    )


def batch_sizes(people: int, *, most: int = _BATCHES) -> list[int]:
    """How many are asked at a time.

    Examples:
        >>> sizes = batch_sizes(1000)
        >>> sizes[0], sizes[-1], sum(sizes), sum(batch_sizes(7))
        (50, 200, 1000, 7)
    """
    number = max(1, min(most, people // _LEAST))
    rising = np.cumsum(np.linspace(_FIRST, _LAST, number))
    ends = np.round(people * rising / rising[-1]).astype(int)
    return [int(size) for size in np.diff(ends, prepend=0)]


class Part(NamedTuple):
    """People of a batch whose questions are of one kind.

    Attributes:
        people: how many.
        uses_label: whether answers are multiplied by the label.
        questions: k; where k > 1 the first is the label.
        feature: the questions that may be asked: of which feature, the last may be of none, -1;
            with folds, distances of the features from them follow the features.
        threshold: t of each.
        weight: how often each is asked.
        folds: what distances are from.
    """

    people: int
    uses_label: bool
    questions: int
    feature: IntArray
    threshold: FloatArray
    weight: FloatArray
    folds: FloatArray

    def phase(self, plan: StudyPlan, number: int, so_far: _SoFar, then: Sequence[Step]) -> Phase:
        """A phase of the study that asks them."""
        rows = self.questions > 1
        rising = np.cumsum(self.weight)
        size = len(self.feature)
        about = np.maximum(self.feature, 0)
        each = np.bincount(about, self.weight).astype(np.float64)  # of every feature, in rows
        ends = np.append(0, np.cumsum(np.bincount(about)))
        width = len(each) + self.questions - 1 if rows else 1

        def chosen(start: int, people: int) -> IntArray:
            chances = public_uniforms(
                seed=plan.seed, phase=number, start=start, people=people, width=width
            )
            if not rows:
                return np.asarray(
                    np.minimum(np.searchsorted(rising, chances * rising[-1]), size - 1)
                )
            # Different features in one row: the same one twice would count as two people.
            features = public_subsets(
                chances[:, : len(each)], choose=self.questions - 1, weights=each
            )
            within = chances[:, len(each) :] * each[features]
            place = np.searchsorted(rising, np.cumsum(each)[features] - each[features] + within)
            first, last = ends[features], ends[features + 1] - 1
            return np.asarray(np.clip(place, first, last))

        def tasks(start: int, people: int) -> Task:
            which = chosen(start, people)
            label = self.feature[which] < 0
            coordinates = np.where(label, 0, self.feature[which])
            thresholds = np.where(label, _BELOW, self.threshold[which])
            if rows:
                coordinates = np.column_stack([np.zeros(people, np.int64), coordinates])
                thresholds = np.column_stack([np.full(people, _BELOW), thresholds])
            return plan.ask(
                "stump",
                people,
                coordinates=coordinates,
                thresholds=thresholds,
                positive=np.ones(people, dtype=np.int64),
                uses_label=self.uses_label,
                **({"folds": self.folds} if len(self.folds) else {}),
            )

        def count(task: StumpTask, reply: FloatArray) -> Summary:
            first = int(rows)
            which = self._which(task.coordinates[:, first:], task.thresholds[:, first:]).ravel()

            def summed(values: FloatArray) -> FloatArray:
                return np.bincount(which, values.ravel(), size).astype(np.float64)

            told = reply[:, first:]
            found = {"asked": summed(np.ones_like(told)), "told": summed(told)}
            if rows:
                found["plain"] = summed(told * reply[:, :1])
                found["label"] = np.array([reply[:, 0].sum(), len(reply)])
            return found

        return Phase("answers", self.people, tasks, count, so_far, then=then)

    def _which(self, coordinates: IntArray, thresholds: FloatArray) -> IntArray:
        """Which of the questions each one is."""
        label = thresholds == _BELOW
        asked = _key(np.where(label, -1, coordinates), np.where(label, 0.0, thresholds))
        keys = _key(self.feature, self.threshold)
        order = np.argsort(keys, kind="stable")
        return np.asarray(order[np.searchsorted(keys[order], asked)])

    def people_of(self, told: Summary) -> int:
        """How many answered."""
        return int(told["label"][1] if self.questions > 1 else told["asked"].sum())

    def heard(self, told: Summary, batch: Batch) -> tuple[Answers, list[Labels]]:
        """The answers as the posterior takes them."""
        number, total = told["asked"], told["told"]
        about = (number > 0) & (self.feature >= 0)
        feature, threshold = self.feature[about], self.threshold[about]
        center = np.full(len(feature), np.nan)
        if len(self.folds):
            far, feature = feature >= len(self.folds), feature % len(self.folds)
            center[far] = self.folds[feature[far]]
        questions = Questions(feature, threshold, center)
        place = self._places(batch)[about]
        plain, joined = (part.ravel()[place] for part in batch.expected[:2])
        mean, known = batch.expected[2], {"alpha": batch.alpha}
        labels = []
        if self.questions > 1:
            (sum_, people), given = told["label"], told["plain"][about]
            if people:
                labels = [label_answers(float(sum_), float(people), **known, expected=mean)]
            some = both_kinds(
                questions,
                given,
                total[about],
                number[about],
                **known,
                expected=(plain, joined),
                label=float(sum_) / max(float(people), 1.0),
            )
            return some, labels
        alone = self.feature < 0
        if number[alone].any():
            sums = float(total[alone].sum()), float(number[alone].sum())
            labels = [label_answers(*sums, **known, expected=mean)]
        expected = joined if self.uses_label else plain
        some = one_kind(
            questions,
            total[about],
            number[about],
            **known,
            expected=expected,
            joined=self.uses_label,
        )
        return some, labels

    def _places(self, batch: Batch) -> IntArray:
        """Where each question stands among the batch's thresholds."""
        grid = batch.thresholds
        features = np.arange(len(grid))[:, None]
        keys = _key(np.broadcast_to(features, grid.shape), grid).ravel()
        order = np.argsort(keys, kind="stable")
        found = np.searchsorted(keys[order], _key(self.feature, self.threshold))
        return np.asarray(order[np.minimum(found, len(keys) - 1)])


def _key(feature: IntArray, threshold: FloatArray) -> FloatArray:
    """One number for a question, exact: thresholds are on a grid between -1 and 1."""
    return np.asarray(4.0 * feature + threshold)


def parts_of(batch: Batch, people: int) -> list[Part]:
    """A batch as one phase of rows, or as two: questions without the label, and with it."""

    def listed(shares: FloatArray, label: float) -> tuple[Any, ...]:
        feature, offset = np.nonzero(shares)
        threshold, weight = batch.thresholds[feature, offset], shares[feature, offset]
        if label:
            feature, threshold = np.append(feature, -1), np.append(threshold, 0.0)
            weight = np.append(weight, label)
        return feature.astype(np.int64), threshold, weight, batch.folds

    if batch.questions > 1:
        return [Part(people, True, batch.questions, *listed(batch.plain, 0.0))]
    without = round(people * float(batch.plain.sum()))
    if without < _FEWEST:
        without = 0
    elif people - without < _FEWEST:
        without = people
    both = [
        Part(without, False, 1, *listed(batch.plain, 0.0)),
        Part(people - without, True, 1, *listed(batch.joined, batch.label)),
    ]
    return [part for part in both if part.people]


def tempered(
    found: Result, plan: StudyPlan, people: int, phase: int, then: Sequence[Step]
) -> Study:
    """Some people say how sure the classifier may be, in a few batches."""
    temperature = Temperature()
    for batch in range(BATCHES if people else 0):
        size = people // BATCHES + (batch < people % BATCHES)
        told = yield _confidence(found, plan, size, phase + batch, then)
        total, heard = float(told["total"][0]), int(told["people"][0])
        temperature = temperature.updated(total, people=heard, plan=plan)
        found = found._replace(model=replace(found.model, damping=temperature.factor))
    return found


def _confidence(
    found: Result, plan: StudyPlan, people: int, phase: int, then: Sequence[Step]
) -> Phase:
    def tasks(start: int, people: int) -> Task:
        chances = public_uniforms(
            seed=plan.seed,
            phase=phase,
            start=start,
            people=people,
            width=confidence_questions(plan),
        )
        return plan.ask("confidence", people, **asked(found.model, chances))

    return Phase("temperature", people, tasks, added_up, lambda: found, then=then)


def evaluated(found: Result, plan: StudyPlan, people: int) -> Study:
    """Others say whether the finished classifier is right about them."""

    def tasks(start: int, people: int) -> Task:
        return plan.ask("evaluation", people, **found.model.rows(people))

    told = yield Phase("evaluation", people, tasks, added_up, lambda: found)
    total, heard = float(told["total"][0]), int(told["people"][0])
    if not heard:
        return found
    # Unbiased, because these people were asked nothing before.
    right = accuracy_estimate(total=total, people=heard, epsilon=plan.epsilon)
    error, findings = right.complement(), found.findings
    liars = None
    if findings.classes:
        liars = liars_behind(error, findings.guessing, epsilon=plan.epsilon)
        liars = max(liars, findings.liars or 0.0)  # both kinds of replies must be forged
    return found._replace(findings=replace(findings, error=error, liars=liars))


def added_up(task: Task, reply: FloatArray) -> Summary:
    """The sum of replies, and how many there were."""
    return {"total": np.array([reply.sum()]), "people": np.array([float(len(reply))])}
