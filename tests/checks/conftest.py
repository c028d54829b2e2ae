"""Fewer transcripts of each conversation than users of the checks get."""

from __future__ import annotations

import pytest

from dpfda.checks import conversations


@pytest.fixture(autouse=True)
def few_transcripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as catch every planted flaw; `test_audits` shows what more of them would."""
    monkeypatch.setattr(conversations, "_RUNS", 20)
