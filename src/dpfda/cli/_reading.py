"""Options of commands that read data from one or several files.

Files are read here, or by the workers of a cluster.
"""

from __future__ import annotations

import json
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpfda._validate import FloatArray
from dpfda.curves.basis import within
from dpfda.curves.files import OPTIONS, Reading, Rows, tables_at
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.privacy.guarantee import EMPTY_RECORDS_ARE_PUBLIC, assuming

if TYPE_CHECKING:
    from dpfda.estimators.central_base import CentralEstimator
    from dpfda.estimators.file_block import FileBlock, RowsBlock

    Block = FileBlock | RowsBlock

Command = TypeVar("Command", bound=Callable[..., Any])


def reading_options(
    *, without: Mapping[str, str] | None = None, own: Sequence[str] = ()
) -> Callable[[Command], Command]:
    """Add the options of `Reading`; `reading_from` reads them.

    Options in `without` are refused with the stated reason. Options in `own` are not added, because
    the command gives them another meaning.
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
            elif name in ("fill", "drop_empty"):
                command = click.option(_option(name), is_flag=True, **how)(command)
            else:
                command = click.option(_option(name), metavar=name.upper(), **how)(command)
        return command

    return add


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _refusing(reason: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def refuse(context: click.Context, parameter: click.Parameter, value: object) -> None:
        if value:
            raise DpfdaError(f"{parameter.opts[0]} must be left out: {reason}")

    return refuse


def reading_from(options: dict[str, Any]) -> Reading:
    """Take the options of `Reading` out of the others."""
    return Reading(**{name: options.pop(name) for name in OPTIONS if name in options})


def feature_ranges(text: str | None, names: Sequence[str]) -> dict[str, Any] | None:
    """Parse public ranges: 0:1 for all columns, 0:1,5:9 in order, by name, or JSON or TOML.

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
    PublicColumns.of(chosen, name="--feature-ranges")  # refuses invalid ranges
    return chosen


Ranges = dict[str, Any] | list[Any]
"""Ranges or categories of columns, by name or in the order of the columns."""


def read_ranges(text: str, *, option: str = "--feature-ranges") -> Ranges:
    """The value of the option: a list of ranges, or a mapping from names to ranges.

    Examples:
        >>> read_ranges('{"age": [18, 99], "sex": ["f", "m"]}')
        {'age': [18, 99], 'sex': ['f', 'm']}
    """
    kind = Path(text).suffix.lower()
    if text.lstrip()[:1] in ("{", "["):
        return _parsed(text, text, json.loads, option)
    if kind not in _RANGE_FILES:
        return _inline(text, option)
    try:
        content = Path(text).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise InvalidParameter(option, f"a file that can be read ({why})", text) from None
    return _parsed(content, text, _RANGE_FILES[kind], option)


_RANGE_FILES = {".json": json.loads, ".toml": tomllib.loads}


def _parsed(content: str, given: str, parse: Callable[[str], object], option: str) -> Ranges:
    """Ranges by name, or in the order of the columns."""
    try:
        found = parse(content)
    except ValueError:
        found = None
    if isinstance(found, list) and not any(isinstance(one, list) for one in found):
        found = [found] if len(found) == 2 else None  # one range for all columns
    if not isinstance(found, dict | list) or not found:
        rule = 'JSON like {"age": [18, 100], "sex": ["f", "m"]}, or the same as TOML'
        raise InvalidParameter(option, rule, given)
    return found


def _inline(text: str, option: str) -> Ranges:
    parts = [part.rpartition("=") for part in text.split(",")]
    try:
        ends = [pair.split(":") for _, _, pair in parts]
        pairs = [(float(low), float(high)) for low, high in ends]
    except ValueError:
        rule = 'like 0:1 or age=18:99,weight=30:150; with categories {"age": [18, 99], "sex": '
        rule += '["f", "m"]}, here or in a .json or .toml file'
        raise InvalidParameter(option, rule, text) from None
    named = [name.strip() for name, equals, _ in parts if equals]
    return dict(zip(named, pairs, strict=True)) if len(named) == len(pairs) else pairs


def public_domain(rows: Rows, domain: tuple[float, float] | None) -> tuple[float, float] | None:
    """The domain; required if curves have individual points, because those are private."""
    grid = rows.grid_points
    if domain is not None and grid is not None and not within(grid, domain).all():
        rule = f"a range with all grid points of the file, {grid.min():g} to {grid.max():g}"
        raise InvalidParameter("--domain-range", rule, "{:g} {:g}".format(*domain))
    if domain is None and isinstance(rows.X, list):
        rule = "given: the curves have points of their own, which are private"
        raise InvalidParameter("--domain-range", rule, None)
    return domain


def public_labels(text: str | None, *, count: int | None = None) -> tuple[str, ...]:
    """The labels of --classes, at least two; the labels in the file are private."""
    found = tuple(part.strip() for part in (text or "").split(","))
    if len(found) < 2 or len(set(found)) < len(found) or count not in (None, len(found)):
        many = "two labels" if count == 2 else "labels"
        rule = f"given, {many} like no,yes: the labels in the file are private"
        raise InvalidParameter("--classes", rule, text)
    return found


def two_classes(text: str | None) -> tuple[str, ...]:
    """The two labels of --classes."""
    return public_labels(text, count=2)


class _Tables(click.ParamType):  # type: ignore[type-arg]  # has none before click 8.2
    """The files of a path, folder, pattern or address."""

    name = "path"
    _path = click.Path(exists=True, dir_okay=False, path_type=Path)

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[object]:
        """Return at least one file."""
        found = tables_at(value)
        return [
            self._path.convert(one, param, ctx) if isinstance(one, Path) else one for one in found
        ]


def _every(
    context: click.Context, parameter: click.Parameter, value: Iterable[Sequence[object]]
) -> tuple[object, ...]:
    return tuple(chain(*value))


def files_argument(command: Command) -> Command:
    """Add FILE..., each a file, folder, pattern or address, and --scheduler."""
    command = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help=(
            "Read the files on the workers of this dask scheduler, where they must have "
            "the same paths. Workers send sums; the noise is drawn here."
        ),
    )(command)
    how: dict[str, Any] = {"metavar": "FILE...", "nargs": -1, "required": True}
    return click.argument("files", type=_Tables(), callback=_every, **how)(command)


def are_several(files: Sequence[Path], scheduler: str | None, reading: Reading) -> bool:
    """Whether rows are read file by file; then each person must have one row."""
    several = len(files) > 1 or scheduler is not None
    if several and reading.groups is not None:
        rule = "left out for several files: rows of one person may lie in different ones"
        raise InvalidParameter("--groups", rule, reading.groups)
    return several


def fit_files(
    model: CentralEstimator,
    blocks: Sequence[Any],
    *,
    scheduler: str | None,
    said: str,
    points: FloatArray | None = None,
) -> None:
    """Fit file by file; print how files are read before anything is spent."""
    count = f"{len(blocks)} file{'s' * (len(blocks) > 1)}"
    where = "" if scheduler is None else f" by workers of {scheduler}"
    click.echo(f"reading {count}{where}" + (f": {said}" if said else ""), err=True)
    if scheduler is None and sys.stderr.isatty():
        blocks = Passes(blocks, partial(click.echo, err=True, nl=False)).blocks
    model.fit_stream(blocks, grid_points=points, scheduler=scheduler)


@dataclass(frozen=True)
class Data:
    """The rows of a file; of several files, the first rows, while `fit` reads all in turn.

    Attributes:
        files: at least one.
        reading: how they are read.
        scheduler: address of the workers that read them; None for this process.
        several: whether there are several files, which are read in turn.
        rows: rows of the first file; only a few if there are several files.
        how: `aside` and `curves` of `Reading.rows`.
    """

    files: Sequence[Path]
    reading: Reading
    scheduler: str | None
    several: bool
    rows: Rows
    how: Mapping[str, Any]

    @classmethod
    def of(cls, files: Sequence[Path], reading: Reading, scheduler: str | None, **how: Any) -> Data:
        """Read the first file."""
        several = are_several(files, scheduler, reading)
        rows = (reading.head if several else reading.rows)(files[0], **how)
        return cls(files, reading, scheduler, several, rows, how)

    def fit(self, model: Any, *data: object, points: FloatArray | None, **block: Any) -> None:
        """Fit a model; print how files are read before anything is spent.

        Args:
            model: the estimator.
            data: X and y, if there is one file.
            points: grid points.
            block: arguments of `RowsBlock` that describe y, if there are several files.
        """
        from dpfda.estimators.file_block import RowsBlock, grid_of

        reading, rows = self.reading, self.rows
        with releasing(reading):
            if self.several:
                known: dict[str, Any] = {"reading": reading, "grid": grid_of(rows), **self.how}
                blocks = [RowsBlock(path, **known, **block) for path in self.files]
                where = self.scheduler
                fit_files(model, blocks, scheduler=where, said=rows.said, points=points)
                return
            click.echo(rows.said, err=True)
            persons = None if reading.groups is None else rows.text(reading.groups)
            model.fit(*data, grid_points=points, groups=persons)


class Passes:
    """Shows the progress of passes over files on a terminal, in files and bytes.

    Args:
        blocks: blocks of files, which are read one after the other.
        say: called with a text that overwrites the last one, or ends in a new line.
    """

    def __init__(self, blocks: Sequence[Block], say: Callable[[str], None]) -> None:
        sizes = [_size(block.path) for block in blocks]
        self.blocks = [
            _Watched(block, self, size) for block, size in zip(blocks, sizes, strict=True)
        ]
        self._say, self._all, self._bytes = say, len(sizes), sum(sizes)
        self._pass, self._files, self._read = 1, 0, 0

    def add(self, size: int) -> None:
        """Count a file that was read to its end."""
        self._files, self._read = self._files + 1, self._read + size
        ended = self._files == self._all
        known = f", {self._read / 1e6:,.0f} of {self._bytes / 1e6:,.0f} MB" if self._bytes else ""
        text = f"\rpass {self._pass}: {self._files} of {self._all} files{known}"
        self._say(text + "\n" * ended)
        if ended:
            self._pass, self._files, self._read = self._pass + 1, 0, 0


class _Watched:
    """A block that reports when it was read to its end."""

    def __init__(self, block: Block, passes: Passes, size: int) -> None:
        self._block, self._passes, self._size = block, passes, size

    def __call__(self) -> Iterator[Any]:
        yield from self._block()
        self._passes.add(self._size)

    @property
    def rows(self) -> int | None:
        """The number of rows, if the file states it."""
        return self._block.rows


def _size(path: object) -> int:
    """Bytes of a file on this machine; 0 for other files."""
    place = path if isinstance(path, Path) else Path(getattr(path, "address", ""))
    return place.stat().st_size if place.is_file() else 0


@contextmanager
def releasing(reading: Reading) -> Iterator[None]:
    """Context of a fit: hides warnings, which the result repeats, and states left-out rows."""
    left_out = (EMPTY_RECORDS_ARE_PUBLIC,) * reading.drop_empty
    with warnings.catch_warnings(), assuming(*left_out):
        warnings.simplefilter("ignore", UserWarning)
        yield


def filled_by(
    reading: Reading, options: Mapping[str, Any], ranges: Mapping[str, Any] | None = None
) -> Reading:
    """The reading with the public facts that --fill and --domain-range need."""
    span, target = options.get("value_range"), options.get("target")
    center = options.get("center") or 0.0 if options.get("bound") is not None else None
    centers = {} if ranges is None else PublicColumns.of(ranges).column_centers
    if target is not None and options.get("target_range") is not None:
        centers = centers | {target: sum(options["target_range"]) / 2}
    return replace(
        reading,
        center=center if span is None else sum(span) / 2,
        centers=tuple(centers.items()),
        domain_range=options.get("domain_range"),
    )
