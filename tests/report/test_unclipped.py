"""Tables that are too wide for a terminal come in parts."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from dpfda.report.contents import Outcome
from dpfda.report.terminal import rows_table

ROWS = [
    {"epsilon": epsilon, "version": version}
    | {f"method {place}": 10.11 * place + epsilon for place in range(1, 9)}
    for epsilon in (0.1, 1000.0)
    for version in ("as published", "default, no copies")
]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_number_is_cut(width: int) -> None:
    written = io.StringIO()
    console = Console(width=width, file=written)
    console.print(rows_table(Outcome(rows=ROWS), title="A table"))
    shown = written.getvalue()
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    for row in ROWS:
        for key, value in row.items():
            if key.startswith("method"):
                assert f" {value:.4g} " in shown
    # Every part names its rows, and only the first has the title.
    parts = shown.count("┏")
    assert shown.count("A table") == 1
    assert len(re.findall(r"\b0\.1\b", shown)) >= 2 * parts
    assert (parts > 1) == (width < 200)
