"""``dpfda reproduce``: a paper's table or figure, beside the published numbers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from dpfda.cli._output import check_writable
from dpfda.cli._sweep import sweep_options, sweeping
from dpfda.datasets.catalogue import CATALOGUE, locate
from dpfda.errors import InvalidParameter
from dpfda.report.terminal import machine, rich_table, rows_table, to_json
from dpfda_bench import catalog
from dpfda_bench.effort import Effort
from dpfda_bench.files import write_files
from dpfda_bench.goals import goals_table, missed
from dpfda_bench.measured import reproduction_report

NO_VERDICT = "quick look, no verdict"


@click.command()
@click.argument("name", required=False)
@click.option("--list", "listing", is_flag=True, help="Show the tables and figures there are.")
@click.option("--replications", type=click.IntRange(min=1), help="How often to repeat the study.")
@click.option("--quick", is_flag=True, help="Few replications, without a verdict.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write CSV, JSON and PNG here."
)
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path),
    help="Write one HTML page here.")  # fmt: skip
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
    report: Path | None,
    device: str,
    **options: Any,
) -> None:
    """Recompute a published table or figure, for example 003-table-2."""
    if listing:
        facts = {known: _facts(known) for known in catalog.reproduction_names()}
        click.echo(to_json(facts) if as_json else "\n".join(map(_line, facts, facts.values())))
        return
    if name is None:
        raise click.UsageError("name a table or figure, or pass --list")
    module = catalog.reproduction(name)
    goals = getattr(module, "GOALS", {})
    if device != "cpu" and not getattr(module, "ACCELERATED", False):
        raise InvalidParameter("--device", f"cpu for {name}", device)
    check_writable("--report", report)
    begun = time.perf_counter()
    with sweeping(f"reproduce {name}", options) as sweep:
        effort = Effort(replications=replications, quick=quick, sweep=sweep, device=device)
        outcome = module.run(effort)
    full = not quick and replications is None
    # Few replications can turn a verdict round, and some quick runs take other data.
    word, why = module.verdict(outcome) if full else (NO_VERDICT, "")
    found = {
        "name": name,
        **_facts(name),
        "verdict": word,
        "why": why,
        "claimed": module.CLAIMED,
        "guarantees": module.GUARANTEES,
        "reading": module.READING,
        "replications": max(effort.counts, default=None),
        "rows": outcome.rows,
        "figures": outcome.figures,
        "goals": {key: goal.bound for key, goal in goals.items()},
        "notes": outcome.notes,
        "full": full,
        "took_seconds": round(time.perf_counter() - begun, 1),
        "machine": machine(),
    }
    table, failed = goals_table(outcome, goals), missed(outcome, goals)
    written = write_files(outcome, out, stem=name) if out else []
    if out:
        written.append(out / f"{name}.json")
        written[-1].write_text(to_json(found) + "\n", encoding="utf-8")
    if report is not None:
        known = {"verdict": _sentence(word, why), "guarantees": module.GUARANTEES}
        page = reproduction_report(name, module.TITLE, outcome, table, failed, quick=quick, **known)
        written.append(page.write(report))
    if as_json:
        click.echo(to_json(found))
        return
    console = Console(markup=False)
    console.print(rows_table(outcome, title=module.TITLE))
    if outcome.figures:
        console.print(rich_table(table))
        for told in failed:
            console.print(told, style="bold red")
    console.print(f"reading: {module.READING}")
    console.print(f"claimed guarantee: {module.CLAIMED}")
    for version, guarantee in module.GUARANTEES.items():
        console.print(f"true guarantee, {version}: {guarantee}")
    times = found["replications"]
    count = "nothing is repeated" if times is None else f"up to {times} replications"
    console.print(f"{count}, {found['took_seconds']} seconds")
    console.print(_sentence(word, why))
    for path in written:
        click.echo(f"wrote {path}")


def _sentence(word: str, why: str) -> str:
    return f"{word}: {why}" if why else f"{word}."


def _facts(name: str) -> dict[str, Any]:
    """What is known of a reproduction before it is run."""
    module = catalog.reproduction(name)
    return {
        "title": module.TITLE,
        "covers": list(getattr(module, "COVERS", ())),
        "needs": list(module.NEEDS),
        "seconds": module.SECONDS,
    }


def _line(name: str, facts: dict[str, Any]) -> str:
    """A line of ``--list``: name, how long on one core, which data, title."""
    there = {need: locate(CATALOGUE[need]) is not None for need in facts["needs"]}
    needs = ", ".join(need if here else f"{need} (missing)" for need, here in there.items())
    needs = needs or "no data"
    also = "".join(f", {other}" for other in facts["covers"])
    return f"{name:<20}{facts['seconds']:>5} s  {needs:<28} {facts['title']}{also}"
