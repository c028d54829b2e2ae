"""``dpfda submit``: answer a study with a curve or a row from a file."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpfda._validate import FloatArray
from dpfda.cli._output import certificates_option, home_option
from dpfda.cli._reading import reading_from, reading_options
from dpfda.client import RemoteClient
from dpfda.client.exports import DayCurve, Export, day_curve, read_export
from dpfda.client.own_data import Preview
from dpfda.curves.files import Reading
from dpfda.curves.files.opening import Opened
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import DpfdaError, InvalidData, InvalidParameter
from dpfda.protocol.plan import Label, StudyPlan
from dpfda.report.terminal import to_json


def read_own(file: Path, reading: Reading, plan: StudyPlan | None) -> object:
    """Read the data that a plan requires from a file; without a plan, read a curve."""
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
        text = "one or two columns" if wanted == 1 else f"{wanted} columns, or t and {wanted}"
        rule = f"{text} of numbers (choose them by --columns)"
        raise InvalidData(file.name, rule, f"{len(names)} columns")
    table = opened.table()
    # Points without a value are left out; with several channels, some may be missing at a point.
    columns = table.numbers(names[-wanted:], gaps=True)
    values = columns[:, 0] if wanted == 1 else columns
    said = reading.said(opened, len(table))
    if len(names) == wanted:
        click.echo(said, err=True)
        return values
    t = table.hours(names[0])
    click.echo(f"{said}, times as hours since midnight" if t is not None else said, err=True)
    return (table.numbers(names[:1], gaps=True)[:, 0] if t is None else t), values


_EXPORTS = (".xml", ".gpx", ".tcx", ".json", ".zip")
_TABLES = (".csv", ".tsv", ".txt")


def read_day(
    file: Path,
    plan: StudyPlan | None,
    *,
    series: str | None,
    day: str | None,
    zone: str | None,
) -> tuple[FloatArray, FloatArray] | None:
    """One day of an export, for a study of curves; None for other files and studies."""
    if plan is not None and not (plan.encoder.basis.functional and plan.encoder.channels == 1):
        return None
    found = _export(file, zone)
    if found is None:
        return None
    wanted = series or ("" if plan is None else plan.title)
    high = 24.0 if plan is None else plan.encoder.basis.domain_range[1]
    curve = day_curve(found.series, wanted=wanted, day=day, until=max(24.0, high))
    click.echo(_used(found, curve), err=True)
    return curve.hours, curve.values


def _export(file: Path, zone: str | None) -> Export | None:
    """The export of a watch or an app; None for a plain table, which has no dates."""
    if file.suffix.lower() in _EXPORTS:
        return read_export(file, zone=zone)
    if file.suffix.lower() not in _TABLES:
        return None
    try:
        found = read_export(file, zone=zone)
    except InvalidData:
        return None  # the reader of plain tables then reports the error
    return found if found.dated else None


def _used(found: Export, curve: DayCurve) -> str:
    (one,) = [series for series in found.series if series.name == curve.name]
    days = f", one of {len(one.days)} days" if len(one.days) > 1 else ""
    which = f"the average of {len(one.days)} days" if curve.day == "average" else curve.day + days
    return (
        f"read {found.format}: {curve.name!r} of {which}, {len(curve.hours)} measurements, "
        "times as hours since midnight"
    )


def _row(reading: Reading, opened: Opened, public: PublicColumns) -> dict[Any, Any]:
    """The cells of the only row, by the columns of the study."""
    table = opened.table(least=1)
    if len(table) != 1:
        rule = "a header and one row, your own"
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


_ROWS = 12
_BEFORE = "this study was answered before: its reply is not changed, and {} is not used"


@click.command()
@click.argument("plan_hash", metavar="HASH")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--label", required=True, help="Your label, one of the study's labels, or your number."
)
@home_option
@certificates_option
@reading_options(own=("label",), without={
    "id": "FILE holds only your own curve",
    "groups": "FILE holds only your own curve",
    "grid": "t is a separate column beside x(t)",
    "fill": "a row is a point, and those without a value are left out",
    "drop_empty": "a row is a point, and those without a value are left out",
})  # fmt: skip
@click.option(
    "--series",
    metavar="NAME",
    help="Measurements of an export, such as 'heart rate'. Default: those that the study's title "
    "names.",
)
@click.option(
    "--day",
    metavar="DAY",
    help="Day of an export: 2026-11-16, or average. Default: the day with the most measurements.",
)
@click.option("--time-zone", metavar="ZONE",
    help="Time zone of the measurements, such as Europe/Berlin, for times in UTC. "
    "Default: this machine's.")  # fmt: skip
@click.option("--show", is_flag=True,
    help="Ask before ε is spent; then show what would be sent and what it hides, and "
    "ask again. If you then answer no, ε stays spent.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
def command(
    plan_hash: str,
    file: Path,
    label: str,
    home: Path,
    certificates: str | None,
    series: str | None,
    day: str | None,
    time_zone: str | None,
    show: bool,
    as_json: bool,
    **options: object,
) -> None:
    """Answer a study, once.

    The study is the one with this HASH that you have joined. FILE (CSV, TSV, Parquet, NPZ or XLSX)
    has one column of values at equal distances, or two columns t and x(t), where t may be times of
    day (07:30, or with dates before them), read as hours since midnight. For several channels it
    has one column for each; for a table, your row. Of an export (Apple Health as XML or zip,
    Fitbit, GPX, TCX, Google Fit, Oura, Samsung Health, Withings) one day of one series is read.
    The reply is drawn and stored once; running the command again sends the same bytes.
    """
    agreed, reading = _agreed(home, plan_hash), reading_from(options)
    curve: object = None
    if reading == Reading():  # with reading options, the file is a plain table
        curve = read_day(file, agreed, series=series, day=day, zone=time_zone)
    if curve is None:
        curve = read_own(file, reading, agreed)
    client = client_at(home, certificates)
    stage = client.stage(plan_hash)
    plan = client.fetch_plan("", plan_hash)
    if stage == "joined":
        own = _typed(plan, label)
        _looked_over(client, plan_hash, file, curve, own)
        question = f"Answer with it, for ε = {plan.epsilon:g}? Nothing is spent yet."
        if show and not click.confirm(question, err=True):
            click.echo("nothing was spent or sent")
            return
    else:
        own = label
        click.echo(_BEFORE.format(file.name), err=True)
    preview = client.prepare(plan_hash, curve=curve, label=own)
    if show:
        _print(preview)
        if stage != "sent" and not click.confirm("Send it?", err=True):
            click.echo("nothing was sent; the budget stays spent, as the reply exists")
            return
    receipt = client.send(plan_hash)
    text = "answered before" if stage == "sent" else "sent"
    click.echo(to_json({"receipt": receipt}) if as_json else f"{text}; receipt {receipt}")


def _agreed(home: Path, plan_hash: str) -> StudyPlan | None:
    """The plan of a joined study; None otherwise, which is reported after reading the file."""
    try:
        client = client_at(home, None)
        _ = client.stage(plan_hash)
        return client.fetch_plan("", plan_hash)
    except DpfdaError:
        return None


def client_at(home: Path, certificates: str | None) -> RemoteClient:
    """The client with the existing budget in a folder."""
    try:
        return RemoteClient(home, certificates=certificates, notify=partial(click.echo, err=True))
    except InvalidParameter as error:
        if error.name != "limit_epsilon":
            raise
        rule = "a folder that `dpfda join` made: join the study first"
        raise InvalidParameter("--home", rule, str(home)) from None


def _typed(plan: StudyPlan, label: str) -> Label:
    """The label with its type in the plan: 1 and "1" are different labels in JSON."""
    for known in plan.classes:
        if str(known) == label:
            return known
    return label


def _looked_over(
    client: RemoteClient, plan_hash: str, file: Path, curve: object, label: object
) -> None:
    """Print what does not fit in the data; only the person sees this console."""
    try:
        notes = client.look_over(plan_hash, curve=curve, label=label)
    except InvalidData as error:
        if error.name == "label":
            raise InvalidParameter("--label", error.rule, label) from None
        raise
    for note in notes:
        click.echo(f"{file.name}: {note}", err=True)


def _print(preview: Preview) -> None:
    console = Console(stderr=True)
    columns = {"yours": preview.original, "what the reply shows": preview.perturbed}
    shown = {name: values for name, values in columns.items() if values is not None}
    title = f"task: {preview.kind}"
    # The data of an earlier reply are not stored, so there is nothing to compare it with.
    console.print(_beside(title, preview.points, shown) if shown else Text(title))
    console.print(Text("bytes: " + json.dumps(json.loads(preview.body))))
    console.print(Text(preview.hides))


def _beside(title: str, points: FloatArray, shown: dict[str, FloatArray]) -> Table:
    """Compare the hidden values with those of the reply, at about a dozen points."""
    table = Table(title=title, title_justify="left")
    table.add_column("t" if len(points) else "feature", justify="right")
    for name in shown:
        table.add_column(name, justify="right")
    size = max(len(values) for values in shown.values())
    for i in range(0, size, max(1, size // _ROWS)):
        place = f"{points[i]:.3g}" if len(points) else str(i + 1)
        table.add_row(place, *(f"{values[i]:.4g}" for values in shown.values()))
    return table
