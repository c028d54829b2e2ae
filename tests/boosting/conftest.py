"""Owners and data users small enough for tests."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests.feedback import FeedbackRequest
from dpfda.boosting.requests.gradient import GradientRequest
from dpfda.boosting.requests.local_classifier import ClassifierRequest
from dpfda.boosting.requests.sample import SampleRequest
from dpfda.boosting.requests.statistic import StatisticRequest
from dpfda.boosting.rules import StumpRule


def make_two_classes(n, *, seed, d=4, gap=1.5):
    """Gaussian classes around ±gap/2 in the first two features."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, :2] += gap / 2 * (2 * y - 1)[:, None]
    return X, y


@pytest.fixture(scope="session")
def study():
    """1500 owners with 4 rows each, the data user's 400 rows, 4000 test rows."""
    X, y = make_two_classes(6000, seed=0)
    own, own_y = make_two_classes(400, seed=1)
    test, test_y = make_two_classes(4000, seed=2)
    groups = np.random.default_rng(3).permutation(np.repeat(np.arange(1500), 4))
    return X, y, groups, own, own_y, test, test_y


def make_owners(n=6, *, size=3, d=2, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n * size, d))
    y = rng.integers(0, classes, n * size)
    return OwnerRows.grouped(X, y, groups=np.repeat(np.arange(n), size))


def make_requests(classes=2, d=2):
    """One request of each type, in the middle of a study."""
    vote = Ensemble.empty([(-1.0, 1.0)] * d, classes=classes)
    rule = StumpRule(feature=0, threshold=0.1, below=0, above=1)
    vote = vote.joined(rule, alpha=0.7)
    gradient = GradientRequest.example()
    if classes > 2:
        gradient = GradientRequest(
            features=gradient.features,
            coefficients=np.zeros((classes - 1, 3)),
            projection=np.eye((classes - 1) * 3),
        )
    return {
        "gradient": gradient,
        "sample": SampleRequest(ensemble=vote),
        "statistic": StatisticRequest(ensemble=vote, thresholds=np.full((d, 2), [-0.2, 0.3])),
        "classifier": ClassifierRequest(ensemble=vote),
        "feedback": FeedbackRequest(ensemble=vote, rule=rule),
    }


@pytest.fixture(scope="session")
def two_classes():
    return make_two_classes


@pytest.fixture(scope="session")
def owners():
    return make_owners


@pytest.fixture(scope="session")
def requests():
    return make_requests
