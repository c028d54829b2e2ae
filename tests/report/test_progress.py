"""Progress of long computations: a bar for people who wait, nothing in files and pipes."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import numpy as np
import pytest

from dpfda import LocalCurveClassifier, forecast
from dpfda.report import progress as module
from dpfda.report.progress import progress

pytest.importorskip("tqdm")
X = np.random.default_rng(0).uniform(-1, 1, (60, 6))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seen(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience: float = 0.0) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "_PATIENCE", patience)
    study = LocalCurveClassifier(1.0, value_range=(-1, 1), random_state=0)
    study.fit(X, X[:, 0] > 0)
    forecast(60, 1.0, value_range=(-1, 1), classes=("no", "yes"), non_private_error=0.1,
             studies=2, also=())  # fmt: skip
    return stream.getvalue()


def test_fits_and_forecasts_show_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = seen(monkeypatch, Terminal())
    assert "LocalCurveClassifier   0 % |" in text
    assert "forecast   0 % |" in text


def test_a_bar_shows_the_share_that_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    with progress("work") as tell:
        time.sleep(0.15)  # a bar is drawn every tenth of a second at most
        tell(0.5)
    assert "work  50 % |" in sys.stderr.getvalue()


def test_nothing_is_shown_soon_or_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(monkeypatch, io.StringIO()) == ""
    assert seen(monkeypatch, Terminal(), patience=600.0).strip() == ""


def test_a_callback_takes_the_place_of_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    shares: list[float] = []
    with progress("work", shares.append) as tell:
        tell(0.5)
    assert shares == [0.5]
    assert sys.stderr.getvalue() == ""


def test_without_tqdm_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    absent: Any = None
    monkeypatch.setitem(sys.modules, "tqdm.auto", absent)
    with progress("work") as tell:
        tell(1.0)
