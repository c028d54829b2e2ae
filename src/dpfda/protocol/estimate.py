"""Estimates from randomized replies with their uncertainty, and results for comparison.

A private result is compared with guessing and with the best result without privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from dpfda import _validate
from dpfda._registry import Portable
from dpfda._validate import ArrayLike, FloatArray
from dpfda.mechanisms.randomized_response import RandomizedResponse

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


@dataclass(frozen=True)
class Estimate(Portable):
    """An unbiased estimate and its standard error, which is infinite without answers.

    Examples:
        >>> Estimate(0.8, 0.05, 400).interval(0.95)
        (0.7020018007729973, 0.8979981992270027)
        >>> Estimate(0.0, None, 0).interval(0.95)  # JSON writes null for infinity
        (-inf, inf)
    """

    value: float
    standard_error: float
    people: int

    def __post_init__(self) -> None:
        if self.standard_error is None:
            object.__setattr__(self, "standard_error", math.inf)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A two-sided normal interval; (-inf, inf) without answers."""
        half = float(ndtri((1 + _validate.fraction("level", level)) / 2)) * self.standard_error
        return self.value - half, self.value + half

    def shown(self, level: float = 0.95, *, share: bool = False) -> tuple[float, float, float]:
        """Value and interval as they are displayed.

        Args:
            level: confidence level of the interval.
            share: whether the number is a proportion, which is cut at 0 and 1.

        Examples:
            >>> Estimate(5.504, 4.34, 4).shown(share=True)
            (1.0, 0.0, 1.0)
        """
        numbers = self.value, *self.interval(level)
        if not share:
            return numbers
        value, low, high = as_share(numbers)
        return value, low, high

    def complement(self) -> Estimate:
        """The estimate of one minus the number, such as an error rate from an accuracy."""
        return Estimate(1 - self.value, self.standard_error, self.people)


def as_share(numbers: Iterable[float]) -> tuple[float, ...]:
    """Noisy estimates of proportions, cut at 0 and 1.

    Examples:
        >>> as_share((-2.99, 5.504, 0.25))
        (0.0, 1.0, 0.25)
    """
    return tuple(min(max(float(number), 0.0), 1.0) for number in numbers)


def accuracy_estimate(*, total: float, people: int, epsilon: float) -> Estimate:
    """The accuracy estimated from `people` randomized ±1 evaluations with the sum `total`.

    Examples:
        >>> accuracy_estimate(total=200.0, people=400, epsilon=1.0).value.__round__(3)
        1.041
    """
    value, error = accuracies_behind(total, people, epsilon=epsilon)
    return Estimate(float(value), float(error), people)


def accuracies_behind(
    totals: ArrayLike, people: ArrayLike, *, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Accuracies estimated from sums of randomized ±1 evaluations (+1: right), and standard errors.

    r̃ = (r̂ + q - 1)/(2q - 1), Eq. (8) of 001; Var r̃ = p(1-p)/(n (2q-1)²), p = qr + (1-q)(1-r). The
    variance includes the randomized response (C5). It is evaluated at the estimated p, restricted
    to [1/2n, 1 - 1/2n]. Without answers, r̃ = ½ and the standard error is infinite.
    """
    q, n = RandomizedResponse(epsilon=epsilon).keep_probability, np.maximum(people, 1)
    said_right = (np.asarray(totals) / n + 1) / 2
    p = np.clip(said_right, 1 / (2 * n), 1 - 1 / (2 * n))
    error = np.sqrt(p * (1 - p) / n) / (2 * q - 1)
    known = np.asarray(people) > 0
    return np.where(known, (said_right + q - 1) / (2 * q - 1), 0.5), np.where(known, error, np.inf)


def wilson(share: float, people: int, level: float) -> tuple[float, float]:
    """Wilson's interval for a proportion.

    Examples:
        >>> [round(end, 3) for end in wilson(0.1, 100, 0.95)]
        [0.055, 0.174]
    """
    if people == 0:
        return 0.0, 1.0
    z = float(ndtri((1 + level) / 2))
    middle = (share + z * z / (2 * people)) / (1 + z * z / people)
    half = (
        z * math.sqrt(share * (1 - share) / people + z * z / (4 * people**2)) / (1 + z * z / people)
    )
    return middle - half, middle + half


NON_PRIVATE = (
    "Non-private: logistic regression on standardized features that saw every curve, its penalty "
    "chosen by cross-validation."
)
HELD_OUT = "held-out people"
"""Label of result rows that were computed from people's data without noise."""
WITH_SQUARES = NON_PRIVATE.replace("features that", "features and their squares that")
_ENOUGH = 2000  # rows from which the penalty is chosen; the fit uses all rows
_FOLDS = 3


def non_private_classifier(X: ArrayLike, y: ArrayLike, *, squares: bool = False) -> Pipeline | None:
    """A classifier without privacy, with cross-validated penalty; None if there is only one class.

    Args:
        X: features.
        y: labels.
        squares: whether squares of standardized features are features as well.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(300, 2))
        >>> bool(non_private_classifier(1e-4 * x, x[:, 0] > 0).score(1e-4 * x, x[:, 0] > 0) > 0.95)
        True
    """
    # Most users of this module need only the functions below; the import would double the time in
    # which a collector starts.
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    labels = np.asarray(y)
    _, counts = np.unique(labels, return_counts=True)
    if len(counts) < 2:
        return None
    more = [FunctionTransformer(_with_squares), StandardScaler()] if squares else []
    rule = make_pipeline(StandardScaler(), *more, LogisticRegression(max_iter=5000))
    folds = min(_FOLDS, int(counts.min()))
    if folds > 1:
        some = np.random.default_rng(0).permutation(len(labels))[:_ENOUGH]
        if len(np.unique(labels[some])) < len(counts):  # a class is rare: use all rows
            some = np.arange(len(labels))
        kept = StratifiedKFold(folds, shuffle=True, random_state=0)
        search = GridSearchCV(rule, {"logisticregression__C": np.logspace(-3, 3, 5)}, cv=kept)
        rule = search.fit(np.asarray(X)[some], labels[some]).best_estimator_
    return rule.fit(X, labels)


def _with_squares(features: FloatArray) -> FloatArray:
    return np.hstack([features, np.square(features)])


def non_private_regression(X: ArrayLike, y: ArrayLike) -> Pipeline:
    """A ridge regression without privacy on standardized features, its penalty by cross-validation.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(300, 2))
        >>> bool(non_private_regression(x, 5 * x[:, 0] + 1).score(x, 5 * x[:, 0] + 1) > 0.99)
        True
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 7))).fit(X, y)


def majority_error(labels: ArrayLike) -> float:
    """The error of always predicting the most frequent label.

    Examples:
        >>> majority_error([1, 1, 0])
        0.33333333333333337
    """
    _, counts = np.unique(np.asarray(labels), return_counts=True)
    return float(1 - counts.max() / counts.sum())


def in_words(error: float, guessing: float, people: int) -> str:
    """Whether an error on held-out people is better than guessing, and by how much.

    Examples:
        >>> in_words(0.11, 0.5, 1000)
        'Better than guessing: 11.0 % wrong, against 50.0 %.'
        >>> in_words(0.32, 0.327, 1000)
        'No better than guessing: 32.0 % wrong, against 32.7 % (1000 held-out people).'
    """
    text = f"{error:.1%} wrong, against {guessing:.1%}".replace("%", " %")
    low, high = wilson(error, people, 0.95)
    if high < guessing:
        return f"Better than guessing: {text}."
    if low > guessing:
        return f"Worse than guessing: {text}."
    return f"No better than guessing: {text} ({people} held-out people)."
