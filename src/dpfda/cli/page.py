"""``dpfda page``: write the participant page, for another host."""

from __future__ import annotations

from pathlib import Path

import click

from dpfda.collector.pages.participant import write_files
from dpfda.errors import InvalidParameter


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--collector", required=True, metavar="URL", help="The collector that holds the studies."
)
def command(folder: Path, collector: str) -> None:
    """Write the participant page into FOLDER.

    Any web server can serve it. People must then trust that host for the code that processes their
    data, but need not trust the collector. The collector must allow the page with --page-url or
    --allow-origin.
    """
    try:
        written = write_files(folder, collector)
    except OSError as error:
        rule = f"a folder that can be written ({error.strerror})"
        raise InvalidParameter("folder", rule, str(folder)) from None
    for path in written:
        click.echo(str(path))
    click.echo("people's link: https://YOUR-HOST/take-part/#study=HASH", err=True)
    click.echo("the collector: dpfda serve --page-url https://YOUR-HOST", err=True)
