"""Write `constraints.txt` anew: the exact versions that every `make` target installs.

    python tools/lock.py           the newest versions that pyproject.toml allows
    python tools/lock.py --keep    only what is missing; present pins stay

A clean environment gets the `dev` extra and nothing else, so that the pins are those of the
project and not of whoever runs this. Run every test before committing what it wrote.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "constraints.txt"
HEADER = """\
# Written by `make lock` (tools/lock.py): do not edit by hand.
# Made by Python {version} on {platform}, with `pip install -e .[dev] -e bench` and `pip freeze`.
"""


def main() -> None:
    """Install into a clean environment, and write down what is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", action="store_true", help="leave present pins as they are")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin_folder = Path(folder, "Scripts" if os.name == "nt" else "bin")
        pip = [bin_folder / "python", "-m", "pip", "--disable-pip-version-check"]
        pins = ["-c", LOCK] if keep else []
        wanted = ["-e", f"{ROOT}[dev]", "-e", ROOT / "bench"]
        subprocess.run([*pip, "install", "-qq", "--no-compile", *pins, *wanted], check=True)
        frozen = subprocess.run(
            [*pip, "freeze", "--exclude-editable"], check=True, capture_output=True, text=True
        ).stdout
    lines = sorted(frozen.splitlines(), key=str.lower)
    if strange := [line for line in lines if "==" not in line]:
        sys.exit(f"no version that everybody can install: {', '.join(strange)}")
    header = HEADER.format(version="{}.{}".format(*sys.version_info), platform=sys.platform)
    LOCK.write_text(header + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{LOCK.name}: {len(lines)} pins")


if __name__ == "__main__":
    main()
