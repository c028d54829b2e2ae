"""Options, progress bar and stored results of commands that simulate grids of studies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpfda.errors import InvalidParameter, MissingExtra
from dpfda.planning.sweep import Sweep
from dpfda.report.progress import progress

if TYPE_CHECKING:
    from distributed import Client


Command = Callable[..., Any]

SWEEP_OPTIONS = ("jobs", "backend", "resume", "store")


def sweep_options(*, kept: bool) -> Callable[[Command], Command]:
    """Add ``--jobs`` and ``--backend``; if cells are `kept`, also ``--fresh`` and ``--store``."""

    def add(command: Command) -> Command:
        if kept:
            store = click.Path(file_okay=False, path_type=Path)
            command = click.option("--store", type=store, envvar="DPFDA_SWEEPS",
                help="Folder that keeps finished simulations. [default: a folder of the user's "
                "cache]")(command)  # fmt: skip
            command = click.option("--resume/--fresh", "resume", default=True,
                help="Continue an interrupted run of the same code, or start again. [default: "
                "resume]")(command)  # fmt: skip
        command = click.option("--backend", type=click.Choice(["loky", "dask"]), default="loky",
            show_default=True, help="Processes of this machine, or of the dask cluster at "
            "DASK_SCHEDULER_ADDRESS.")(command)  # fmt: skip
        return click.option("--jobs", type=click.IntRange(min=1), metavar="N",
            help="Number of processes. [default: one a core]")(command)  # fmt: skip

    return add


@contextmanager
def sweeping(name: str, options: dict[str, Any]) -> Iterator[Sweep]:
    """The sweep that the options of a command describe, with a progress bar."""
    jobs, backend, path = options["jobs"] or _cores(), options["backend"], None
    if "resume" in options:
        path = _store(options["store"], f"{name.replace(' ', '-')}.jsonl")
    with _cluster(jobs) if backend == "dask" else nullcontext(), progress(name) as tell:
        sweep = Sweep(jobs=jobs, backend=backend, store=path, tell=tell)
        if not options.get("resume", True):
            sweep.forget()
        yield sweep


def _store(given: Path | None, name: str) -> Path | None:
    """The file for finished cells; None, with a message, if the user's cache is not writable."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = given or Path(cache, "dpfda", "sweeps")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder / name
        why = "it may not be written"
    except OSError as error:
        why = str(error.strerror)
    if given is not None:
        raise InvalidParameter("--store", f"a folder that may be written ({why})", str(given))
    click.echo(f"nothing is kept for later: {folder}: {why}", err=True)
    return None


def _cores() -> int:
    try:
        from joblib import cpu_count
    except ImportError:
        return 1
    return int(cpu_count())


def _cluster(jobs: int) -> Client:
    """A connection to the cluster named in the environment, or to a new one on this machine."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("distributed", "cluster") from None
    if os.environ.get("DASK_SCHEDULER_ADDRESS"):
        return Client()
    return Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
