"""``dpfda site``: a site's side of a study of sites that share only masked sums."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dpfda.cli._reading import read_ranges
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import DpfdaError, InvalidParameter, ProtocolError, printable
from dpfda.privacy.ledger_file import FileLedger
from dpfda.sites.app import environment
from dpfda.sites.node import Node
from dpfda.sites.plan import Plan
from dpfda.sites.processes import ended_by_signals
from dpfda.sites.shared import COUNTED
from dpfda.sites.site_folder import SiteConfig, SiteFolder
from dpfda.sites.stored_files import alone
from dpfda.sites.study_folder import read_card

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_trust = click.option(
    "--trust", type=_FILE, multiple=True, metavar="CARD",
    help="Card of another site or of the coordinator, whose fingerprint was compared.",
)  # fmt: skip


@click.group()
def command() -> None:
    """Take part in studies as a hospital that shares only masked sums."""


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option("--name", required=True, help="Name of the site, for all parties.")
@click.option("--data", type=_FILE, help="Table of the site; it is read here and never sent.")
@click.option("--feature-ranges", "ranges", metavar="RANGES",
    help="Columns that may be asked about, with their public ranges: age=18:99,dose=0:100 or a "
    ".json file, which may list categories.")  # fmt: skip
@click.option("--epsilon", type=float, required=True, help="Total ε of all studies.")
@click.option("--delta", type=float, help="Total δ of all studies; 1e-5 for rows, 0 otherwise.")
@click.option(
    "--unit", help="Protected unit: whose data one row is. Default: person, or owner with --owner."
)
@click.option("--owner", default="", metavar="COLUMN",
    help="Column that identifies the owner of a row, if an owner may have several "
    "rows.")  # fmt: skip
@click.option("--study", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Instead of --data: a study of the site's people, written by dpfda studies "
    "export.")  # fmt: skip
@click.option("--people", type=click.IntRange(0), default=0,
    help="With --study: number of people who evaluate models.")  # fmt: skip
@click.option("--least-rows", type=click.IntRange(0), default=0,
    help="Create no card for fewer records than this: a card publishes the count.")  # fmt: skip
@click.option("--least-together", type=click.IntRange(0), default=0,
    help="Refuse plans whose sites together hold fewer records than this.")  # fmt: skip
@click.option("--question", "questions", multiple=True, metavar="TITLE",
    help="Refuse plans for results with another title, such as PrivateMean; may be "
    "repeated.")  # fmt: skip
@click.option("--confirm", is_flag=True, help="Ask a person before each question is answered.")
@_trust
def init(folder: Path, trust: tuple[Path, ...], **given: Any) -> None:
    """Create a site: its keys, its card for other parties, its budget and its configuration."""
    local = bool(given["owner"] or given["study"])
    delta = given["delta"] if given["delta"] is not None else 0.0 if local else 1e-5
    site = SiteFolder.begin(
        folder,
        SiteConfig(
            name=given["name"],
            unit=given["unit"] or ("owner" if given["owner"] else "person"),
            owner=given["owner"],
            people=given["people"],
            epsilon=given["epsilon"],
            delta=delta,
            ask="every question" if given["confirm"] else "never",
            least_rows=given["least_rows"],
            least_together=given["least_together"],
            questions=list(given["questions"]),
            **_held(given),
        ),
    )
    site.pin(map(read_card, trust))
    card = site.card
    click.echo(f"site {card.name}: {card.rows} {COUNTED[site.config.holds]}, fingerprint "
        f"{card.fingerprint}")  # fmt: skip
    click.echo(f"give {site.card_path} to the coordinator and to the other sites; keep the rest")


def _held(given: dict[str, Any]) -> dict[str, Any]:
    """The data and the offered content: columns of a table, or a study with its people."""
    if given["study"] is not None:
        if given["data"] or given["ranges"] or given["owner"] or not given["people"]:
            rule = "given with --people, and without --data, --feature-ranges and --owner"
            raise InvalidParameter("--study", rule, str(given["study"]))
        return {"data": str(given["study"].resolve()), "ranges": {}}
    if given["data"] is None or given["people"]:
        raise InvalidParameter("--data", "given, or --study with --people", given["data"])
    ranges = (
        None if given["ranges"] is None else read_ranges(given["ranges"], option="--feature-ranges")
    )
    if not isinstance(ranges, dict):
        rule = "like age=18:99,dose=0:100, or a .json file: the columns by their names"
        raise InvalidParameter("--feature-ranges", rule, given["ranges"])
    PublicColumns.of(ranges, name="--feature-ranges")  # refuses invalid ranges first
    offered = {name: list(known) for name, known in ranges.items()}
    return {"data": str(given["data"].resolve()), "ranges": offered}


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option("--plan", "plan_file", type=_FILE, required=True, help="Plan of the coordinator.")
@_trust
@click.option("--agree", metavar="HASH",
    help="Sign the plan with this hash without a prompt; `policy` signs any plan that site.toml "
    "allows.")  # fmt: skip
@click.option("--superlink", metavar="HOST:PORT",
    help="Address of the coordinator, if it is not that of the plan.")  # fmt: skip
def serve(
    folder: Path, plan_file: Path, trust: tuple[Path, ...], agree: str | None, superlink: str | None
) -> None:
    """Sign a plan, and answer its questions until there is a result, or until Ctrl-C."""
    site, plan = SiteFolder(folder), Plan.load(plan_file)
    network = folder / "flower" / plan.digest[:16]
    environment(network / "home")  # raises an error if Flower is missing, before anything is signed
    cards = [read_card(path) for path in trust]
    try:
        site.examine(plan, trusting=cards)
        if plan.digest not in site.config.agreed:
            click.echo(printable_lines(str(plan)))
            _confirm(plan, agree)
    except DpfdaError as reason:
        site.refuse(plan, str(reason))  # nothing is pinned for a plan that is not signed
        raise
    site.pin(cards)
    if plan.digest not in site.config.agreed:
        site.agree(plan)
    approve = _approved if site.config.ask == "every question" else None
    guard = site.guard(plan, approve=approve)
    click.echo(f"site {site.config.name} serves plan {plan.digest[:16]}; its log: "
        f"{site.journal.path}")  # fmt: skip
    try:
        with ended_by_signals(), alone(network / "serve.lock", "this plan"):
            Node(
                plan, network, key=site.node_key_path, identity=site.identity.public,
                address=superlink, say=_say,
            ).serve(guard)  # fmt: skip
            click.echo("the coordinator has its result; there are no further questions")
    except KeyboardInterrupt:
        click.echo("stopped; when started again, it continues where it stopped")


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option(
    "--lines",
    type=int,
    default=10,
    show_default=True,
    help="Number of lines of the journal to show.",
)
def status(folder: Path, lines: int) -> None:
    """Show the plans that a site signed, its budget, and its journal."""
    site = SiteFolder(folder)
    config = site.config
    click.echo(f"site {config.name} ({site.card.fingerprint}), {site.card.rows} "
        f"{COUNTED[config.holds]}")  # fmt: skip
    click.echo(f"trusts {', '.join(sorted(config.trust)) or 'nobody yet'}")
    for digest in config.agreed:
        plan = site.plans[digest]
        click.echo(f"signed {digest[:16]}: {printable(plan.body.study)}, by "
            f"{printable(plan.body.coordinator.name)}")  # fmt: skip
        for number, how in enumerate(site.progress(plan)):
            click.echo(f"  question {number}: {how}")
    click.echo(FileLedger(site.ledger_path).table())
    if lines > 0:
        for line in site.journal.lines[-lines:]:
            click.echo(printable(line))
    if site.journal.head:
        click.echo(f"journal: {len(site.journal.lines)} lines, the last one marked "
            f"{site.journal.head}")  # fmt: skip


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option("--mark", "marks", multiple=True, metavar="MARK",
    help="Mark that was noted earlier; the journal must still contain it.")  # fmt: skip
def verify(folder: Path, marks: tuple[str, ...]) -> None:
    """Check that no line of the journal was changed, added or removed."""
    site = SiteFolder(folder)
    _ = site.config  # raises an error if this is not the folder of a site
    found = site.journal.check()
    for mark in marks:
        if mark not in found:
            raise InvalidParameter("--mark", "that of a line of the journal", mark)
    last = f", the last one marked {found[-1]}" if found else ""
    click.echo(f"{len(found)} lines follow from each other{last}")


def _confirm(plan: Plan, agree: str | None) -> None:
    if agree is None:
        if not click.confirm("Sign this plan?", default=False):
            raise ProtocolError("the plan was not signed")
    elif agree not in (plan.digest, "policy"):
        raise InvalidParameter("--agree", f"the hash of the plan, {plan.digest}", agree)


def _approved(text: str) -> bool:
    click.echo(printable(text, most=sys.maxsize))
    return click.confirm("Answer it?", default=False)


def _say(text: str) -> None:
    click.echo(printable(text))


def printable_lines(text: str) -> str:
    """Text from others in printable form, line by line."""
    return "\n".join(printable(line) for line in text.split("\n"))
