"""``dpfda join``: agree to a study."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TextIO

import click

from dpfda.cli._output import certificates_option, home_option
from dpfda.client import RemoteClient
from dpfda.protocol.plan import StudyPlan
from dpfda.report.terminal import to_json

_HOME = Path.home() / ".dpfda"


@click.command()
@click.argument("url")
@click.argument("plan_hash", metavar="HASH")
@click.option(
    "--most-epsilon", type=float, required=True, help="Largest ε that you accept for this study."
)
@click.option("--limit-epsilon", type=float,
    help="Largest ε that all studies together may cost you; needed the first time.")  # fmt: skip
@click.option("--accept", "accepts", multiple=True, metavar="ASSUMPTION",
    help='An assumption that you accept, such as "labels are public". May be '
    'repeated.')  # fmt: skip
@home_option
@click.option("--invitation", type=click.File(encoding="utf-8"),
    help="File with your invitation or its link, from the organizer; with - the command asks for "
    "it."
    )  # fmt: skip
@certificates_option
@click.option("--insecure", is_flag=True,
    help="Allow http:// to another machine: anybody in between can read it.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def command(
    url: str,
    plan_hash: str,
    most_epsilon: float,
    limit_epsilon: float | None,
    accepts: tuple[str, ...],
    home: Path,
    invitation: TextIO | None,
    certificates: str | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Agree to take part in a study.

    The study is the one with this HASH at the collector URL. Nothing about you is sent yet.
    """
    notify = partial(click.echo, err=True)
    client = RemoteClient(
        home, limit_epsilon=limit_epsilon, certificates=certificates, notify=notify
    )
    plan = client.join(
        url,
        plan_hash,
        most_epsilon=most_epsilon,
        accepts=accepts,
        invitation=None if invitation is None else _token(invitation.readline()),
        insecure=insecure,
    )
    if as_json:
        click.echo(to_json(plan.to_dict()))
        return
    click.echo(f"joined: {plan.title or plan_hash[:16]}")
    for name in ("institution", "contact", "purpose"):
        if plan.information:
            click.echo(f"{name}: {plan.information[name]}")
    click.echo(f"promise: {plan.guarantee.drawn_from(client.source)}")
    click.echo(f"{plan.what_is_learnt}; people: {plan.n_people}")
    click.echo(f"left in your budget: ε = {client.ledger.remaining.epsilon:g}")
    click.echo(f"next: {_next(plan, home, certificates)}")


def _token(line: str) -> str:
    """An invitation, or the invitation in a link of the participant page."""
    return line.strip().rpartition("#invitation=")[2]


def _next(plan: StudyPlan, home: Path, certificates: str | None) -> str:
    """The next command, with placeholders for the person's file and label."""
    own = "YOUR_NUMBER" if plan.target_range is not None else "YOUR_LABEL"
    words = ["dpfda", "submit", plan.hash, "YOUR_FILE", "--label", own]
    if home != _HOME:
        words += ["--home", str(home)]
    if certificates is not None:
        words += ["--certificates", certificates]
    return shlex.join([*words, "--show"])
