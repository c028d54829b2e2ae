"""What mypy and pyright see of the installed package: right uses pass, wrong ones do not."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONSUMER = Path(__file__).with_name("consumer.py")
WRONG = {
    number
    for number, line in enumerate(CONSUMER.read_text(encoding="utf-8").splitlines(), start=1)
    if line.endswith("# wrong")
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The consumer in a folder of its own, where no setting of this repository reaches it."""
    shutil.copy(CONSUMER, tmp_path / "program.py")
    return tmp_path


def test_mypy_sees_what_is_wrong_and_nothing_else(installed: Path, program: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "program.py"],
        cwd=program,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^program\.py:(\d+): error: ", done.stdout, re.MULTILINE)
    assert set(map(int, found)) == WRONG, done.stdout + done.stderr


def test_pyright_sees_what_is_wrong_and_nothing_else(installed: Path, program: Path) -> None:
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(installed)]}
    (program / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"],
        cwd=program,
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)["generalDiagnostics"]
    errors = [entry for entry in told if entry["severity"] == "error"]
    assert {entry["range"]["start"]["line"] + 1 for entry in errors} == WRONG, done.stdout
