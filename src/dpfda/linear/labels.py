"""The phases that use labels: for two classes, and for several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.linear import many_classes, spread, two_classes
from dpfda.linear.features import FeatureMap
from dpfda.linear.many_classes import Picture
from dpfda.linear.reports import entry_noise
from dpfda.linear.schedule import Schedule
from dpfda.linear.two_classes import Belief, Rate, Score
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.protocol.estimate import Estimate
from dpfda.questions.balance import mixed

NO_CUT = 1e9
_NARROWEST = 0.05  # of variances within classes, in units of what was expected
_AHEAD = 0.5  # of the people of all rounds: a round is weighed for so many
_NEARLY_ALL = 0.99  # of people who are given one label: the others do not count


class LabelPhases(ABC):
    """What is asked about labels, and what is made of the sums of replies.

    Args:
        schedule: of the study.
        features: whitened features ψ, the most promising first.
        importance: of each, relative to the others.
        weights: of each in a report.
        share: of the second of two classes, if it is public.
    """

    constant: float  # weight of 1 beside ψ

    def __init__(
        self,
        schedule: Schedule,
        features: FeatureMap,
        *,
        importance: FloatArray,
        weights: FloatArray,
        share: float | None = None,
    ) -> None:
        self.schedule, self.features, self.importance = schedule, features, importance
        self.q, self.share = len(weights), share
        self.weights: FloatArray = np.r_[self.constant, weights]
        self.refines = schedule.refines(self.q)
        self.total: FloatArray = np.zeros(0)  # of the first look, which later phases may go on with
        self.people = 0

    @abstractmethod
    def ask(self, kind: str) -> dict[str, Any]:
        """The fields of the task of a phase."""

    @abstractmethod
    def learn(self, kind: str, total: FloatArray, people: int) -> None:
        """Conclude a phase from the sum of its replies' estimates."""

    @abstractmethod
    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Intercepts (m,) and slopes (m, q) of the scores of ψ."""

    def rule(self) -> tuple[FloatArray, FloatArray, float]:
        """The same as people are judged by, and what slopes were taken times for it."""
        return *self.scores(), 1.0

    @abstractmethod
    def _spread(self) -> FloatArray:
        """Covariance of the slopes of each score, shape (m, q, q)."""

    def doubt(self) -> FloatArray:
        """Mean variance of each score over people, shape (m,): ψ is white."""
        return np.asarray(np.trace(self._spread(), axis1=1, axis2=2))

    def by_feature(self) -> tuple[FloatArray, FloatArray]:
        """Weights of the standardized features and their standard errors, both (m, d)."""
        into = self.features.matrix
        variance = np.einsum("qd,mqr,rd->md", into, self._spread(), into)
        return self.scores()[1] @ into, np.sqrt(np.maximum(variance, 0))

    def covariances(self) -> FloatArray:
        """Of the coefficients that `FeatureMap.rule` makes of the scores, shape (m, d, d)."""
        into = self.features.clip * self.features.matrix
        return np.asarray(np.einsum("qd,mqr,re->mde", into, self._spread(), into))

    def guessing(self) -> Estimate | None:
        """The error of whoever knows how frequent labels are, and nothing else."""
        return None

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What was learnt, as plain values."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""

    def _gather(self, total: FloatArray, people: int) -> None:
        """More replies to the first question; a phase may have had none."""
        if people:
            self.total = self.total + total if self.people else total
            self.people += people

    def _mean_vector(
        self,
        total: FloatArray,
        people: int,
        limit: float,
        part: float = 1.0,
        *,
        weights: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """The mean vector behind reports and the variance of its entries."""
        unit = limit / (self.weights if weights is None else weights) / part
        noise = self._noise(self.q + 1) * unit**2 / max(people, 1)
        return (total / people if people else np.zeros(self.q + 1)) * unit, noise

    def _noise(self, dimension: int, *, n_classes: int = 1) -> float:
        return entry_noise(dimension, self.schedule.epsilon, n_classes=n_classes)


class ClassPhases(LabelPhases):
    """Phases about labels that may have nothing to do with ψ."""

    @property
    @abstractmethod
    def fit(self) -> float:
        """How much better the replies are explained if ψ goes with the label, a logarithm."""

    @property
    def evidence(self) -> float:
        """How likely it is that ψ goes with the label, if it was as likely as not before."""
        return float(expit(self.fit))

    @property
    def constant_rule(self) -> bool:
        """Whether the rule gives nearly everybody one label, if ψ is normal."""
        intercepts, slopes, _ = self.rule()
        told = intercepts + spread.normal_rows(self.q) @ slopes.T
        labels = told.argmax(axis=1) if len(intercepts) > 1 else (told[:, 0] >= 0).astype(int)
        return bool(np.bincount(labels).max() > _NEARLY_ALL * len(labels))


class TwoClasses(ClassPhases):
    """Rate of label 1, E[(y - p) ψ], then gradient rounds."""

    constant = two_classes.CONSTANT

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.rate = Rate.of(0.0, 0, 1.0) if self.share is None else Rate.known(self.share)
        self._look()

    def ask(self, kind: str) -> dict[str, Any]:
        """A vector of residual times features, at the rate or at the present classifier."""
        refining = kind == "gradient" and self.refines
        if refining:
            asked = self._round()
            limit, reach, theta = asked.limit, asked.reach, asked.theta
            weights = asked.weights
        else:
            weights = self.weights
            limit, _ = two_classes.moment_cut(self.weights, self.rate.share)
            odds = np.log(self.rate.share / (1 - self.rate.share))
            reach, theta = NO_CUT, np.r_[odds, np.zeros(self.q)]
        return self.features.public() | {
            "statistic": "residual",
            "theta": theta,
            "weights": weights,
            "reach": reach,
            "limit": limit,
        }

    def learn(self, kind: str, total: FloatArray, people: int) -> None:
        """Rate, discriminant or a step of the logistic fit."""
        if kind == "rate":
            coin = RandomizedResponse(epsilon=self.schedule.epsilon)
            alpha = 2 * coin.keep_probability - 1
            self.rate = Rate.of(float(total.sum()), people, alpha)
            self._look()
        elif kind == "gradient" and self.refines:
            if people:
                self._step(total, people)
        else:
            self._gather(total, people)
            self._look()

    @property
    def fit(self) -> float:
        """That of all reports since the rate is known."""
        return self.score.fit(self.importance)

    def _look(self) -> None:
        """Begin with what the first look says."""
        limit, part = two_classes.moment_cut(self.weights, self.rate.share)
        moment, noise = self._mean_vector(self.total, self.people, limit, part)
        self.belief = two_classes.discriminant(moment, noise, self.importance, self.rate)
        self.score = Score.first(moment, noise, self.rate)

    def _round(self) -> two_classes.Round:
        people = sum(phase.people for phase in self.schedule.phases() if phase.kind == "gradient")
        noise = self._noise(self.q + 1) / max(_AHEAD * people, 1)
        return two_classes.prepare(self.belief, self.weights, noise=noise)

    def _step(self, total: FloatArray, people: int) -> None:
        asked = self._round()
        gradient, noise = self._mean_vector(total, people, asked.limit, weights=asked.weights)
        belief = self.belief
        self.score = self.score.after(asked, gradient, noise)
        belief.theta, belief.covariance = two_classes.update(belief, asked, gradient, noise)

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """θ."""
        return self.belief.theta[:1], self.belief.theta[None, 1:]

    def rule(self) -> tuple[FloatArray, FloatArray, float]:
        """θ, and the larger class as far as replies do not show that θ means anything."""
        (intercept,), slopes = self.scores()
        balance, evidence = self.score.balance, self.evidence
        middle, scale = mixed(float(intercept), balance=balance, evidence=evidence)
        return np.array([middle]), scale * slopes, scale

    def guessing(self) -> Estimate:
        """How frequent the less frequent label is."""
        doubt = 0.5 / np.sqrt(self.rate.answers + two_classes.RATE_PRIOR_ANSWERS)
        share = min(self.belief.share, 1 - self.belief.share)
        return Estimate(float(share), float(doubt), self.people)

    def doubt(self) -> FloatArray:
        """That of the intercept too."""
        return np.asarray(super().doubt() + self.belief.covariance[0, 0])

    def _spread(self) -> FloatArray:
        return self.belief.covariance[None, 1:, 1:]

    def state(self) -> dict[str, Any]:
        """Rate, first sums and the posterior of θ."""
        return {
            "total": self.total.tolist(),
            "people": self.people,
            "rate": [self.rate.share, self.rate.answers],
            "belief": {k: np.asarray(v).tolist() for k, v in asdict(self.belief).items()},
            "score": {k: np.asarray(v).tolist() for k, v in asdict(self.score).items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.total, self.people = np.asarray(state["total"]), state["people"]
        self.rate = Rate(*state["rate"])
        arrays = {k: np.asarray(v) for k, v in state["belief"].items()}
        self.belief = Belief(**arrays | {"share": state["belief"]["share"]})
        found = state["score"]
        self.score = Score(found["share"], *map(np.asarray, (found["told"], found["information"])))


class ManyClasses(ClassPhases):
    """Means by class, the covariance within classes, and means again in its units."""

    constant = 1.0

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.picture = self._first_look()
        self.factor = self.picture.within

    def ask(self, kind: str) -> dict[str, Any]:
        """Features by class, products of residuals, or residuals by class."""
        if kind == "means" or not self.refines:
            return self.features.public() | {
                "statistic": "classes",
                "weights": self.weights,
                "limit": self._limit(self.weights)[0],
            }
        into = np.linalg.inv(self.factor)
        offsets = (self.features.offset - self.picture.means) @ into.T
        seen = self.features.public() | {"matrix": into @ self.features.matrix, "offsets": offsets}
        if kind == "within":
            return seen | {"statistic": "products", "limit": float(np.sqrt(self.q))}
        ones = np.ones(self.q + 1)
        return seen | {"statistic": "classes", "weights": ones, "limit": self._limit(ones)[0]}

    def learn(self, kind: str, total: FloatArray, people: int) -> None:
        """A first picture of the classes, or a better one."""
        if kind == "means" or not self.refines:
            self._gather(total, people)
            self.picture = self._first_look()
            self.factor = self.picture.within
        elif people and kind == "within":
            step, _ = spread.correlated(
                self.q * total / people,
                noise=self._noise(self.q * (self.q + 1) // 2) / people,
                size=self.q,
                floor=_NARROWEST,
            )
            self.factor = self.factor @ step
        elif people:
            ones = np.ones(self.q + 1)
            residuals, noise_by_entry = self._read(total, people, ones)
            self.picture.within = self.factor
            self.picture = many_classes.second_picture(
                self.picture, residuals, float(noise_by_entry[0])
            )

    @property
    def fit(self) -> float:
        """As of two classes; of the second look, what it made of the density at equal means."""
        first = self._first_look()
        return first.fit + first.at_nothing - self.picture.at_nothing

    def _first_look(self) -> Picture:
        moments, noise = self._read(self.total, self.people, self.weights)
        return many_classes.first_picture(moments, noise, self.importance)

    def _limit(self, weights: FloatArray) -> tuple[float, float]:
        """Where weighted (1, ψ) is cut, and how much of its mean passes."""
        limit = two_classes.RADIUS * float(np.linalg.norm(weights))
        rows = spread.with_one(spread.normal_rows(self.q))
        return limit, spread.passed(np.linalg.norm(rows * weights, axis=1), limit)

    def _read(
        self, total: FloatArray, people: int, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        limit, part = self._limit(weights)
        k = self.schedule.n_classes
        unit = limit / weights / part
        noise = self._noise(self.q + 1, n_classes=k) * unit**2 / max(people, 1)
        mean = total / people if people else np.zeros((k, self.q + 1))
        if not people:
            mean[:, 0] = 1 / (k * unit[0])
        return mean * unit, noise

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Of the linear discriminant."""
        return self.picture.scores()

    def _spread(self) -> FloatArray:
        factor = self.picture.within
        inverse = np.linalg.inv(factor @ factor.T)
        return np.asarray(np.einsum("ij,kj,lj->kil", inverse, self.picture.doubt, inverse))

    def guessing(self) -> Estimate:
        """How frequent all labels but the most frequent one are."""
        doubt = float(np.sqrt(self.picture.constant_noise))
        return Estimate(float(1 - self.picture.shares.max()), doubt, self.people)

    def state(self) -> dict[str, Any]:
        """First sums, the picture of the classes and the factor that is being learnt."""
        return {
            "total": self.total.tolist(),
            "people": self.people,
            "factor": self.factor.tolist(),
            "picture": {k: np.asarray(v).tolist() for k, v in asdict(self.picture).items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.total, self.people = np.asarray(state["total"]), state["people"]
        self.factor = np.asarray(state["factor"])
        arrays: dict[str, Any] = {k: np.asarray(v) for k, v in state["picture"].items()}
        numbers = {name: state["picture"][name] for name in ("constant_noise", "fit")}
        self.picture = Picture(**arrays | numbers)
