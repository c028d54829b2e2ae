"""``dpfda receipt``: check whether a reply was counted, or withdraw it."""

from __future__ import annotations

from pathlib import Path

import click

from dpfda.cli._output import certificates_option, home_option, json_option
from dpfda.cli.submit import client_at
from dpfda.report.terminal import to_json


@click.command()
@click.argument("plan_hash", metavar="HASH")
@home_option
@certificates_option
@click.option("--withdraw", is_flag=True,
    help="Withdraw your reply, while its phase accepts replies. ε stays spent.")  # fmt: skip
@json_option
def command(
    plan_hash: str, home: Path, certificates: str | None, withdraw: bool, as_json: bool
) -> None:
    """Ask whether your reply was counted.

    Only the receipt of your reply is sent to the collector of the study with this HASH. With
    --withdraw a secret that this device has stored is sent, and the collector removes the reply.
    """
    client = client_at(home, certificates)
    if withdraw:
        client.withdraw(plan_hash)
        click.echo(to_json({"withdrawn": True}) if as_json else "withdrawn; it does not count")
        return
    counted = client.counted(plan_hash)
    if as_json:
        click.echo(to_json({"counted": counted}))
    else:
        click.echo("counted" if counted else "received; its phase goes on")
