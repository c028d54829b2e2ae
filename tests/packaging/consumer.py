"""How somebody else's typed program uses the package.

Type checkers must accept every line but those that end in ``# wrong``; see test_types.py.
"""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import dpfda
from dpfda import (
    Guarantee,
    Ledger,
    LocalAdaBoostClassifier,
    LocalCurveClassifier,
    LocalGradientBoostingClassifier,
    MomentClassifier,
    MRMAClassifier,
    MultiServerMRMA,
    OnlineMRMA,
    PrivateCovariance,
    PrivateDensity,
    PrivateFunctionOnScalar,
    PrivateKernelMachine,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    SimulationSource,
)
from dpfda.central import Release
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.model import CurveModel

Floats = npt.NDArray[np.float64]
X: Floats = np.zeros((9, 5))
y: npt.NDArray[np.int64] = np.zeros(9, dtype=np.int64)

# A curator's release.
mean = PrivateMean(1.0, value_range=(0, 1), ledger=Ledger(2.0, limit_delta=1e-6)).fit(X)
assert_type(mean, PrivateMean)
assert_type(mean.mean_, Floats)
assert_type(mean.release_, Release)
assert_type(mean.guarantee_, Guarantee)
assert_type(mean.guarantee_.epsilon, float)
mean.set_params(epsilon=2.0).get_params()
print(mean.covariance_)  # wrong
mean.fit(X, grid=X[0])  # wrong
PrivateMean(1.0, (0, 1))  # wrong
PrivateMean(epsilon="1", value_range=(0, 1))  # wrong
PrivateMean(value_rnge=(0, 1))  # wrong
PrivateMean(value_range=(0, 1, 2))  # wrong
PrivateMean(random_state="7")  # wrong
PrivateMean(random_state=SimulationSource(7), ledger=1.0)  # wrong
PrivateCovariance(1.0, 1e-6)  # wrong
PrivateDensity(1.0, feature_ranges=(0, 1), bins=9)  # wrong
PrivateFunctionOnScalar(1.0, value_range=(0, 1), feature_ranges=(0, 1)).fit(X, X)
PrivateFunctionOnScalar(1.0, gamma="0.3")  # wrong
PrivateKernelMachine(1.0, loss=None)  # wrong

# Classifiers of people who trust nobody.
local = LocalCurveClassifier(0.5, value_range=(-6, 6), classes=(0, 1)).fit(X, y, grid_points=X[0])
assert_type(local, LocalCurveClassifier)
assert_type(local.model_, CurveModel)
assert_type(local.guarantee_, Guarantee)
assert_type(local.predict(X), npt.NDArray[Any])
assert_type(local.predict_proba(X), Floats)
assert_type(local.score(X, y), float)
LocalCurveClassifier(0.5, protects="nobody")  # wrong
LocalCurveClassifier(0.5, range=(-6, 6))  # wrong
MomentClassifier(0.5, None)  # wrong
MRMAClassifier(0.5, n_classifiers=9.5)  # wrong
MultiServerMRMA(0.5, server=2)  # wrong
OnlineMRMA(0.5, memory=None)  # wrong
LocalGradientBoostingClassifier({"clinic": 0.5, "home": 1.0}, classes=(0, 1), n_rounds=3)
LocalGradientBoostingClassifier(0.5, rounds=3)  # wrong
LocalAdaBoostClassifier(0.5, rule="gradient")  # wrong

# Regressions, pooled and among sites.
linear = PrivateLinearRegression(1.0, feature_ranges=(0, 1), target_range=(0, 9)).fit(X, X[:, 0])
assert_type(linear.predict(X), npt.NDArray[Any])
PrivateLinearRegression(1.0, target_bound=9)  # wrong
PrivateLogisticRegression(1.0, feature_ranges=(0, 1), classes=(0, 1)).fit(X, y)
PrivateLogisticRegression(1.0, target_range=(0, 1))  # wrong
assert_type(dpfda.rehearse(linear, {"a": (X, X[:, 0])})[0], PrivateLinearRegression)
dpfda.rehearse(linear, {"a": (X, y)}, colluding=1)  # wrong

# Budgets around ordinary use.
with dpfda.budget(epsilon=2) as ledger:
    assert_type(ledger, BaseLedger)
print(dpfda.spent())
dpfda.budgets(epsilon=2)  # wrong
dpfda.budget(eps=2)  # wrong
