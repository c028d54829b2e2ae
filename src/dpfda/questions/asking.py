"""A question study on the side of those who are asked: its phases, and the sums of its replies."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.question_response import QuestionResponse, best_questions, effective_answers
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Step
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import public_subsets, public_uniforms
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.calibration import CalibrationTask
from dpfda.protocol.tasks.reach import ReachTask
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.protocol.temperature import BATCHES, Temperature, asked, confidence_questions
from dpfda.questions import sizes
from dpfda.questions.balance import one_against_the_rest
from dpfda.questions.design import INTERCEPT_QUESTIONS, QuestionDesign
from dpfda.questions.ranging import RANGING, Ranging, channels
from dpfda.questions.scores import ScoredProgress
from dpfda.questions.widths import BATCHES as WIDTH_BATCHES
from dpfda.questions.widths import Widths

_CENTER_WIDTHS = (1 / 3, 1 / 4)  # of the scale h, batch after batch
_DIRECTION_BATCHES = 3  # where the first say how often to ask about the constant stump, or
_MORE_BATCHES = 5  # whether the last are asked for nothing but their label
_INTERCEPT_BATCHES = 4
_REACH = 2.5  # half-width of a distance, in units of its median
_BELOW = -2.0  # a threshold that every feature exceeds: this stump's answer is the label


class AskedProgress(ScoredProgress):
    """Who is asked what, given what is known so far, and what is kept of the replies.

    With K > 2 classes each person of the direction and intercept phases helps one class against the
    rest; a study has m = 1 score for two classes and m = K otherwise.
    """

    def __init__(self, design: QuestionDesign, plan: StudyPlan) -> None:
        self.design = design.settled(plan.encoder)
        self.plan = plan
        self.own = design.dimension(plan)
        self.d = 2 * self.own if design.spread_differs else self.own  # with distances
        self.k = best_questions(plan.epsilon, most=self.own)
        self.intercept_k = best_questions(plan.epsilon, most=INTERCEPT_QUESTIONS)
        alike = plan.encoder.basis.functional
        self.widths = Widths(self.own, alpha=self._alpha(self.k), alike=alike)
        scales = np.array(self.design.scales)[: self.own]
        self._place(np.zeros(self.own), scales, (scales / 2) ** 2)
        self.slopes: FloatArray = np.zeros((plan.n_scores, self.d))
        self.slope_variance: FloatArray = np.zeros_like(self.slopes)
        self.correlations: list[list[Estimate]] = []
        self.intercepts = [one_against_the_rest(doubt=0.0)] * plan.n_scores
        self.evidence: FloatArray = np.ones(plan.n_scores)
        self.damping: FloatArray = np.ones(plan.n_scores)
        self.temperature = Temperature()
        self.error_estimate: Estimate | None = None
        self.guessing: Estimate | None = None
        effective = effective_answers(plan.n_people, plan.epsilon)
        two_unknown = plan.n_classes == 2 and design.class_share is None
        rest = effective * (1 - design.temperature_share)
        self._constant = sizes.constant_shares(rest) if two_unknown else (0.0, 0.0)
        self.constant_share: FloatArray = np.array(self._constant[0])
        ordered = bool(self.design.ordered)
        self._labels_wanted = sizes.labels_wanted(rest, ordered=ordered) if two_unknown else 0.0
        self._caution = sizes.CAUTION[ordered]
        self._sums: dict[str, FloatArray] = {}
        self.ranging = Ranging(channels(plan.encoder), k=self.k, alpha=self._alpha(self.k))
        super().__init__(plan, self._phases(plan, effective))

    def _phases(self, plan: StudyPlan, effective: float) -> list[Step]:
        """In order; effective is how many clear answers everybody's are worth."""
        design = self.design
        located = int(design.range_share(plan) * plan.n_people)
        tempered = int(design.temperature_share * plan.n_people)
        effective *= 1 - design.range_share(plan) - design.temperature_share
        left = plan.n_people - located - tempered
        widths = int(design.width_share(plan) * left)
        center, direction, intercept, evaluation = sizes.groups(
            left - widths,
            effective * (1 - design.width_share(plan)),
            center_known=design.center_known,
            evaluation_share=design.evaluation_share,
        )
        batches = {
            "center": sizes.split_evenly(center, len(_CENTER_WIDTHS)),
            "width": sizes.split_evenly(widths, WIDTH_BATCHES) if widths else [],
            "direction": sizes.split_evenly(direction, self._looks),
            "intercept": sizes.split_evenly(intercept, _INTERCEPT_BATCHES),
            "temperature": sizes.split_evenly(tempered, BATCHES),
            "evaluation": [evaluation],
        }
        later = [Step(kind, n) for kind in batches for n in batches[kind]]
        return self.ranging.phases(located) + later

    @property
    def _looks(self) -> int:
        """How many batches of people are asked about directions."""
        several = _MORE_BATCHES if self._labels_wanted else _DIRECTION_BATCHES
        return several if any(self._constant) else 1

    @property
    def _intercept(self) -> FloatArray:
        return np.array([belief.mean for belief in self.intercepts])

    @property
    @abstractmethod
    def model(self) -> CurveModel:
        """The classifier as it is now."""

    # -- what people are asked ----------------------------------------------------------------

    def tasks(self, start: int, people: int) -> Task:
        """The questions of some tickets of the present phase."""
        asked = {
            **dict.fromkeys(RANGING, self._range_questions),
            "center": self._center_questions,
            "width": self._width_questions,
            "direction": self._direction_questions,
            "intercept": self._intercept_questions,
            "temperature": self._temperature_questions,
            "evaluation": self._evaluation_questions,
        }
        return asked[self.kind](start, people)

    def _range_questions(self, start: int, people: int) -> Task:
        uniforms = self._public(start, people, 2 * self.k)
        asked = self.ranging.questions(self.kind, start, uniforms)
        if self.kind == "reach":
            return self._ask("reach", people, **asked)
        positive = np.ones(people, dtype=np.int64)
        return self._ask("stump", people, **asked, positive=positive, uses_label=False)

    def _center_questions(self, start: int, people: int) -> Task:
        chosen, uniforms = self._features(start, people)
        dither = 2 * uniforms - 1
        return self._ask(
            "stump",
            people,
            coordinates=chosen,
            thresholds=self.centers[chosen] + self._center_width[chosen] * dither,
            positive=np.ones(people, dtype=np.int64),
            uses_label=False,
        )

    def _width_questions(self, start: int, people: int) -> Task:
        chosen, uniforms = self._features(start, people)
        return self._ask(
            "stump",
            people,
            coordinates=self.own + chosen,
            thresholds=self.widths.thresholds(self.scales[: self.own], chosen, uniforms),
            positive=np.ones(people, dtype=np.int64),
            uses_label=False,
            folds=self.folds,
        )

    def _features(self, start: int, people: int) -> tuple[IntArray, FloatArray]:
        """Which features everybody is asked about, and a public number for each."""
        d = self.own
        uniforms = self._public(start, people, 2 * d)
        weights = sizes.asking_weights(d, ordered=bool(self.design.ordered))
        chosen = public_subsets(uniforms[:, :d], choose=self.k, weights=weights)
        return chosen, np.take_along_axis(uniforms[:, d:], chosen, axis=1)

    def _direction_questions(self, start: int, people: int) -> Task:
        uniforms = self._public(start, people, self.d + 1)
        weights = np.append(self._weights, self._constant_weight)
        if not weights[-1]:
            uniforms, weights = uniforms[:, : self.d], self._weights
        chosen = public_subsets(uniforms, choose=self.k, weights=weights)
        constant = chosen == self.d
        coordinates = np.where(constant, 0, chosen)
        return self._ask(
            "stump",
            people,
            coordinates=coordinates,
            thresholds=np.where(constant, _BELOW, self.centers[coordinates]),
            positive=self._positive(start, people),
            uses_label=True,
            folds=self.folds,
        )

    @property
    def _constant_weight(self) -> float:
        """Of the constant stump beside the others: where people answer several, most of them do."""
        share, others = float(self.constant_share), self._weights
        weight = float(((1 - share) ** (-1 / self.k) - 1) * others.sum())
        return max(weight, 2.0 * float(others.max())) if self.k > 1 and share else weight

    def _intercept_questions(self, start: int, people: int) -> Task:
        positive = self._positive(start, people)
        score = self._score(positive)
        return self._ask(
            "calibration",
            people,
            intercept=self._intercept[score, None],
            coefficients=self.slopes[score, None],
            centers=np.broadcast_to(self.centers, (people, 1, self.d)),
            scales=np.broadcast_to(self.scales, (people, 1, self.d)),
            dithers=2 * self._public(start, people, self.intercept_k) - 1,
            positive=positive,
            folds=self.folds,
        )

    def _temperature_questions(self, start: int, people: int) -> Task:
        uniforms = self._public(start, people, confidence_questions(self.plan))
        return self._ask("confidence", people, **asked(self.model, uniforms))

    def _evaluation_questions(self, start: int, people: int) -> Task:
        return self._ask("evaluation", people, **self.model.rows(people))

    def _public(self, start: int, people: int, width: int) -> FloatArray:
        return public_uniforms(
            seed=self.plan.seed, phase=self.phase, start=start, people=people, width=width
        )

    @property
    def _weights(self) -> FloatArray:
        """How often each stump is asked about, relative to the others."""
        own = sizes.asking_weights(self.own, ordered=bool(self.design.ordered))
        return np.tile(own, self.d // self.own)

    @property
    def folds(self) -> FloatArray:
        """The middles that distances are from."""
        return np.clip(self.centers[: self.own if self.design.spread_differs else 0], -1, 1)

    def _place(self, centers: FloatArray, scales: FloatArray, doubt: FloatArray) -> None:
        """Where features lie; and distances, as far as that is known."""
        if self.design.spread_differs:
            far, unsure = self.widths.found(scales)
            centers, scales = np.append(centers, far), np.append(scales, _REACH * far)
            doubt = np.append(doubt, (unsure * far) ** 2)
        self.centers, self.scales, self.center_variance = centers, scales, doubt

    @property
    def _center_width(self) -> FloatArray:
        batch = sum(phase.kind == "center" for phase in self.phases[: self.phase])
        return self.scales[: self.own] * _CENTER_WIDTHS[batch]

    # -- what is kept of the replies ----------------------------------------------------------

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add the replies to the present phase's sums."""
        if isinstance(task, StumpTask | ReachTask) and self.kind in RANGING:
            self._add(self.kind, self.ranging.counted(self.kind, task, reply))
        elif isinstance(task, StumpTask) and self.kind == "width":
            features = task.coordinates - self.own
            self._add("width", self.widths.counted(features, task.thresholds, reply))
        elif isinstance(task, StumpTask):
            score = self._score(task.positive) if task.uses_label else 0 * task.positive
            stump = np.where(task.thresholds == _BELOW, self.d, task.coordinates)
            told = np.zeros((task.people, self.d + 1))
            np.put_along_axis(told, stump, reply, axis=1)
            asked = np.zeros((task.people, self.d + 1))
            np.put_along_axis(asked, stump, 1.0, axis=1)
            own = [score == m for m in range(self.n_scores)]
            self._add("total", np.stack([told[rows].sum(axis=0) for rows in own]))
            self._add("asked", np.stack([asked[rows].sum(axis=0) for rows in own]))
            if task.uses_label and task.width > 1:
                self._add("pair_total", np.stack([told[rows].T @ told[rows] for rows in own]))
                self._add("pair_asked", np.stack([asked[rows].T @ asked[rows] for rows in own]))
        elif isinstance(task, CalibrationTask):
            score = self._score(task.positive)
            mean_answer = reply.mean(axis=1)
            self._add("total", np.bincount(score, mean_answer, self.n_scores).astype(np.float64))
            self._add("people", np.bincount(score, minlength=self.n_scores).astype(np.float64))
        else:
            self._add("total", np.array([reply.sum()]))
            self._add("people", np.array([float(len(reply))]))

    def _add(self, name: str, amount: FloatArray) -> None:
        self._sums[name] = self._sums.get(name, np.zeros_like(amount)) + amount

    def _sum(self, name: str, *shape: int) -> FloatArray:
        return self._sums.get(name, np.zeros(shape))

    def _alpha(self, questions: int) -> float:
        return QuestionResponse(epsilon=self.plan.epsilon, questions=questions).truth_probability
