"""How frequent a label is: told in advance, or asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import CurveEncoder, LocalCurveClassifier, SimulationSource, plan_study
from dpfda.errors import InvalidParameter
from dpfda.protocol import Server, StudyPlan
from dpfda.simulate import simulate

TABLE = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)


def people(n: int, share: float, *, signal: float, seed: int) -> tuple[Any, Any]:
    """Two columns in [-1, 1]; the first tells the classes apart, if anything does."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(np.int64)
    z = rng.normal(0, 0.3, (n, 2))
    z[:, 0] += signal * 0.3 * np.where(y == 1, 0.5, -0.5)
    return np.clip(z, -1, 1), y


def errors(share: float, *, signal: float, n: int = 300, times: int = 30, **facts: Any) -> float:
    """Mean error of studies at ε = 1, less the larger class's."""
    found = []
    for seed in range(times):
        z, y = people(n, share, signal=signal, seed=seed)
        plan = StudyPlan(
            epsilon=1.0, n_people=n, encoder=TABLE, classes=(0, 1), seed=seed,
            design={"name": "answers"} | facts,
        )  # fmt: skip
        server = simulate(plan, lambda a, b, z=z, y=y: (z[a:b], y[a:b]),
                          source=SimulationSource(seed))  # fmt: skip
        others, truth = people(2000, share, signal=signal, seed=10_000 + seed)
        found.append(np.mean(server.model.decide(others) != truth))
    return float(np.mean(found)) - min(share, 1 - share)


def test_a_known_share_keeps_a_study_from_doing_worse_than_guessing() -> None:
    """64 effective people, 30 studies: their mean is known to about half a point."""
    assert errors(0.1, signal=0.0, class_share=0.1) < 0.015
    assert errors(0.9, signal=0.0, class_share=0.9) < 0.015
    assert errors(0.3, signal=2.0, class_share=0.3) < -0.02  # and it still learns


def test_an_unknown_share_is_asked_for() -> None:
    """Without it, half of everybody's labels would be guessed wrong: 40 points above."""
    assert errors(0.1, signal=0.0) < 0.08
    assert errors(0.1, signal=0.0, n=2000, times=10) < 0.02


def test_a_wrong_share_is_believed() -> None:
    """That the fact is used, and which class it is about."""
    assert errors(0.1, signal=0.0, class_share=0.9) > 0.5


def test_a_study_that_found_nothing_says_so() -> None:
    z, y = people(1500, 0.3, signal=0.0, seed=1)
    facts: Any = {"feature_ranges": (-1, 1), "classes": (0, 1), "spread_differs": True}
    nothing = LocalCurveClassifier(epsilon=1.0, **facts, random_state=0).fit(z, y)
    assert "than guessing" in str(nothing.result_)
    assert nothing.server_.findings.verdict.doubted
    z, y = people(1500, 0.5, signal=3.0, seed=1)
    something = LocalCurveClassifier(epsilon=1.0, **facts, random_state=0).fit(z, y)
    assert not something.server_.findings.verdict.doubted
    assert "guessing" in str(nothing.evaluate(z, y))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, "half", True])
def test_a_share_lies_between_zero_and_one(share: Any) -> None:
    with pytest.raises(InvalidParameter, match="class_share must be strictly between 0 and 1"):
        plan_study(99, 1.0, value_range=(0, 1), classes=(0, 1), class_share=share)


def test_one_share_does_not_describe_three_classes() -> None:
    plan = plan_study(99, 1.0, value_range=(0, 1), classes=(0, 1, 2), class_share=0.2)
    with pytest.raises(InvalidParameter, match="class_share must be left out with 3 classes"):
        Server(plan)
