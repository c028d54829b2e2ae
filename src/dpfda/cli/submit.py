"""``dpfda submit``: answer the one task of a study."""

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
from dpfda.cli._own_data import read_own
from dpfda.cli._reading import reading_from, reading_options
from dpfda.client import RemoteClient
from dpfda.client.preview import Preview
from dpfda.errors import DpfdaError, InvalidData, InvalidParameter
from dpfda.protocol.plan import StudyPlan
from dpfda.report.terminal import to_json

_ROWS = 12
_BEFORE = "this study was answered before: its reply stays the same bytes, nothing of {} is used"


@click.command()
@click.argument("plan_hash", metavar="HASH")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--label", required=True, help="Your label: one of the study's; or your number.")
@click.option("--home", type=click.Path(file_okay=False, path_type=Path),
    default=Path.home() / ".dpfda", help="Where your budget and replies are kept.")  # fmt: skip
@click.option("--certificates", type=click.Path(exists=True, dir_okay=False),
    help="Certificates to trust instead of the system's (PEM).")  # fmt: skip
@reading_options(own=("label",), without={
    "id": "FILE holds your curve and nobody else's",
    "groups": "FILE holds your curve and nobody else's",
    "grid": "t is a column of its own, beside x(t)",
    "fill": "a row is a point, and those without a value are left out",
})  # fmt: skip
@click.option("--show", is_flag=True,
    help="Ask before ε is spent; then show what would be sent and what it hides, and ask again. "
    'After that "no" ε stays spent.')  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
def command(
    plan_hash: str,
    file: Path,
    label: str,
    home: Path,
    certificates: str | None,
    show: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Answer a study, once.

    The study is the one with this HASH that you have joined. FILE (CSV, TSV, Parquet, NPZ or XLSX)
    has one column of values at equal distances, or two columns t and x(t), where t may be times of
    day (07:30, or with dates before them) as hours since midnight; of several channels one column
    each; of a table your row. The reply is drawn and stored once; calling the command again
    sends the same bytes again.
    """
    curve = read_own(file, reading_from(options), _agreed(home, plan_hash))
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
    told = "answered before" if stage == "sent" else "sent"
    click.echo(to_json({"receipt": receipt}) if as_json else f"{told}; receipt {receipt}")


def _agreed(home: Path, plan_hash: str) -> StudyPlan | None:
    """The plan that says how to read a file; None where none was joined, which is told after it."""
    try:
        client = client_at(home, None)
        _ = client.stage(plan_hash)
        return client.fetch_plan("", plan_hash)
    except DpfdaError:
        return None


def client_at(home: Path, certificates: str | None) -> RemoteClient:
    """The device whose budget is in a folder already."""
    try:
        return RemoteClient(home, certificates=certificates, told=partial(click.echo, err=True))
    except InvalidParameter as error:
        if error.name != "limit_epsilon":
            raise
        rule = "where dpfda join has begun your budget: join the study first"
        raise InvalidParameter("--home", rule, str(home)) from None


def _typed(plan: StudyPlan, label: str) -> Any:
    """The label as the plan writes it: 1 and "1" are different labels in JSON."""
    for known in plan.classes:
        if str(known) == label:
            return known
    return label


def _looked_over(client: RemoteClient, plan_hash: str, file: Path, curve: Any, label: Any) -> None:
    """Say what of the data does not fit; this console is the person's own, and may show theirs."""
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
    # What an earlier reply was drawn from is not kept: then there is nothing to put beside it.
    console.print(_beside(title, preview.points, shown) if shown else Text(title))
    console.print(Text("bytes: " + json.dumps(json.loads(preview.body))))
    console.print(Text(preview.hides))


def _beside(title: str, points: FloatArray, shown: dict[str, FloatArray]) -> Table:
    """What is hidden beside what the reply shows, at a dozen places."""
    table = Table(title=title, title_justify="left")
    table.add_column("t" if len(points) else "feature", justify="right")
    for name in shown:
        table.add_column(name, justify="right")
    size = max(len(values) for values in shown.values())
    for i in range(0, size, max(1, size // _ROWS)):
        place = f"{points[i]:.3g}" if len(points) else str(i + 1)
        table.add_row(place, *(f"{values[i]:.4g}" for values in shown.values()))
    return table
