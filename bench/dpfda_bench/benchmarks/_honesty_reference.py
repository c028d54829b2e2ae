"""Widths of bands of the version that `dpfda bench honesty` compares with.

``dpfda bench honesty --write-reference FILE`` writes such a file; the one beside this module was
written by commit b1b3c65. Cells in which its bands do not hold are left out. Bands of both versions
are judged by the same curve. For densities this is the histogram without noise that has as many
cells as the current version releases. Where the reference released fewer cells, its bands hold a
smoother curve and miss this one (they hold it in at most 80 % of the runs on the same seeds).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from itertools import product
from pathlib import Path

from dpfda_bench.benchmarks._honesty_judge import Cell, Subgroup, Widths
from dpfda_bench.random_curves import HOLDING, SHAPES

_FILE = Path(__file__).with_name("_honesty_widths.csv")
_COLUMNS = ("kind", "n", "epsilon", "delta", "seeds", "held", "log_width")
_SUBGROUPS: tuple[Subgroup, ...] = tuple(product(SHAPES, HOLDING))  # a bit each in `held`


def write_reference(path: Path, cells: Mapping[Cell, Widths]) -> None:
    """Write a row a cell."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_COLUMNS)
        for cell, one in sorted(cells.items()):
            held = sum(1 << place for place, part in enumerate(_SUBGROUPS) if part in one.subgroups)
            table.writerow([*cell, one.seeds, held, f"{one.log_width:.4f}"])


def read_reference(path: Path = _FILE) -> dict[Cell, Widths]:
    """The cells of such a file; none where there is no file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["kind"], int(row["n"]), float(row["epsilon"]), float(row["delta"])): Widths(
                subgroups=frozenset(
                    part for place, part in enumerate(_SUBGROUPS) if int(row["held"]) >> place & 1
                ),
                log_width=float(row["log_width"]),
                seeds=int(row["seeds"]),
            )
            for row in csv.DictReader(file)
        }
