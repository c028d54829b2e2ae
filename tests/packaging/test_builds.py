"""Wheels and source archives hold what is needed and nothing else, and work where they are put."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import dpfda

ROOT = Path(__file__).resolve().parents[2]
HOMES = {"dpfda": ROOT / "src" / "dpfda", "dpfda_bench": ROOT / "bench" / "dpfda_bench"}
SOURCE = {".py", ".pyi", ".typed", ".css", ".js", ".html", ".mako", ".toml"}
PAGE = {".svg", ".webmanifest"}  # what phones install the participants' page with
KINDS = {"dpfda": SOURCE | PAGE, "dpfda_bench": SOURCE | {".csv"}}  # figures that papers print
LARGEST_FILE = 8_000  # bytes in a wheel: a file of 400 lines takes 5 000
LARGER = {  # the browser client, the page's words in every language
    "dpfda/collector/pages/static/client.js": 20_000,
    "dpfda/collector/pages/static/take-part.js": 34_000,
}
LARGEST = {"dpfda": 1_400_000, "dpfda_bench": 350_000}  # with a browser client


def sources(home: Path) -> set[str]:
    files = (path for path in home.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(home.parent).as_posix() for path in files}


@pytest.mark.parametrize("name", HOMES)
def test_a_wheel_holds_the_package_and_nothing_else(distributions: Path, name: str) -> None:
    (wheel,) = distributions.glob(f"{name}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        sizes = {one.filename: one.compress_size for one in archive.infolist()}
    about = f"{name}-{dpfda.__version__}.dist-info/"
    own = {path: size for path, size in sizes.items() if not path.startswith(about)}
    assert {Path(path).suffix for path in own} <= KINDS[name]
    assert {one for one in own if own[one] >= LARGER.get(one, LARGEST_FILE)} == set()
    assert {path for path in held if not path.startswith(about)} == sources(HOMES[name])
    assert f"{name}/py.typed" in held
    assert f"{about}licenses/LICENSE" in held
    assert wheel.stat().st_size < LARGEST[name]


@pytest.mark.parametrize("name", HOMES)
def test_a_source_archive_holds_no_tests_and_no_data(distributions: Path, name: str) -> None:
    (archive,) = distributions.glob(f"{name}-*.tar.gz")
    with tarfile.open(archive) as opened:
        held = {path.partition("/")[2] for path in opened.getnames()}
    prefix = "src/" if name == "dpfda" else ""
    package = {path for path in held if path.startswith(f"{prefix}{name}/")}
    assert package == {prefix + path for path in sources(HOMES[name])}
    about = {"LICENSE", "README.md", "PKG-INFO", "pyproject.toml", ".gitignore"}
    about |= {"CHANGELOG.md"} if name == "dpfda" else set()
    assert held - package == about


def test_the_collector_brings_its_pages_and_tables(distributions: Path) -> None:
    (wheel,) = distributions.glob("dpfda-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    collector = "dpfda/collector"
    assert {
        f"{collector}/pages/templates/base.html",
        f"{collector}/pages/templates/study.html",
        f"{collector}/pages/static/style.css",
        f"{collector}/pages/static/script.js",
        f"{collector}/pages/static/client.js",
        f"{collector}/pages/static/take-part.html",
        f"{collector}/pages/static/take-part.js",
        f"{collector}/pages/static/take-part.css",
        f"{collector}/storage/migrations/script.py.mako",
    } <= held
    assert any(path.startswith(f"{collector}/storage/migrations/versions/") for path in held)


def call(installed: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run it with the installed packages first, in an empty folder."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONWARNINGS": "error"}
    empty = installed.parent / "empty"
    empty.mkdir(exist_ok=True)
    return subprocess.run(
        command, cwd=empty, env=environment, capture_output=True, text=True, check=False
    )


def test_the_installed_package_is_the_one_that_runs(installed: Path) -> None:
    code = (
        "import dpfda, dpfda_bench; print(dpfda.__file__, dpfda_bench.__file__, dpfda.PrivateMean)"
    )
    done = call(installed, sys.executable, "-c", code)
    assert done.stderr == ""
    first, second, rest = done.stdout.split(maxsplit=2)
    assert Path(first) == installed / "dpfda" / "__init__.py"
    assert Path(second) == installed / "dpfda_bench" / "__init__.py"
    assert "dpfda.estimators.private_mean.PrivateMean" in rest


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--version"], f"dpfda, version {dpfda.__version__}"),
        (["--help"], "release"),
        (["reproduce", "--list"], "001"),
        (["bench", "--list"], "collector"),
    ],
    ids=["version", "help", "reproduce", "bench"],
)
def test_the_installed_command_runs(installed: Path, arguments: list[str], told: str) -> None:
    done = call(installed, sys.executable, installed / "bin" / "dpfda", *arguments)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout
