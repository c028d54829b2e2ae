"""`make release`: the same bytes each time, and a README that must run with the wheel."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpfda

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        yield importlib.import_module("release")


def test_two_builds_have_the_same_bytes(release: Any, tmp_path: Path) -> None:
    first, second = (release.build(tmp_path / name) for name in ("one", "two"))
    assert len(first) == 4
    assert first == second
    wheel = next((tmp_path / "two").glob("dpfda-*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    assert release.checksums(tmp_path / "two") != first


def test_the_changelog_names_the_version(
    release: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert release.version() == dpfda.__version__
    (tmp_path / "src" / "dpfda").mkdir(parents=True)
    (tmp_path / "src" / "dpfda" / "_version.py").write_text('__version__ = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0\n")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="must name the version"):
        release.version()


@pytest.mark.parametrize(
    ("page", "passes"),
    [
        ("```python\n>>> import dpfda\n>>> 1 + 1\n2\n\n```\n", True),
        ("```python\n>>> 1 + 1\n3\n\n```\n", False),
        ("```python\n1 / 0\n```\n", False),
        ("no code\n", False),
    ],
)
def test_a_page_that_does_not_run_ends_the_release(
    release: Any, installed: Path, tmp_path: Path, page: str, passes: bool
) -> None:
    (tmp_path / "README.md").write_text(page)
    command = [sys.executable, "-c", release.RUN, ROOT / "tools", tmp_path / "README.md"]
    for home, good in ((installed, passes), (ROOT / "src", False)):  # of the checkout: refused
        env = {**os.environ, "PYTHONPATH": str(home)}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
        assert (done.returncode == 0) == good
