"""``dpfda ledger``: what was spent from a budget on disk."""

from __future__ import annotations

from pathlib import Path

import click

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.privacy.ledger_file import FileLedger
from dpfda.report.terminal import to_json


@click.command()
@click.argument(
    "path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--json", "as_json", is_flag=True, help="Print the entries as JSON.")
@click.option("--parts", is_flag=True, help="Print a line for each question of a release.")
def command(path: Path, as_json: bool, parts: bool) -> None:
    """Show what was spent from a budget on disk.

    FILE is what --ledger of another command names: when, for what and under which assumptions. A
    release that asked several questions is one line; --json and --parts show each of them.
    """
    try:
        ledger = FileLedger(path)
    except InvalidParameter:  # nothing in it: a limit would begin one
        rule = "a budget that --ledger of another command has begun"
        raise InvalidData(path.name, rule, "an empty file") from None
    if as_json:
        click.echo(to_json([entry.to_dict() for entry in ledger.entries]))
    else:
        click.echo(ledger.table(parts=parts))
