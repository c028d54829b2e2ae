"""Options for reading a file, the same for every command that reads one.

One file, or several that are one table: read here, or by the workers of a cluster.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from dpfda.curves.files import OPTIONS, Reading, Rows
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import DpfdaError, InvalidParameter

Command = TypeVar("Command", bound=Callable[..., Any])


def reading_options(
    *, without: Mapping[str, str] | None = None, own: Sequence[str] = ()
) -> Callable[[Command], Command]:
    """Add the options of `Reading`; `reading_from` reads them.

    Options that a command is `without` are refused with the reason that is given for each; those
    that mean something else to it are its `own`.
    """
    reasons = without or {}

    def add(command: Command) -> Command:
        for name, text in reversed(OPTIONS.items()):
            if name in own:
                continue
            if name in reasons:
                how: dict[str, Any] = {"callback": _refusing(reasons[name]), "hidden": True}
                how |= {"expose_value": False, "help": reasons[name]}
            else:
                how = {"help": text}
            if name == "header":
                command = click.option("--header/--no-header", default=None, **how)(command)
            elif name == "fill":
                command = click.option("--fill", is_flag=True, **how)(command)
            else:
                command = click.option(f"--{name}", metavar=name.upper(), **how)(command)
        return command

    return add


def _refusing(reason: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def refuse(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            raise DpfdaError(f"{parameter.opts[0]} must be left out: {reason}")

    return refuse


def reading_from(options: dict[str, Any]) -> Reading:
    """The options that say how to read, taken out of the others."""
    return Reading(
        **{part.name: options.pop(part.name) for part in fields(Reading) if part.name in options}
    )


def feature_ranges(text: str | None, names: Sequence[str]) -> dict[str, Any] | None:
    """Public ranges of columns: 0:1 for all, 0:1,5:9 in order, age=18:99,..., or a JSON file.

    Examples:
        >>> feature_ranges("age=18:99,weight=30:150", ["weight", "age"])
        {'weight': (30.0, 150.0), 'age': (18.0, 99.0)}
    """
    if text is None:
        return None
    given = read_ranges(text)
    if isinstance(given, list):
        given = given * len(names) if len(given) == 1 else given
        if len(given) != len(names):
            rule = f"one range for all, or {len(names)}"
            raise InvalidParameter("--feature-ranges", rule, len(given))
        given = dict(zip(names, given, strict=True))
    for name in names:
        if name not in given:
            rule = f"a range for the feature {name!r}"
            raise InvalidParameter("--feature-ranges", rule, sorted(given))
    chosen = {name: given[name] for name in names}
    PublicColumns.of(chosen, name="--feature-ranges")  # refuses what is no range
    return chosen


def read_ranges(text: str, *, option: str = "--feature-ranges") -> Any:
    """What the option says: a list of ranges, or a mapping from names to them."""
    return _json(Path(text), option) if text.endswith(".json") else _inline(text, option)


def _json(path: Path, option: str) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule = f"a JSON file that can be read ({error.strerror})"
        raise InvalidParameter(option, rule, path.name) from None
    except ValueError:
        given = None
    if not isinstance(given, dict):
        rule = 'a JSON file like {"age": [18, 100], "sex": ["f", "m"]}'
        raise InvalidParameter(option, rule, path.name)
    return given


def _inline(text: str, option: str) -> Any:
    parts = [part.rpartition("=") for part in text.split(",")]
    try:
        pairs = [tuple(map(float, pair.split(":"))) for _, _, pair in parts]
    except ValueError:
        rule = "like 0:1, age=18:99,weight=30:150, or a .json file"
        raise InvalidParameter(option, rule, text) from None
    named = [name.strip() for name, equals, _ in parts if equals]
    return dict(zip(named, pairs, strict=True)) if len(named) == len(pairs) else pairs


def public_domain(rows: Rows, domain: tuple[float, float] | None) -> tuple[float, float] | None:
    """The domain, which must be given where curves have points of their own: those are private."""
    if domain is None and isinstance(rows.X, list):
        rule = "given: the curves have points of their own, which are private"
        raise InvalidParameter("--domain-range", rule, None)
    return domain


def public_labels(text: str | None, *, count: int | None = None) -> tuple[str, ...]:
    """The labels of --classes, two at least: which there are in the file is private."""
    found = tuple(part.strip() for part in (text or "").split(","))
    if len(found) < 2 or len(set(found)) < len(found) or count not in (None, len(found)):
        many = "two labels" if count == 2 else "labels"
        rule = f"given, {many} like no,yes: which there are in the file is private"
        raise InvalidParameter("--classes", rule, text)
    return found


def two_classes(text: str | None) -> tuple[str, ...]:
    """The two labels of --classes."""
    return public_labels(text, count=2)


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
