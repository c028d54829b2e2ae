"""Build what is published, and check it where nothing else is installed.

    python tools/release.py            into dist/; `make release` sets up what it needs

Both distributions are built twice and must be the same byte for byte. Their descriptions are
checked, the wheel is installed with its requirements into a clean environment of every Python that
the package promises and this machine has, and the code of the README is run there. Beside wheels
and source archives lie a list of all installed packages (CycloneDX, `dpfda-VERSION.cdx.json`) and
the checksums of all files.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pythons import ROOT, interpreter, promised

EXTRA = "demo"  # what the README's code needs
PIP = ("-m", "pip", "install", "-qq", "--disable-pip-version-check")
DISTRIBUTIONS = (ROOT, ROOT / "bench")


def version() -> str:
    """Of the package; the first heading of the changelog must name it."""
    text = (ROOT / "src/dpfda/_version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "(.+)"', text)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    if found is None or newest is None or found[1] != newest[1]:
        raise SystemExit("the first heading of CHANGELOG.md must name the version of _version.py")
    return found[1]


def epoch() -> str:
    """The time of the last commit, which stands for the time of the build."""
    asked = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(
        asked, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def build(folder: Path) -> dict[str, str]:
    """Build wheels, each from its source archive; checksums by name."""
    known = {**os.environ, "SOURCE_DATE_EPOCH": epoch(), "PYTHONHASHSEED": "0"}
    for source in DISTRIBUTIONS:
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source]
        subprocess.run(command, env=known, check=True, stdout=subprocess.DEVNULL)
    return checksums(folder)


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a folder but its list of these, by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != SUMS
    }


SUMS = "SHA256SUMS"

# Runs the code of a page with the installed package: arguments are the folder of this file and the
# page.
RUN = """
import pathlib, sys
sys.path[:0] = [sys.argv[1]]
from printed import blocks
import doctest, dpfda
home = pathlib.Path(sys.argv[1]).parent
assert home not in pathlib.Path(dpfda.__file__).parents, "the checkout is what runs"
namespace = {}
parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
for block in blocks(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")):
    if block.is_doctest:
        example = parser.get_doctest(block.code, {}, "README", sys.argv[2], block.line)
        example.globs = namespace
        runner.run(example, clear_globs=False)
    else:
        exec(block.code, namespace)
sys.exit(bool(runner.failures) or not runner.tries)
"""


def try_out(python: Path, wheel: Path, home: Path) -> Path:
    """Install a wheel into a new environment and run the README there; its Python."""
    subprocess.run([python, "-m", "venv", "--clear", home], check=True)
    inside = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pinned = ("-c", str(ROOT / "constraints.txt"))
    subprocess.run([inside, *PIP, *pinned, f"{wheel}[{EXTRA}]"], check=True, cwd=home)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [inside, "-c", RUN, ROOT / "tools", ROOT / "README.md"]
    subprocess.run(command, check=True, cwd=home, env=alone)
    subprocess.run([inside, "-m", "dpfda.cli", "--version"], check=True, cwd=home, env=alone)
    return inside


def main() -> None:
    """All steps; the first that fails ends the release."""
    number, dist = version(), ROOT / "dist"
    dist.mkdir(exist_ok=True)
    for old in dist.iterdir():
        old.unlink()
    first = build(dist)
    with tempfile.TemporaryDirectory() as name:
        second = build(Path(name))
    if first != second:
        differ = [one for one in first if first[one] != second.get(one)]
        raise SystemExit(f"two builds differ: {', '.join(differ)}")
    print(f"built twice with the same bytes: {', '.join(first)}", flush=True)
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir()], check=True
    )
    (wheel,) = dist.glob("dpfda-*.whl")
    found = {one: interpreter(one) for one in promised()}
    bill = dist / f"dpfda-{number}.cdx.json"
    for one, python in found.items():
        if python is None:
            print(f"Python {one}: not on this machine")
            continue
        with tempfile.TemporaryDirectory() as name:
            inside = try_out(python, wheel, Path(name))
            listed = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible",
                      "--sv", "1.6", "-o", bill, inside]  # fmt: skip
            if not bill.exists():
                subprocess.run(listed, check=True)
                here = f"{dist.resolve().as_uri()}/"  # where the wheel lay says nothing to others
                bill.write_text(
                    bill.read_text(encoding="utf-8").replace(here, ""), encoding="utf-8"
                )
        print(f"Python {one}: the wheel is installed, and the README runs", flush=True)
    if not bill.exists():
        raise SystemExit("none of the promised Pythons is on this machine")
    lines = [f"{digest}  {name}" for name, digest in checksums(dist).items()]
    (dist / SUMS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{dist}: {', '.join(path.name for path in sorted(dist.iterdir()))}")


if __name__ == "__main__":
    main()
