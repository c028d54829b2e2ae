"""Owners, requests and plans small enough for tests."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.local.boosting.ensemble import Ensemble, StumpRule
from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.request import OwnerRows, Request
from dpfda.local.boosting.samme_study import SammeDesign


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


STUMP = {"feature": 0, "threshold": 0.1, "below": 0, "above": 1}


def make_request(name, *, people=1, epsilon=1.0, classes=2, d=2, n_rows=3, **fields):
    """One request of a type, in the middle of a study; `fields` change it."""
    common = {"epsilon": epsilon, "people": people, "dimension": d, "n_classes": classes}
    common["n_rows"] = n_rows
    rule = StumpRule(**STUMP)
    vote = Ensemble.empty([(-1.0, 1.0)] * d, classes=classes).joined(rule, alpha=0.7)
    own = {"ensemble": vote}
    if name == "gradient":
        features = FeatureMap.learnt(np.random.default_rng(0).normal(size=(50, d)), products=0)
        slopes = (classes - 1) * features.size
        own = {
            "features": features,
            "coefficients": np.zeros((classes - 1, features.size)),
            "projection": np.eye(slopes),
        }
    elif name == "statistic":
        own["thresholds"] = np.full((d, 2), [-0.2, 0.3])
    elif name == "feedback":
        own["rule"] = rule
    return Request.named(name)(**common | own | fields)


def make_plan(name, *, owners=20, epsilon=1.0, classes=(0, 1), d=2, n_rows=3, **fields):
    """A plan under which requests of `make_request` may be asked."""
    protects = fields.pop("protects", "both")
    if name == "gradient":
        rows = np.random.default_rng(0).normal(size=(50, d))
        features = FeatureMap.learnt(rows, products=0)
        design = GradientDesign(features=features, reference=rows, n_rows=n_rows, **fields)
    else:
        judges = {"judges": 1} if "labels" not in fields else {}
        design = SammeDesign(
            **{
                "rule": "statistic" if name == "feedback" else name,
                "feature_ranges": [(-1.0, 1.0)] * d,
                "owners_per_round": max(owners // 4, 1),
                "thresholds": np.full((d, 2), [-0.2, 0.3]),
                "n_rows": n_rows,
            }
            | judges
            | fields
        )
    return design.plan(epsilon=epsilon, owners=owners, classes=classes, protects=protects)


@pytest.fixture(scope="session")
def two_classes():
    return make_two_classes


@pytest.fixture(scope="session")
def owners():
    return make_owners


@pytest.fixture(scope="session")
def request_of():
    return make_request


@pytest.fixture(scope="session")
def plan_of():
    return make_plan
