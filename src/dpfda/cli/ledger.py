"""``dpfda ledger``: what was spent from a budget on disk."""

from __future__ import annotations

from pathlib import Path

import click

from dpfda.privacy.ledger_file import FileLedger
from dpfda.study.results import to_json


@click.command()
@click.argument(
    "path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--json", "as_json", is_flag=True, help="Print the entries as JSON.")
def command(path: Path, as_json: bool) -> None:
    """Show what was spent from a budget on disk.

    FILE is what --ledger of another command names: when, for what and under which assumptions.
    """
    ledger = FileLedger(path)
    if as_json:
        click.echo(to_json([entry.to_dict() for entry in ledger.entries]))
    else:
        click.echo(ledger.table())
