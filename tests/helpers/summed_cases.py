"""Every estimator that works from sums, with data it is fitted to."""

from typing import Any

import numpy as np
import pytest

N = 3000
T = np.linspace(0.0, 1.0, 12)
RNG = np.random.default_rng(0)
GROUP = RNG.integers(3, size=N)
TABLE = RNG.uniform(-1, 1, (N, 3))
CURVES = np.sin(3 * T) + RNG.normal(0, 0.3, (N, 1)) + np.outer(GROUP - 1 + TABLE[:, 0], 0.4 * T)
TARGET = TABLE @ [0.6, -0.3, 0.0]
LABEL = (TARGET > 0).astype(int)
OF_CURVES: dict[str, Any] = {"value_range": [-3, 3]}
OF_ROWS: dict[str, Any] = {"feature_ranges": [-1, 1]}
WORDS = np.array(["no", "yes", "maybe"])[GROUP]

# name, parameters, X, y, grid points, what a fit leaves
CASES: dict[str, tuple[str, dict[str, Any], Any, Any, Any, str]] = {
    "mean": ("PrivateMean", OF_CURVES, CURVES, None, T, "mean_"),
    "mean with bands": ("PrivateMean", OF_CURVES | {"inference": True}, CURVES, None, T, "mean_"),
    "covariance": ("PrivateCovariance", OF_CURVES, CURVES, None, T, "covariance_"),
    "components": ("PrivateFPCA", OF_CURVES, CURVES, None, T, "components_"),
    "density": ("PrivateDensity", OF_ROWS, TABLE[:, :1], None, None, "density_"),
    "function on scalar": (
        "PrivateFunctionOnScalar", OF_CURVES | OF_ROWS, TABLE[:, :2], CURVES, T, "coef_"
    ),
    "moments": ("PrivateMoments", OF_CURVES | {"groups": [0, 1, 2]}, CURVES, GROUP, T, "means_"),
    "groups": (
        "PrivateGroupComparison", OF_CURVES | {"groups": ["no", "yes", "maybe"]}, CURVES, WORDS, T,
        "means_",
    ),
    "classes": (
        "PrivateCurveClassifier", OF_CURVES | {"classes": [0, 1, 2]}, CURVES, GROUP, T, "coef_"
    ),
    "two classes": (
        "PrivateCurveClassifier", OF_CURVES | {"classes": [0, 1]}, CURVES, LABEL, T, "coef_"
    ),
    "number from curves": (
        "PrivateCurveRegression", OF_CURVES | {"target_range": [-1, 1]}, CURVES, TARGET, T, "coef_"
    ),
    "linear": (
        "PrivateLinearRegression", OF_ROWS | {"target_range": [-1, 1]}, TABLE, TARGET, None, "coef_"
    ),
    "logistic": (
        "PrivateLogisticRegression", OF_ROWS | {"classes": [0, 1]}, TABLE, LABEL, None, "coef_"
    ),
}  # fmt: skip
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
PRICE = {"epsilon": 2.0, "delta": 1e-5}
