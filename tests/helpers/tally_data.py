"""Small curves, and a mean of them, for tests of budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dpfda
from dpfda.central.functions import as_grid
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.curate import curate
from dpfda.noise import SecureSource, SimulationSource
from dpfda.privacy.cost import DELTA
from dpfda.protocol import StudyPlan
from dpfda.protocol.consortium import convene
from dpfda.simulate import people_from, simulate

T = np.linspace(0, 1, 8)


RNG = np.random.default_rng(0)


X = RNG.uniform(-0.3, 0.3, size=(90, 8))


Y = np.where(X[:, 0] > 0, 1, -1)


CLASSES = {"classes": (-1, 1), "value_range": (-0.3, 0.3)}


SMALL = {"n_classifiers": 2, "member_size": 4, **CLASSES}


def _plan(epsilon: float = 1.0) -> StudyPlan:
    encoder = dpfda.CurveEncoder(n_basis=4)
    return StudyPlan(
        epsilon=epsilon, n_people=len(X), encoder=encoder, classes=(-1, 1),
        design={"name": "moments"},
    )  # fmt: skip


def _mean(epsilon: float = 1.0, delta: float = 0.0) -> MeanRelease:
    mechanism = FunctionMechanism.named("adaptive")()
    return MeanRelease(
        epsilon=epsilon, delta=delta, n=len(X), bound=1.0, grid=as_grid(T), mechanism=mechanism
    )


def _curated(source: Any, **more: Any) -> None:
    curate(_mean(), _mean().records(X), source=source, **more)


def _convened(source: Any, **more: Any) -> None:
    asked = _mean(delta=DELTA)
    (rows,) = asked.records(X)
    hospitals = {name: (part,) for name, part in zip("ABC", np.array_split(rows, 3), strict=True)}
    convene(asked, hospitals, source=source, **more)


def _simulated(source: Any, **more: Any) -> None:
    simulate(_plan(), people_from(_plan(), X, Y), source=source, **more)


LINE: dict[str, Any] = {"feature_norm_bound": 1.0, "target_range": (-1, 1)}


def _sites(**more: Any) -> None:
    sites = {name: (X[k::3], X[k::3, 0]) for k, name in enumerate("ABC")}
    dpfda.rehearse(dpfda.PrivateLinearRegression(1.0, **LINE, **more), sites)


def _streamed(**more: Any) -> None:
    dpfda.PrivateLinearRegression(1.0, **LINE, **more).fit_stream(lambda: [(X, X[:, 0])])


DOORS: dict[str, Callable[..., Any]] = {
    "mean": lambda **kw: dpfda.PrivateMean(1.0, delta=0, bound=1.0, **kw).fit(X),
    "covariance": lambda **kw: dpfda.PrivateCovariance(1.0, bound=1.0, **kw).fit(X),
    "linear": lambda **kw: dpfda.PrivateLinearRegression(1.0, **LINE, **kw).fit(X, X[:, 0]),
    "stream": _streamed,
    "sites": _sites,
    "local": lambda **kw: dpfda.LocalCurveClassifier(1.0, **CLASSES, **kw).fit(X, Y),
    "moment": lambda **kw: dpfda.MomentClassifier(epsilon=1.0, **CLASSES, **kw).fit(X, Y),
    "MRMA": lambda **kw: dpfda.MRMAClassifier(epsilon=1.0, **SMALL, **kw).fit(X, Y),
    "servers": lambda **kw: dpfda.MultiServerMRMA(epsilon=1.0, **SMALL, **kw).fit(
        X, Y, servers=np.arange(90) % 2
    ),
    "online": lambda **kw: dpfda.OnlineMRMA(epsilon=1.0, new_classifiers=2, **SMALL, **kw).fit(
        X, Y
    ),
    "boosting": lambda **kw: dpfda.LocalGradientBoostingClassifier(
        epsilon=1.0, classes=(-1, 1), feature_ranges=(-0.3, 0.3), **kw
    ).fit(X, Y),
    "curate": lambda random_state=None: _curated(_source(random_state)),
    "convene": lambda random_state=None: _convened(_source(random_state)),
    "simulate": lambda random_state=None: _simulated(_source(random_state)),
    "score": lambda **kw: dpfda.private_score(Constant(), X, Y, epsilon=1.0, **kw),
}


class Constant:
    """A public model."""

    def predict(self, rows: Any) -> Any:
        return np.ones(len(rows))


def _source(random_state: int | None) -> Any:
    return SecureSource() if random_state is None else SimulationSource(random_state)
