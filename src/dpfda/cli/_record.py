"""Options of all commands that release: ``--report``, ``--record``, and a budget on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import click

from dpfda.cli._group import Complaint
from dpfda.cli._output import check_writable, options_of, output_options
from dpfda.errors import InvalidParameter
from dpfda.privacy.deployment import check_words, to_yaml
from dpfda.privacy.ledger import BaseLedger
from dpfda.privacy.ledger_file import FileLedger
from dpfda.report.documents import Documented
from dpfda.report.report import Report

_NEEDED = {
    "curator": "who holds the data and is responsible for them",
    "data": "whose data they are, and what they contain",
    "date": "the day of publication, like 2026-01-31",
}
_TOLD = (*_NEEDED, "purpose")
_FILES = ("report", "record")

Command = Callable[..., Any]


class Reporting(Protocol):
    """A document, or an estimator whose report has more content."""

    def report(self, *, ledger: BaseLedger | None, **words: str) -> Report:
        """Create a report of one page."""


_PATH = click.Path(dir_okay=False, path_type=Path)

record_options = options_of(
    click.option("--report", type=_PATH, help="Write one HTML page here: results, guarantee in "
    "plain words, picture, paragraph for a paper, deployment record."),
    click.option("--record", type=_PATH, help="Write an entry for a public registry of "
        "deployments here (YAML, or .json), with a paragraph for a paper; takes --curator, "
        "--data and --date."),
    *(click.option(f"--{name}", help=f"For the record: {what}.")
      for name, what in _NEEDED.items()),
    click.option("--purpose", help="For the record: what the release is for."),
)  # fmt: skip
"""``--report``, ``--record`` and their facts; `check_record` and `write_record` read them."""


def check_record(options: dict[str, Any], beside: Path | None = None) -> dict[str, Any]:
    """Take the options of report and record out of the others and check them before any cost.

    Args:
        options: options of the command.
        beside: another file that the command reads or writes.
    """
    asked = {name: options.pop(name) for name in (*_FILES, *_TOLD)}
    given = [name for name in _TOLD if asked[name] is not None]
    if given and all(asked[name] is None for name in _FILES):
        rule = "left out without --record or --report"
        raise InvalidParameter(f"--{given[0]}", rule, asked[given[0]])
    if given or asked["record"] is not None:
        for name, what in _NEEDED.items():
            if asked[name] is None:
                other = "--record" if asked["record"] is not None else f"--{given[0]}"
                raise InvalidParameter(f"--{name}", f"given with {other}: {what}", None)
        check_words(**{name: asked[name] for name in _NEEDED}, mark="--")
    for name in _FILES:
        check_writable(f"--{name}", asked[name])
    if asked["report"] is not None and asked["report"] in (asked["record"], beside):
        raise InvalidParameter("--report", "a file of its own", str(asked["report"]))
    return asked


def write_record(
    document: Documented,
    asked: dict[str, Any],
    *,
    source: Reporting | None = None,
    ledger: BaseLedger | None = None,
) -> None:
    """Write the report and the record of a release, if requested.

    Args:
        document: what was released.
        asked: result of `check_record`.
        source: object that writes the report, such as the estimator; by default the document.
        ledger: the budget of the data.
    """
    if ledger is not None and ledger.warning:
        click.echo(f"warning: {ledger.warning}", err=True)
    words = {name: asked[name] for name in _TOLD}
    if (path := asked["record"]) is not None:
        record = document.deployment_record(**words, ledger=ledger)
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        _write("record", path, text if path.suffix == ".json" else to_yaml(record))
    if (path := asked["report"]) is not None:
        page = (source or document).report(**words, ledger=ledger)
        _write("report", path, page.html())


def _write(what: str, path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:  # `dpfda show` can create it again from the released document
        raise Complaint(f"the {what} was not written: {error.strerror}") from None
    click.echo(f"{what} written to {path}", err=True)


def spending_options(what: str) -> Callable[[Command], Command]:
    """Add the common options of commands that spend a budget to publish something.

    These are the unit, the seed, a ledger (`open_ledger`), `output_options` and `record_options`.

    Args:
        what: what is published.
    """
    return options_of(
        click.option("--unit", default="person", show_default=True, help="Whose data one row is."),
        click.option("--seed", type=int, help="Seeded simulation instead of exact noise: not "
    "private; charges --ledger, too."),
        click.option("--ledger", type=_PATH, help="File with the budget of the data set, shared "
    "by all runs; charged before noise is drawn."),
        click.option("--ledger-limit", type=(float, float), metavar="EPSILON DELTA",
            help="Create the ledger with this limit: ε and δ of all releases together."),
        click.option("--analysis", metavar="NAME",
            help="Public name of this analysis, for --ledger."),
        output_options(what),
        record_options,
    )  # fmt: skip


def open_ledger(options: dict[str, Any]) -> FileLedger | None:
    """Open the ledger of the options; a new one needs a limit."""
    path, limit = options["ledger"], options["ledger_limit"]
    check_writable("--ledger", path)
    if path is None:
        for option in ("ledger_limit", "analysis"):
            if options[option] is not None:
                other = f"given with --{option.replace('_', '-')}"
                raise InvalidParameter("--ledger", other, None)
        return None
    if limit is None and not path.exists():
        raise InvalidParameter("--ledger-limit", f"given: {path.name} does not exist", None)
    epsilon, delta = limit or (None, None)
    ledger = FileLedger(path, limit_epsilon=epsilon, limit_delta=delta)
    ledger.analysis = options["analysis"]
    return ledger
