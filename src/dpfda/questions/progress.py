"""A question study under way: what people are asked, what is kept of it, what is concluded."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mechanisms.question_response import QuestionResponse, best_questions, effective_answers
from dpfda.protocol.estimate import Estimate, accuracy_estimate
from dpfda.protocol.findings import Findings, Phase
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import public_subsets, public_uniforms
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.calibration import CalibrationTask
from dpfda.protocol.tasks.reach import ReachTask
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.protocol.temperature import BATCHES, Temperature, asked, confidence_questions
from dpfda.questions import estimation, sizes
from dpfda.questions.balance import (
    Belief,
    always_the_same,
    balance_of,
    cautious,
    intercept_of,
    one_against_the_rest,
    sensitivity,
)
from dpfda.questions.design import INTERCEPT_QUESTIONS, QuestionDesign
from dpfda.questions.ranging import RANGING, Ranging, channels
from dpfda.questions.scores import ScoredProgress

_CENTER_WIDTHS = (1 / 3, 1 / 4)  # of the scale h, batch after batch
_DIRECTION_BATCHES = 3  # where the first say how often to ask about the constant stump
_INTERCEPT_BATCHES = 4
_SIGNAL_SEEN = (0.25, 0.5)  # evidence below which a study says that it found nothing, or may have
_BELOW = -2.0  # a threshold that every feature exceeds: this stump's answer is the label


class QuestionProgress(ScoredProgress, name="questions"):
    """A question study under way. All it keeps is sums and the estimates made of them.

    With K > 2 classes each person of the direction and intercept phases helps one class against the
    rest; a study has m = 1 score for two classes and m = K otherwise.
    """

    kept = (
        "scales",
        "centers",
        "center_variance",
        "slopes",
        "slope_variance",
        "beliefs",
        "evidence",
        "damping",
        "constant_share",
        "temper",
    )

    def __init__(self, design: QuestionDesign, plan: StudyPlan) -> None:
        self.design = design.settled(plan.encoder)
        self.d = design.dimension(plan)
        self.k = best_questions(plan.epsilon, most=self.d)
        self.intercept_k = best_questions(plan.epsilon, most=INTERCEPT_QUESTIONS)
        self.scales: FloatArray = np.array(self.design.scales)[: self.d]
        self.centers: FloatArray = np.zeros(self.d)
        self.center_variance: FloatArray = (self.scales / 2) ** 2
        self.slopes: FloatArray = np.zeros((plan.n_scores, self.d))
        self.slope_variance: FloatArray = np.zeros_like(self.slopes)
        self.correlations: list[list[Estimate]] = []
        self.intercepts = [one_against_the_rest(doubt=0.0)] * plan.n_scores
        self.evidence: FloatArray = np.ones(plan.n_scores)
        self.damping: FloatArray = np.ones(plan.n_scores)
        self.temperature = Temperature()
        self.error_estimate: Estimate | None = None
        effective = effective_answers(plan.n_people, plan.epsilon)
        two_unknown = plan.n_classes == 2 and design.class_share is None
        self._constant = sizes.constant_shares(effective) if two_unknown else (0.0, 0.0)
        self.constant_share: FloatArray = np.array(self._constant[0])
        located = int(design.range_share(plan) * plan.n_people)
        tempered = int(design.temperature_share * plan.n_people)
        effective *= 1 - design.range_share(plan) - design.temperature_share
        center, direction, intercept, evaluation = sizes.groups(
            plan.n_people - located - tempered,
            effective,
            center_known=design.center_known,
            evaluation_share=design.evaluation_share,
        )
        self._sums: dict[str, FloatArray] = {}
        self.plan = plan
        self.ranging = Ranging(channels(plan.encoder), k=self.k, alpha=self._alpha(self.k))
        looks = _DIRECTION_BATCHES if any(self._constant) else 1
        batches = {
            "center": sizes.split_evenly(center, len(_CENTER_WIDTHS)),
            "direction": sizes.split_evenly(direction, looks),
            "intercept": sizes.split_evenly(intercept, _INTERCEPT_BATCHES),
            "temperature": sizes.split_evenly(tempered, BATCHES),
            "evaluation": [evaluation],
        }
        later = [Phase(kind, n) for kind in batches for n in batches[kind]]
        super().__init__(plan, self.ranging.phases(located) + later)

    @property
    def beliefs(self) -> FloatArray:
        """About each score's intercept: weights, means and variances, shape (m, 3, 2)."""
        return np.array([(one.weights, one.means, one.variances) for one in self.intercepts])

    @beliefs.setter
    def beliefs(self, stored: FloatArray) -> None:
        self.intercepts = [Belief(*parts) for parts in stored]

    @property
    def temper(self) -> FloatArray:
        """What is believed of the scores' factor."""
        return np.array(self.temperature)

    @temper.setter
    def temper(self, stored: FloatArray) -> None:
        self.temperature = Temperature(*stored.tolist())

    @property
    def _intercept(self) -> FloatArray:
        return np.array([belief.mean for belief in self.intercepts])

    # -- what people are asked ----------------------------------------------------------------

    def tasks(self, start: int, people: int) -> Task:
        """The questions of some tickets of the present phase."""
        asked = {
            **dict.fromkeys(RANGING, self._range_questions),
            "center": self._center_questions,
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
        uniforms = self._public(start, people, self.d + 1)
        weights = np.append(self._weights, self._constant_weight)
        if not weights[-1]:
            uniforms, weights = uniforms[:, : self.d], self._weights
        chosen = public_subsets(uniforms, choose=self.k, weights=weights)
        constant = chosen == self.d
        return self._ask(
            "stump",
            people,
            coordinates=np.where(constant, 0, chosen),
            thresholds=np.where(constant, _BELOW, np.append(self.centers, 0.0)[chosen]),
            positive=self._positive(start, people),
            uses_label=True,
        )

    @property
    def _constant_weight(self) -> float:
        """Of the constant stump beside the others: where people answer several, most of them do."""
        share, others = float(self.constant_share), self._weights
        if self.k > 1:
            return 2.0 * float(others.max()) if share else 0.0
        return share / (1 - share) * float(others.sum())

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
        return sizes.asking_weights(self.d, ordered=bool(self.design.ordered))

    @property
    def _center_width(self) -> FloatArray:
        batch = sum(phase.kind == "center" for phase in self.phases[: self.phase])
        return self.scales * _CENTER_WIDTHS[batch]

    # -- what is kept of the replies ----------------------------------------------------------

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add the replies to the present phase's sums."""
        if isinstance(task, StumpTask | ReachTask) and self.kind in RANGING:
            self._add(self.kind, self.ranging.counted(self.kind, task, reply))
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

    # -- what is concluded ----------------------------------------------------------------------

    def _learn(self) -> None:
        learn = {
            **dict.fromkeys(RANGING, self._learn_range),
            "center": self._learn_center,
            "direction": self._learn_direction,
            "intercept": self._learn_intercept,
            "temperature": self._learn_temperature,
            "evaluation": self._learn_error,
        }
        learn[self.kind]()
        following = [phase.kind for phase in self.phases[self.phase + 1 : self.phase + 2]]
        if self.kind != "direction" or following != ["direction"]:  # its batches add up
            self._sums = {}

    def _learn_range(self) -> None:
        if self.kind in self._sums:
            self.ranging.learn(self.kind, self._sums[self.kind])
            found = self.ranging.found()
            self.centers, self.scales, self.center_variance = (part[: self.d] for part in found)

    def _learn_center(self) -> None:
        self.centers, self.center_variance = estimation.shift_center(
            self.centers,
            self.center_variance,
            total=self._sum("total", 1, self.d + 1).sum(axis=0)[: self.d],
            asked=self._sum("asked", 1, self.d + 1).sum(axis=0)[: self.d],
            width=self._center_width,
            alpha=self._alpha(self.k),
            located=np.isin(np.arange(self.d), self.ranging.levels) & self.design.range_is_loose,
        )

    def _learn_direction(self) -> None:
        m, d = self.n_scores, self.d
        alpha = self._alpha(self.k)
        total, asked = self._sum("total", m, d + 1), self._sum("asked", m, d + 1)
        pairs = [self._sum(name, m, d + 1, d + 1) for name in ("pair_total", "pair_asked")]
        balance = self._balance(total[0, d], asked[0, d], alpha)
        self.correlations = []
        for score in range(m):
            found = estimation.direction(
                total=total[score, :d],
                asked=asked[score, :d],
                pair_total=pairs[0][score, :d, :d],
                pair_asked=pairs[1][score, :d, :d],
                alpha=alpha,
                whiten=self.k > 1,
                ordered=bool(self.design.ordered),
                balance=balance.mean if m == 1 else None,
            )
            self.slopes[score], self.slope_variance[score] = found.slopes, found.variances
            self.evidence[score], self.damping[score] = found.evidence, found.damping
            self.correlations.append(
                [_correlation(r, n, alpha) for r, n in zip(found.raw, asked[score], strict=False)]
            )
            doubt = 0.0
            if any(phase.kind == "center" and phase.people for phase in self.phases):
                doubt = float(found.slopes**2 @ (self.center_variance / self.scales**2))
            self.intercepts[score] = (
                intercept_of(balance, found.slopes, doubt=doubt)
                if m == 1
                else one_against_the_rest(doubt=doubt)
            )
        calm, alarmed = self._constant
        self.constant_share = calm + (alarmed - calm) * balance.weights[1]

    def _balance(self, total: float, asked: float, alpha: float) -> Belief:
        """What is known of the classes' shares; of one class against the rest nothing is asked."""
        return balance_of(
            self.design.class_share,
            answer=total / max(asked, 1) / alpha,
            precision=asked * alpha**2,
        )

    def _learn_intercept(self) -> None:
        total, people = self._sum("total", self.n_scores), self._sum("people", self.n_scores)
        for score, belief in enumerate(self.intercepts):
            if people[score]:
                value, noise = estimation.intercept_reading(
                    belief.mean,
                    total=float(total[score]),
                    people=int(people[score]),
                    questions=self.intercept_k,
                    reaction=sensitivity(belief.mean, self.slopes[score]),
                    alpha=self._alpha(self.intercept_k),
                )
                self.intercepts[score] = belief.told(value, noise=noise)

    def _learn_temperature(self) -> None:
        people = int(self._sum("people", 1)[0])
        total = float(self._sum("total", 1)[0])
        self.temperature = self.temperature.told(total, people=people, plan=self.plan)

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
        helped = dict.fromkeys((phase.kind for phase in self.phases), 0)
        for phase in self.phases:
            helped[phase.kind] += phase.people
        return Findings(
            classes=self.plan.classes,
            phases=self.phases,
            learnt="correlation",
            title="is this stump right?",
            features=self.correlations,
            centers=[
                Estimate(float(c), float(v**0.5), helped["center"])
                for c, v in zip(self.centers, self.center_variance, strict=True)
            ],
            intercepts=[
                Estimate(belief.mean, belief.variance**0.5, helped["intercept"])
                for belief in self.intercepts
            ],
            error=self.error_estimate,
            notes=self._notes(),
        )

    def _notes(self) -> list[str]:
        """That the model is no better than guessing, where the replies say so."""
        if self.n_scores > 1 or not any(map(len, self.correlations)):
            return []
        rule, verdict = self.model, "is"
        if self.evidence[0] < _SIGNAL_SEEN[1]:
            verdict = "is" if self.evidence[0] < _SIGNAL_SEEN[0] else "may be"
            reason = f"that any feature goes with the label is {self.evidence[0]:.0%} likely"
        elif always_the_same(float(rule.intercept[0]), np.asarray(rule.coefficients[0])):
            reason = "one label is so frequent that the features seen do not outweigh it"
        else:
            return []
        return [f"This model {verdict} no better than guessing: {reason}."]

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        shape = (self.n_scores, self.d)
        rules = [
            cautious(belief, slopes, evidence=float(evidence) if self.k == 1 else 1.0)
            for belief, slopes, evidence in zip(
                self.intercepts, self.slopes, self.evidence, strict=True
            )
        ]
        intercept, scale = np.array(rules).T
        variances = np.column_stack(
            [[belief.variance for belief in self.intercepts], self.slope_variance]
        )
        return CurveModel(
            intercept=intercept,
            coefficients=self.slopes * scale[:, None],
            centers=np.broadcast_to(self.centers, shape),
            scales=np.broadcast_to(self.scales, shape),
            clipped=True,
            variances=variances * scale[:, None] ** 2,
            damping=float(np.mean(self.damping)) * self.temperature.factor,
            **self.plan.stamp,
        )

    def state(self) -> dict[str, Any]:
        """Phase, sums and estimates."""
        return super().state() | {
            "sums": {name: value.tolist() for name, value in self._sums.items()},
            "ranging": self.ranging.state() if self.kind in RANGING else None,
            "correlations": [[e.to_dict() for e in row] for row in self.correlations],
            "error_estimate": self.error_estimate and self.error_estimate.to_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        self._sums = {name: np.asarray(value) for name, value in state["sums"].items()}
        if state["ranging"] is not None:
            self.ranging.restore(state["ranging"])
        self.correlations = [[Estimate(**e) for e in row] for row in state["correlations"]]
        error = state["error_estimate"]
        self.error_estimate = Estimate(**error) if error else None


def _correlation(raw: float, asked: float, alpha: float) -> Estimate:
    """r_j with its standard error, the response's noise included."""
    if not asked:
        return Estimate(0.0, float("inf"), 0)
    spread = max(1 / alpha**2 - raw**2, 0.0) / asked
    return Estimate(float(raw), float(spread**0.5), int(asked))
