"""The benchmark of files measures every pass, and leaves nothing behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from dpfda_bench.benchmarks import lake


def test_every_pass_over_the_files_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(lake, "_FILE", 2000)
    outcome = lake.run(rows=5000)
    assert set(lake.GOALS) <= set(outcome.figures)
    assert len(outcome.rows) >= 2  # two questions at least
    assert all(row["seconds"] > 0 for row in outcome.rows)
    assert "5000 rows of 20 numbers and a target in 3 files" in outcome.notes[0]
    assert not list(tmp_path.iterdir())
