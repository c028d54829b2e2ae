"""Collectors that start quickly: as anybody runs them, or told at which moment to die."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from typing import Any, NamedTuple, Self

import sqlalchemy as sa

from dpfda.cli._group import dpfda
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.conclude import Worker
from dpfda.collector.run import serve
from dpfda.collector.settings import Settings
from dpfda.collector.storage.sql import SqlStorage
from dpfda.protocol.study import Run

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["preloaded"])


def _ready() -> None:
    """The process that is forked from finds `preloaded` beside this file."""
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, [known])])
    try:
        ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if known is not None:
            os.environ["PYTHONPATH"] = known


class Death(NamedTuple):
    """kill -9 at a moment of a study's phase.

    * ``told``: the phase's last reply is stored, and nobody was told so;
    * ``learning``: conclusions are being drawn;
    * ``writing``: they are written, and not committed;
    * ``written``: the first of what is written is committed, and nobody was told so.
    """

    moment: str
    study: str
    phase: int
    quota: int


class _Forked(CollectorProcess):
    """Forked from a process that has imported everything.

    Attributes:
        alone: compute in the server's own process, which spares the start of others.
    """

    alone = False

    def kill(self) -> None:
        self._forked.kill()
        self._forked.join()

    def stop(self) -> None:
        self._forked.terminate()
        self._forked.join(20)
        if self._forked.exitcode is None:
            self.kill()

    @property
    def pid(self) -> int:
        assert self._forked.pid is not None
        return self._forked.pid

    def _fork(self, target: Any, *args: Any) -> Any:
        """Start it, and return what it tells."""
        _ready()
        reading, writing = FORKS.Pipe(duplex=False)
        self._forked = FORKS.Process(target=target, args=(writing, self.alone, *args))
        self._forked.start()
        writing.close()
        assert reading.poll(60)
        return reading

    def _tell(self, url: str) -> None:
        self.url = url
        self.port = int(url.rpartition(":")[2])


class QuickCollector(_Forked):
    """``dpfda serve`` with all its options.

    Attributes:
        prepare: what is done first, in its process.
    """

    alone = True
    prepare: Callable[[], None] | None = None

    def start(self) -> Self:
        told = {"DPFDA_ADMIN_KEY": self.admin_key, "DPFDA_DATABASE": self.database}
        arguments = ["serve", "--port", str(self.port), *self.options]
        reading = self._fork(_run, type(self).prepare, arguments, told, str(self.log or os.devnull))
        with os.fdopen(os.dup(reading.fileno())) as lines:
            self._tell(lines.readline().strip())
        reading.close()
        self._wait()
        return self


class ForkedCollector(_Forked):
    """One that may be told to die, which it then does where it computes.

    Attributes:
        enrolments: people of one address who may have a place and no reply yet; 0: any number.
        origins: of pages elsewhere that may be used.
    """

    enrolments = 0
    origins: tuple[str, ...] = ()

    def start(self, death: Death | None = None) -> Self:
        """Start it; one that may die at once is not waited for."""
        settings = Settings(
            database=self.database,
            admin_key=self.admin_key,
            rate=1000.0,
            enrolments=self.enrolments,
            origins=self.origins,
        )
        reading = self._fork(_serve, settings, self.port, death)
        self._tell(reading.recv())
        reading.close()
        if death is None:
            self._wait()
        return self

    def await_death(self) -> None:
        """It has killed itself, or the test fails."""
        self._forked.join(60)
        assert self._forked.exitcode == -signal.SIGKILL


def _run(
    told: Any,
    alone: bool,
    prepare: Callable[[], None] | None,
    arguments: list[str],
    environment: dict[str, str],
    log: str,
) -> None:
    os.environ |= environment
    os.dup2(told.fileno(), 1)
    told.close()
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), 2)
    if alone:
        Worker.run = _here  # type: ignore[method-assign]
    if prepare is not None:
        prepare()
    dpfda(arguments)


def _serve(told: Any, alone: bool, settings: Settings, port: int, death: Death | None) -> None:
    if alone or death is not None:
        Worker.run = _here  # type: ignore[method-assign]
    if death is not None:
        _arrange(death)
    serve(settings, port=port, announce=told.send)


def _arrange(death: Death) -> None:
    moments: dict[str, Callable[[Death], None]] = {
        "told": _after_the_last_reply,
        "learning": _while_learning,
        "writing": _before_the_commit,
        "written": _after_the_commit,
    }
    moments[death.moment](death)


def _die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _here(_: Worker, function: Any, *args: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


def _after_the_last_reply(death: Death) -> None:
    add = SqlStorage.add_replies

    def add_and_die(storage: SqlStorage, replies: Any) -> Any:
        verdicts = add(storage, replies)
        last = (death.study, death.phase, death.quota - 1)
        if last in [(reply.study, reply.phase, reply.number) for reply in replies]:
            _die()
        return verdicts

    SqlStorage.add_replies = add_and_die  # type: ignore[method-assign]


def _while_learning(death: Death) -> None:
    close = Run.close

    def learn_and_die(run: Run) -> None:
        present = run.phase
        close(run)
        if (run.plan.hash[:16], present) == (death.study, death.phase):
            _die()

    Run.close = learn_and_die  # type: ignore[method-assign]


def _before_the_commit(death: Death) -> None:
    _when_advancing(death, lambda: sa.event.listen(sa.Engine, "commit", _die))


def _after_the_commit(death: Death) -> None:
    """What a second transaction would store is lost."""
    write = SqlStorage._write

    @contextmanager
    def write_and_die(storage: SqlStorage) -> Iterator[sa.Connection]:
        with write(storage) as connection:
            yield connection
        _die()

    _when_advancing(death, lambda: setattr(SqlStorage, "_write", write_and_die))


def _when_advancing(death: Death, arrange: Callable[[], None]) -> None:
    advance = SqlStorage.advance

    def advance_and_die(storage: SqlStorage, study: str, phase: int, ended: Any) -> bool:
        if (study, phase) == (death.study, death.phase):
            arrange()
        return advance(storage, study, phase, ended)

    SqlStorage.advance = advance_and_die  # type: ignore[method-assign]
