"""``dpfda consortium``: the coordinator's side of a study whose sites share nothing."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import click
import msgspec

from dpfda.cli._document_view import print_document
from dpfda.cli._inquiry import inquiry_from, inquiry_options
from dpfda.errors import InvalidParameter, printable
from dpfda.privacy import durable
from dpfda.report.documents import Documented
from dpfda.sites import app
from dpfda.sites.alone import alone
from dpfda.sites.card import Card
from dpfda.sites.certificates import Certificates
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.link import FlowerCarrier, SuperLink
from dpfda.sites.plan import Plan, PlanBody
from dpfda.sites.study_folder import StudyFolder, read_card

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Lead a study among hospitals that share nothing."""


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option("--name", required=True, help="Who we are.")
@click.option("--study", required=True, help="What the study is called.")
@click.option("--site", "sites", type=_FILE, multiple=True, required=True, metavar="CARD",
    help="Card of a site that is to take part; once for each.")  # fmt: skip
@click.option("--address", default="127.0.0.1:8000", show_default=True, metavar="HOST:PORT",
    help="Where sites reach us.")  # fmt: skip
@inquiry_options
@click.option("--colluders", type=int, default=1, show_default=True,
    help="Sites that may pool what they know with us.")  # fmt: skip
@click.option("--dropouts", type=int, default=0, show_default=True,
    help="Sites that may fall silent during a question.")  # fmt: skip
def plan(folder: Path, **given: Any) -> None:
    """Write a plan for sites to sign; only what it says will be asked."""
    cards = tuple(map(read_card, given["sites"]))
    asked = inquiry_from(given, rows=sum(card.rows for card in cards))
    host = _check_address("--address", given["address"])
    place = StudyFolder(folder)
    card = Card.signed_by(place.identity, name=given["name"])
    made = Certificates.made_for(host)
    body = PlanBody(
        study=given["study"],
        coordinator=card,
        sites=cards,
        colluders=given["colluders"],
        dropouts=given["dropouts"],
        inquiry=asked.to_dict(),
        address=given["address"],
        certificate=made.authority.decode(),
    )
    written = Plan.signed_by(place.identity, body)
    place.begin(written)
    durable.keep(place.private / "server.pem", made.server)
    durable.keep(place.private / "server.key", made.key)
    durable.keep(place.card_path, msgspec.json.format(msgspec.json.encode(card), indent=2))
    app.write_app(folder / "app")
    for line in str(written).split("\n"):
        click.echo(printable(line))
    click.echo(f"give {place.plan_path} and {place.card_path} to every site; keep the rest")


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option("--wait", type=float, default=60.0, show_default=True,
    help="Seconds after which a site that did not reply is silent.")  # fmt: skip
@click.option("--gather", type=float, default=600.0, show_default=True,
    help="Seconds to wait for sites to connect.")  # fmt: skip
@click.option("--bind", metavar="HOST:PORT",
    help="Where to listen, if not at the plan's address: 0.0.0.0:8443.")  # fmt: skip
def run(folder: Path, wait: float, gather: float, bind: str | None) -> None:
    """Ask the sites everything that the plan says, and write the result."""
    if bind is not None:
        _check_address("--bind", bind)
    place = StudyFolder(folder)
    found = place.plan()
    if place.finished:
        raise InvalidParameter("FOLDER", "one without a result", str(folder))
    app.need_flower(place.private / "flower")
    with (
        alone(place.private / "run.lock", "this study"),
        SuperLink(place, found, bind=bind, say=_say) as link,
        FlowerCarrier(link, found, wait=wait, say=_say) as carry,
    ):
        _await(carry, found, gather)
        leader = Coordinator(found, identity=place.identity, folder=place, carrier=carry, say=_say)
        published = _concluded(leader)
        kept = place.keep_results(published)
        for name, path in kept.items():
            if len(published) > 1:
                click.echo(printable(name))
            print_document(published[name])
            click.echo(f"written to {path}", err=True)
        leader.end()


@command.command()
@click.argument("folder", type=_FOLDER)
def status(folder: Path) -> None:
    """Show who signed a plan, and how far its questions came."""
    place = StudyFolder(folder)
    found = place.plan()
    for line in str(found).split("\n"):
        click.echo(printable(line))
    agreed = place.agreed
    for name in found.terms.names:
        click.echo(f"{printable(name)}: {'signed' if name in agreed else 'not heard of'}")
    for number, attempts in enumerate(place.attempts):
        who = place.who(number)
        how = "no answer" if who is None else f"answered by {len(who)} sites"
        click.echo(f"question {number}: {how}, {attempts} attempts")
    click.echo("finished" if place.finished else "not finished")


def _check_address(option: str, given: str) -> str:
    """The host of an address."""
    host, _, port = given.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise InvalidParameter(option, "like 10.0.0.5:8000", given)
    return host


def _concluded(leader: Coordinator) -> dict[str, Documented]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed with the result
        return leader.run()


def _await(carry: FlowerCarrier, found: Plan, gather: float) -> None:
    """Until every site is connected, or enough of them and time is up."""
    end, said = time.monotonic() + gather, None
    while True:
        present = carry.present()
        missing = [name for name in found.terms.names if name not in present]
        if not missing or time.monotonic() >= end:
            return
        if missing != said:
            _say(f"waiting for {', '.join(missing)}")
            said = missing
        time.sleep(0.5)


def _say(text: str) -> None:
    click.echo(printable(text), err=True)
