"""A result as files: CSV and PNG."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from dpfda.report import Picture, Table
from dpfda.report.contents import Outcome


def write_files(outcome: Outcome, directory: Path, *, stem: str) -> list[Path]:
    """Write ``stem.csv`` and, where there is a plot, ``stem.png``; return what was written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    if outcome.rows:
        path = directory / f"{stem}.csv"
        path.write_text(to_csv(outcome), encoding="utf-8")
        written.append(path)
    if outcome.plot is not None:
        path = directory / f"{stem}.png"
        path.write_bytes(Picture(caption=stem, draw=outcome.plot).drawn().png)
        written.append(path)
    return written


def to_csv(outcome: Outcome) -> str:
    """The rows as comma-separated values, with a header and full precision."""
    text = io.StringIO()
    names = Table.of(outcome.rows).headings
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(outcome.rows)
    return text.getvalue()
