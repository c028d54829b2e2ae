"""Both distributions, built and installed without any network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, **options: object) -> str:
    """What a command printed; a failure shows all of it."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheels and source archives; each wheel is made from its source archive."""
    folder = tmp_path_factory.mktemp("distributions")
    for source in (ROOT, ROOT / "bench"):
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source)
    return folder


@pytest.fixture(scope="session")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both wheels installed, in front of whose packages nothing stands."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--no-index", "--target"]
    run(*pip, folder, *distributions.glob("*.whl"))
    return folder
