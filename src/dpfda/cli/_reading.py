"""Options for reading a file, the same for every command that reads one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np

from dpfda.curves.ranges import Table as Public
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.files import Reading, Rows, Table
from dpfda.files.cells import label

_HELP = {
    "sep": "Between columns: ';', ',', '|', tab. Sniffed by default.",
    "decimal": "In numbers: '.' or ','. Sniffed by default.",
    "columns": "Columns to read as numbers: age,weight or t0..t92; @3 is the third.",
    "drop": "Columns to leave out.",
    "id": "Column that tells curves apart; it repeats in long form (id, t, x).",
    "label": "Column of classes.",
    "groups": "Column of persons, where one has several rows: the guarantee is per person.",
    "grid": "Grid points: 0:24 (evenly) or 0,0.5,2. Default: the header, if it holds "
    "numbers, or else evenly on 0:1.",
}

Command = Callable[..., Any]


def reading_options(*, without: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add the options of `Reading`; `reading_from` reads them."""

    def add(command: Command) -> Command:
        if "fill" not in without:
            filled = "Allow empty cells: filled along a curve, or by the middle of a range."
            command = click.option("--fill", is_flag=True, help=filled)(command)
        header = "Whether the first row of a text file holds names (numbers: grid points)."
        command = click.option("--header/--no-header", default=None, help=header)(command)
        for name in reversed([name for name in _HELP if name not in without]):
            command = click.option(f"--{name}", metavar=name.upper(), help=_HELP[name])(command)
        return command

    return add


def reading_from(options: dict[str, Any]) -> Reading:
    """The options that say how to read, taken out of the others."""
    return Reading(
        **{part.name: options.pop(part.name) for part in fields(Reading) if part.name in options}
    )


def feature_ranges(text: str | None, names: Sequence[str]) -> dict[str, Any] | None:
    """Public ranges of columns: 0:1 for all, 0:1,5:9 in order, age=18:99,..., or a JSON file.

    Example:
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
    Public.of(chosen, name="--feature-ranges")  # refuses what is no range
    return chosen


class Frame(dict[str, Any]):
    """Columns by name, as a DataFrame has them."""

    @property
    def columns(self) -> Any:
        """Their names."""
        return self.keys()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(next(iter(self.values()))), len(self)


def frame(table: Table, public: Public, *, gaps: bool) -> Frame:
    """The columns that public ranges speak of; gaps are filled by the middle of a range."""
    found = Frame()
    for column in public.columns:
        if column.categories:
            known = {label(str(one)): one for one in column.categories}
            words = [known.get(word, word) for word in table.text(column.key)]
            found[column.key] = np.array(words, dtype=object)
        else:
            numbers = table.numbers([column.key], gaps=gaps)[:, 0]
            middle = column.low / 2 + column.high / 2
            found[column.key] = np.where(np.isnan(numbers), middle, numbers)
    return found


def read_ranges(text: str) -> Any:
    """What --feature-ranges says: a list of ranges, or a mapping from names to them."""
    return _json(Path(text)) if text.endswith(".json") else _inline(text)


def _json(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        given = None
    if not isinstance(given, dict):
        rule = 'a JSON file like {"age": [18, 100], "sex": ["f", "m"]}'
        raise InvalidParameter("--feature-ranges", rule, path.name)
    return given


def _inline(text: str) -> Any:
    parts = [part.rpartition("=") for part in text.split(",")]
    try:
        pairs = [tuple(map(float, pair.split(":"))) for _, _, pair in parts]
    except ValueError:
        rule = "like 0:1, age=18:99,weight=30:150, or a .json file"
        raise InvalidParameter("--feature-ranges", rule, text) from None
    named = [name.strip() for name, equals, _ in parts if equals]
    return dict(zip(named, pairs, strict=True)) if len(named) == len(pairs) else pairs


def public_domain(rows: Rows, domain: tuple[float, float] | None) -> tuple[float, float] | None:
    """The domain, which must be given where curves have points of their own: those are private."""
    if domain is None and isinstance(rows.X, list):
        rule = "given: the curves have points of their own, which are private"
        raise InvalidParameter("--domain-range", rule, None)
    return domain


def two_classes(text: str | None) -> tuple[str, str]:
    """The two labels of --classes: which there are in the file is private."""
    found = [part.strip() for part in (text or "").split(",")]
    if len(found) != 2 or found[0] == found[1]:
        rule = "given, two labels like no,yes: which there are in the file is private"
        raise InvalidParameter("--classes", rule, text)
    return found[0], found[1]


def check_labels(
    labels: Any, classes: Sequence[Any], column: str, *, row: Callable[[int], int]
) -> None:
    """Refuse a label that is none of --classes, by its row in the file."""
    known = np.isin(labels, classes)
    if not known.all():
        where = f"row {row(int(np.argmin(known)))}, column {column!r}"
        raise InvalidData(where, f"one of --classes {','.join(map(str, classes))}")
