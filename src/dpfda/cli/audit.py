"""``dpfda audit``: attack the mechanisms and print lower bounds on their ε."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from tqdm.auto import tqdm

from dpfda.checks.attacks import Case, audit_cases, run
from dpfda.checks.twins import all_twins
from dpfda.cli._output import json_option
from dpfda.errors import UnknownName
from dpfda.noise import source_for
from dpfda.privacy.audit import audit

_MOST_DRAWS = 2_000_000
_MORE_DRAWS = {"per_order_gaussian": 5}
"""Factors on the number of draws, for twins whose claim is only slightly false."""
_TWIN_DRAWS = 200_000


@click.command(name="audit")
@click.argument("name", required=False)
@click.option(
    "--all", "everything", is_flag=True, help="Also audit queries, studies and central releases."
)
@click.option("--twins", is_flag=True, help="Audit broken mechanisms; all must be caught.")
@click.option(
    "--draws",
    default=_MOST_DRAWS,
    show_default=True,
    help="Largest number of reports drawn for each input.",
)
@click.option("--seed", type=int, help="Use a seeded source instead of OS entropy.")
@json_option
def command(
    name: str | None, everything: bool, twins: bool, draws: int, seed: int | None, as_json: bool
) -> None:
    """Attack the mechanisms and print lower bounds on the true ε.

    Without options every mechanism is audited; with NAME, those whose name contains it; with --all
    also every query to a data holder, every study, and every central release as a whole. Reports
    are drawn from the worst neighboring inputs; the bound holds with 99.9 % confidence. "Detects"
    is the smallest relative violation of the claim that the draws would have shown. A bound above
    the claim disproves the claim and the exit status is 1.
    """
    if everything and name is not None:
        raise click.UsageError("give a NAME or --all, not both")
    rows = list(_twin_rows(name, seed) if twins else _audit_rows(name, everything, draws, seed))
    click.echo(json.dumps(rows, indent=2)) if as_json else _print(rows, twins=twins)
    if not all(row["caught"] if twins else row["passed"] for row in rows):
        sys.exit(1)


@lru_cache(maxsize=1)
def _cases() -> list[Case]:
    return audit_cases()


def _audit_rows(
    name: str | None, everything: bool, draws: int, seed: int | None
) -> Iterator[dict[str, Any]]:
    """One row for each case, from as many processes as there are cores."""
    cases = _cases()
    chosen = [
        place
        for place, case in enumerate(cases)
        if (name in case.name if name else everything or case.kind == "mechanism")
    ]
    if not chosen:
        raise UnknownName("audit", name, {re.split(r"[ (,]", case.name)[0] for case in cases})
    workers = min(len(chosen), os.cpu_count() or 1)
    if workers == 1:
        for place in chosen:
            yield _row(place, draws, seed)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        # Start the slow ones first, so that none of them runs alone at the end.
        order = sorted(chosen, key=lambda place: cases[place].kind != "conversation")
        jobs = {place: pool.submit(_row, place, draws, seed) for place in order}
        for place in tqdm(chosen, "auditing", disable=None, leave=False):
            yield jobs[place].result()


def _row(place: int, draws: int, seed: int | None) -> dict[str, Any]:
    """Audit one case. It fails if the data holder does not behave like the audited mechanism."""
    case = _cases()[place]
    shown = {"kind": case.kind, "goal": case.goal}
    try:
        return run(case, draws=draws, source=source_for(seed)).to_dict() | shown
    except AssertionError as broken:
        return {
            "name": f"{case.kind}: {case.name}",
            "passed": False,
            "reason": str(broken),
            "detects": None,
        } | shown


def _twin_rows(name: str | None, seed: int | None) -> Iterator[dict[str, Any]]:
    """One row for each broken twin."""
    twins = [member for key, member in all_twins().items() if name in (None, key)]
    if not twins:
        raise UnknownName("twin", name, all_twins())
    for member in tqdm(twins, "auditing twins", disable=None, leave=False):
        draws = _TWIN_DRAWS * _MORE_DRAWS.get(member.name, 1)
        result = audit(
            member(),
            name=member.name,
            draws=draws,
            source=source_for(seed),
            goal=0.001,
            pilot=draws // 10,
        )
        yield result.to_dict() | {"caught": not result.passed, "flaw": member.flaw}


def _print(rows: list[dict[str, Any]], *, twins: bool) -> None:
    table = Table(title="Broken twins" if twins else "Audit", caption="99.9 % confidence")
    names = ["twin", "flaw", "verdict"]
    if not twins:
        names = ["audited", "claimed ε", "claimed δ", "true ε is above", "detects", "verdict"]
    for number, column in enumerate(names):
        table.add_column(column, justify="right" if number and not twins else "left")
    for row in rows:
        if twins:
            table.add_row(row["name"], row["flaw"], "caught" if row["caught"] else "MISSED")
            continue
        detects = row["detects"]
        table.add_row(
            row["name"],
            f"{row.get('claimed_epsilon', float('nan')):g}",
            f"{row.get('claimed_delta', 0.0):g}",
            f"{row.get('lower_bound', float('nan')):.3f}",
            "-" if detects is None else f"{100 * detects:.1f} %",
            "passed" if row["passed"] else "FAILED",
        )
    Console(markup=False).print(table)
