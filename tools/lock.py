"""Write the locks anew: the exact versions that every `make` target installs.

    python tools/lock.py                  the newest versions that pyproject.toml allows
    python tools/lock.py --keep           only what is missing; present pins stay
    python tools/lock.py --only federation

`constraints.txt` is for all but Flower, which wants older versions of what the collector needs and
has an environment and a lock of its own, `constraints-federation.txt`. A clean environment gets the
extra and nothing else, so that the pins are those of the project and not of whoever runs this. Run
every test before committing what it wrote.
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
LOCKS = {"dev": "constraints.txt", "federation": "constraints-federation.txt"}
HEADER = """\
# Written by `make lock` (tools/lock.py): do not edit by hand.
# Made by Python {version} on {platform}, with `pip install {wanted}` and `pip freeze`.
"""


def main() -> None:
    """Every lock, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", action="store_true", help="leave present pins as they are")
    parser.add_argument("--only", choices=LOCKS, help="the lock of this extra alone")
    given = parser.parse_args()
    for extra in LOCKS if given.only is None else [given.only]:
        write(extra, keep=given.keep)


def write(extra: str, *, keep: bool) -> None:
    """Install into a clean environment, and write down what is there."""
    lock = ROOT / LOCKS[extra]
    bench = extra == "dev"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin_folder = Path(folder, "Scripts" if os.name == "nt" else "bin")
        pip = [bin_folder / "python", "-m", "pip", "--disable-pip-version-check"]
        pins = ["-c", lock] if keep and lock.exists() else []
        wanted = ["-e", f"{ROOT}[{extra}]", *(["-e", ROOT / "bench"] if bench else [])]
        subprocess.run([*pip, "install", "-qq", "--no-compile", *pins, *wanted], check=True)
        frozen = subprocess.run(
            [*pip, "freeze", "--exclude-editable"], check=True, capture_output=True, text=True
        ).stdout
    lines = sorted(frozen.splitlines(), key=str.lower)
    if strange := [line for line in lines if "==" not in line]:
        sys.exit(f"no version that everybody can install: {', '.join(strange)}")
    header = HEADER.format(
        version="{}.{}".format(*sys.version_info),
        platform=sys.platform,
        wanted=f"-e .[{extra}]" + " -e bench" * bench,
    )
    lock.write_text(header + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{lock.name}: {len(lines)} pins")


if __name__ == "__main__":
    main()
