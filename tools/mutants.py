"""Break privacy-relevant lines one at a time, and see whether a test notices.

A mutant is the package with one small change: a number doubled, a comparison turned round, a guard
dropped, a spend deleted. Only lines that can void a guarantee are changed (see `PLACES`). Each
mutant is tried against the tests that run its line, quickest first, in a process of its own with
the changed package in front of the real one, so that programs started by tests are changed too.

    python tools/mutants.py              every mutant; results are kept in .mutants/ and resumed
    python tools/mutants.py --only protocol/holder.py --list

A mutant that changes nothing that could ever be seen is named, with the reason, in
`tools/mutants-equivalent.txt`; a test that would have to look at a thousandth of a percent is not
a reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import fnmatch
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dpfda"
KEPT = ROOT / ".mutants"
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.txt")
PATIENCE = 20.0, 5.0  # seconds, and times what its tests take: what never ends is noticed as well
MOST_TESTS = 60  # of those that run the line, quickest first

WORDS = re.compile(
    r"scale|sensitiv|share|clip|threshold|epsilon|delta|sigma|\bmu\b|radius|reach|bound|spen[dt]|"
    r"\bpay|afford|limit|price|budget|rounding|step|odds|\blow\b|\bhigh\b|precision|most|accepts|"
    r"assum|asked|answered|unit\b|digest|signature|confirm|expire|token|compare|authori|survivor|"
    r"opened|attempt|keep|chance|cap\b|lattice|multiplier|within|allow|fits|check|axes|fitting|n\b"
)
PLACES = {
    "noise/*.py": "*",
    "privacy/ledger*.py privacy/price.py privacy/cost.py privacy/calibration.py": "*",
    "mechanisms/*.py": "*",
    "protocol/*.py protocol/tasks/*.py protocol/secure_sum/*.py": "*",
    "central/*.py": "mechanism sensitivity reach block statistic exact distances questions *.event "
    "find_* integer_sums mean_of clip_rows release cost radius size axes",
    "regression/*.py regression/methods/*.py": "mechanism l1 l2 sensitivity weights block "
    "statistic exact questions converse evaluate ball segment sigma joint_* minimize_risk",
    "boosting/requests/*.py": "*",
    "collector/service.py collector/api.py collector/open_phase.py collector/conclude.py": "*",
    "collector/pages/session.py collector/peers.py collector/limits.py client/remote.py": "*",
}
"""Files, and the functions in them whose lines are changed where they speak of `WORDS`."""
HARMLESS = {"__repr__", "__str__", "examples", "to_dict", "worst_cases", "example", "describe"}


@dataclass(frozen=True)
class Mutant:
    """One change: where, what stood there, what stands there now."""

    path: str
    place: str
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """The same as long as the line is the same."""
        return f"{self.path}::{self.place}: {self.before} -> {self.after}"


def main() -> int:
    """Make, try, count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="*", help="pattern of files, under src/dpfda")
    parser.add_argument("--list", action="store_true", help="show the mutants, try none")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to try them with; all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    mutants = [m for m in every_mutant() if fnmatch.fnmatch(m.path, options.only)]
    excused = {
        line.partition("  #")[0].strip()
        for line in (EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else [])
    }
    tried = [mutant for mutant in mutants if mutant.name not in excused]
    if options.list:
        print("\n".join(f"{mutant.path}:{mutant.line}  {mutant.name}" for mutant in tried))
        print(f"{len(tried)} mutants, {len(mutants) - len(tried)} excused")
        return 0
    tests = tests_by_line(options.tests)
    verdicts = run_all(tried, tests, jobs=options.jobs)
    survivors = [mutant for mutant in tried if not verdicts[mutant.name]]
    for mutant in survivors:
        print(f"SURVIVED {mutant.path}:{mutant.line}  {mutant.name}")
    killed = len(tried) - len(survivors)
    print(f"{len(tried)} mutants, {killed} killed, {len(survivors)} survived", end="")
    print(f" ({len(mutants) - len(tried)} equivalent ones, listed with reasons, left out)")
    return 1 if survivors else 0


# -- making them -----------------------------------------------------------------------------------


def every_mutant() -> Iterator[Mutant]:
    """All changes to all places, in the order of files and lines."""
    for patterns, functions in PLACES.items():
        for pattern in patterns.split():
            for path in sorted(SOURCE.glob(pattern)):
                yield from of_file(path, functions.split())


def of_file(path: Path, functions: list[str]) -> Iterator[Mutant]:
    """The changes to one file."""
    text = path.read_text()
    tree, lines = ast.parse(text), text.splitlines()
    seen: set[str] = set()
    for place, function in _functions(tree):
        name = place.rpartition(".")[2]
        if name in HARMLESS or not any(fnmatch.fnmatch(name, wish) for wish in functions):
            continue
        for node in ast.walk(function):
            line = getattr(node, "lineno", 0)
            if not line or not WORDS.search(lines[line - 1]) or _is_docstring(node, function):
                continue
            for after in changes(node):
                before = ast.unparse(node)
                mutant = Mutant(
                    path=str(path.relative_to(SOURCE)),
                    place=place,
                    line=line,
                    before=_short(before),
                    after=_short(ast.unparse(after)),
                    source=_replaced(tree, node, after),
                )
                if mutant.name not in seen and mutant.before != mutant.after:
                    seen.add(mutant.name)
                    yield mutant


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may go wrong at one node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _TURNED:
            yield _with(node, ops=[_TURNED[type(op)]()])
        case ast.BinOp(op=op) if type(op) in _SWAPPED:
            yield _with(node, op=_SWAPPED[type(op)]())
        case ast.BinOp(op=ast.Pow()):
            yield node.left
        case ast.BoolOp(op=ast.And()):
            yield _with(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield _with(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=value) if isinstance(value, float) or (
            isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1
        ):
            yield ast.Constant(value=value * 2)
            yield ast.Constant(value=value / 2 if isinstance(value, float) else value // 2)
        case ast.Call(func=func, args=[first, *_]) if _called(func) in _UNWRAPPED:
            yield first
        case ast.If(body=[ast.Raise()]):
            yield _with(node, test=ast.Constant(value=False))
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()


_TURNED = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_SWAPPED = {ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Add: ast.Sub, ast.Sub: ast.Add}
_UNWRAPPED = {"sqrt", "clip", "max", "min", "abs", "maximum", "minimum", "ceil", "nan_to_num",
              "finite", "frozenset", "sorted", "exact", "rounded_up", "rounded_down"}  # fmt: skip


def _called(func: ast.AST) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _with(node: ast.AST, **parts: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in parts.items():
        setattr(other, name, value)
    return other


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node


def _is_docstring(node: ast.AST, function: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _replaced(tree: ast.Module, old: ast.AST, new: ast.AST) -> str:
    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    changed = Swap().visit(_shallow(tree, old))
    return ast.unparse(ast.fix_missing_locations(changed))


def _shallow(tree: ast.AST, kept: ast.AST) -> ast.AST:
    """A copy of the tree in which `kept` is the very same node."""
    memo = {id(kept): kept}
    return copy.deepcopy(tree, memo)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    if len(flat) <= 90:
        return flat
    return f"{flat[:70]}…{hashlib.sha256(flat.encode()).hexdigest()[:8]}"


# -- which tests run a line ------------------------------------------------------------------------


def tests_by_line(chosen: list[str]) -> dict[str, dict[int, list[str]]]:
    """For each file and line the tests that run it, quickest first; measured once a tree."""
    KEPT.mkdir(exist_ok=True)
    data, times = KEPT / "coverage", KEPT / "times.json"
    if not data.exists() or not times.exists():
        print("measuring which tests run which lines (once)", file=sys.stderr)
        environment = os.environ | {"COVERAGE_FILE": str(data), "MUTANT_TIMES": str(times)}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
        command += [
            "--cov=dpfda",
            "--cov-context=test",
            "--cov-report=",
            "-p",
            "tools_times",
            *chosen,
        ]
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(Path(__file__).parent), str(ROOT / "src"), str(ROOT / "bench")]
        )
        subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=sys.stderr)
    seconds = json.loads(times.read_text())
    found: dict[str, dict[int, list[str]]] = {}
    from coverage.numbits import numbits_to_nums

    with sqlite3.connect(data) as database:
        rows = database.execute(
            "SELECT file.path, context.context, line_bits.numbits FROM line_bits "
            "JOIN file ON file.id = line_bits.file_id "
            "JOIN context ON context.id = line_bits.context_id"
        )
        for path, context, bits in rows:
            test = context.partition("|")[0]
            if not test or "/dpfda/" not in path:
                continue
            lines = found.setdefault(path.partition("/dpfda/")[2], {})
            for line in numbits_to_nums(bits):
                lines.setdefault(line, []).append(test)
    for lines in found.values():
        for line, tests in lines.items():
            lines[line] = sorted(set(tests), key=lambda test: seconds.get(test, 9.0))
    return found


# -- trying them -----------------------------------------------------------------------------------


def run_all(
    mutants: list[Mutant], tests: dict[str, dict[int, list[str]]], *, jobs: int
) -> dict[str, bool]:
    """Whether each mutant was killed; verdicts are kept as they come."""
    journal = KEPT / "verdicts.jsonl"
    rows = (
        [json.loads(text) for text in journal.read_text().splitlines()] if journal.exists() else []
    )
    known = {row["key"] for row in rows if row["killed"]}
    seconds = json.loads((KEPT / "times.json").read_text())
    verdicts: dict[str, bool] = {}
    waiting, running = list(mutants), {}
    _warm_up()
    with journal.open("a") as kept:
        while waiting or running:
            while waiting and len(running) < jobs:
                mutant = waiting.pop(0)
                key = hashlib.sha256((mutant.name + mutant.source).encode()).hexdigest()[:24]
                names = tests.get(mutant.path, {}).get(mutant.line, [])[:MOST_TESTS]
                if key in known or not names:
                    verdicts[mutant.name] = key in known
                else:
                    least, times = PATIENCE
                    allowed = least + times * sum(seconds.get(name, 1.0) for name in names)
                    running[start(mutant, names)] = (mutant, key, time.monotonic() + allowed)
            for trial in list(running):
                mutant, key, deadline = running[trial]
                code = trial.code(patient=time.monotonic() < deadline)
                if code is None:
                    continue
                del running[trial]
                if code not in _CODES:
                    raise SystemExit(f"the trial itself failed ({code}): {mutant.name}")
                killed = verdicts[mutant.name] = code != 0
                kept.write(json.dumps({"key": key, "name": mutant.name, "killed": killed}) + "\n")
                kept.flush()
                word = "killed" if killed else "SURVIVED"
                print(f"{len(verdicts)}/{len(mutants)} {word} {mutant.name}", file=sys.stderr)
            time.sleep(0.02)
    return verdicts


_CODES = {0, 1, 2}  # of pytest: all passed, some failed, some could not be imported


def _warm_up() -> None:
    """Import what every test run needs, once: a trial is a fork of this process."""
    for name in ("numpy", "scipy.stats", "scipy.optimize", "msgspec", "pytest"):
        importlib.import_module(name)


@dataclass(frozen=True)
class Trial:
    """A test run under way."""

    process: int
    overlay: Path

    def code(self, *, patient: bool) -> int | None:
        """Its exit code, None while it runs; 1 where it had to be stopped."""
        done, status = os.waitpid(self.process, os.WNOHANG)
        if not done and patient:
            return None
        if not done:
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        shutil.rmtree(self.overlay, ignore_errors=True)
        return os.waitstatus_to_exitcode(status) if done else 1


def start(mutant: Mutant, names: list[str]) -> Trial:
    """A test run with the changed package in front of the real one."""
    overlay = Path(tempfile.mkdtemp(prefix="mutant-"))
    shutil.copytree(SOURCE, overlay / "dpfda", copy_function=os.link, ignore=_ignored)
    target = overlay / "dpfda" / mutant.path
    target.unlink()
    target.write_text(mutant.source)
    sys.stdout.flush()
    process = os.fork()
    if process:
        return Trial(process, overlay)
    try:
        os.setsid()
        os.chdir(ROOT)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os.environ |= {"PYTHONPATH": str(overlay), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.path.insert(0, str(overlay))
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
        os._exit(int(pytest.main([*options, *names])))
    except BaseException:
        traceback.print_exc()
        os._exit(99)


def _ignored(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


if __name__ == "__main__":
    sys.exit(main())
