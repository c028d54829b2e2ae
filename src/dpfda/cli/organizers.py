"""``dpfda organizers``: who may create, change and read the studies of a collector."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpfda.cli._administered import administered
from dpfda.cli._output import options_of
from dpfda.client.administrator import Administrator
from dpfda.collector.pages.templating import act_name
from dpfda.errors import InvalidParameter, printable
from dpfda.report.terminal import to_json

_save = options_of(
    click.option("--save", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Write the key to this new file, which other users cannot read, and do not print it."),
)  # fmt: skip


@click.group()
def command() -> None:
    """Manage the organizers of a collector.

    The key of dpfda serve is the administrator's. The administrator adds owners, who create studies
    and change their own, and viewers, who read all studies. Each has a key of their own.
    """


@command.command()
@click.argument("name")
@click.option("--role", type=click.Choice(["owner", "viewer"]), required=True,
    help="An owner creates studies and changes their own; a viewer only reads.")  # fmt: skip
@_save
@administered
def add(
    name: str, role: str, save: Path | None, administrator: Administrator, as_json: bool
) -> None:
    """Add an organizer and print their key, which is shown only now.

    NAME consists of lowercase letters, digits and hyphens. A name is never reused, even after its
    organizer was removed.
    """
    _check_new(save)
    _tell(name, administrator.add_organizer(name, role), save, as_json)


@command.command(name="list")
@administered
def list_organizers(administrator: Administrator, as_json: bool) -> None:
    """List the organizers besides the administrator."""
    found = administrator.organizers()
    if as_json:
        click.echo(to_json(found))
        return
    table = Table()
    for heading in ("name", "role", "added", "key made"):
        table.add_column(heading)
    for one in found:
        days = [_day(one.get(when)) for when in ("created", "rotated")]
        cells = [one.get("name"), one.get("role"), *days]
        table.add_row(*(Text(printable(cell, most=40)) for cell in cells))
    Console(markup=False).print(table) if found else click.echo("there is no other organizer")


@command.command()
@click.argument("name")
@_save
@administered
def rotate(name: str, save: Path | None, administrator: Administrator, as_json: bool) -> None:
    """Make a new key for an organizer; the old key and its sessions end at once.

    Organizers can do this for themselves with their old key.
    """
    _check_new(save)
    _tell(name, administrator.rotate_key(name), save, as_json)


@command.command()
@click.argument("name")
@administered
def remove(name: str, administrator: Administrator, as_json: bool) -> None:
    """Remove an organizer; the key and its sessions end at once.

    Their studies continue. The administrator can change them, or give them to an owner with dpfda
    studies give.
    """
    administrator.remove_organizer(name)
    click.echo(to_json({"removed": name}) if as_json else f"removed: {name}")


@command.command()
@click.option("--most", default=50, show_default=True, type=click.IntRange(1, 200),
    help="Number of entries, newest first.")  # fmt: skip
@administered
def activity(administrator: Administrator, most: int, as_json: bool) -> None:
    """Print the log of organizers' actions, newest first."""
    found = administrator.activity(most)
    if as_json:
        click.echo(to_json(found))
        return
    for one in found:
        moment = time.strftime("%Y-%m-%d %H:%M", time.gmtime(float(one["at"])))
        words = act_name(str(one["what"]), str(one["detail"]))
        study = f" ({one['study']})" if one.get("study") else ""
        click.echo(printable(f"{moment} {one['who']} {words}{study}"))


def _check_new(file: Path | None) -> None:
    """Check the file before the key is created, because the key would otherwise be lost."""
    if file is not None and (file.exists() or not file.absolute().parent.is_dir()):
        rule = "a file that does not exist yet, in a folder that does"
        raise InvalidParameter("--save", rule, str(file))


def _tell(name: str, key: str, file: Path | None, as_json: bool) -> None:
    if file is not None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(key + "\n")
        told: dict[str, str] = {"name": name, "file": str(file)}
        click.echo(to_json(told) if as_json else f"the key of {name} is in {file}")
    elif as_json:
        click.echo(to_json({"name": name, "key": key}))
    else:
        click.echo(f"the key of {name}, shown only now:", err=True)
        click.echo(printable(key))


def _day(seconds: object) -> str:
    if not isinstance(seconds, (int, float)):
        return "–"
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
