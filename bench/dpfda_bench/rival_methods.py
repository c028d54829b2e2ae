"""What a user of each library writes for one task: the functions of `dpfda bench comparison`.

The file imports NumPy alone, so that another Python, in which diffprivlib is installed, can run it
as a program: ``python rival_methods.py FOLDER`` fits the jobs of ``jobs.json`` in that folder.

Every function takes rows X with values between the public `low` and `high`, a target y if there is
one, and other rows. It returns predictions for these rows, or the mean of the rows.
"""

# mypy: disable-error-code="import-not-found, import-untyped, no-any-return, no-untyped-call"

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Rows(NamedTuple):
    """The rows of a task, and what is publicly known of them."""

    X: Any
    y: Any
    others: Any
    low: float
    high: float


def dpfda_classes(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Classes of table rows."""
    from dpfda import PrivateLogisticRegression

    model = PrivateLogisticRegression(
        epsilon, delta=delta, feature_ranges=(rows.low, rows.high), random_state=seed
    )
    return model.fit(rows.X, rows.y).predict(rows.others)


def dpfda_numbers(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Numbers in [0, 1] from table rows."""
    from dpfda import PrivateLinearRegression

    ranges: Any = {"feature_ranges": (rows.low, rows.high), "target_range": (0, 1)}
    model = PrivateLinearRegression(epsilon, delta=delta, **ranges, random_state=seed)
    return model.fit(rows.X, rows.y).predict(rows.others)


def dpfda_curve_classes(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Classes of curves."""
    from dpfda import PrivateCurveClassifier

    model = PrivateCurveClassifier(
        epsilon, delta=delta, value_range=(rows.low, rows.high), random_state=seed
    )
    return model.fit(rows.X, rows.y).predict(rows.others)


def dpfda_mean(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """The mean curve."""
    from dpfda import PrivateMean

    model = PrivateMean(epsilon, delta=delta, value_range=(rows.low, rows.high), random_state=seed)
    return model.fit(rows.X).mean_


def diffprivlib_classes(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Classes by logistic regression; rows are scaled into the unit ball."""
    from diffprivlib.models import LogisticRegression

    def scaled(X: Any) -> Any:
        half = (rows.high - rows.low) / 2
        return (np.clip(X, rows.low, rows.high) - rows.low - half) / half / np.sqrt(X.shape[1])

    model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed)
    return model.fit(scaled(rows.X), rows.y).predict(scaled(rows.others))


def diffprivlib_bayes(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Classes by Gaussian naive Bayes."""
    from diffprivlib.models import GaussianNB

    model = GaussianNB(epsilon=epsilon, bounds=(rows.low, rows.high), random_state=seed)
    return model.fit(rows.X, rows.y).predict(rows.others)


def diffprivlib_numbers(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Numbers in [0, 1] by linear regression."""
    from diffprivlib.models import LinearRegression

    bounds: Any = {"bounds_X": (rows.low, rows.high), "bounds_y": (0, 1)}
    model = LinearRegression(epsilon=epsilon, **bounds, random_state=seed)
    return np.clip(model.fit(rows.X, rows.y).predict(rows.others), 0, 1)


def diffprivlib_mean(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """The mean of every column."""
    from diffprivlib.tools import mean

    bounds = (rows.low, rows.high)
    return mean(rows.X, epsilon=epsilon, bounds=bounds, axis=0, random_state=seed)


def opendp_sum(sums: Any, l1: float, l2: float, epsilon: float, delta: float) -> Any:
    """A vector with OpenDP's Laplace or Gaussian noise, and the deviation of the noise."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    atoms = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    if delta == 0:
        noise = dp.m.make_laplace(atoms, dp.l1_distance(T=float), l1 / epsilon)
        return np.array(noise(sums.tolist())), np.sqrt(2) * l1 / epsilon

    def gaussian(scale: float) -> Any:
        noise = dp.m.make_gaussian(atoms, dp.l2_distance(T=float), scale)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(noise), delta)

    bounds = 0.5 * l2 / epsilon, 1e3 * l2 / epsilon  # beyond them numbers overflow
    scale = dp.binary_search_param(gaussian, d_in=l2, d_out=(epsilon, delta), bounds=bounds)
    return np.array(gaussian(scale)(sums.tolist())), scale


def opendp_mean(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """The mean of every column, from a noisy sum."""
    n, d = rows.X.shape
    clipped = np.clip(rows.X, rows.low, rows.high) - (rows.low + rows.high) / 2
    width = rows.high - rows.low
    noisy, _ = opendp_sum(clipped.sum(axis=0), d * width, np.sqrt(d) * width, epsilon, delta)
    return np.clip(noisy / n + (rows.low + rows.high) / 2, rows.low, rows.high)


def opendp_numbers(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Numbers in [0, 1] by least squares, from noisy sums of products."""
    d = rows.X.shape[1]
    half = (rows.high - rows.low) / 2

    def scaled(X: Any) -> Any:
        inside = np.clip(X, rows.low, rows.high) - rows.low - half
        return np.column_stack([inside / half / np.sqrt(d), np.ones(len(X))])

    Z = np.column_stack([scaled(rows.X), rows.y - 0.5])
    upper = np.triu_indices(d + 2)
    sums = (Z.T @ Z)[upper]
    largest = ((np.sqrt(d) + 1.5) ** 2 + 2.25) / 2  # of the sum of |products| of a row
    noisy, noise = opendp_sum(sums, 2 * largest, np.sqrt(2) * 2.25, epsilon, delta)
    full = np.zeros((d + 2, d + 2))
    full[upper] = noisy
    full = full + np.triu(full, 1).T
    values, vectors = np.linalg.eigh(full[:-1, :-1])
    ridge = 2 * noise * np.sqrt(d + 1)  # about the largest eigenvalue of the noise
    inverse = vectors / np.maximum(values, ridge) @ vectors.T
    return np.clip(scaled(rows.others) @ inverse @ full[:-1, -1] + 0.5, 0, 1)


def opendp_classes(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Classes 0 and 1 by least squares."""
    return opendp_numbers(rows, epsilon, delta, seed) > 0.5


def opendp_curve_classes(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Classes by the nearest mean, from noisy sums and counts of each class."""
    labels, d = np.unique(rows.y), rows.X.shape[1]
    half = (rows.high - rows.low) / 2

    def scaled(X: Any) -> Any:
        inside = np.clip(X, rows.low, rows.high) - rows.low - half
        return np.column_stack([inside / half, np.full(len(X), np.sqrt(d))])

    Z = scaled(rows.X)
    sums = np.concatenate([Z[rows.y == label].sum(axis=0) for label in labels])
    l1, l2 = 2 * (d + np.sqrt(d)), np.sqrt(2) * np.sqrt(2 * d)
    noisy = opendp_sum(sums, l1, l2, epsilon, delta)[0].reshape(len(labels), d + 1)
    counts = np.maximum(noisy[:, -1:] / np.sqrt(d), 1.0)
    means = np.clip(noisy[:, :-1] / counts, -1, 1)
    distances = ((scaled(rows.others)[:, None, :-1] - means) ** 2).sum(axis=2)
    return labels[np.argmin(distances, axis=1)]


def sklearn_classes(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Classes without privacy."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(rows.X, rows.y).predict(rows.others)


def sklearn_numbers(rows: Rows, epsilon: float, delta: float, seed: int) -> Any:
    """Numbers in [0, 1] without privacy."""
    from sklearn.linear_model import LinearRegression

    return np.clip(LinearRegression().fit(rows.X, rows.y).predict(rows.others), 0, 1)


def fitted(name: str, rows: Rows, epsilon: float, delta: float, seed: int) -> tuple[Any, float]:
    """What a function of this file finds, and its seconds."""
    begun = time.perf_counter()
    found = globals()[name](rows, epsilon, delta, seed)
    return np.asarray(found), time.perf_counter() - begun


def main(folder: Path) -> None:
    """Fit every job, and write what it found to ``found.npz`` and ``seconds.json``."""
    import warnings

    warnings.simplefilter("ignore")
    data = dict(np.load(folder / "data.npz"))
    found, seconds = {}, []
    for number, job in enumerate(json.loads((folder / "jobs.json").read_text())):
        X, y, train = data["X"], data["y"], data[f"train{job['seed']}"]
        test = np.setdiff1d(np.arange(len(X)), train)
        rows = Rows(X[train], y[train], X[test], job["low"], job["high"])
        values, took = fitted(job["name"], rows, job["epsilon"], job["delta"], job["seed"])
        found[str(number)] = values
        seconds.append(took)
    np.savez(folder / "found.npz", **found)
    (folder / "seconds.json").write_text(json.dumps(seconds))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
