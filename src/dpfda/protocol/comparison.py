"""Comparisons for a private result: guessing, and the best result without privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.protocol.estimate import wilson

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

NON_PRIVATE = (
    "Non-private: logistic regression on standardized features that saw every curve, its penalty "
    "chosen by cross-validation."
)
HELD_OUT = "held-out people"
"""Where a row of a result comes from that was computed from people's data without noise."""
WITH_SQUARES = NON_PRIVATE.replace("features that", "features and their squares that")
_ENOUGH = 2000  # rows to choose a penalty by; the fit takes all
_FOLDS = 3


def non_private_classifier(X: Any, y: Any, *, squares: bool = False) -> Pipeline | None:
    """A classifier without privacy, fitted as well as is usual; None if there is one class only.

    Args:
        X: features.
        y: labels.
        squares: whether squares of standardized features are features as well.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(300, 2))
        >>> bool(non_private_classifier(1e-4 * x, x[:, 0] > 0).score(1e-4 * x, x[:, 0] > 0) > 0.95)
        True
    """
    # Most who come here need the words below only; a collector starts in half the time without.
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
        if len(np.unique(labels[some])) < len(counts):  # a rare class: all rows, then
            some = np.arange(len(labels))
        kept = StratifiedKFold(folds, shuffle=True, random_state=0)
        search = GridSearchCV(rule, {"logisticregression__C": np.logspace(-3, 3, 5)}, cv=kept)
        rule = search.fit(np.asarray(X)[some], labels[some]).best_estimator_
    return rule.fit(X, labels)


def _with_squares(features: Any) -> Any:
    return np.hstack([features, np.square(features)])


def non_private_regression(X: Any, y: Any) -> Pipeline:
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


def majority_error(labels: Any) -> float:
    """The error of always naming the most frequent label.

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
