"""``dpfda data``: list the files of the papers' data, or import them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpfda.datasets.catalogue import CATALOGUE, Columns, locate, places, read
from dpfda.datasets.originals import convert, write
from dpfda.errors import DpfdaError, InvalidParameter, UnknownName
from dpfda.report.terminal import to_json

_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the data files. [default: DPFDA_DATA, else data]",
)


@click.group()
def command() -> None:
    """List the papers' data sets, or import their files."""


@command.command(name="list")
@_FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def _list(folder: Path | None, as_json: bool) -> None:
    """Show which files are present, and how to get the others."""
    facts = {name: _facts(name, folder) for name in CATALOGUE}
    if as_json:
        click.echo(to_json(facts))
        return
    for name, fact in facts.items():
        click.echo(f"{name:<20}{fact['state']:<9}{fact['to_do'] or fact['file']}")
        click.echo(f"{'':<20}{'':<9}licence: {fact['licence']}")


@command.command(name="import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@_FOLDER
@click.option("--as", "name", help="Name of the data set, if the file name is ambiguous.")
@click.option("--unverified", is_flag=True, help="Also import files whose contents "
    "differ from the catalogue; loaders read them with verify=False.")  # fmt: skip
def _import(
    paths: tuple[Path, ...], folder: Path | None, name: str | None, unverified: bool
) -> None:
    """Convert original files, or copy files of the catalogue.

    An original file is, for example, DTI.RData. Of a folder, all known files are imported.
    Nothing is downloaded.
    """
    there = _files(paths)
    wanted = [name] if name else [known for known in CATALOGUE if _given(known, there)]
    if name and name not in CATALOGUE:
        raise UnknownName("data set", name, sorted(CATALOGUE))
    if not wanted:
        names = ", ".join(sorted(path.name for path in there.values()))
        raise InvalidParameter("PATHS", "the original files of at least one data set", names)
    for known in wanted:
        originals = _given(known, there) or list(there.values())
        columns = _columns(known, originals)
        if not unverified:
            columns.check()
        click.echo(f"wrote {write(known, columns, folder or places()[0])}")


def _columns(name: str, paths: list[Path]) -> Columns:
    """The columns of a file of the catalogue; a converted file is read as it is."""
    if [path.name for path in paths] == [CATALOGUE[name].file]:
        return read(name, paths[0], verify=False)
    wanted, given = CATALOGUE[name].originals, ", ".join(path.name for path in paths)
    if len(paths) != len(wanted):
        rule = " and ".join(wanted) or CATALOGUE[name].file
        raise InvalidParameter("PATHS", f"{rule} for {name}", given)
    return Columns(convert(name, paths), name, verify=False)


def _files(paths: tuple[Path, ...]) -> dict[str, Path]:
    """Files by their lowercase names, including the files of folders."""
    found = [one for path in paths for one in (path.iterdir() if path.is_dir() else (path,))]
    return {path.name.lower(): path for path in found if path.is_file()}


def _given(name: str, there: dict[str, Path]) -> list[Path]:
    """The given files of a data set, compressed or not; empty if one is missing."""
    entry = CATALOGUE[name]
    for names in ((entry.file,), entry.originals):
        keys = [
            next((k for k in (n, f"{n}.gz") if k in there), None) for n in map(str.lower, names)
        ]
        if names and all(keys):
            return [there[key] for key in keys if key]
    return []


def _facts(name: str, folder: Path | None) -> dict[str, Any]:
    entry = CATALOGUE[name]
    facts: dict[str, Any] = {"file": entry.file, "source": entry.source, "licence": entry.licence}
    path = locate(entry, folder)
    if path is None:
        return facts | {"state": "missing", "to_do": entry.to_do}
    try:
        read(name, path)
    except DpfdaError:
        return facts | {
            "state": "other",
            "to_do": f"{entry.file} has other contents: {entry.to_do}",
        }
    return facts | {"state": "here", "to_do": None}
