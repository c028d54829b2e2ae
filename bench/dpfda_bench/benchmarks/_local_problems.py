"""What studies of people are tried on: real tables and curves, and simulated families.

Ranges are what somebody could say without the data: powers of ten, percentages, ages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.datasets import Dataset
from dpfda.datasets.loaders import (
    load_adult,
    load_diabetes,
    load_mnist_4_9,
    load_phishing,
    load_phoneme,
)
from dpfda_bench.benchmarks._local_curves import simulations, speech
from dpfda_bench.benchmarks._local_problem import Draw, Problem, at, split
from dpfda_bench.benchmarks._local_spread import spreads

_OTHERS = 5000
"""Simulated people on whom a classifier is judged."""


def problems() -> list[Problem]:
    """All of them; what needs no file comes first."""
    made = [*simulations(), *_simulated()]
    return [*made, *spreads(made), *_tables(), *speech(), *_curves()]


def _simulated() -> list[Problem]:
    many = {"K6": (6, 36, 5000), "K26": (26, 16, 16_000)}
    goals = {"K6": at(None, 70, 45, 7), "K26": at(89, 41, 25, epsilons=(2.0, 5.0, 10.0))}
    return [
        Problem(
            "corr8",
            partial(_simulate, _correlated, 20_000),
            {"feature_ranges": [(-10, 10)] * 8},
            at(44, 34, 26.5, 25),
            tuned=True,
        ),
        Problem(
            "weak10e5",
            partial(_simulate, _weak, 100_000),
            {"feature_ranges": [(0, 1)] * 5 + [(15, 50), (0, 52), (0, 30)]},
            at(38.1, 36.8, 36.6, 36.2),
            tuned=True,
        ),
        Problem(
            "skew40",
            partial(_simulate, _skewed, 4000),
            {"feature_ranges": [(0, 100)] * 40},
            at(40, 38, 30, 22),
            tuned=True,
        ),
        *(
            Problem(
                name,
                partial(_simulate, partial(_factors, classes=classes, columns=columns), people),
                {"feature_ranges": [(-20, 20)] * columns},
                goals[name],
                n_classes=classes,
                tuned=True,
            )
            for name, (classes, columns, people) in many.items()
        ),
    ]


def _tables() -> list[Problem]:
    medical = [(0, 12), (50, 200), (40, 120), (0, 60), (0, 300), (15, 50), (0, 1.5), (20, 80)]
    census = [(15, 100), (0, 20), (0, 100_000), (0, 5000), (0, 100), *[(0, 1)] * 9]
    return [
        Problem(
            "adult",
            partial(split, _adult, 0.8),
            {"feature_ranges": census},
            at(21, 19, 17.5, 16.7),
            tuned=True,
            calibrated=(1.0, 5.0),
        ),
        Problem(
            "phishing",
            partial(split, load_phishing, 0.8),
            {"feature_ranges": [(-1, 1)] * 30},
            at(20, 13, 10.9, 9.8),
            tuned=True,
        ),
        Problem(
            "mnist_7x7",
            partial(split, _small_pictures, 0.8),
            {"feature_ranges": [(0, 1)] * 49},
            at(38, 25, 16, 10.5),
            tuned=True,
        ),
        Problem(
            "diabetes",
            partial(split, load_diabetes, 0.8),
            {"feature_ranges": medical, "center_known": True},
            at(30, 28.5, None, 24.8),
            tuned=True,
            calibrated=(5.0,),
        ),
    ]


def _curves() -> list[Problem]:
    return [
        Problem(
            "phoneme5",
            partial(split, load_phoneme, 0.74),
            {"value_range": (0, 25)},
            at(None, 32, 23, 12),
            n_classes=5,
            tuned=True,
        )
    ]


# -- real data -------------------------------------------------------------------------------------


def _adult() -> Dataset:
    """Five numbers and nine yes/no columns that somebody would make of the words."""
    data = load_adult()
    names = [name.replace("_", "-") for name in data.feature_names]
    words = {name.replace("_", "-"): said for name, said in data.categories.items()}

    def column(name: str) -> FloatArray:
        return data.X[:, names.index(name)]

    def says(name: str, *parts: str) -> FloatArray:
        hit = np.array([any(part in word for part in parts) for word in words[name]], dtype=float)
        return np.asarray(hit[column(name).astype(int)])

    numbers = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    marks: dict[str, list[tuple[str, ...]]] = {
        "sex": [("Male",)],
        "marital-status": [("Married-civ",)],
        "race": [("White",)],
        "occupation": [("Exec", "Prof"), ("serv", "Hand", "clean")],
        "relationship": [("Own-child",)],
        "workclass": [("Self",), ("gov",)],
        "native-country": [("United",)],
    }
    columns = [column(name) for name in numbers]
    columns += [says(name, *parts) for name, listed in marks.items() for parts in listed]
    return Dataset(name="adult", description=data.description, X=np.column_stack(columns), y=data.y)


def _small_pictures() -> Dataset:
    """4 × 4 grey values averaged."""
    data = load_mnist_4_9()
    blocks = data.X.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4), dtype=np.float64)
    return Dataset(
        name="mnist_7x7", description=data.description, X=blocks.reshape(-1, 49), y=data.y
    )


# -- simulated families ----------------------------------------------------------------------------

Family = Callable[[int, np.random.Generator], tuple[FloatArray, IntArray]]


def _simulate(family: Family, people: int, seed: int) -> Draw:
    rng = np.random.default_rng(1000 + seed)
    return *family(people, rng), *family(_OTHERS, rng)


def _labels(rng: np.random.Generator, log_odds: FloatArray) -> IntArray:
    return (rng.random(len(log_odds)) < 1 / (1 + np.exp(-log_odds))).astype(np.int64)


def _correlated(n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Eight columns with correlations of .8, and a direction across what they share."""
    common = np.linalg.cholesky(0.2 * np.eye(8) + 0.8)
    X = rng.normal(size=(n, 8)) @ common.T
    slope = np.array([2, -2, 1.5, -1.5, 1, -1, 0.5, -0.5])
    return X, _labels(rng, X @ slope)


def _weak(n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Yes/no columns, counts, a column of zeros and numbers; little can be said of the label."""
    marks = (rng.random((n, 5)) < [0.5, 0.5, 0.05, 0.07, 0.05]).astype(np.float64)
    index = rng.normal(30, 3.5, n)
    weeks = np.where(rng.random(n) < 0.45, 0, rng.uniform(1, 52, n))
    events = rng.poisson(2, n)
    odds = 0.12 * (index - 30) - 0.02 * (weeks - 15) + 0.15 * (events - 2) - 0.5
    odds = odds + 0.5 * marks[:, 2] + 0.6 * (marks[:, 0] - 0.5) * (2 * marks[:, 1] - 1)
    return np.column_stack([marks, index, weeks, events]), _labels(rng, odds)


def _skewed(n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Forty columns like frequencies of words, most of them 0; ten say something."""
    y = (rng.random(n) < 0.4).astype(np.int64)
    base = np.linspace(0.05, 0.6, 40)
    slope = np.zeros(40)
    slope[::4] = np.tile([1.6, -1.6], 5)
    odds = np.log(base / (1 - base)) + np.outer(y - 0.4, slope)
    seen = rng.random((n, 40)) < 1 / (1 + np.exp(-odds))
    return seen * np.exp(rng.normal(-1, 1, (n, 40))), y


def _factors(
    n: int, rng: np.random.Generator, *, classes: int, columns: int
) -> tuple[FloatArray, IntArray]:
    """Means of classes all round, and three common factors within them."""
    public = np.random.default_rng(5)
    means, loads = public.normal(size=(classes, columns)), public.normal(size=(columns, 3)) * 1.5
    y = rng.integers(0, classes, n)
    X = means[y] + rng.normal(size=(n, 3)) @ loads.T * 0.7 + rng.normal(size=(n, columns))
    return X, y
