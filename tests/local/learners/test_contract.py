"""Every registered learner keeps the shipped contract; a broken one is caught."""

import numpy as np
import pytest

from dpfda.checks.learners import CHECKS, check_learner
from dpfda.local.mrma.learners import Learner, LinearModels
from dpfda.local.mrma.learners.linear_learners import Logistic

EXAMPLES = [example for member in Learner.members().values() for example in member.examples()]


@pytest.mark.parametrize("learner", EXAMPLES, ids=repr)
def test_contract(learner):
    check_learner(learner)


def test_every_learner_is_found():
    assert {"logistic", "linear_svm", "dwd", "conjugate_gradient", "nearest_centroid"} <= set(
        Learner.members()
    )
    assert len(CHECKS) >= 10


class _Broken:
    """A learner with one planted fault, standing in for a registered one."""

    def __init__(self, fault):
        self.fault = fault

    def __getattr__(self, name):
        return getattr(Logistic(), name)

    def fit(self, features, labels, *, weights=None, gram=None):
        if self.fault == "ignores weights":
            weights = None
        models = Logistic().fit(features, labels, weights=weights, gram=gram)
        intercept, coefficients = models.intercept, models.coefficients
        if self.fault == "depends on the batch":
            intercept = intercept + 0.01 * len(models)
        if self.fault == "prefers a class":
            intercept = intercept + 0.01
        if self.fault == "not finite":
            coefficients = np.where(coefficients == 0.0, np.inf, coefficients)
        return LinearModels(intercept=intercept, coefficients=coefficients)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("ignores weights", "check_zero_weight"),
        ("depends on the batch", "check_batch_equals"),
        ("prefers a class", "check_flipped"),
        ("not finite", "check_degenerate"),
    ],
)
def test_a_broken_learner_is_caught(fault, check):
    with pytest.raises(AssertionError, match=check):
        check_learner(_Broken(fault))
