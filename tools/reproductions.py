"""Run every reproduction and write the pages about them; `make reproductions` does both.

    python tools/reproductions.py [--jobs N]     runs all, then writes the pages
    python tools/reproductions.py NAME ...       runs these, the others stay as they are
    python tools/reproductions.py --missing      runs those that were not run in full before
    python tools/reproductions.py --page         runs nothing and writes the pages again
    python tools/reproductions.py --judge NAME   applies the verdict's rule to stored results

Pages, pictures and results (reproductions.json, numbers with four digits) are in
docs/project/reproductions. An interrupted run continues where it stopped, because
`dpfda reproduce` stores finished simulations.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from reproductions_page import pages

from dpfda.report.contents import Outcome
from dpfda_bench import catalog

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "project" / "reproductions"
FOUND = FOLDER / "reproductions.json"
WIDTH, COLORS = 1000, 64  # of a picture


def main() -> None:
    """As the options say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--page", action="store_true", help="run nothing")
    parser.add_argument("--missing", action="store_true", help="run what was not run in full")
    parser.add_argument("--quick", action="store_true", help="few replications: a look")
    parser.add_argument("--judge", action="store_true", help="run nothing, judge stored results")
    parser.add_argument("--jobs", default="1", help="processes of each reproduction")
    options = parser.parse_args()
    known = titles()
    wanted = missing(found(), list(known)) if options.missing else list(known)
    names = [] if options.page else options.names or wanted
    if options.judge:
        keep(found() | {name: judged(name, found()[name]) for name in options.names})
        names = []
    failed = [name for name in names if not run(name, jobs=options.jobs, quick=options.quick)]
    keep({name: entry for name, entry in found().items() if name in known})
    for name, text in pages(found(), known).items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{FOLDER.name}: {len(found())} of {len(known)} entries")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def titles() -> dict[str, str]:
    """Every entry of `dpfda reproduce --list`."""
    return {name: catalog.reproduction(name).TITLE for name in catalog.reproduction_names()}


def found() -> dict[str, Any]:
    """What runs have found so far, by name."""
    known: dict[str, Any] = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.is_file() else {}
    return known


def missing(entries: dict[str, Any], known: list[str]) -> list[str]:
    """What was not run, or only for a quick look."""
    return [name for name in known if not entries.get(name, {}).get("full")]


def keep(entries: dict[str, Any]) -> None:
    """Write all of it: a line an entry, so that changes can be looked at."""
    lines = [f"{json.dumps(name)}: {compact(entries[name])}" for name in sorted(entries)]
    FOUND.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def compact(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def run(name: str, *, jobs: str, quick: bool) -> bool:
    """Run one in a process of its own and keep what it found; False if it did not end well."""
    begun, used = time.monotonic(), core_seconds()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dpfda.cli", "reproduce", name]
        settings = ["--json", "--jobs", jobs, "--out", folder, *(["--quick"] if quick else [])]
        done = subprocess.run([*command, *settings], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{name}: {done.stderr.strip()[-300:]}", flush=True)
            return False
        drawn = Path(folder, f"{name}.png")
        picture = small(drawn.read_bytes()) if drawn.is_file() else None
    path = FOLDER / f"{name}.png"
    path.unlink(missing_ok=True)
    if picture is not None:
        path.write_bytes(picture)
    report = json.loads(done.stdout)
    report["goals"] = {
        key: f"{goal.direction} {goal.bound:g}"
        for key, goal in getattr(catalog.reproduction(name), "GOALS", {}).items()
    }
    report["picture"] = picture is not None
    report["commit"] = commit()
    report["core_seconds"] = round(core_seconds() - used, 1)
    report["machine"] = {key: report["machine"][key] for key in ("python", "numpy")}
    keep(found() | {name: kept(report)})
    print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    return True


def judged(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """A full result under the verdict's rule as it is now, for changes of the rule alone."""
    rows = [dict(zip(entry["columns"], row, strict=True)) for row in entry["rows"]]
    outcome = Outcome(rows=rows, figures=entry["figures"], notes=entry["notes"])
    word, why = catalog.reproduction(name).verdict(outcome)
    return entry | {"verdict": word, "why": why}


def core_seconds() -> float:
    """Of all processes that were started here and have ended, whatever else the machine does."""
    used = os.times()
    return used.children_user + used.children_system


def commit() -> str:
    """The commit that was run, with a mark where code had changed since."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(FOLDER), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", ":/src", ":/bench")
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + "-changed" * bool(changed)


def kept(report: dict[str, Any]) -> dict[str, Any]:
    """The report with rows as a table and numbers of four digits.

    Examples:
        >>> kept({"name": "a", "seconds": 9, "rows": [{"x": 0.123456}, {"x": 1.0, "y": "b"}]})
        {'columns': ['x', 'y'], 'rows': [[0.1235, None], [1, 'b']]}
    """
    columns = list(dict.fromkeys(key for row in report["rows"] for key in row))
    rows = [[row.get(key) for key in columns] for row in report["rows"]]
    left_out = ("name", "rows", "seconds")
    rest = {key: value for key, value in report.items() if key not in left_out}
    entry: dict[str, Any] = _short({**rest, "columns": columns, "rows": rows})
    return entry


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    if isinstance(value, float):
        digits = float(f"{value:.4g}")
        return int(digits) if digits.is_integer() and abs(digits) < 1e6 else digits
    return value


def small(png: bytes) -> bytes:
    """The picture in few colors and not wider than a page: a few dozen kilobytes."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as picture:
        shown = picture.convert("RGB")
    if shown.width > WIDTH:
        height = round(shown.height * WIDTH / shown.width)
        shown = shown.resize((WIDTH, height), Image.Resampling.LANCZOS)
    data = io.BytesIO()
    shown.quantize(COLORS, dither=Image.Dither.NONE).save(data, "png", optimize=True)
    return data.getvalue()


if __name__ == "__main__":
    main()
