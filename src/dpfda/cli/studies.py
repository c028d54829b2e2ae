"""``dpfda studies``: manage the studies of a collector."""

from __future__ import annotations

import json
import tomllib
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpfda.cli._administered import administered
from dpfda.cli._output import json_option
from dpfda.client.administrator import Administrator
from dpfda.collector.pages.templating import phase_name
from dpfda.errors import InvalidParameter, MissingExtra, printable
from dpfda.protocol.plan import check_information
from dpfda.report.terminal import to_json

_COLUMNS = {
    "id": "id",
    "title": "title",
    "status": "status",
    "kind": "asked now",
    "answered": "answered in it",
    "wanted": "wanted in it",
    "enrolled": "links and places",  # links and places that were given out, used or not
}
_SHOWN = {name: name for name in ("id", "hash", "title", "status")} | {
    "kind": "asked now",
    "answered": "answered in it",
    "wanted": "wanted in it",
    "issued": "tasks handed out in it",
    "open": "open to anybody",
    "successor": "next round",
    "verdict": "found",
}


@click.group()
def command() -> None:
    """Manage the studies of a collector.

    A STUDY is named by its id or by its plan's hash.
    """


@command.command(name="list")
@click.option("--most", default=50, show_default=True, type=click.IntRange(0),
    help="Number of studies, newest first; 0 lists all.")  # fmt: skip
@administered
def list_studies(administrator: Administrator, most: int, as_json: bool) -> None:
    """List the studies, newest first."""
    found = list(islice(administrator.studies(), most + 1 if most else None))
    if most and len(found) > most:
        found.pop()
        click.echo("there are older ones: --most 0 lists all", err=True)
    if as_json:
        click.echo(to_json(found))
        return
    table = Table()
    for name, heading in _COLUMNS.items():
        table.add_column(heading, no_wrap=name == "id")
    for study in found:
        words = [_in_words(study).get(name) for name in _COLUMNS]
        table.add_row(*(Text(printable("–" if one is None else one, most=60)) for one in words))
    Console(markup=False).print(table) if found else click.echo("there is no study")


@command.command()
@click.argument("study")
@administered
def show(study: str, administrator: Administrator, as_json: bool) -> None:
    """Show one study: its phase, the number of replies, and its result."""
    _print(administrator.study(study) | {"verdict": administrator.verdict(study)}, as_json)


@command.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--deadline", type=float, metavar="SECONDS",
    help="End a phase this long after its first task, without the missing replies.")  # fmt: skip
@click.option("--lapse", type=float, metavar="SECONDS",
    help="Give a task to another person if there is no reply this long after it was "
    "shown; 3600 by default.")  # fmt: skip
@click.option("--information", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with what participants read before they consent: version, institution, "
    "contact, purpose; and officer, approval, risks, retention, results. It becomes part of the "
    "plan and changes its hash.")  # fmt: skip
@click.option("--open", "anybody", is_flag=True,
    help="Let anybody take part, not only invited people.")  # fmt: skip
@click.option("--address-share", type=float, metavar="SHARE",
    help="Largest share of the people of an open study with the same address; 0.1 "
    "by default, 1 for a clinic whose people share an address.")  # fmt: skip
@click.option("--address-hourly", type=int, metavar="PEOPLE",
    help="Largest number of people per hour from one address in an open study, after the first "
    "20; 60 by default, 0 for any number.")  # fmt: skip
@administered
def create(
    plan: Path,
    deadline: float | None,
    lapse: float | None,
    information: Path | None,
    anybody: bool,
    address_share: float | None,
    address_hourly: int | None,
    administrator: Administrator,
    as_json: bool,
) -> None:
    """Create a study with the plan that dpfda plan has written."""
    try:
        contract = json.loads(plan.read_bytes())
    except (ValueError, RecursionError):
        raise InvalidParameter("PLAN", "a file that dpfda plan wrote", plan.name) from None
    if information is not None:
        contract["information"] = _information(information)
    chosen: dict[str, Any] = {"deadline": deadline, "lapse": lapse, "open": anybody or None}
    chosen |= {"address_share": address_share, "address_hourly": address_hourly}
    settings = {name: value for name, value in chosen.items() if value is not None}
    found = administrator.create(contract, **settings)
    for warning in found.get("warnings") or ():
        click.echo(f"warning: {printable(warning)}", err=True)
    _print(found, as_json)
    if not as_json:
        click.echo(f"people's page: {_page(administrator.url, found)}")


def _information(file: Path) -> dict[str, str]:
    try:
        return check_information(tomllib.loads(file.read_text(encoding="utf-8")))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InvalidParameter("--information", "a TOML file", file.name) from None


def _page(url: str, study: dict[str, Any], *, token: str = "") -> str:
    """The participant page: the one that the collector states, or the one at its address."""
    page = printable(study.get("page") or f"{url.rstrip('/')}/take-part/{study['hash']}")
    return f"{page}{'&' if '#' in page else '#'}invitation={token}" if token else page


@command.command()
@click.argument("study")
@click.option(
    "--people", type=click.IntRange(1, 100_000), required=True, help="Number of invitations."
)
@click.option("--links", is_flag=True, help="Print links to the participant page.")
@administered
def invite(
    study: str, people: int, links: bool, administrator: Administrator, as_json: bool
) -> None:
    """Invite people: print one line for each of them. Each line allows one reply.

    The lines are shown only once. People open a link (--links), or join with dpfda join
    --invitation.
    """
    made = administrator.invite(study, people)
    if links:
        found = administrator.study(study)
        made = [_page(administrator.url, found, token=token) for token in made]
    click.echo(to_json(made) if as_json else "\n".join(printable(one) for one in made))


@command.command()
@click.argument("study")
@administered
def close(study: str, administrator: Administrator, as_json: bool) -> None:
    """End the current phase of a study with the replies that have arrived."""
    _print(administrator.close(study), as_json)


@command.command()
@click.argument("study")
@click.option("--out", type=click.Path(path_type=Path), required=True,
    help="A new folder for plan, models and randomized replies.")  # fmt: skip
@administered
def export(study: str, out: Path, administrator: Administrator, as_json: bool) -> None:
    """Write a study to files: plan and state, models, randomized replies.

    model.json is the latest model, for dpfda show and dpfda predict; models.json has all models,
    each with its summary.
    """
    if out.exists():
        raise InvalidParameter("--out", "a folder that does not exist yet", str(out))
    files = administrator.export(study, out)
    shown = [str(file) for file in files]
    click.echo(to_json(shown) if as_json else "\n".join(shown))


@command.command()
@click.argument("study")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@administered
def purge(study: str, yes: bool, administrator: Administrator, as_json: bool) -> None:
    """Delete the replies of a study's finished phases.

    Models are kept, and receipts can still be checked.
    """
    _be_sure(f"Delete the replies of {printable(study)}?", yes)
    _forgotten("purged", study, administrator.purge(study), as_json)


@command.command()
@click.argument("study")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@administered
def delete(study: str, yes: bool, administrator: Administrator, as_json: bool) -> None:
    """End a study in any state, and delete all its data.

    Places, replies, models and receipts are deleted permanently; its plan cannot be used on this
    collector again.
    """
    _be_sure(f"Delete {printable(study)} permanently?", yes)
    _forgotten("deleted", study, administrator.delete(study), as_json)


@command.command()
@click.argument("study")
@click.argument("name")
@administered
def give(study: str, name: str, administrator: Administrator, as_json: bool) -> None:
    """Transfer a study to another owner, who can change it from now on.

    NAME is an owner from `dpfda organizers list`, or administrator.
    """
    administrator.give(study, name)
    told = {"study": study, "owner": name}
    click.echo(to_json(told) if as_json else f"{study} belongs to {name}")


@command.command(name="confirm-clock")
@administered
def confirm_clock(administrator: Administrator, as_json: bool) -> None:
    """Confirm that the system clock of a collector is right after it has jumped.

    A collector ignores a jump of more than a minute until it is confirmed. Then phases whose
    deadlines have passed end.
    """
    jump = administrator.confirm_clock()
    if as_json:
        click.echo(to_json({"jump_seconds": jump}))
    else:
        click.echo(f"deadlines follow the system clock, which had jumped by {jump:.0f} s")


@command.command()
@click.argument("copy")
@click.argument("original")
@json_option
def verify(copy: str, original: str, as_json: bool) -> None:
    """Compare a copy of a collector's database with the original.

    Both are files of SQLite, or URLs of databases without a password (PGPASSWORD holds it); nothing
    is written to either. Replies that are in both must be equal, and the copy may lack later
    replies. The exit status is 1 if the copy contains anything that the original does not.
    """
    try:
        from dpfda.collector.storage.verify import compare
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "service") from None
    found = compare(copy, original)
    if as_json:
        click.echo(to_json([msgspec.to_builtins(one) for one in found]))
    else:
        for one in found:
            (mine, theirs), (early, late) = one.replies, one.models
            counts = f"{mine} of {theirs} replies, {early} of {late} models"
            click.echo(f"{one.study}: {one.outcome}, {counts}")
        behind = sum(one.outcome == "behind" for one in found)
        click.echo(f"{len(found)} studies; the copy is behind in {behind}")
    if any(one.outcome == "different" for one in found):
        click.echo("Error: the copy has something that the original does not have", err=True)
        click.get_current_context().exit(1)


def _be_sure(question: str, yes: bool) -> None:
    if not yes and not click.confirm(question, err=True):
        raise click.Abort


def _forgotten(what: str, study: str, done: bool, as_json: bool) -> None:
    if as_json:
        click.echo(to_json({"study": study, what: True, "done": done}))
    else:
        click.echo(f"{what}{'' if done else '; the collector is still removing rows'}: {study}")


def _print(study: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(to_json(study))
        return
    words = _in_words(study)
    if "verdict" in study:
        words |= {"verdict": " ".join(study["verdict"]["sentences"])}
    for name, heading in _SHOWN.items():
        if words.get(name) is not None:
            click.echo(f"{heading}: {printable(words[name])}")


def _in_words(study: dict[str, Any]) -> dict[str, Any]:
    """The status in the words of the pages; a finished study has no current question."""
    if study.get("status") == "finished":
        return study | dict.fromkeys(("kind", "answered", "wanted", "issued"))
    return study | {"kind": phase_name(str(study.get("kind", "")))}
