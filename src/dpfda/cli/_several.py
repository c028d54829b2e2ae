"""One file, or several that are one table: read here, or by the workers of a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from dpfda.curves.files import Reading
from dpfda.errors import InvalidParameter

Command = TypeVar("Command", bound=Callable[..., Any])


def files_argument(command: Command) -> Command:
    """FILE..., and --scheduler."""
    path = click.Path(exists=True, dir_okay=False, path_type=Path)
    command = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the workers of this dask scheduler read the files, where they have the same "
        "paths. They send sums; noise is drawn here.",
    )(command)
    return click.argument("files", metavar="FILE...", nargs=-1, required=True, type=path)(command)


def are_several(files: Sequence[Path], scheduler: str | None, reading: Reading) -> bool:
    """Whether rows are read file by file; then a person has one row."""
    several = len(files) > 1 or scheduler is not None
    if several and reading.groups is not None:
        rule = "left out for several files: rows of one person may lie in different ones"
        raise InvalidParameter("--groups", rule, reading.groups)
    return several


def fit_files(
    model: Any, blocks: Sequence[Any], *, scheduler: str | None, said: str, points: Any = None
) -> None:
    """Fit file by file, and say how files are read before anything is spent."""
    count = f"{len(blocks)} file{'s' * (len(blocks) > 1)}"
    where = "" if scheduler is None else f" by workers of {scheduler}"
    click.echo(f"reading {count}{where}" + (f": {said}" if said else ""), err=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed with the result
        model.fit_stream(blocks, grid_points=points, scheduler=scheduler)
