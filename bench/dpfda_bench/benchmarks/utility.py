"""Misclassification of question studies beside moments, MRMA, the majority class and no privacy.

Ranges, bases and orders are choices a person could make without the data: log-periodograms lie in
(0, 25), simulated curves in (-6, 6), the medical ranges are those of a reference table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.datasets import Dataset, simulate_001
from dpfda.datasets.catalogue import DataFileMissing
from dpfda.datasets.loaders import (
    load_adult,
    load_diabetes,
    load_growth,
    load_gunpoint,
    load_italy_power_demand,
    load_phoneme,
    load_tecator,
)
from dpfda.local.recipe import plan_study
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.protocol.estimate import majority_error, non_private_classifier
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import one_row_each
from dpfda.report.contents import Outcome
from dpfda.simulate import simulate
from dpfda_bench.goals import Goal, at_most

_EPSILONS = (0.1, 0.5, 1.0, 5.0)
_BOUNDS = {
    "simulation": (12.0, 10.6, 10.6, 10.5),
    "simulation_private_center": (12.0, 11.5, 11.0, 10.6),
    "phoneme": (30.0, 5.5, 4.0, 1.0),
    "phoneme_pairs": (None, 14.0, 8.0, 3.5),
    "diabetes": (None, 30.5, 29.0, 25.0),
}
GOALS: dict[str, Goal] = {
    f"{task}_eps{epsilon:g}": at_most(bound)
    for task, bounds in _BOUNDS.items()
    for epsilon, bound in zip(_EPSILONS, bounds, strict=True)
    if bound is not None
}

# Pregnancies, glucose, blood pressure, skin thickness, insulin, BMI, pedigree, age.
_MEDICAL_RANGES = [(0, 12), (50, 200), (40, 120), (0, 60), (0, 300), (15, 50), (0, 1.5), (20, 80)]


@dataclass(frozen=True)
class Problem:
    """A way to draw people: encoded for questions, and as MRMA and moments would encode them."""

    name: str
    draw: Callable[[int], tuple[Any, Any, Any, Any]]  # seed -> train X, train y, test X, test y
    facts: Mapping[str, Any]  # that the recipe makes a question study of
    other_encoder: CurveEncoder
    mrma: Mapping[str, Any] = field(default_factory=dict)
    epsilons: tuple[float, ...] = _EPSILONS


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Mean error in % of each method on each problem."""
    sizes = (30, 3) if quick else (400, 40)
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    notes = [
        "Errors in %, means over replications; the standard error stands beside the questions."
    ]
    groups: dict[str, list[Problem]] = {}
    problems = _simulations()
    try:
        problems += [_phoneme("phoneme", ("sh", "iy"), 1500), *_pairs(), _diabetes()]
        problems += [] if quick else [*_person_level(), *_untuned()]
    except DataFileMissing as missing:
        notes.append(f"Real data left out: {missing}")
    for problem in problems:
        groups.setdefault(problem.name, []).append(problem)
    for name, group in groups.items():
        for epsilon in group[0].epsilons:
            row = _cell(group, epsilon, sizes, sweep)
            figures[f"{name}_eps{epsilon:g}"] = row["questions"]
            rows.append({"task": name, "epsilon": epsilon, **row})
    return Outcome(rows=rows, figures=figures, notes=notes)


def _cell(
    problems: list[Problem], epsilon: float, sizes: tuple[int, int], sweep: Sweep
) -> dict[str, Any]:
    """One row: every method at one ε. At ε = 0.1 studies differ most, so there are more of them."""
    most, fewer = sizes
    most = max(2, (5 if epsilon < 0.2 else 1) * most // min(len(problems), 5))
    fewer = max(1, fewer // min(len(problems), 5))
    methods = {"questions": most, "moments": fewer, "MRMA": fewer, "comparison": fewer}
    errors: dict[str, list[float]] = {}
    for problem in problems:
        names = [(method, epsilon, seed) for method in methods for seed in range(methods[method])]
        for found in sweep.run(partial(_errors, problem), names):
            for method, value in found.items():
                errors.setdefault(method, []).append(value)
    row = {method: 100 * float(np.mean(values)) for method, values in errors.items()}
    spread = 100 * float(np.std(errors["questions"])) / len(errors["questions"]) ** 0.5
    return row | {"standard error": spread, "replications": len(errors["questions"])}


def _errors(problem: Problem, method: str, epsilon: float, seed: int) -> dict[str, float]:
    """The error of one study by a method, or what anybody would get, by method name."""
    if method == "comparison":
        return _without_privacy(problem, seed)
    return {method: _study(problem, method, epsilon, seed)}


def _without_privacy(problem: Problem, seed: int) -> dict[str, float]:
    """What anybody gets for nothing, and what nobody may have."""
    curves, labels, test_curves, test_labels = problem.draw(seed)
    encoder = plan_study(len(labels), 1.0, classes=(-1, 1), **problem.facts).encoder
    free = non_private_classifier(encoder.coefficients(curves), labels)
    assert free is not None
    wrong = free.predict(encoder.coefficients(test_curves)) != test_labels
    return {"majority": majority_error(test_labels), "non-private": float(np.mean(wrong))}


def _study(problem: Problem, method: str, epsilon: float, seed: int) -> float:
    """The error of one whole study on people who were not asked."""
    curves, labels, test_curves, test_labels = problem.draw(seed)
    known: dict[str, Any] = {"epsilon": epsilon, "n_people": len(labels), "classes": (-1, 1)}
    known["seed"] = seed
    if method == "questions":
        plan = plan_study(**known, **problem.facts)
    else:
        design = {"name": "mrma", **problem.mrma} if method == "MRMA" else {"name": "moments"}
        plan = StudyPlan(encoder=problem.other_encoder, design=design, **known)
    encoder = plan.encoder
    features = encoder.encode(curves)
    numbers: IntArray = (np.asarray(labels) == 1).astype(np.int64)

    def people(start: int, stop: int) -> tuple[FloatArray, IntArray]:
        return features[start:stop], numbers[start:stop]

    model = simulate(plan, people, source=SimulationSource(seed)).model
    return float(np.mean(model.decide(encoder.encode(test_curves)) != (test_labels == 1)))


def _simulations() -> list[Problem]:
    """001 §6.1, N = 3000, Bayes error 10.0 %."""
    spline = CurveEncoder("bspline", n_basis=4, rescale="tanh", scale=1.0)
    return [
        Problem(
            name,
            _draw_simulation,
            {"value_range": (-6, 6), "center_known": known},
            spline,
            {"training_share": 1 / 6, "cutoff": 0.8},
        )
        for name, known in (("simulation", True), ("simulation_private_center", False))
    ]


def _draw_simulation(seed: int) -> tuple[Any, Any, Any, Any]:
    # Many test people: their own sampling error should not hide differences of a tenth.
    train, test = simulate_001(3000, 2 * seed), simulate_001(20_000, 2 * seed + 1)
    return train.X, train.y, test.X, test.y


def _phoneme(
    name: str, classes: tuple[str, str], n_people: int | None, epsilons: Any = _EPSILONS
) -> Problem:
    """Log-periodograms of speech; frames are people here, see `dpfda reproduce` for speakers."""
    data = load_phoneme(classes=classes)
    return Problem(
        name,
        partial(_split, data, n_people or int(0.74 * len(data.X))),
        {"value_range": (0, 25)},
        _cosine(0, 25),
        {"training_share": 0.2, "n_classifiers": 24, "cutoff": 0.9},
        epsilons,
    )


def _cosine(low: float, high: float) -> CurveEncoder:
    """Four cosine functions, for curves between two public values."""
    middle, half = (low + high) / 2, (high - low) / 2
    return CurveEncoder("cosine", n_basis=4, rescale="clip", center=[middle, 0, 0, 0], scale=half)


def _pairs() -> list[Problem]:
    names = ("aa", "ao", "dcl", "iy", "sh")
    return [
        _phoneme("phoneme_pairs", pair, None, (0.5, 1.0, 5.0)) for pair in combinations(names, 2)
    ]


def _diabetes() -> Problem:
    """Eight measurements without an order, 2214 rows; copies of rows are not removed here (C21)."""
    return Problem(
        "diabetes",
        partial(_split, load_diabetes(), 2214),
        {"feature_ranges": _MEDICAL_RANGES, "center_known": True},
        CurveEncoder("identity", feature_ranges=_MEDICAL_RANGES),
        {"training_share": 0.2, "n_classifiers": 30, "member_size": 60, "cutoff": 0.7},
        (0.5, 1.0, 5.0),
    )


def _person_level() -> list[Problem]:
    """The same data with a person as the unit: one frame a speaker, no copies of rows (C21)."""
    speech = load_phoneme(classes=("sh", "iy"))
    rows = load_diabetes(deduplicate=True)
    return [
        replace(
            _phoneme("phoneme_speakers", ("sh", "iy"), 1),
            draw=partial(_split_people, speech, 0.74),
            epsilons=(1.0, 5.0),
        ),
        replace(_diabetes(), name="diabetes_distinct", draw=partial(_split, rows, 622)),
    ]


def _untuned() -> list[Problem]:
    """Data that no constant of the design was chosen on."""
    age_to_hours = ("age", "education_num", "hours_per_week", "capital_gain", "capital_loss")
    curves = {
        "gunpoint": (load_gunpoint(), (-3, 3), (1.0, 5.0)),
        "italy_power_demand": (load_italy_power_demand(), (-3, 3), (0.5, 1.0, 5.0)),
        "growth": (load_growth(), (50, 200), (1.0, 5.0)),
        "tecator": (_lean_or_fat(load_tecator()), (2, 5.5), (1.0, 5.0)),
    }
    found = [
        Problem(
            f"untuned_{name}",
            partial(_split, data, int(0.74 * len(data.X))),
            {"value_range": values},
            _cosine(*values),
            {"training_share": 0.2, "n_classifiers": 5, "member_size": 20},
            epsilons,
        )
        for name, (data, values, epsilons) in curves.items()
    ]
    adult = load_adult()
    names = [name.replace("-", "_") for name in adult.feature_names]
    ranges = [(17, 90), (1, 16), (0, 80), (0, 20_000), (0, 3000)]
    columns = [names.index(name) for name in age_to_hours]
    numbers = replace(adult, X=adult.X[:, columns])
    found.append(
        Problem(
            "untuned_adult",
            partial(_split, numbers, 30_000),
            {"feature_ranges": ranges},
            CurveEncoder("identity", feature_ranges=ranges),
            {"training_share": 0.2},
            (0.1, 0.5, 1.0, 5.0),
        )
    )
    return found


def _lean_or_fat(spectra: Dataset) -> Dataset:
    """Tecator as two classes: at least 20 % fat, or less."""
    return replace(spectra, y=np.where(np.asarray(spectra.y, dtype=float) >= 20, 1, -1))


def _split_people(data: Dataset, share: float, seed: int) -> tuple[Any, Any, Any, Any]:
    """A random split of people; each of the first part brings one of their curves."""
    assert data.y is not None
    assert data.groups is not None
    rng = np.random.default_rng(seed)
    people = rng.permutation(np.unique(data.groups))
    asked = np.isin(data.groups, people[: int(share * len(people))])
    rows = np.flatnonzero(asked)
    train = rows[one_row_each(data.groups[rows], seed=seed, rows=len(rows))]
    return data.X[train], data.y[train], data.X[~asked], data.y[~asked]


def _split(data: Dataset, n_people: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """A random split into people who are asked and others."""
    order = np.random.default_rng(seed).permutation(len(data.X))
    train, test = order[:n_people], order[n_people:]
    assert data.y is not None
    return data.X[train], data.y[train], data.X[test], data.y[test]
