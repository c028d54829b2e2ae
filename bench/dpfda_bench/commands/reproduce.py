"""``dpfda reproduce``: a paper's table or figure, beside the published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from dpfda.cli._sweep import sweep_options, sweeping
from dpfda.errors import InvalidParameter
from dpfda.study.results import machine, rows_table, to_json
from dpfda_bench import catalog
from dpfda_bench.effort import Effort
from dpfda_bench.files import write_files
from dpfda_bench.goals import goals_table


@click.command()
@click.argument("name", required=False)
@click.option("--list", "listing", is_flag=True, help="Show the tables and figures there are.")
@click.option("--replications", type=click.IntRange(min=1), help="How often to repeat the study.")
@click.option("--quick", is_flag=True, help="Few replications: a look, not a result.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write PNG and CSV here."
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True,
    help="Where the arrays of a study are that can use an accelerator.")  # fmt: skip
@sweep_options(kept=True)
def command(
    name: str | None,
    listing: bool,
    replications: int | None,
    quick: bool,
    as_json: bool,
    out: Path | None,
    device: str,
    **options: Any,
) -> None:
    """Recompute a published table or figure, for example 003-table-2."""
    if listing:
        titles = {
            known: catalog.reproduction(known).TITLE for known in catalog.reproduction_names()
        }
        lines = (f"{known}  {title}" for known, title in titles.items())
        click.echo(to_json(titles) if as_json else "\n".join(lines))
        return
    if name is None:
        raise click.UsageError("name a table or figure, or pass --list")
    module = catalog.reproduction(name)
    goals = getattr(module, "GOALS", {})
    if device != "cpu" and not getattr(module, "ACCELERATED", False):
        raise InvalidParameter("--device", f"cpu for {name}", device)
    with sweeping(f"reproduce {name}", options) as sweep:
        effort = Effort(replications=replications, quick=quick, sweep=sweep, device=device)
        outcome = module.run(effort)
    written = write_files(outcome, out, stem=name) if out else []
    if as_json:
        report = {
            "name": name,
            "title": module.TITLE,
            "rows": outcome.rows,
            "figures": outcome.figures,
            "goals": {key: goal.bound for key, goal in goals.items()},
            "notes": outcome.notes,
            "machine": machine(),
        }
        click.echo(to_json(report))
        return
    console = Console(markup=False)
    console.print(rows_table(outcome, title=module.TITLE))
    if outcome.figures:
        console.print(goals_table(outcome, goals))
    for path in written:
        click.echo(f"wrote {path}")
