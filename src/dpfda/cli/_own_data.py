"""A person's own file: a curve, a curve of several channels, or a row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpfda.curves.files import Reading
from dpfda.curves.files.opening import Opened
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData
from dpfda.protocol.plan import StudyPlan


def read_own(file: Path, reading: Reading, plan: StudyPlan | None) -> Any:
    """What the plan asks for, from a file; how it was read is said. Without a plan, a curve."""
    opened = reading.open(file)
    names = reading.chosen(opened)
    if plan is not None and plan.encoder.table is not None and plan.encoder.table.named:
        return _row(reading, opened, plan.encoder.table)
    if plan is not None and not plan.encoder.basis.functional:
        table = opened.table(least=1)
        click.echo(reading.said(opened, len(table)), err=True)
        numbers = table.numbers(names, gaps=True)
        return numbers[:, 0] if len(names) == 1 else numbers[0] if len(numbers) == 1 else numbers
    wanted = 1 if plan is None else plan.encoder.channels
    if len(names) not in (wanted, wanted + 1):
        told = "one or two columns" if wanted == 1 else f"{wanted} columns, or t and {wanted}"
        rule = f"{told} of numbers (choose them by --columns)"
        raise InvalidData(file.name, rule, f"{len(names)} columns")
    table = opened.table()
    # A point without a value is left out; of several channels some may be missing at a point.
    columns = table.numbers(names[-wanted:], gaps=True)
    values = columns[:, 0] if wanted == 1 else columns
    said = reading.said(opened, len(table))
    if len(names) == wanted:
        click.echo(said, err=True)
        return values
    t = table.hours(names[0])
    click.echo(f"{said}, times as hours since midnight" if t is not None else said, err=True)
    return (table.numbers(names[:1], gaps=True)[:, 0] if t is None else t), values


def _row(reading: Reading, opened: Opened, public: PublicColumns) -> dict[Any, Any]:
    """The cells of one line, by the study's columns."""
    table = opened.table(least=1)
    if len(table) != 1:
        rule = "one line beside its header: yours, and nobody else's"
        raise InvalidData(opened.path.name, rule, f"{len(table)} lines")
    click.echo(reading.said(opened, 1), err=True)
    found: dict[Any, Any] = {}
    for column in public.columns:
        name = table.names[column.key] if isinstance(column.key, int) else str(column.key)
        if not column.categories:
            found[column.key] = table.numbers([name], gaps=True)[0, 0]
            continue
        word = str(table.text(name)[0])
        known = [one for one in column.categories if str(one) == word]
        if not known:
            rule = f"one of {', '.join(map(str, column.categories))}"
            raise InvalidData(f"column {name!r} of {opened.path.name}", rule)
        found[column.key] = known[0]
    return found
