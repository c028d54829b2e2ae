"""Local classifiers spend from a ledger of the data before anybody is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import (
    Ledger,
    LocalCurveClassifier,
    LocalGradientBoostingClassifier,
    MomentClassifier,
    MRMAClassifier,
    MultiServerMRMA,
    OnlineMRMA,
)
from dpfda.errors import BudgetExceeded
from dpfda.noise import SimulationSource

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(240, 6))
Y = np.where(X.sum(axis=1) > 0, 1, -1)
SMALL = {"n_classifiers": 4, "member_size": 10}
CASES: list[tuple[type[Any], dict[str, Any]]] = [
    (LocalCurveClassifier, {"value_range": (-1, 1)}),
    (MomentClassifier, {}),
    (MRMAClassifier, SMALL),
    (MultiServerMRMA, SMALL),
    (OnlineMRMA, SMALL | {"new_classifiers": 4}),
    (LocalGradientBoostingClassifier, {"feature_ranges": (-1, 1)}),
]


@pytest.mark.parametrize(("kind", "extra"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_a_fit_is_paid_before_anybody_is_asked(
    kind: type[Any], extra: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(1.5)
    make = lambda: kind(epsilon=1.0, classes=(-1, 1), ledger=ledger, random_state=0, **extra)  # noqa: E731
    make().fit(X, Y)
    (entry,) = ledger.entries
    assert ledger.remaining.epsilon == 0.5
    assert entry.label == kind.__name__
    drawn = []
    honest = SimulationSource.words
    monkeypatch.setattr(SimulationSource, "words", lambda s, n: drawn.append(n) or honest(s, n))
    with pytest.raises(BudgetExceeded):
        make().fit(X, Y)
    assert not drawn  # refused before any noise was drawn
    assert len(ledger.entries) == 1
