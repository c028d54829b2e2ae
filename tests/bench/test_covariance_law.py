"""A covariance of few curves: never much worse than none, and better where it can be."""

import warnings

import numpy as np
import pytest

from dpfda import PrivateCovariance
from dpfda_bench.benchmarks._honesty_trials import hidden
from dpfda_bench.random_curves import problem


def ratio(n: int, epsilon: float, delta: float, seeds: range) -> float:
    """Mean squared error over that of a covariance of 0, on random curves in random ranges."""
    missed, nothing = 0.0, 0.0
    for seed in seeds:
        shape, slack = hidden(seed)
        one = problem(seed, shape=shape, slack=slack, n=n)
        truth = np.cov(one.curves.T, bias=True) / one.half_width**2
        model = PrivateCovariance(
            epsilon, delta=delta, value_range=one.value_range, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit(one.curves).covariance_ / one.half_width**2
        missed += float(np.mean((found - truth) ** 2))
        nothing += float(np.mean(truth**2))
    return missed / nothing


# Standard errors over 100 seeds are .02 to .1; before, the means were 1.3 to 50 000.
@pytest.mark.parametrize(
    ("n", "epsilon", "delta", "most"),
    [(10, 0.1, 0.0, 1.05), (40, 1.0, 1e-6, 1.05), (200, 0.1, 0.0, 1.05), (200, 10.0, 1e-6, 0.2)],
)
def test_error_over_that_of_no_covariance(
    n: int, epsilon: float, delta: float, most: float
) -> None:
    assert ratio(n, epsilon, delta, range(100, 200)) <= most
