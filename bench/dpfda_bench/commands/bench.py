"""``dpfda bench``: the benchmarks, each beside its goal."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from dpfda.cli._output import check_writable
from dpfda.cli._sweep import sweep_options, sweeping
from dpfda.errors import InvalidParameter
from dpfda.report.terminal import machine, rich_table, rows_table, to_json
from dpfda_bench import catalog
from dpfda_bench.goals import goals_table, missed
from dpfda_bench.measured import benchmark_report

_OWN = {
    "seeds": "--seeds",
    "runs": "--runs",
    "rows": "--rows",
    "write_reference_to": "--write-reference",
}
"""Options that only some benchmarks have, by the parameter of their `run`."""


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="Show the benchmarks there are.")
@click.option("--all", "everything", is_flag=True, help="Run every benchmark.")
@click.option("--quick", is_flag=True, help="Smaller sizes: a look, not a measurement.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path),
    help="Write one HTML page about a benchmark here.")  # fmt: skip
@click.option("--seeds", type=click.Choice(["choose", "confirm"]),
    help="Random problems for work on methods, or those looked at once (honesty).")  # fmt: skip
@click.option("--runs", type=click.IntRange(min=1), metavar="N",
    help="Problems of each cell, for less time than the full run takes (honesty).")  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1000), metavar="N",
    help="Rows of the files, instead of the size of the full run (lake).")  # fmt: skip
@click.option("--write-reference", "write_reference_to", metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what later versions are compared with here (honesty).")  # fmt: skip
@sweep_options(kept=True)
def command(
    names: tuple[str, ...],
    listing: bool,
    everything: bool,
    quick: bool,
    as_json: bool,
    report: Path | None,
    **options: Any,
) -> None:
    """Measure a benchmark and compare it with its goals.

    Speed is stated as a ratio measured in one run wherever there is something to compare with. The
    exit status is 1 if a goal is missed, after everything was printed.
    """
    if listing:
        known = catalog.benchmark_names()
        click.echo(to_json(known) if as_json else "\n".join(known))
        return
    if everything:
        names = tuple(catalog.benchmark_names())
    if not names:
        raise click.UsageError("name a benchmark, or pass --all or --list")
    if report is not None and len(names) != 1:
        raise InvalidParameter("--report", "left out for several benchmarks", len(names))
    check_writable("--report", report)
    reports = [_run(name, report, quick=quick, as_json=as_json, options=options) for name in names]
    if as_json:
        click.echo(to_json(reports[0] if len(reports) == 1 and not everything else reports))
    if any(one["missed"] for one in reports):
        raise click.exceptions.Exit(1)


def _run(
    name: str, page: Path | None, *, quick: bool, as_json: bool, options: dict[str, Any]
) -> dict[str, Any]:
    module = catalog.benchmark(name)
    known = signature(module.run).parameters
    own = {key: options.pop(key) for key in _OWN if options.get(key) is not None}
    for key, value in own.items():
        if key not in known:
            raise InvalidParameter(_OWN[key], f"left out for {name}", str(value))
    with sweeping(f"bench {name}", options) as sweep:
        # What measures time has no grid, and runs undisturbed.
        kept = sweep if getattr(module, "RESUMES", False) else replace(sweep, store=None)
        grid = {"sweep": kept} if "sweep" in known else {}
        outcome = module.run(quick=quick, **grid, **own)
    goals = goals_table(outcome, module.GOALS, title=f"bench {name}")
    failed = missed(outcome, module.GOALS)
    if not as_json:
        console = Console(markup=False)
        console.print(rich_table(goals))
        for told in failed:
            console.print(told, style="bold red")
        if outcome.rows:
            console.print(rows_table(outcome))
        else:
            for note in outcome.notes:
                console.print(note, markup=False)
    if page is not None:
        what = (module.__doc__ or "").partition("\n")[0]
        benchmark_report(name, what, outcome, goals, failed, quick=quick).write(page)
        click.echo(f"report written to {page}", err=True)
    report: dict[str, Any] = {
        "name": name,
        "figures": outcome.figures,
        "goals": {key: goal.bound for key, goal in module.GOALS.items()},
        "missed": failed,
        "machine": machine(),
    }
    return report | {"rows": outcome.rows} if outcome.rows else report
