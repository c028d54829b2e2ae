"""``dpfda audit``: attack the randomizers and show how much privacy they can have at most."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dpfda.checks.twins import Twin
from dpfda.mechanisms import Mechanism
from dpfda.noise import SecureSource, SimulationSource, Source
from dpfda.privacy.audit import Auditable, audit

_MORE_DRAWS = {"per_order_gaussian": 10}
"""Twins whose claim is only a little false: how many times more draws it takes to show it."""


@click.command(name="audit")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Audit every mechanism (the default).")
@click.option("--twins", is_flag=True, help="Audit the planted broken twins; all must be caught.")
@click.option("--draws", default=100_000, show_default=True, help="Reports drawn from each input.")
@click.option("--seed", type=int, help="Use a seeded source instead of OS entropy.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    name: str | None, everything: bool, twins: bool, draws: int, seed: int | None, as_json: bool
) -> None:
    """Lower bounds on the true ε beside the claimed ε.

    For each mechanism NAME (default: all), reports are drawn from the worst neighbouring inputs;
    the bound holds with 99.9 % confidence. A bound above the claim disproves the claim and the
    exit status is 1.
    """
    if everything and name is not None:
        raise click.UsageError("give a NAME or --all, not both")
    source: Source = SecureSource() if seed is None else SimulationSource(seed)
    rows: list[dict[str, Any]] = []
    cases = _twins(name) if twins else _mechanisms(name)
    for label, case in track(cases, "auditing", console=Console(stderr=True), transient=True):
        factor = _MORE_DRAWS.get(label, 1) if twins else 1
        row = audit(case, name=label, draws=draws * factor, source=source).to_dict()
        if twins:
            row["caught"] = not row["passed"]
            row["flaw"] = getattr(case, "flaw", label)
        rows.append(row)
    click.echo(json.dumps(rows, indent=2)) if as_json else _print(rows, twins=twins)
    if not all(row["caught"] if twins else row["passed"] for row in rows):
        sys.exit(1)


def _mechanisms(name: str | None) -> list[tuple[str, Auditable]]:
    chosen = list(Mechanism.members().values()) if name is None else [Mechanism.named(name)]
    return [(_label(example), example) for member in chosen for example in member.examples()]


def _twins(name: str | None) -> list[tuple[str, Auditable]]:
    chosen = list(Twin.members().values()) if name is None else [Twin.named(name)]
    return [(member.name, member()) for member in chosen]


def _label(mechanism: Mechanism) -> str:
    parameters = mechanism.to_dict()
    name = parameters.pop("name")
    return f"{name}({', '.join(f'{key}={value}' for key, value in parameters.items())})"


def _print(rows: list[dict[str, Any]], *, twins: bool) -> None:
    table = Table(title="Broken twins" if twins else "Audit", caption="99.9 % confidence")
    for column in ("randomizer", "claimed ε", "claimed δ", "true ε is above", "verdict"):
        table.add_column(column, justify="left" if column == "randomizer" else "right")
    for row in rows:
        verdict = ("caught" if row["caught"] else "MISSED") if twins else None
        table.add_row(
            row["name"],
            f"{row['claimed_epsilon']:g}",
            f"{row['claimed_delta']:g}",
            f"{row['lower_bound']:.3f}",
            verdict or ("passed" if row["passed"] else "FAILED"),
        )
    Console().print(table)
