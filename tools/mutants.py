"""Break privacy-relevant lines one at a time, and see whether a test notices.

A mutant is the package with one small change: a number doubled, a comparison turned round, a guard
dropped, a spend deleted (`mutations.py` says which lines count). Each is tried against the tests
that run its line, quickest first, until one fails.

    python tools/mutants.py              every mutant; results are kept in .mutants/ and resumed
    python tools/mutants.py --only 'protocol/holder.py' --list

Tests are collected once. A trial is a fork in which the changed function gets its new code, and
costs no more than its tests. What survives that, or stands where a fork cannot reach (defaults,
decorators), is tried once more in a fresh process with the changed package in front of the real
one, so that programs started by tests are changed too (`--quick` leaves that out). A failure
counts only if the same test passes without the change.

A mutant that changes nothing that could ever be seen, or weakens nothing, is named with the reason
in `tools/mutants-equivalent.txt`; that it is hard to test is not a reason.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mutant_tests import KEPT, LEFT_OUT, Tests, measure
from mutant_trials import Listener, Trial, afresh, fork, reachable
from mutations import Mutant, every_mutant

JOURNAL, GREEN = KEPT / "verdicts.jsonl", KEPT / "green.txt"
Course = Generator[None, None, str]
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.txt")


def main() -> int:
    """Make, try, count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of src/dpfda's files")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="to try them against")
    parser.add_argument("--list", action="store_true", help="show the mutants, try none")
    parser.add_argument("--quick", action="store_true", help="in forks alone")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for one mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    mutants = [
        mutant
        for mutant in every_mutant()
        if any(fnmatch.fnmatch(mutant.path, pattern) for pattern in options.only)
    ]
    excused = {line.partition("  #")[0].strip() for line in EQUIVALENT.read_text().splitlines()}
    tried = [mutant for mutant in mutants if mutant.name not in excused]
    if options.list:
        print("\n".join(f"{mutant.path}:{mutant.line}  {mutant.name}" for mutant in tried))
        print(f"{len(tried)} mutants, {len(mutants) - len(tried)} excused")
        return 0
    measure(options.tests)
    run = Run(tried, jobs=options.jobs, quick=options.quick, seconds=options.seconds)
    pytest.main([*_OPTIONS, "-s", "-q", "--no-header", *options.tests], plugins=[run])
    survivors = [mutant for mutant in tried if not run.verdicts[mutant.name]]
    for mutant in survivors:
        print(f"SURVIVED {mutant.path}:{mutant.line}  {mutant.name}")
    packages = Counter(mutant.path.partition("/")[0] for mutant in tried)
    alive = Counter(mutant.path.partition("/")[0] for mutant in survivors)
    left = Counter(m.path.partition("/")[0] for m in mutants if m.name in excused)
    for package in sorted(packages | left):
        print(
            f"{package}: {packages[package]} mutants, {packages[package] - alive[package]} killed,"
            f" {alive[package]} survived, {left[package]} equivalent"
        )
    print(f"{len(tried)} mutants, {len(tried) - len(survivors)} killed, {len(survivors)} survived")
    return 1 if survivors else 0


_OPTIONS = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
_OPTIONS += [f"--ignore-glob={pattern}" for pattern in LEFT_OUT]


class Run:
    """A pytest plugin that, instead of the collected tests, runs mutants against them."""

    def __init__(self, mutants: list[Mutant], *, jobs: int, quick: bool, seconds: float) -> None:
        self.verdicts: dict[str, bool] = {}
        self._total, self._jobs, self._quick, self._most = len(mutants), jobs, quick, seconds
        self._tests = Tests()
        lines = JOURNAL.read_text().splitlines() if JOURNAL.exists() else []
        rows = [json.loads(line) for line in lines]
        self._known = {row["key"]: row["by"] for row in rows if row["killed"]}
        survived = {row["key"] for row in rows} - set(self._known)
        # Those that survived an earlier run come last: a run that is stopped has seen new ones.
        self._waiting = deque(sorted(mutants, key=lambda mutant: mutant.key in survived))
        self._green = set(GREEN.read_text().splitlines() if GREEN.exists() else [])
        self._kills: Counter[tuple[str, str]] = Counter()
        self._red: set[str] = set()
        self._items: dict[str, Any] = {}

    def pytest_runtestloop(self, session: Any) -> bool:
        """Try all mutants, several at a time."""
        self._items = {item.nodeid: item for item in session.items}
        self._warm_up()
        courses: list[tuple[Mutant, Course]] = []
        began, tried = time.monotonic(), 0
        while self._waiting or courses:
            while self._waiting and len(courses) < self._jobs:
                mutant = self._waiting.popleft()
                if mutant.key in self._known:
                    self._note(mutant, self._known[mutant.key])
                else:
                    courses.append((mutant, self._course(mutant)))
            for mutant, course in list(courses):
                try:
                    next(course)
                except StopIteration as end:
                    courses.remove((mutant, course))
                    self._keep(mutant, end.value)
                    tried += 1
            time.sleep(0.01)
        print(f"{tried} tried in {(time.monotonic() - began) / 60:.1f} minutes", file=sys.stderr)
        return True

    def _warm_up(self) -> None:
        """Run quick tests here: forks find tables made, modules loaded, and tests that pass."""
        places = {(m.path, m.place): m for m in self._waiting if m.key not in self._known}
        names = {name for m in places.values() for name in self._chosen(m)[:3]}
        items = [self._items[name] for name in sorted(names) if self._tests.seconds[name] < 1]
        failed: list[str] = []
        listener = Listener(failed)
        for item, following in zip(items, [*items[1:], None], strict=False):  # of none, none
            item.config.pluginmanager.register(listener)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item.config.pluginmanager.unregister(listener)
        self._red |= set(failed)
        self._green |= {item.nodeid for item in items} - self._red
        print(f"{len(items)} tests run, {len(failed)} fail without a change", file=sys.stderr)

    def _course(self, mutant: Mutant) -> Course:
        """All that is done about one mutant; the test that noticed it, or nothing."""
        names = self._chosen(mutant)
        if names and reachable(mutant):
            failed = yield from self._in_forks(mutant, names)
            if failed or self._quick:
                return failed
        names = [name for name in names if name not in self._red]
        names += [name for name in self._of_servers(mutant) if name not in names]
        if not names:
            return ""
        failed = yield from _end_of(afresh(mutant, names))
        return failed if failed and (yield from self._passes(failed)) else ""

    def _in_forks(self, mutant: Mutant, names: list[str]) -> Course:
        while names := [name for name in names if name not in self._red]:
            failed = yield from _end_of(self._fork(mutant, names))
            if not failed or (yield from self._passes(failed)):
                return failed
        return ""

    def _passes(self, name: str) -> Generator[None, None, bool]:
        """Whether a test passes without any change; asked once a test."""
        if name in self._items and name not in self._green and name not in self._red:
            if (yield from _end_of(self._fork(None, [name]))):
                self._red.add(name)
                print(f"FAILS WITHOUT A CHANGE: {name}", file=sys.stderr)
            else:
                self._green.add(name)
                with GREEN.open("a") as kept:
                    kept.write(name + "\n")
        return name not in self._red

    def _fork(self, mutant: Mutant | None, names: list[str]) -> Trial:
        took = self._tests.seconds
        return fork(mutant, [self._items[name] for name in names], [took[n] for n in names])

    def _chosen(self, mutant: Mutant) -> list[str]:
        """The tests that run the line: quick ones, those of its area, those that killed before."""
        area = f"tests/{mutant.path.partition('/')[0]}/"
        took = self._tests.seconds

        def wait(name: str) -> float:
            worth = 1 + 5 * self._kills[mutant.path, name]
            return took[name] / worth / (1 if name.startswith(area) else 0.3)

        chosen, left = [], self._most
        for name in sorted(self._tests.of(mutant), key=wait):
            if name in self._items and took[name] <= left:
                chosen.append(name)
                left -= took[name]
        return chosen

    def _of_servers(self, mutant: Mutant) -> list[str]:
        """Tests that start servers, for a server's lines: what they run leaves no trace here."""
        if not mutant.path.startswith("collector/"):
            return []
        took = self._tests.seconds
        near = [
            n
            for n in took
            if n in self._items and n.startswith(("tests/collector/", "tests/hostile/"))
        ]
        return [name for name in sorted(near, key=took.__getitem__) if took[name] < 5]

    def _keep(self, mutant: Mutant, failed: str) -> None:
        row = {"key": mutant.key, "name": mutant.name, "killed": bool(failed), "by": failed}
        with JOURNAL.open("a") as kept:
            kept.write(json.dumps(row) + "\n")
        self._note(mutant, failed)
        word = f"killed by {failed}" if failed else "SURVIVED"
        print(f"{len(self.verdicts)}/{self._total} {mutant.name}  {word}", file=sys.stderr)

    def _note(self, mutant: Mutant, failed: str) -> None:
        self.verdicts[mutant.name] = bool(failed)
        self._kills[mutant.path, failed] += 1


def _end_of(trial: Trial) -> Course:
    while (failed := trial.verdict()) is None:
        yield
    return failed


if __name__ == "__main__":
    sys.exit(main())
