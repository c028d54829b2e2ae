"""Small studies with a clear answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan


@pytest.fixture
def make_plan() -> Callable[..., StudyPlan]:
    """Plans for two-dimensional vectors in [-1, 1]^2."""

    def make(n_people: int, *, epsilon: float = 4.0, protects: str = "both", **design):
        return StudyPlan(
            epsilon=epsilon,
            n_people=n_people,
            encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
            classes=("no", "yes"),
            design={"name": "mrma", "learner": "logistic", **design},
            protects=protects,  # type: ignore[arg-type]
            seed=3,
        )

    return make


@pytest.fixture
def crowd() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Vectors whose first coordinate decides the label, with few exceptions."""

    def draw(n: int, *, seed: int, sign: float = 1.0):
        rng = np.random.default_rng(seed)
        features = rng.uniform(-1, 1, (n, 2))
        chance = 1 / (1 + np.exp(-8 * sign * features[:, 0]))
        return features, (rng.random(n) < chance).astype(int)

    return draw
