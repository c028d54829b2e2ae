"""How long ten rounds of gradient reports take, and whether that grows with the owners only."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dpfda.estimators.local_gradient_boosting_classifier import LocalGradientBoostingClassifier
from dpfda.privacy.tally import budget
from dpfda.report.contents import Outcome
from dpfda_bench.goals import at_most

GOALS = {"seconds_100k_owners": at_most(20), "growth": at_most(1.3)}

_MANY, _ROWS, _FEATURES = 100_000, 4, 20


def run(quick: bool = False) -> Outcome:
    """Whole studies with exact noise: 20 features, 4 rows an owner, ε = 3."""
    many = _MANY // 5 if quick else _MANY
    rows: list[dict[str, Any]] = []
    for owners, products in ((many // 10, 0), (many // 2, 0), (many, 0), (many // 2, 10)):
        with budget(epsilon=3.0):  # made-up owners, new ones each time
            wall, processor = _measure(owners, products=products)
        times = {"seconds": wall, "processor_seconds": processor}
        rows.append({"owners": owners, "products": products * (products + 1) // 2} | times)
    small, large = rows[1], rows[2]
    return Outcome(
        rows=rows,
        figures={
            "seconds_100k_owners": large["seconds"] * _MANY / many,
            # 1 if twice the owners take twice the time of the processor.
            "growth": large["processor_seconds"] / (2 * small["processor_seconds"]),
            "processor_seconds_100k_owners": large["processor_seconds"] * _MANY / many,
        },
        notes=["Fitting only; 1000 rows of the data user; goals without products of features."]
        + (["Quick: fewer owners, seconds scaled up to 100 000."] if quick else []),
    )


def _measure(owners: int, *, products: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(owners * _ROWS, _FEATURES))
    y = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=len(X)) > 0
    groups = np.repeat(np.arange(owners), _ROWS)
    reference = rng.normal(size=(1000, _FEATURES))
    wall, processor = time.perf_counter(), time.process_time()
    classifier = LocalGradientBoostingClassifier(3.0, products=products, classes=(False, True))
    classifier.fit(X, y, groups=groups, reference=reference)
    return time.perf_counter() - wall, time.process_time() - processor
