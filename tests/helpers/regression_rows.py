"""Regressions in the unit ball, and rows for them."""

import numpy as np
import pytest

from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_logistic_regression import PrivateLogisticRegression

few = pytest.mark.filterwarnings("ignore:too few rows")


def linear(epsilon=1.0, **more):
    ball = {"feature_norm_bound": 1.0, "target_range": (-1, 1)}
    return PrivateLinearRegression(epsilon, **(ball | more))


def logistic(epsilon=1.0, **more):
    return PrivateLogisticRegression(epsilon, feature_norm_bound=1.0, **more)


def rows(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    return X, X @ [0.9, -0.5, 0.0] + 0.1


def chunked(X, y):
    return lambda: ((X[part], y[part]) for part in np.array_split(np.arange(len(X)), 3))
