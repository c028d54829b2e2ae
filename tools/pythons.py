"""Run a quick selection of tests on every Python version that the package promises.

    python tools/pythons.py           every version of pyproject.toml that this machine has
    python tools/pythons.py 3.13      one of them

Each gets an environment of its own in `.pythons/`, with the light extras of `make demo` and the
pins of constraints.txt. A version that is not on the machine is named and left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# From the samplers to whole studies and the command line, without browser, database or long runs.
TESTS = [
    "tests/noise/test_discrete.py",
    "tests/privacy/test_ledger.py",
    "tests/protocol/test_person.py",
    "tests/protocol/test_plan.py",
    "tests/central/test_first_use.py",
    "tests/local/test_whole_studies.py",
    "tests/central/regression/test_methods.py",
    "tests/local/boosting/test_owner.py",
]
TOOLS = ["pytest", "pytest-timeout", "hypothesis"]


def promised() -> list[str]:
    """The versions that the classifiers name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [re.fullmatch(r".*:: Python :: (3\.\d+)", line) for line in project["classifiers"]]
    return [match[1] for match in found if match]


def interpreter(version: str) -> Path | None:
    """A Python of that version: on the path, or among those that pyenv has installed."""
    for candidate in candidates(version):
        asked = [
            candidate,
            "-c",
            "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])",
        ]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def candidates(version: str) -> Iterator[Path]:
    """Where a Python of that version may be; not every one of them works."""
    yield Path(sys.executable)
    if on_path := shutil.which(f"python{version}"):
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from pyenv.glob(f"versions/{version}.*/bin/python")


def try_out(version: str, python: Path) -> bool:
    """Set up an environment where there is none, and run the tests in it."""
    home = ROOT / ".pythons" / version
    inside, done = home / "bin" / "python", home / ".setup-done"
    known = "".join((ROOT / name).read_text() for name in ("pyproject.toml", "constraints.txt"))
    if not done.exists() or done.read_text() != known:
        subprocess.run([python, "-m", "venv", "--clear", home], check=True)
        install = "-m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt"
        subprocess.run([inside, *install.split(), "-e", ".[demo]", *TOOLS], cwd=ROOT, check=True)
        done.write_text(known)
    # No cache: the versions would take turns in overwriting each other's.
    tests = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(tests, cwd=ROOT, check=False).returncode == 0


def main() -> None:
    """Every version, and which of them failed."""
    failed = []
    for version in sys.argv[1:] or promised():
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not on this machine")
            continue
        start = time.monotonic()
        good = try_out(version, python)
        if not good:
            failed.append(version)
        seconds = time.monotonic() - start
        print(f"Python {version}: {'passed' if good else 'FAILED'} in {seconds:.0f} s", flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
