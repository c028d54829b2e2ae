"""A pytest plugin for `mutants.py`: how much of a core each test took, and which one failed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_SECONDS: dict[str, float] = {}
_FAILED: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Generator[None, Any, Any]:
    """Begin to count; programs that the test starts and waits for are counted too."""
    if "MUTANT_TIMES" in os.environ:
        _forget()
    item.user_properties.append(("since", sum(os.times()[:4])))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, Any, Any]:
    """Say so far."""
    report = yield
    took = sum(os.times()[:4]) - dict(item.user_properties)["since"]
    report.user_properties.append(("took", took))
    return report


def pytest_runtest_logreport(report: Any) -> None:
    """Write down set-up, call and tear-down, and a failure at once."""
    _SECONDS[report.nodeid] = dict(report.user_properties)["took"]
    if report.failed:
        _FAILED.add(report.nodeid)
        if "MUTANT_FAILED" in os.environ:
            Path(os.environ["MUTANT_FAILED"]).write_text(report.nodeid)


def pytest_sessionfinish(session: Any) -> None:
    """Write, in the process that sees all reports, what tests that pass took."""
    if "PYTEST_XDIST_WORKER" not in os.environ and "MUTANT_TIMES" in os.environ:
        passed = {name: took for name, took in _SECONDS.items() if name not in _FAILED}
        Path(os.environ["MUTANT_TIMES"]).write_text(json.dumps(passed))


def _forget() -> None:
    """Empty the package's caches: each test runs the lines that it needs, whoever ran before."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "dpfda"]:
        for thing in vars(sys.modules[name]).values():
            if hasattr(thing, "cache_clear"):
                thing.cache_clear()
