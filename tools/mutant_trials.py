"""How `mutants.py` tries a change: in a fork of a process that has everything loaded, or afresh."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutations import ROOT, SOURCE, Mutant

PATIENCE = 10.0, 6.0  # seconds of a core, and times what a test takes: what never ends is noticed
WALL = 300.0  # seconds, for what waits and never ends
MEMORY = 8 << 30


@dataclass(frozen=True)
class Trial:
    """A test run under way.

    Attributes:
        process: its number, and that of its group.
        folder: all that it writes.
        since: when it began.
    """

    process: int
    folder: Path
    since: float

    def verdict(self) -> str | None:
        """None while it runs, then "" or the test that failed."""
        done, status = os.waitpid(self.process, os.WNOHANG)
        late = time.monotonic() - self.since > WALL
        if not done and not late:
            return None
        _end(self.process)
        if not done:
            os.waitpid(self.process, 0)
        told = self.folder / "failed"
        failed = told.read_text() if told.exists() else ""
        shutil.rmtree(self.folder, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status) if done else 1
        if code == 99:
            raise SystemExit(f"the trial itself failed: {failed}")
        return failed or ("" if code == 0 else "(never ended)")


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


# -- in a fork -------------------------------------------------------------------------------------


def fork(mutant: Mutant | None, items: Sequence[Any], seconds: Sequence[float]) -> Trial:
    """Run collected tests until one fails, with the code of one function replaced."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return Trial(process, folder, time.monotonic())
    try:
        _alone(folder)
        if mutant is not None:
            _change(mutant)
        failed: list[str] = []
        plugin = items[0].config.pluginmanager
        plugin.register(Listener(failed))
        for place, item in enumerate(items):
            used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            least, times = PATIENCE
            allowed = int(used + least + times * seconds[place]) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
            (folder / "failed").write_text(item.nodeid)
            following = items[place + 1] if place + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if failed:
                os._exit(1)
        (folder / "failed").unlink()
        os._exit(0)
    except BaseException as error:
        # A change may end the run itself (SystemExit, no memory): the test under way noticed.
        if isinstance(error, Exception) and not (folder / "failed").exists():
            (folder / "failed").write_text(repr(error))
            os._exit(99)
        os._exit(1)


class Listener:
    """Writes down which tests fail."""

    def __init__(self, failed: list[str]) -> None:
        self._failed = failed

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A report of pytest."""
        if report.failed:
            self._failed.append(report.nodeid)


def _alone(folder: Path) -> None:
    """A group of its own, silent, its files in a folder that is thrown away."""
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    tempfile.tempdir = str(folder)
    os.environ |= {"TMPDIR": str(folder), "PYTEST_DEBUG_TEMPROOT": str(folder)}
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _change(mutant: Mutant) -> None:
    function, code = _codes(mutant)
    assert function is not None
    assert code is not None
    function.__code__ = code
    for name in _users(function.__module__):
        for thing in vars(sys.modules[name]).values():
            if hasattr(thing, "cache_clear"):
                thing.cache_clear()


def _users(changed: str) -> set[str]:
    """The modules that work with a module, directly or not: what they remember may be wrong."""
    uses = {
        name: {
            getattr(thing, "__module__", None) or getattr(thing, "__name__", "")
            for thing in vars(module).values()
        }
        for name, module in sys.modules.items()
        if name.startswith("dpfda")
    }
    found = {changed}
    while more := {name for name, used in uses.items() if used & found} - found:
        found |= more
    return found


def reachable(mutant: Mutant) -> bool:
    """Whether new code for its function is all there is to it."""
    function, code = _codes(mutant)
    if function is None or code is None or code.co_freevars != function.__code__.co_freevars:
        return False
    key = mutant.path, mutant.place
    if key not in _UNCHANGED:
        _UNCHANGED[key] = _code_of(ast.unparse(mutant.change[0]), mutant.place)
    unchanged = _UNCHANGED[key]
    return unchanged is not None and _parts(code) != _parts(unchanged)


_UNCHANGED: dict[tuple[str, str], types.CodeType | None] = {}


def _parts(code: types.CodeType) -> tuple[Any, ...]:
    inner = [_parts(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, inner, code.co_names, code.co_varnames


def _codes(mutant: Mutant) -> tuple[types.FunctionType | None, types.CodeType | None]:
    name = "dpfda." + mutant.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    thing: Any = importlib.import_module(name)
    for part in mutant.place.split("."):
        thing = vars(thing).get(part)
        if thing is None:
            return None, None
        thing = _bare(thing) if not isinstance(thing, type) else thing
    if not isinstance(thing, types.FunctionType) or thing.__qualname__ != mutant.place:
        return None, None
    return thing, _code_of(mutant.source, mutant.place)


def _bare(thing: Any) -> Any:
    """The function under property, classmethod, cache and wrapper."""
    while not isinstance(thing, types.FunctionType) or hasattr(thing, "__wrapped__"):
        inner = (
            getattr(thing, "__wrapped__", None)
            or getattr(thing, "__func__", None)
            or getattr(thing, "fget", None)
            or (thing.func if isinstance(thing, functools.cached_property) else None)
        )
        if inner is None:
            return thing
        thing = inner
    return thing


def _code_of(source: str, place: str) -> types.CodeType | None:
    whole = compile(source, "<mutant>", "exec", dont_inherit=True)
    return next((code for code in _inside(whole) if code.co_qualname == place), None)


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _inside(constant)


# -- in a fresh process ----------------------------------------------------------------------------


def afresh(mutant: Mutant, names: Sequence[str]) -> Trial:
    """A test run of its own, with the changed package in front of the real one."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    shutil.copytree(SOURCE, folder / "dpfda", copy_function=os.link, ignore=_ignored)
    target = folder / "dpfda" / mutant.path
    target.unlink()
    target.write_text(mutant.source)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            [str(folder), str(Path(__file__).parent), str(ROOT / "bench")]
        ),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MUTANT_FAILED": str(folder / "failed"),
        "TMPDIR": str(folder),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tools_times"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", *names]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # `Trial` waits for it
    return Trial(process.pid, folder, time.monotonic())


def _ignored(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]
