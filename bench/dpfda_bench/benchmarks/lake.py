"""A regression on a folder of Parquet files: each pass beside numpy's for the same sums.

Rows are written to temporary files, which are removed afterwards. `--rows` sets how many.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpfda.estimators.blocks import Block, InTurn, Sums
from dpfda.estimators.file_block import blocks_of
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.report.contents import Outcome
from dpfda_bench.goals import at_most

GOALS = {"numpy_passes": at_most(1.15)}
COLUMNS = 20
_FILE, _BATCH = 1_000_000, 1 << 16  # rows of a file, and rows that numpy adds up at a time


@dataclass(frozen=True)
class Timed(InTurn):
    """Files in turn, with the processor seconds of each pass."""

    passes: list[float] = field(default_factory=list)

    def gather(self, work: Callable[[Block], Sums]) -> Iterator[Sums]:
        """A pass."""
        began = time.process_time()
        yield from super().gather(work)
        self.passes.append(time.process_time() - began)


def run(quick: bool = False, rows: int | None = None) -> Outcome:
    """Write files, add up with numpy, fit; everything in one process and one thread."""
    rows = rows or (200_000 if quick else 10_000_000)
    with tempfile.TemporaryDirectory(prefix="dpfda-lake-") as folder:
        files = [
            _written(Path(folder, f"part-{start // _FILE:05d}.parquet"), start, rows)
            for start in range(0, rows, _FILE)
        ]
        size = sum(path.stat().st_size for path in files)
        reading = _seconds(lambda: sum(len(batch) for batch in _batches(files)))
        adding = _seconds(lambda: sum(batch.T @ batch for batch in _batches(files)))
        model = PrivateLinearRegression(
            epsilon=1.0,
            feature_ranges={f"x{column}": (0, 1) for column in range(COLUMNS)},
            target_range=(-1, 1),
            random_state=0,
        )
        found = InTurn.of(blocks_of(files, model._file("y")))
        timed = Timed(found.blocks, found.rows)
        taken = _seconds(lambda: model.fit_stream(timed))
    mean = sum(timed.passes) / len(timed.passes)
    figures = {
        "numpy_passes": mean / adding,
        "rows_per_s_a_pass": rows / mean,
        "rows_per_s_of_numpy": rows / adding,
        "rows_per_s_of_reading": rows / reading,
        "fit_s": taken,
        "file_mb": size / 1e6,
    }
    table = [{"pass": number, "seconds": one} for number, one in enumerate(timed.passes, start=1)]
    notes = [
        f"{rows} rows of {COLUMNS} numbers and a target in {len(files)} files; processor seconds "
        "of one thread; numpy reads the same files with pyarrow and adds up XᵀX of the columns as "
        "they are, without a range, without rounding to integers and without a check of cells",
        "the number of rows comes from the footers of the files, in no pass",
    ]
    return Outcome(rows=table, figures=figures, notes=notes)


def _written(path: Path, start: int, rows: int) -> Path:
    generator = np.random.default_rng([2, start])
    X = generator.random((min(_FILE, rows - start), COLUMNS))
    columns = {f"x{number}": X[:, number] for number in range(COLUMNS)}
    columns["y"] = X @ np.linspace(-1, 1, COLUMNS) / COLUMNS
    pq.write_table(pa.table(columns), path)
    return path


def _batches(files: list[Path]) -> Iterator[Any]:
    """A one and all columns of a batch of rows."""
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(_BATCH, use_threads=False):
            columns = [column.to_numpy() for column in batch.columns]
            yield np.column_stack([np.ones(len(batch)), *columns])


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
