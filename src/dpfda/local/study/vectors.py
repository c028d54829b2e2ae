"""A study by vector reports, from its first person to its last.

Some people answer questions about the location of single columns (`columns`), others report on
variances and correlations (`moments`). The others report vectors of white features and label, or
number, in batches (`reports`); each batch is asked at the current estimate, and updates one
posterior (`slopes`). At the end, some people calibrate the probabilities, and others evaluate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.local.study.columns import Columns, expected
from dpfda.local.study.design import CLIP, NumberDesign, VectorDesign
from dpfda.local.study.moments import (
    Correlations,
    FeatureMap,
    Reply,
    effective_people,
    mean_and_deviation,
    on_grid,
    public_rows,
    whitening,
    with_distances,
)
from dpfda.local.study.reports import Kind, Labels, Numbers, Query
from dpfda.local.study.slopes import Slopes, priors
from dpfda.local.study.study import added_up, batch_sizes, evaluated, tempered
from dpfda.mechanisms.randomized_response import QuestionResponse, best_questions
from dpfda.protocol.estimate import Estimate, accuracies_behind
from dpfda.protocol.findings import Findings, Step
from dpfda.protocol.linear_scores import decided
from dpfda.protocol.model import CurveModel, CurveRegression
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import public_subsets, public_uniforms
from dpfda.protocol.study import Phase, Result, Study, Summary, study
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.questions import StumpTask
from dpfda.protocol.tasks.vector import SummaryTask

_PLACED, _MOST_PLACED = 300.0, 0.2
"""Number of noiseless answers that locate a column, and the largest share of people for them. An
imprecise location makes reports less efficient, but does not bias the model."""
_LOCATION_BATCHES = 12  # a narrow column in a wide range is located by bisection
_SPREAD = 0.08
"""Share of people for variances; it is small, because each feature has only two parameters."""
_TOGETHER, _TOGETHER_FROM = 0.15, 100.0
"""Largest share of people for correlations, and the N_eff per column at which the share is half of
it. It grows with N_eff because there are d² correlations."""
_ALL_ONE = 0.99  # share of people with one predicted label from which a rule counts as constant
_ERRORS, _LEAST_ERROR = 3.0, 0.5
"""Largest error that is distinguished, in expected errors; and the least expected error, in
standard deviations of the number."""


@study("vectors")
def vectors(design: VectorDesign, plan: StudyPlan) -> Study:
    """A study of two or more classes."""
    known = Known(design, plan)
    found = yield from _learnt(known, plan, design.last_steps(plan))
    evaluation, calibration = design.last_steps(plan)
    found = yield from tempered(found, plan, calibration.people, known.phase, [evaluation])
    return (yield from evaluated(found, plan, evaluation.people))


@study("vector_numbers")
def numbers(design: NumberDesign, plan: StudyPlan) -> Study:
    """A study of a number, which is the first column of people's data."""
    known = Known(design, plan)
    evaluation, _ = design.last_steps(plan)
    found = yield from _learnt(known, plan, [evaluation])
    return (yield from _evaluated_number(known, found, evaluation.people))


def _learnt(known: Known, plan: StudyPlan, last: Sequence[Step]) -> Study:
    """All phases except calibration and evaluation."""
    people = plan.n_people - sum(step.people for step in last)
    sizes = known.sizes(people)
    left = [Step("vectors", people - sum(sizes.values())), *last[::-1]]
    looks = np.diff(np.round(np.linspace(0, sizes["location"], _LOCATION_BATCHES + 1)).astype(int))
    steps = [
        *(Step("location", int(size)) for size in looks),
        Step("spread", sizes["spread"]),
        Step("correlation", sizes["correlation"] - sizes["correlation"] // 2),
        Step("correlation", sizes["correlation"] // 2),
    ]
    for number, step in enumerate(steps):
        summary = yield known.column_phase(step, [*steps[number + 1 :], *left])
        known.update_columns(step.kind, summary)
    rest = left[0].people
    for size in batch_sizes(rest):
        query = known.next_query(rest)
        rest -= size
        fields = known.kind.fields(query, known.fit.reported) | {"weights": query.weights}
        fields |= {"statistic": query.statistic, "limit": query.limit}
        then = [Step("vectors", rest), *left[1:]]
        summary = yield known.summary_phase("vectors", size, fields, then)
        known.update_slopes(query, summary)
    return known.result()


class Fit(NamedTuple):
    """Slopes of white features.

    Attributes:
        slopes: their posterior.
        white: the map to white features.
        reported: the same map, preceded by the predicted number if there is one.
    """

    slopes: Slopes
    white: FeatureMap
    reported: FeatureMap


class Known:
    """The current posterior, and the phases that update it.

    Attributes:
        kind: labels or numbers, with their reports.
        phase: number of the next phase.
        replies: the number of vector reports.
    """

    def __init__(self, design: VectorDesign | NumberDesign, plan: StudyPlan) -> None:
        self.design, self.plan, self.phase, self.replies = design, plan, 0, 0
        self.targets = int(design.predicts_numbers)
        encoder, d = plan.encoder, design.dimension(plan.encoder)
        turns = np.array([j // encoder.channels for j in range(d)])
        reach = 1 / np.maximum(turns, 1) if encoder.basis.ordered else np.ones(d)
        ordered = bool(design.settled(encoder).ordered)
        place = turns if encoder.basis.ordered else np.arange(d)
        own = expected(curves=encoder.basis.functional, center_known=design.center_known)
        prior = np.vstack([expected(curves=True)] * self.targets + [own] * d)
        self.d = d + self.targets
        self.k = best_questions(plan.epsilon, most=self.d)
        self._alpha = QuestionResponse(epsilon=plan.epsilon, questions=self.k).truth_probability
        self._columns = Columns(
            prior, np.r_[np.ones(self.targets), reach], alpha=self._alpha, alone=self.targets
        )
        self._often = 1 / np.sqrt(1.0 + place) if ordered else np.ones(d)
        if self.targets:
            # As often as about all features together, because all predictions depend on it.
            self._often = np.r_[self._often.sum(), self._often]
        self._mean, self._deviation, self._place = np.zeros(self.d), np.ones(self.d), 0.0
        self._asked: IntArray = np.zeros((self.d, 0), np.int64)
        self._placed, self._together = 0, Correlations(np.eye(d))
        self._fit: Fit | None = None
        if self.targets:
            self.kind: Kind = Numbers(plan.epsilon)
        else:
            share = getattr(design, "class_share", None)
            self.kind = Labels(plan.epsilon, plan.n_classes, share)

    def sizes(self, people: int) -> dict[str, int]:
        """The numbers of people in the phases about columns."""
        answers = max(people * self.k * self._alpha**2, 1e-9)
        few = _PLACED * self.d / (_MOST_PLACED * answers)
        many = effective_people(people, self.plan.epsilon) / (_TOGETHER_FROM * self.d)
        alone = self.d - self.targets == 1
        return {
            "location": int(people * _MOST_PLACED * few / (1 + few)),
            "spread": int(people * _SPREAD),
            "correlation": 0 if alone else int(people * _TOGETHER * many / (1 + many)),
        }

    def column_phase(self, step: Step, then: Sequence[Step]) -> Phase:
        """A phase about columns, without labels."""
        if step.kind == "location":
            return self._location(step.people, then)
        if step.kind == "spread":
            features, statistic, square = self._standard(), "spread", 2 * self.d
        else:
            features = self._features().then(self._together.into)
            statistic, square = "products", self.d - self.targets
        fields = {"statistic": statistic, "limit": math.sqrt(square)}
        return self.summary_phase(step.kind, step.people, features.public() | fields, then)

    def _location(self, people: int, then: Sequence[Step]) -> Phase:
        plan, number, columns = self.plan, self.phase, self._columns
        self._asked = asked = columns.asked()
        self.phase += 1

        def chosen(start: int, people: int) -> tuple[IntArray, IntArray]:
            width = self.d + self.k
            chances = public_uniforms(
                seed=plan.seed, phase=number, start=start, people=people, width=width
            )
            which = public_subsets(chances[:, : self.d], choose=self.k, weights=self._often)
            return which, (chances[:, self.d :] * asked.shape[1]).astype(np.int64)

        def tasks(start: int, people: int) -> Task:
            which, place = chosen(start, people)
            return plan.ask(
                "stump",
                people,
                coordinates=which,
                thresholds=columns.thresholds(which, asked[which, place]),
                positive=np.ones(people, dtype=np.int64),
                uses_label=False,
            )

        every = columns.thresholds(np.arange(self.d)[:, None], asked)

        def count(task: StumpTask, reply: FloatArray) -> Summary:
            near = np.abs(every[task.coordinates] - task.thresholds[..., None])
            counts = np.zeros((*asked.shape, 2))
            place = near.argmin(axis=2)
            np.add.at(counts, (task.coordinates, place, (reply > 0).astype(np.int64)), 1)
            return {"counts": counts, "people": np.array([float(len(reply))])}

        return Phase("location", people, tasks, count, self.result, then=then)

    def summary_phase(
        self, kind: str, people: int, fields: dict[str, Any], then: Sequence[Step]
    ) -> Phase:
        """A phase of vector reports; its tasks are the same on every machine."""
        self.phase += 1
        fields = {name: _public(value) for name, value in fields.items()}

        def tasks(start: int, people: int) -> Task:
            return self.plan.ask("summary", people, **fields)

        def count(task: SummaryTask, reply: FloatArray) -> Summary:
            return {"total": task.total(reply), "people": np.array([float(len(reply))])}

        return Phase(kind, people, tasks, count, self.result, then=then)

    def update_columns(self, kind: str, summary: Summary) -> None:
        """Update by the summary of a phase about columns."""
        people = int(summary["people"][0])
        if not people:
            return
        if kind == "location":
            self._columns.update(self._asked, summary["counts"])
            self._placed += people
            return
        mean = summary["total"] / people
        if kind == "correlation":
            noise = Reply.of(len(mean), self.plan.epsilon).noise / people
            self._together = self._together.updated(mean, noise)
            return
        noise = len(mean) * Reply.of(len(mean), self.plan.epsilon).noise / people
        moments = mean_and_deviation(math.sqrt(len(mean)) * mean, noise)
        self._mean, self._deviation, self._place = moments

    def _standard(self) -> FeatureMap:
        location, _, width = self._columns.placed()
        return FeatureMap.standard(location, width, CLIP)

    def _standardized(self) -> FeatureMap:
        return self._standard().then(np.diag(1 / self._deviation), self._mean)

    def _features(self) -> FeatureMap:
        """The map to standardized features, without the predicted number."""
        every = self._standardized()
        return every.then(np.eye(self.d)[self.targets :]) if self.targets else every

    def next_query(self, people: int) -> Query:
        """The query for the next batch, if `people` remain."""
        self._fit = self.fit
        return self.kind.query(self._fit.slopes, people)

    def update_slopes(self, query: Query, summary: Summary) -> None:
        """Update by the summary of a batch of reports."""
        people = int(summary["people"][0])
        if people:
            self.replies += people
            report = summary["total"] / people
            self.fit.slopes.update(self.kind.event(query, report, people))

    @property
    def fit(self) -> Fit:
        """The current fit; before the first report, from the features alone."""
        return self._first_fit() if self._fit is None else self._fit

    def _first_fit(self) -> Fit:
        """The fit before any vector report."""
        features, covariance = self._features(), self._together.covariance
        if getattr(self.design, "spread_differs", False):
            # If a column is nearly constant, noise may move its center out of the range.
            standard = self._standard()
            middle = np.clip(standard.location + standard.width * self._mean, -1, 1)
            deviation = standard.width * self._deviation
            features = FeatureMap.with_distances(middle, deviation, CLIP)
            covariance = with_distances(covariance)
        into = whitening(covariance)
        # Bases: few directions, coefficients of few features, or mean differences of few features.
        bases = np.eye(len(into)), into @ covariance, into
        white = reported = features.then(into)
        if self.targets:
            both = np.vstack([np.eye(self.d)[:1], into @ np.eye(self.d)[1:]])
            reported = self._standardized().then(both)
        grid = priors(self.kind.totals, self.kind.constants, bases)
        slopes = Slopes(grid, self.kind.rows, place=self._place)
        share = self.kind.known_share(len(into)) if isinstance(self.kind, Labels) else None
        if share is not None:
            slopes.update(share)
        return Fit(slopes, white, reported)

    def result(self) -> Result:
        """The current model and findings."""
        slopes, white, _ = self.fit
        scores, into = self.kind.scores(slopes), white.matrix
        rule = white.rule(scores.theta[:, 0], scores.theta[:, 1:])
        covariances = into.T @ scores.blocks[:, 1:, 1:] @ into
        errors = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        weights = scores.theta[:, 1:] @ into
        covariances = white.clip**2 * covariances
        location, doubt, _ = self._columns.placed()
        findings = Findings(
            classes=self.plan.classes,
            learnt="weight",
            title="weight of this feature",
            features=[
                _estimates(*row, self.replies)
                for row in zip(weights[:, self.targets :], errors[:, self.targets :], strict=True)
            ],
            centers=_estimates(location[self.targets :], doubt[self.targets :], self._placed),
            folded=len(white.folds),
        )
        if self.replies:
            findings = replace(
                findings,
                evidence=slopes.evidence,
                better=self.kind.better(scores),
                liars=slopes.liars(self.kind.without(slopes)),
            )
        if self.targets:
            return self._number(rule, findings, covariances[:, 1:, 1:])
        variances = np.zeros((len(scores.theta), 1 + into.shape[1]))
        # The mean variance of a score over people, whose white features have variance 1.
        variances[:, 0] = np.trace(scores.blocks, axis1=1, axis2=2)
        model = CurveModel(**rule, variances=variances, **self.plan.stamp)
        guessing = Estimate(*scores.guessing, self.replies) if self.replies else None
        findings = replace(
            findings,
            covariances=list(covariances),
            guessing=guessing,
            constant=bool(self.replies) and _one_label(scores.theta),
        )
        return Result(model, findings)

    @property
    def farthest(self) -> float:
        """Largest error of a number that is distinguished, in units of half its range."""
        assert isinstance(self.kind, Numbers)
        expected = max(self.kind.residual(self.fit.slopes), _LEAST_ERROR)
        unit = self._columns.placed()[2][0] * self._deviation[0]
        return float(min(_ERRORS * unit * expected, 2.0))

    def _number(self, rule: dict[str, Any], findings: Findings, spread: FloatArray) -> Result:
        location, _, width = (one[0] for one in self._columns.placed())
        middle, unit = location + width * self._mean[0], width * self._deviation[0]
        assert self.plan.target_range is not None
        low, high = self.plan.target_range
        half = (high - low) / 2
        rule["intercept"] = (low + high) / 2 + half * (middle + unit * rule["intercept"])
        rule["coefficients"] = half * unit * rule["coefficients"]
        for name in ("coefficients", "centers", "scales"):
            rule[name] = rule[name][:, 1:]
        mean, doubt = (float(half * one[0]) for one in self._columns.widths())
        findings = replace(
            findings,
            covariances=list((half * unit) ** 2 * spread),
            guessing=Estimate(mean, doubt if self._placed else math.inf, self._placed),
        )
        return Result(CurveRegression(**rule, **self.plan.stamp), findings)


def _evaluated_number(known: Known, found: Result, people: int) -> Study:
    """Other participants answer whether their number is within h of its prediction.

    h is public and random with h² uniform on [0, H²], so that E r² = H² (1 - P(|r| ≤ h)).
    """
    plan, model, phase = known.plan, found.model, known.phase
    assert plan.target_range is not None
    low, high = plan.target_range
    half, farthest = (high - low) / 2, known.farthest
    residual = np.r_[1.0, -model.coefficients[0] / half]
    centers, scales = np.r_[0.0, model.centers[0]], np.r_[1.0, model.scales[0]]
    predicted = (model.intercept[0] - (low + high) / 2) / half

    def tasks(start: int, people: int) -> Task:
        chances = public_uniforms(seed=plan.seed, phase=phase, start=start, people=people, width=1)
        near, off = farthest * np.sqrt(chances[:, 0]), np.full(people, predicted)
        shape = (people, 3, len(residual))
        return plan.ask(  # of three scores h, r and -r, the first is the largest if |r| ≤ h
            "evaluation",
            people,
            intercept=np.column_stack([near, -off, off]),
            coefficients=np.broadcast_to(np.stack([0 * residual, residual, -residual]), shape),
            centers=np.broadcast_to(centers, shape),
            scales=np.broadcast_to(scales, shape),
        )

    summary = yield Phase("evaluation", people, tasks, added_up, lambda: found)
    replies = int(summary["people"][0])
    if not replies:
        return found
    near, error = accuracies_behind(summary["total"][0], replies, epsilon=plan.epsilon)
    square = (farthest * half) ** 2
    doubt = square * float(error)
    root = max(square * (1 - float(near)), doubt) ** 0.5
    estimate = Estimate(root, doubt / (2 * root), replies)
    return found._replace(findings=replace(found.findings, error=estimate))


def _one_label(theta: FloatArray) -> bool:
    """Whether a rule gives nearly everybody the same label, if ψ is normal."""
    labels = decided(public_rows(theta.shape[1] - 1) @ theta.T)
    return bool(np.bincount(labels).max() > _ALL_ONE * len(labels))


def _public(value: Any) -> Any:
    """A number or array, rounded so that it is the same on every machine."""
    if not isinstance(value, (float, np.ndarray)):
        return value
    found = on_grid(value)
    return found if found.ndim else float(found)


def _estimates(values: FloatArray, errors: FloatArray, people: int) -> list[Estimate]:
    return [Estimate(float(v), float(e), people) for v, e in zip(values, errors, strict=True)]
