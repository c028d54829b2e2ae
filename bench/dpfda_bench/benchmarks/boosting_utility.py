"""Test error of gradient reports beside the data user alone, the paper's shares and no privacy."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.noise import SimulationSource
from dpfda.protocol.estimate import majority_error
from dpfda.protocol.study import Run
from dpfda.report.contents import Outcome
from dpfda_bench.goals import at_most
from dpfda_bench.measuring import mean_and_error
from dpfda_bench.reproductions import _p004 as common
from dpfda_bench.reproductions._p004 import Data

_LIMITS = {
    "mnist": (0.08, 0.052, 0.048),
    "synthetic": (0.09, 0.062, 0.06),
    "fashion": (0.205, 0.18, 0.17),
}
EPSILONS = (1.0, 3.0, 5.0)
GOALS = {
    f"{name}_eps{epsilon:g}": at_most(limit)
    for name, limits in _LIMITS.items()
    for epsilon, limit in zip(EPSILONS, limits, strict=True)
}
_OWNERS = {"mnist": 1000, "synthetic": 2000, "fashion": 1000}
_ROWS, _ROUNDS, _REFERENCE, _EVERYBODY = 4, 10, 1000, 40_000
LABELS = (0, 50, 200, 1000)


def run(quick: bool = False) -> Outcome:
    """Ten rounds of 1000 (synthetic: 2000) owners with 4 rows each; labels private."""
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    replications = 1 if quick else 3
    for name in _LIMITS:
        data = load(name)
        features = FeatureMap.learnt(data.user[:_REFERENCE])

        def add(method: str, epsilon: float | None, errors: list[float], data: str = name) -> None:
            key = {"data": data, "method": method, "epsilon": epsilon}
            rows.append(key | mean_and_error(errors))

        add("majority class", None, [majority_error(data.test_labels)])
        for labels in LABELS:
            alone = [user_alone(data, features, labels, seed) for seed in range(1 if quick else 10)]
            add(f"data user alone, {labels} labels", None, alone)
        if not quick:
            everybody = user_alone(data, features, _EVERYBODY, 0, owners=True)
            add(f"no privacy, {_EVERYBODY} rows of owners", None, [everybody])
        for epsilon in EPSILONS:
            errors = [
                ours(data, features, name, epsilon=epsilon, seed=seed)
                for seed in range(replications)
            ]
            add("gradient reports, 0 labels", epsilon, errors)
            figures[f"{name}_eps{epsilon:g}"] = float(np.mean(errors))
            if not quick:
                helped = [
                    ours(data, features, name, epsilon=epsilon, seed=seed, labels=200)
                    for seed in range(replications)
                ]
                add("gradient reports, 200 labels", epsilon, helped)
                careful = [
                    ours(data, features, name, epsilon=epsilon, seed=seed, hostile=0.1)
                    for seed in range(replications)
                ]
                add("gradient reports, hostile_share=0.1", epsilon, careful)
                for kind in ("published", "sample"):
                    shares = [_shares(kind, data, name, epsilon, seed) for seed in range(2)]
                    label = "labels clear, as printed" if kind == "published" else "labels private"
                    add(f"nearest centroids, {label}", epsilon, shares)
    return Outcome(
        rows=rows,
        figures=figures,
        notes=[
            f"{replications} replications; unit = owner; noise is seeded (a simulation)",
            "MNIST: bag of 50 visual words; Fashion: gradient histograms, 50 directions; synthetic "
            f"data: make_classification, seed {common.SYNTHETIC_SEED} (nearest to the print)",
            "The data user has 1000 unlabeled rows for whitening; labels where the row says so; "
            "nearest centroids are weighed by 2000 clean labels.",
        ],
    )


def load(name: str) -> Data:
    """The three data sets of the goals."""
    if name == "synthetic":
        return common.synthetic()
    if name == "mnist":
        return common.images("mnist", "bovw", 50)
    return common.images("fashion", "hog", 50)


def ours(
    data: Data,
    features: FeatureMap,
    name: str,
    *,
    epsilon: float,
    seed: int,
    labels: int = 0,
    hostile: float = 0.0,
) -> float:
    """Error of gradient reports; all owners are honest."""
    owners = _OWNERS[name] * _ROUNDS
    rows = data.grouped(owners, _ROWS, seed=seed)
    study = _study(
        data,
        features,
        owners=owners,
        epsilon=epsilon,
        labels=labels,
        seed=seed,
        hostile=hostile,
    )
    for _ in common.asked(study, rows, SimulationSource(100 + seed)):
        pass
    return common.error(study, data)


def user_alone(
    data: Data, features: FeatureMap, labels: int, seed: int, *, owners: bool = False
) -> float:
    """Error of the same model with clean labels, of the data user or (no privacy) of owners."""
    source = Data(*(data.owners, data.owner_labels) * 2, data.test, data.test_labels)
    used = source if owners else data
    return common.error(
        _study(used, features, owners=1, epsilon=1.0, labels=labels, seed=seed), data
    )


def _study(
    data: Data,
    features: FeatureMap,
    *,
    owners: int,
    epsilon: float,
    labels: int,
    seed: int,
    hostile: float = 0.0,
) -> Run:
    chosen = np.random.default_rng([seed, 9]).permutation(len(data.user))[:labels]
    design = GradientDesign(
        features=features,
        reference=data.user[:_REFERENCE],
        n_rows=_ROWS,
        n_rounds=_ROUNDS,
        hostile_share=hostile,
        labeled=data.user[chosen],
        labels=data.user_labels[chosen],
    )
    plan = design.plan(epsilon=epsilon, owners=owners, classes=(0, 1), seed=seed)
    return Run(plan)


def _shares(kind: str, data: Data, name: str, epsilon: float, seed: int) -> float:
    owners = _OWNERS[name]
    rows = data.grouped(owners * (_ROUNDS + 2), _ROWS, seed=seed)
    errors, _ = common.boosted(
        kind, data, rows, epsilon=epsilon, owners=owners, rounds=_ROUNDS, seed=seed
    )
    return errors[-1] if errors else 0.5
