"""A study under way that first finds out about its features: location, spread, correlations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dpfda._validate import FloatArray
from dpfda.linear import spread
from dpfda.linear.design import FeatureDesign
from dpfda.linear.directions import principal, weights
from dpfda.linear.features import FeatureMap
from dpfda.linear.labels import LabelPhases
from dpfda.linear.location import Whereabouts, thresholds
from dpfda.linear.reports import entry_noise
from dpfda.linear.schedule import ABOUT_LABELS
from dpfda.linear.shapes import THRESHOLDS
from dpfda.mechanisms.question_response import QuestionResponse, best_questions
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import Progress
from dpfda.protocol.public_randomness import public_subsets, public_uniforms
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.protocol.tasks.summary import SummaryTask

_SIGN_WIDTH = 2e-3  # of a feature's reach: a clip so narrow is a sign
_HEARD = 0.7  # share of the people about labels for whom directions are chosen
_UNSEEN = 1e9  # noise of correlations that nobody was asked about
_WAVES_ALIKE = 0.35  # spread of log widths, relative to 1/j, of a curve's coefficients
_ARRAYS = ("location", "doubt", "width", "mean", "deviation", "factor", "total")
AFTER = ("temperature", "evaluation", "finished")
"""Phases of a model that is ready."""


class FeatureProgress(Progress):
    """All it keeps is sums and the estimates made of them.

    Location and width of the columns come first, then their means, variances and correlations;
    `labels` does the rest with whitened features.
    """

    targets: ClassVar[int] = 0
    """How many columns, the first ones, hold what is predicted and are no features."""

    def __init__(self, design: FeatureDesign, plan: StudyPlan) -> None:
        self.design = design
        self.schedule = design.schedule(plan)
        self.reach: FloatArray = np.r_[np.ones(self.targets), design.half_widths(plan)]
        self.d = len(self.reach)
        self.middle: FloatArray = np.zeros(self.d)
        self.k = best_questions(plan.epsilon, most=self.d)
        alpha = QuestionResponse(epsilon=plan.epsilon, questions=self.k).truth_probability
        self.where = Whereabouts.unknown(self.d, alpha=alpha, **self._expected(plan))
        self.location: FloatArray = np.zeros(self.d)
        self.doubt: FloatArray = self.reach / 2
        self.width: FloatArray = _SIGN_WIDTH * self.reach
        self.mean: FloatArray = np.zeros(self.d)
        self.deviation: FloatArray = np.ones(self.d)
        self.factor: FloatArray = np.eye(self.d - self.targets)
        self.noise = _UNSEEN
        self.total: FloatArray = np.zeros(0)
        self.people = 0
        self.error_estimate: Estimate | None = None
        self._labels: LabelPhases | None = None
        self._asked: tuple[int, Any] | None = None
        super().__init__(plan, self._phases(plan))

    def _phases(self, plan: StudyPlan) -> list[Step]:
        """In order."""
        return self.schedule.phases()

    @abstractmethod
    def _expected(self, plan: StudyPlan) -> dict[str, FloatArray]:
        """Of where columns lie, before anybody is asked."""

    # -- what people are asked ----------------------------------------------------------------

    def tasks(self, start: int, people: int) -> Task:
        """The question of some tickets of the present phase."""
        if self.kind == "location":
            return self._where_questions(start, people)
        return self._ask("summary", people, **self._once(self._summary))

    def _where_questions(self, start: int, people: int) -> Task:
        uniforms = self._public(start, people, self.d + 2 * self.k)
        chosen = public_subsets(uniforms[:, : self.d], choose=self.k, weights=self._asking)
        posterior = self._once(self.where.posterior)
        place = thresholds(posterior, chosen, uniforms[:, self.d :])
        return self._stumps(
            people,
            coordinates=chosen,
            thresholds=self.middle[chosen] + self.reach[chosen] * (2 * THRESHOLDS[place] - 1),
            uses_label=False,
        )

    @property
    def _asking(self) -> FloatArray:
        """How often each column is asked about, relative to the others."""
        return np.ones(self.d)

    def _public(self, start: int, people: int, width: int) -> FloatArray:
        return public_uniforms(
            seed=self.plan.seed, phase=self.phase, start=start, people=people, width=width
        )

    def _stumps(self, people: int, **free: Any) -> Task:
        return self._ask("stump", people, positive=np.ones(people, dtype=np.int64), **free)

    def _once(self, make: Any) -> Any:
        """What everybody in a phase is asked about is computed for the first of them."""
        if self._asked is None or self._asked[0] != self.phase:
            self._asked = self.phase, make()
        return self._asked[1]

    def _summary(self) -> dict[str, Any]:
        """The fields of a task that asks for a vector."""
        if self.kind == "spread":
            seen, statistic, square = self._standard(), "spread", 2 * self.d
        elif self.kind == "correlation":
            seen = self._features().then(np.asarray(np.linalg.inv(self.factor)))
            statistic, square = "products", len(self.factor)
        else:
            return self.labels.ask(self.kind)
        return seen.public() | {"statistic": statistic, "limit": float(np.sqrt(square))}

    def _standard(self) -> FeatureMap:
        return FeatureMap.standard(self.location, self.width, self.schedule.clip)

    def _standardized(self) -> FeatureMap:
        return self._standard().then(np.diag(1 / self.deviation), self.mean)

    def _features(self) -> FeatureMap:
        """Without what is predicted."""
        seen = self._standardized()
        return seen.then(np.eye(self.d)[self.targets :]) if self.targets else seen

    @property
    def labels(self) -> LabelPhases:
        """The phases about labels, with the directions that were chosen for them."""
        if self._labels is None:
            features, covariance = self._told()
            values, whitening, favor = self._directions(covariance)
            about = sum(phase.people for phase in self.phases if phase.kind in ABOUT_LABELS)
            chosen = self._weights(values, favor, _HEARD * max(about, 1))
            q = len(chosen)
            self._labels = self._about_labels(
                features.then(whitening[:q]),
                importance=(values * favor)[:q],
                weights=chosen,
            )
        return self._labels

    def _told(self) -> tuple[FeatureMap, FloatArray]:
        """The features that labels are told by, and their covariance."""
        return self._features(), spread.settled(self.factor, self.noise)

    def _directions(self, covariance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Eigenvalues, whitening directions and how much each is favored."""
        return principal(covariance, self.design.favor(self.plan))

    def _weights(self, values: FloatArray, favor: FloatArray, people: float) -> FloatArray:
        """Of directions in reports of so many people."""
        return weights(
            values,
            favor,
            people=people,
            epsilon=self.plan.epsilon,
            n_classes=self.schedule.n_classes,
            ordered=self.schedule.ordered,
        )

    @abstractmethod
    def _about_labels(self, features: FeatureMap, **chosen: FloatArray) -> LabelPhases:
        """The phases about labels, with these whitened features."""

    # -- what is kept of the replies ----------------------------------------------------------

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add the replies to the present phase's sums."""
        total = task.total(reply) if isinstance(task, SummaryTask) else np.array([reply.sum()])
        if isinstance(task, StumpTask) and not task.uses_label:
            asked = task.coordinates
            unit = ((task.thresholds - self.middle[asked]) / self.reach[asked] + 1) / 2
            between = (THRESHOLDS[1:] + THRESHOLDS[:-1]) / 2  # the nearest one was asked
            place = np.searchsorted(between, unit)
            yes = (reply > 0).astype(np.int64)
            np.add.at(self.where.counts, (asked, place, yes), 1)
        self.total = self.total + total if self.people else total
        self.people += len(reply)

    # -- what is concluded --------------------------------------------------------------------

    def _learn(self) -> None:
        if self.kind in ABOUT_LABELS:
            self.labels.learn(self.kind, self.total, self.people)
        elif self.people:
            self._learners[self.kind]()
        self.total, self.people, self._asked = np.zeros(0), 0, None

    @property
    def _learners(self) -> dict[str, Callable[[], None]]:
        """What takes in a phase that is not about labels."""
        return {
            "location": self._learn_location,
            "spread": self._learn_spread,
            "correlation": self._learn_correlation,
            "evaluation": self._learn_error,
        }

    def _learn_location(self) -> None:
        self.where.pool()
        alike = _WAVES_ALIKE if self.schedule.ordered and self.schedule.n_classes > 2 else None
        location, doubt, deviation = self.where.found(alike=alike)
        self.location = self.middle + self.reach * (2 * location - 1)
        self.doubt, self.width = 2 * self.reach * doubt, 2 * self.reach * deviation
        self._labels = None

    def _learn_spread(self) -> None:
        square = 2 * self.d
        estimate = np.sqrt(square) * self.total / self.people
        noise = square * entry_noise(square, self.plan.epsilon) / self.people
        self.mean, self.deviation = spread.mean_and_deviation(estimate, noise)
        self._labels = None

    def _learn_correlation(self) -> None:
        d = len(self.factor)
        step, self.noise = spread.correlated(
            d * self.total / self.people,
            noise=entry_noise(d * (d + 1) // 2, self.plan.epsilon) / self.people,
            size=d,
        )
        self.factor = self.factor @ step
        self._labels = None

    @abstractmethod
    def _learn_error(self) -> None:
        """What people said who judged the finished model."""

    # -- results ------------------------------------------------------------------------------

    def _counted(self) -> dict[str, int]:
        """How many people each kind of phase wants."""
        people = {phase.kind: 0 for phase in self.phases}
        for phase in self.phases:
            people[phase.kind] += phase.people
        return people

    def _estimated(self) -> dict[str, Any]:
        """Middles and weights of the standardized features, for the findings."""
        people = self._counted()
        about = sum(people.get(kind, 0) for kind in ABOUT_LABELS)
        slopes, errors = (part[:, self.targets :] for part in self.labels.by_feature())
        location, doubt = self.location[self.targets :], self.doubt[self.targets :]
        return {
            "learnt": "weight",
            "title": "weight of this feature",
            "features": [_estimates(*row, about) for row in zip(slopes, errors, strict=True)],
            "centers": _estimates(location, doubt, people.get("location", 0)),
            "covariances": [
                self._unit_of_scores**2 * one[self.targets :, self.targets :]
                for one in self.labels.covariances()
            ],
            "guessing": self.labels.guessing() if self.labels.people else None,
        }

    @property
    def _unit_of_scores(self) -> float:
        """What the model counts scores in, in units of the phases about labels."""
        return 1.0

    def state(self) -> dict[str, Any]:
        """Phase, sums and estimates."""
        found: dict[str, Any] = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return found | {
            "phase": self.phase,
            "people": self.people,
            "noise": self.noise,
            "counts": self.where.counts.tolist() if self.kind == "location" else None,
            "prior": self.where.prior.tolist() if self.kind == "location" else None,
            "labels": self.labels.state() if self.kind in (*ABOUT_LABELS, *AFTER) else None,
            "error_estimate": self.error_estimate and self.error_estimate.to_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase, self.people, self.noise = state["phase"], state["people"], state["noise"]
        for name in _ARRAYS:
            setattr(self, name, np.asarray(state[name], dtype=np.float64))
        if state["counts"] is not None:
            self.where.counts = np.asarray(state["counts"])
            self.where.prior = np.asarray(state["prior"])
        self._labels = self._asked = None
        if state["labels"] is not None:
            self.labels.restore(state["labels"])
        error = state["error_estimate"]
        self.error_estimate = Estimate(**error) if error else None


def _estimates(values: FloatArray, errors: FloatArray, people: int) -> list[Estimate]:
    return [Estimate(float(v), float(e), people) for v, e in zip(values, errors, strict=True)]
