"""``dpfda demo``: the whole path on simulated people, with a report at the end."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from dpfda.cli import _demo as demo
from dpfda.cli._progress import progress_bar
from dpfda.report.terminal import machine, rows_table, to_json


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Write the report here.",
)
@click.option("--people", default=2000, show_default=True, help="People in each study.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(out: Path, people: int, as_json: bool) -> None:
    """Run two studies with simulated people.

    Everything goes over HTTP, and a report is written. A collector is started on a temporary SQLite
    file and a free loopback port.
    """
    with progress_bar("people") as progress:
        outcome = demo.run(progress, people=people)
    path = demo.report(outcome).write(out / "demo.html")
    if as_json:
        report = {
            "name": "demo",
            "rows": outcome.rows,
            "figures": outcome.figures,
            "notes": outcome.notes,
            "report": str(path),
            "machine": machine(),
        }
        click.echo(to_json(report))
        return
    Console(markup=False).print(rows_table(outcome, title=demo.TITLE))
    click.echo(f"report: {path}")
