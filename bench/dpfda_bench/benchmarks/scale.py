"""A regression of up to 10^8 rows × 20 columns on workers of a cluster: time, memory, two workers.

Rows are made on the workers while they are read, so that neither a disk nor a network is measured.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.report.contents import Outcome
from dpfda_bench.goals import at_least, at_most

GOALS = {
    "two_worker_speedup": at_least(1.8),
    "memory_ratio": at_most(1.2),
    "growth": at_most(1.2),
}
COLUMNS = 20
_SIZES = (1_000_000, 10_000_000, 100_000_000)
_QUICK = (200_000, 1_000_000)
_BLOCK, _CHUNK = 250_000, 50_000  # rows of a task, and rows in memory at a time
_SLOPES = np.random.default_rng(0).normal(size=COLUMNS) / COLUMNS


@dataclass(frozen=True)
class Made:
    """Rows that are made anew in every pass, always the same."""

    seed: int
    rows: int

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """A pass."""
        generator = np.random.default_rng([1, self.seed])
        for start in range(0, self.rows, _CHUNK):
            X = generator.random((min(_CHUNK, self.rows - start), COLUMNS))
            yield X, X @ _SLOPES


def run(quick: bool = False) -> Outcome:
    """Growing sizes on two workers, and a middle one on a single one."""
    sizes = _QUICK if quick else _SIZES
    rows: list[dict[str, Any]] = []
    bits: dict[int, list[Any]] = {}
    for workers in (1, 2):
        asked = sizes if workers == 2 else sizes[-2:-1] if len(sizes) > 2 else sizes[-1:]
        for size, taken, peak, found in _on(workers, asked):
            bits.setdefault(size, []).append(found)
            rows.append(
                {"workers": workers, "rows": size, "seconds": taken,
                 "ns_a_row": 1e9 * taken / size, "peak_mb": peak / 1e6}
            )  # fmt: skip
    for found in bits.values():  # to the last bit, whoever added up what
        assert all(np.array_equal(one, found[0]) for one in found)
    (single,) = [row for row in rows if row["workers"] == 1]
    two = {row["rows"]: row for row in rows if row["workers"] == 2}
    small, large = two[sizes[0]], two[sizes[-1]]
    figures = {
        "two_worker_speedup": single["seconds"] / two[single["rows"]]["seconds"],
        "memory_ratio": large["peak_mb"] / small["peak_mb"],
        "growth": large["ns_a_row"] / small["ns_a_row"],
    }
    notes = [
        f"linear regression of {COLUMNS} columns: a pass that counts and two questions; rows are "
        "made while they are read, in each of them",
        "peak_mb: the largest resident set of a worker so far; growth: time a row at the largest "
        "size over that at the smallest",
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)


def _on(workers: int, sizes: tuple[int, ...]) -> Iterator[tuple[int, float, float, Any]]:
    """Each size on a cluster of its own kind: seconds, peak memory of a worker, slopes."""
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None}
    with (
        LocalCluster(n_workers=workers, processes=True, silence_logs=50, **options) as cluster,
        Client(cluster) as client,
    ):
        _fit(2 * workers * _CHUNK, client)  # workers load what they need
        for size in sizes:
            began = time.perf_counter()
            model = _fit(size, client)
            taken = time.perf_counter() - began
            yield size, taken, float(max(client.run(_peak).values())), model.coef_


def _fit(size: int, client: Any) -> PrivateLinearRegression:
    blocks = [Made(start // _BLOCK, min(_BLOCK, size - start)) for start in range(0, size, _BLOCK)]
    model = PrivateLinearRegression(
        epsilon=1.0, feature_ranges=(0, 1), target_range=(-1, 1), random_state=0
    )
    return model.fit_stream(blocks, scheduler=client)


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
