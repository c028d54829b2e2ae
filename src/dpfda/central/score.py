"""The accuracy of a public classifier on private rows, released with one query."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.queries import MOST_RECORDS, BallMean
from dpfda.curate import curate
from dpfda.errors import InvalidData
from dpfda.noise import RandomState, source_for
from dpfda.privacy.cost import DELTA, Cost
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.conversation import Conversation, Questions
from dpfda.protocol.person import equal, one_by_one
from dpfda.protocol.query import Records

_STREAM = 0x73636F72  # separate random stream: the model may have been fitted with the same seed
_NORMAL = 1.96  # half-width of a 95 % interval, in standard errors


@dataclass(frozen=True, kw_only=True)
class Score:
    """A private estimate of accuracy.

    Attributes:
        accuracy: noisy share of persons whose label is predicted correctly, cut to [0, 1].
        noise: standard deviation of the privacy noise.
        n: number of persons.
        guarantee: the privacy guarantee.
    """

    accuracy: float
    noise: float
    n: int
    guarantee: Guarantee

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % interval for the accuracy in the population; includes noise and sampling error."""
        sampling = self.accuracy * (1 - self.accuracy) / self.n
        reach = _NORMAL * math.sqrt(self.noise**2 + sampling)
        return max(0.0, self.accuracy - reach), min(1.0, self.accuracy + reach)

    def __float__(self) -> float:
        return self.accuracy

    def __str__(self) -> str:
        low, high = self.interval
        return f"accuracy {self.accuracy:.3f} (95 %: {low:.3f} to {high:.3f}); {self.guarantee}"


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreRelease(Conversation[Score], name="score"):
    """The conversation of a score: one query of the mean of one number in [0, 1] per person.

    Privacy:
        (ε, δ)-DP for replacing one person, which changes the mean of n numbers in [0, 1] by at most
        1/n.

    Attributes:
        n: number of persons.
    """

    n: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("n", self.n, least=2, most=MOST_RECORDS)

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The budget with less noise."""
        return min(pure, gaussian, key=self._noise)

    def _noise(self, cost: Cost) -> float:
        return float(self._query(cost).mechanism.law.variance[0])

    def _query(self, cost: Cost) -> BallMean:
        """The mean query for the interval [0, 1], which is a ball of radius 1/2."""
        middle, axes = np.array([0.5]), np.ones(1)
        return BallMean(unit=self.unit, cost=cost, n=self.n, center=middle, axes=axes, radius=0.5)

    def questions(self) -> Questions[Score]:
        """Query the mean, and compute the score."""
        answer = yield self._query(self.whole)
        return Score(
            accuracy=float(np.clip(0.5 + answer.values[0], 0, 1)),
            noise=float(answer.sigma),
            n=self.n,
            guarantee=self.guarantee,
        )

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """The only instance."""
        return [cls(epsilon=epsilon, delta=delta, n=n)]

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Data sets that differ in whether one person is predicted correctly."""
        here, there = np.ones((n, 1)), np.ones((n, 1))
        there[0] = 0
        return (here,), (there,)


def private_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float = DELTA,
    grid_points: Any = None,
    groups: Any = None,
    unit: str = "person",
    ledger: BaseLedger | None = None,
    random_state: RandomState = None,
) -> Score:
    """Private accuracy of a public classifier: the share of private labels that it predicts.

    Privacy:
        (ε, δ)-DP for replacing one person. The model must be public: fitted to other data, or
        itself a private release with its own budget. A prediction must depend on its own row only.

    Args:
        model: a fitted object with a `predict` method.
        X: private rows or curves, in the form that `predict` takes.
        y: their labels.
        epsilon: ε.
        delta: δ; 0 for pure ε.
        grid_points: grid of the curves, if `predict` takes it.
        groups: the person of each row, if a person has several rows; these are averaged.
        unit: the unit of privacy, such as person.
        ledger: budget of the data over all releases, which is spent before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Examples:
        >>> from sklearn.dummy import DummyClassifier
        >>> X, y = np.zeros((1000, 1)), np.arange(1000) % 4 == 0
        >>> guess = DummyClassifier(strategy="constant", constant=False).fit(X[:5], y[:5])
        >>> score = private_score(guess, X, y, epsilon=0.1, random_state=0)
        >>> 0.65 < score.accuracy < 0.85, round(score.noise, 3)  # √2/(1000 · 0.1)
        (True, 0.014)
    """
    where = {} if grid_points is None else {"grid_points": grid_points}
    right = _shares(np.asarray(model.predict(X, **where)), one_by_one(y), groups)
    asked = ScoreRelease(epsilon=epsilon, delta=delta, unit=unit, n=len(right), either=True)
    source = source_for(random_state, stream=_STREAM)
    score, _ = curate(asked, (right,), source=source, ledger=ledger)
    return replace(score, guarantee=score.guarantee.drawn_from(source))


def _shares(predicted: Any, labels: Any, groups: Any) -> FloatArray:
    """The share of each person's rows that is predicted correctly, (n, 1)."""
    if predicted.ndim != 1 or labels.shape != predicted.shape:
        raise InvalidData("y", "one label for each prediction", f"shape {labels.shape}")
    right = equal(predicted, labels).astype(np.float64)
    if groups is not None:
        owners = np.asarray(groups)
        if owners.shape != right.shape:
            raise InvalidData("groups", "one person for each row", f"shape {owners.shape}")
        _, number = np.unique(owners, return_inverse=True)
        right = np.bincount(number, weights=right) / np.bincount(number)
    return right[:, None]
