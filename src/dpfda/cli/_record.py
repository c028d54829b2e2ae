"""``--record``: what stands beside a release in public, of every command that releases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dpfda.cli._output import Complaint, check_writable
from dpfda.errors import InvalidParameter
from dpfda.privacy.deployment import check_words, to_yaml

_TOLD = ("curator", "data", "date", "purpose")

Command = Callable[..., Any]


def record_options(command: Command) -> Command:
    """Add ``--record`` and what a record is told; `check_record` and `write_record` read them."""
    file = click.Path(dir_okay=False, path_type=Path)
    for option in (
        click.option("--purpose", help="For the record: what the release is for."),
        click.option("--date", help="For the record: day of publication, like 2026-01-31."),
        click.option("--data", help="For the record: whose data they are, and what they say."),
        click.option("--curator", help="For the record: who holds the data and answers for it."),
        click.option("--record", type=file, help="Write an entry for a public registry of "
            "deployments here (YAML, or .json), with a paragraph for a paper."),
    ):  # fmt: skip
        command = option(command)
    return command


def check_record(options: dict[str, Any]) -> dict[str, Any]:
    """Take what a record is told out of the options; what it lacks is refused before any spend."""
    asked = {name: options.pop(name) for name in ("record", *_TOLD)}
    if asked["record"] is None:
        for name in _TOLD:
            if asked[name] is not None:
                raise InvalidParameter(f"--{name}", "left out without --record", asked[name])
        return asked
    check_words(**{name: asked[name] for name in ("curator", "data", "date")}, mark="--")
    check_writable("--record", asked["record"])
    return asked


def write_record(document: Any, asked: dict[str, Any]) -> None:
    """Write the record of a release, where one was asked for."""
    path = asked["record"]
    if path is None:
        return
    record = document.deployment_record(**{name: asked[name] for name in _TOLD})
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    try:
        path.write_text(text if path.suffix == ".json" else to_yaml(record), encoding="utf-8")
    except OSError as error:  # `dpfda show` makes it again of what was released
        raise Complaint(f"the record was not written: {error.strerror}") from None
    click.echo(f"record written to {path}", err=True)
