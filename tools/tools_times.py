"""A pytest plugin that writes down how long each test took, for `mutants.py`."""

from __future__ import annotations

import json
import os
from typing import Any

_SECONDS: dict[str, float] = {}


def pytest_runtest_logreport(report: Any) -> None:
    """Add up set-up, call and tear-down."""
    _SECONDS[report.nodeid] = _SECONDS.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish(session: Any) -> None:
    """Write, in the process that sees all reports."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ["MUTANT_TIMES"], "w") as file:
            json.dump(_SECONDS, file)
