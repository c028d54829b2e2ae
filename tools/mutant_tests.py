"""Which tests run which lines, for `mutants.py`: measured once a test file, and kept."""

from __future__ import annotations

import ast
import fnmatch
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mutations import ROOT, SOURCE, Mutant, functions_in

KEPT = ROOT / ".mutants"
LEFT_OUT = (
    "tests/local/learners/*",
    "tests/test_datasets.py",
    "tests/test_documentation.py",
    "*/test_reproductions.py",
)
"""Tests of what no release goes through, of what pages say, and of what takes minutes."""

_ANY = -1  # a line of a function that was another when it was measured

Lines = dict[str, list[int]]  # by file and function: lines, counted from the function's first


class Tests:
    """Which tests run a line, and how long they take.

    Lines are counted from the beginning of their function, so that what was measured still holds
    when another part of the file has changed.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._of: dict[str, dict[int, list[str]]] = {}
        for path in KEPT.glob("lines/*.json"):
            kept = json.loads(path.read_text())
            for test, (took, lines) in kept["tests"].items():
                self.seconds[test] = took
                for place, offsets in lines.items():
                    same = kept["functions"][place] == _function_digest(place)
                    for offset in offsets if same else [_ANY]:
                        self._of.setdefault(place, {}).setdefault(offset, []).append(test)

    def of(self, mutant: Mutant) -> list[str]:
        """Those that run the line; where the function has changed or is new, that run any."""
        lines = self._of.get(f"{mutant.path}::{mutant.place}", {})
        exact = lines.get(mutant.offset, []) + lines.get(_ANY, [])
        return exact or sorted({test for tests in lines.values() for test in tests})


def measure(chosen: Sequence[str]) -> None:
    """Run the test files that are new or have changed, and keep what they run."""
    (KEPT / "lines").mkdir(parents=True, exist_ok=True)
    files = [path for path in _files() if path.startswith(tuple(chosen))]
    stale = [path for path in files if _digest(path) != _measured(path)]
    if not stale:
        return
    print(f"measuring which lines the tests of {len(stale)} files run", file=sys.stderr)
    data, times = KEPT / "coverage", KEPT / "times.json"
    for old in KEPT.glob("coverage*"):
        old.unlink()
    environment = os.environ | {
        "COVERAGE_FILE": str(data),
        "MUTANT_TIMES": str(times),
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parent), str(ROOT / "src"), str(ROOT / "bench")]
        ),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    command += ["--cov=dpfda", "--cov-context=test", "--cov-report=", "-p", "tools_times", *stale]
    subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=sys.stderr)
    keep(stale)


def keep(files: Iterable[str]) -> None:
    """Sort what coverage wrote down by test file."""
    seconds = json.loads((KEPT / "times.json").read_text())
    kept: dict[str, dict[str, tuple[float, Lines]]] = {path: {} for path in files}
    for test, took in seconds.items():
        if test.partition("::")[0] in kept:
            kept[test.partition("::")[0]][test] = (took, {})
    for path, test, lines in _rows():
        file = test.partition("::")[0]
        if test not in kept.get(file, {}):
            continue
        found = kept[file][test][1]
        places = _places(path)
        for line in lines:
            if line in places:
                place, offset = places[line]
                found.setdefault(place, []).append(offset)
    for path, tests in kept.items():
        target = KEPT / "lines" / f"{path.replace('/', '.')}.json"
        run = {place for _, lines in tests.values() for place in lines}
        functions = {place: _function_digest(place) for place in run}
        kept_now = {"digest": _digest(path), "functions": functions, "tests": tests}
        target.write_text(json.dumps(kept_now))


def _files() -> list[str]:
    paths = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py"))
    return [p for p in paths if not any(fnmatch.fnmatch(p, wish) for wish in LEFT_OUT)]


def _digest(path: str) -> str:
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()


def _measured(path: str) -> str:
    kept = KEPT / "lines" / f"{path.replace('/', '.')}.json"
    return str(json.loads(kept.read_text())["digest"]) if kept.exists() else ""


def _rows() -> Iterable[tuple[str, str, list[int]]]:
    from coverage.numbits import numbits_to_nums

    with sqlite3.connect(KEPT / "coverage") as database:
        rows: Iterable[Any] = database.execute(
            "SELECT file.path, context.context, line_bits.numbits FROM line_bits "
            "JOIN file ON file.id = line_bits.file_id "
            "JOIN context ON context.id = line_bits.context_id"
        )
        for path, context, bits in rows:
            if "/dpfda/" in path:
                name = path.rpartition("/dpfda/")[2]
                yield name, context.rpartition("|")[0], numbits_to_nums(bits)


_KNOWN: dict[str, dict[int, tuple[str, int]]] = {}


def _places(path: str) -> dict[int, tuple[str, int]]:
    """For each line of a file its function, and its number in it."""
    if path not in _KNOWN:
        known = _KNOWN[path] = {}
        for name, function in functions_in(ast.parse((SOURCE / path).read_text())):
            first, last = function.lineno, function.end_lineno or 0
            for line in range(first, last + 1):
                known[line] = (f"{path}::{name}", line - first)
    return _KNOWN[path]


def _function_digest(place: str) -> str:
    """Of a function as it is now; "" where there is none any more."""
    path, _, name = place.partition("::")
    return _function_digests(path).get(name, "")


@cache
def _function_digests(path: str) -> dict[str, str]:
    file = SOURCE / path
    text = file.read_text() if file.exists() else ""
    lines = text.splitlines()
    return {
        name: hashlib.sha256(
            "\n".join(lines[function.lineno - 1 : function.end_lineno]).encode()
        ).hexdigest()
        for name, function in functions_in(ast.parse(text))
    }
