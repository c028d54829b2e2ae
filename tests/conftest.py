"""Settings and fixtures for every test."""

from __future__ import annotations

import os

# Before numpy is loaded: the two test processes share two cores, and start no others by default.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Some machines forbid it: every program that a test starts would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from dpfda.privacy import tally

# Processes die in these tests, machines do not: what is synced need not reach a disk, which takes
# longer than what is tested.
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 4 << 30:
    tempfile.tempdir = os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(_MEMORY)

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = False

# The same examples in every run; slow machines are no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("repeatable")


FIRST = {"test_site.py", "test_network.py"}
"""Files whose single tests take minutes: at the end, one process would wait for the other."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What depends on a clock has three tries, and what needed more than one is listed."""
    items.sort(key=lambda item: item.path.name not in FIRST)
    for item in items:
        if item.get_closest_marker("timed"):
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of data sets that are not part of the repository."""
    folder = Path(os.environ.get("DPFDA_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no data sets here: set DPFDA_DATA to their folder")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=flags)
        yield opened
        opened.close()


@pytest.fixture(scope="session", autouse=True)
def sweeps_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing that the user's own commands keep is used here, or changed."""
    os.environ["DPFDA_SWEEPS"] = str(tmp_path_factory.mktemp("sweeps"))


@pytest.fixture(autouse=True)
def fresh_tally(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was released yet: the second release without a ledger warns, in every test anew."""
    monkeypatch.setattr(tally, "_process", tally._Process())
