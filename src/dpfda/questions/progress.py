"""A question study under way: what people are asked, what is kept of it, what is concluded."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mechanisms.question_response import QuestionResponse, best_questions
from dpfda.protocol.estimate import Estimate, accuracy_estimate
from dpfda.protocol.findings import Findings, Phase
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import public_subsets, public_uniforms
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.calibration import CalibrationTask
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.questions import estimation, sizes
from dpfda.questions.design import INTERCEPT_QUESTIONS, QuestionDesign
from dpfda.questions.scores import ScoredProgress

_CENTER_WIDTHS = (1 / 3, 1 / 4)  # of the scale h, batch after batch
_INTERCEPT_BATCHES = 4


class QuestionProgress(ScoredProgress, name="questions"):
    """A question study under way. All it keeps is sums and the estimates made of them.

    With K > 2 classes each person of the direction and intercept phases helps one class against the
    rest; a study has m = 1 score for two classes and m = K otherwise.
    """

    kept = ("centers", "center_variance", "slopes", "intercepts", "intercept_information")

    def __init__(self, design: QuestionDesign, plan: StudyPlan) -> None:
        self.design = design.settled(plan.encoder)
        self.d = design.dimension(plan)
        self.k = best_questions(plan.epsilon, most=self.d)
        self.intercept_k = best_questions(plan.epsilon, most=INTERCEPT_QUESTIONS)
        self.scales: FloatArray = np.array(self.design.scales)[: self.d]
        self.centers: FloatArray = np.zeros(self.d)
        self.center_variance: FloatArray = (self.scales / 2) ** 2
        self.slopes: FloatArray = np.zeros((plan.n_scores, self.d))
        self.correlations: list[list[Estimate]] = []
        self.intercepts: FloatArray = np.zeros(plan.n_scores)
        self.intercept_information: FloatArray = np.zeros(plan.n_scores)
        self.error_estimate: Estimate | None = None
        center, direction, intercept, evaluation = sizes.groups(
            plan.n_people,
            sizes.effective_people(plan.n_people, plan.epsilon),
            center_known=design.center_known,
            evaluation_share=design.evaluation_share,
        )
        self._sums: dict[str, FloatArray] = {}
        batches = {
            "center": sizes.split_evenly(center, len(_CENTER_WIDTHS)),
            "direction": [direction],
            "intercept": sizes.split_evenly(intercept, _INTERCEPT_BATCHES),
            "evaluation": [evaluation],
        }
        super().__init__(plan, [Phase(kind, n) for kind in batches for n in batches[kind]])

    # -- what people are asked ----------------------------------------------------------------

    def tasks(self, start: int, people: int) -> Task:
        """The questions of some tickets of the present phase."""
        asked = {
            "center": self._center_questions,
            "direction": self._direction_questions,
            "intercept": self._intercept_questions,
            "evaluation": self._evaluation_questions,
        }
        return asked[self.kind](start, people)

    def _center_questions(self, start: int, people: int) -> Task:
        uniforms = self._public(start, people, 2 * self.d)
        chosen = public_subsets(uniforms[:, : self.d], choose=self.k, weights=self._weights)
        dither = 2 * np.take_along_axis(uniforms[:, self.d :], chosen, axis=1) - 1
        return self._ask(
            "stump",
            people,
            coordinates=chosen,
            thresholds=self.centers[chosen] + self._center_width[chosen] * dither,
            positive=np.ones(people, dtype=np.int64),
            uses_label=False,
        )

    def _direction_questions(self, start: int, people: int) -> Task:
        uniforms = self._public(start, people, self.d)
        chosen = public_subsets(uniforms, choose=self.k, weights=self._weights)
        return self._ask(
            "stump",
            people,
            coordinates=chosen,
            thresholds=self.centers[chosen],
            positive=self._positive(start, people),
            uses_label=True,
        )

    def _intercept_questions(self, start: int, people: int) -> Task:
        positive = self._positive(start, people)
        score = self._score(positive)
        return self._ask(
            "calibration",
            people,
            intercept=self.intercepts[score, None],
            coefficients=self.slopes[score, None],
            centers=np.broadcast_to(self.centers, (people, 1, self.d)),
            scales=np.broadcast_to(self.scales, (people, 1, self.d)),
            dithers=2 * self._public(start, people, self.intercept_k) - 1,
            positive=positive,
        )

    def _evaluation_questions(self, start: int, people: int) -> Task:
        return self._ask("evaluation", people, **self.model.rows(people))

    def _public(self, start: int, people: int, width: int) -> FloatArray:
        return public_uniforms(
            seed=self.plan.seed, phase=self.phase, start=start, people=people, width=width
        )

    @property
    def _weights(self) -> FloatArray:
        return sizes.asking_weights(self.d, ordered=bool(self.design.ordered))

    @property
    def _center_width(self) -> FloatArray:
        return self.scales * _CENTER_WIDTHS[self.phase]

    # -- what is kept of the replies ----------------------------------------------------------

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add the replies to the present phase's sums."""
        if isinstance(task, StumpTask):
            score = self._score(task.positive) if task.uses_label else 0 * task.positive
            told = np.zeros((task.people, self.d))
            np.put_along_axis(told, task.coordinates, reply, axis=1)
            asked = np.zeros((task.people, self.d))
            np.put_along_axis(asked, task.coordinates, 1.0, axis=1)
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

    # -- what is concluded ----------------------------------------------------------------------

    def _learn(self) -> None:
        learn = {
            "center": self._learn_center,
            "direction": self._learn_direction,
            "intercept": self._learn_intercept,
            "evaluation": self._learn_error,
        }
        learn[self.kind]()
        self._sums = {}

    def _learn_center(self) -> None:
        self.centers, self.center_variance = estimation.shift_center(
            self.centers,
            self.center_variance,
            total=self._sum("total", 1, self.d).sum(axis=0),
            asked=self._sum("asked", 1, self.d).sum(axis=0),
            width=self._center_width,
            alpha=self._alpha(self.k),
        )

    def _learn_direction(self) -> None:
        m, d = self.n_scores, self.d
        alpha = self._alpha(self.k)
        total, asked = self._sum("total", m, d), self._sum("asked", m, d)
        pairs = self._sum("pair_total", m, d, d), self._sum("pair_asked", m, d, d)
        for score in range(m):
            self.slopes[score], raw = estimation.direction(
                total=total[score],
                asked=asked[score],
                pair_total=pairs[0][score],
                pair_asked=pairs[1][score],
                alpha=alpha,
                whiten=self.k > 1,
                ordered=bool(self.design.ordered),
            )
            self.correlations.append(
                [_correlation(r, n, alpha) for r, n in zip(raw, asked[score], strict=True)]
            )
        prior = 0.25
        if any(phase.kind == "center" and phase.people for phase in self.phases):
            prior = prior + (self.slopes**2 * self.center_variance / self.scales**2).sum(axis=1)
        self.intercept_information = np.broadcast_to(1 / np.asarray(prior), (m,)).copy()

    def _learn_intercept(self) -> None:
        total, people = self._sum("total", self.n_scores), self._sum("people", self.n_scores)
        for score in range(self.n_scores):
            self.intercepts[score], self.intercept_information[score] = estimation.step_intercept(
                float(self.intercepts[score]),
                float(self.intercept_information[score]),
                total=float(total[score]),
                people=int(people[score]),
                questions=self.intercept_k,
                sensitivity=self._intercept_sensitivity(score),
                alpha=self._alpha(self.intercept_k),
            )

    def _intercept_sensitivity(self, score: int) -> float:
        """κ = E ½ sech²((a + θ·u)/2) over public uniform u: no person's curve is needed."""
        reference = 2 * public_uniforms(seed=0, phase=0, start=0, people=200, width=self.d) - 1
        at = np.clip((self.intercepts[score] + reference @ self.slopes[score]) / 2, -15, 15)
        return float(np.mean(0.5 / np.cosh(at) ** 2))

    def _learn_error(self) -> None:
        people = int(self._sum("people", 1)[0])
        if people:
            self.error_estimate = accuracy_estimate(
                total=float(self._sum("total", 1)[0]), people=people, epsilon=self.plan.epsilon
            ).complement()

    def _alpha(self, questions: int) -> float:
        return QuestionResponse(epsilon=self.plan.epsilon, questions=questions).truth_probability

    # -- results --------------------------------------------------------------------------------

    def findings(self) -> Findings:
        """Middles (the public one where nobody was asked), stumps, intercepts, error."""
        information = np.maximum(self.intercept_information, 1e-12)
        asked = dict.fromkeys(("center", "direction", "intercept", "evaluation"), 0)
        for phase in self.phases:
            asked[phase.kind] += phase.people
        return Findings(
            classes=self.plan.classes,
            phases=self.phases,
            learnt="correlation",
            title="is this stump right?",
            features=self.correlations,
            centers=[
                Estimate(float(c), float(v**0.5), asked["center"])
                for c, v in zip(self.centers, self.center_variance, strict=True)
            ],
            intercepts=[
                Estimate(float(a), float(p**-0.5), asked["intercept"])
                for a, p in zip(self.intercepts, information, strict=True)
            ],
            error=self.error_estimate,
        )

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        shape = (self.n_scores, self.d)
        return CurveModel(
            intercept=self.intercepts,
            coefficients=self.slopes,
            centers=np.broadcast_to(self.centers, shape),
            scales=np.broadcast_to(self.scales, shape),
            clipped=True,
            **self.plan.stamp,
        )

    def state(self) -> dict[str, Any]:
        """Phase, sums and estimates."""
        return super().state() | {
            "sums": {name: value.tolist() for name, value in self._sums.items()},
            "correlations": [[e.to_dict() for e in row] for row in self.correlations],
            "error_estimate": self.error_estimate and self.error_estimate.to_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        self._sums = {name: np.asarray(value) for name, value in state["sums"].items()}
        self.correlations = [[Estimate(**e) for e in row] for row in state["correlations"]]
        error = state["error_estimate"]
        self.error_estimate = Estimate(**error) if error else None


def _correlation(raw: float, asked: float, alpha: float) -> Estimate:
    """r_j with its standard error, the response's noise included."""
    if not asked:
        return Estimate(0.0, float("inf"), 0)
    spread = max(1 / alpha**2 - raw**2, 0.0) / asked
    return Estimate(float(raw), float(spread**0.5), int(asked))
