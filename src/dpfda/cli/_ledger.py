"""Options that let a command spend from a budget on disk, shared by all commands that release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dpfda.cli._output import check_writable
from dpfda.errors import InvalidParameter
from dpfda.privacy.ledger_file import FileLedger


def ledger_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--ledger`` and ``--ledger-limit``; `open_ledger` reads them."""
    limit = click.option(
        "--ledger-limit",
        type=(float, float),
        metavar="EPSILON DELTA",
        help="Begin the file: ε and δ that all releases together may cost.",
    )
    ledger = click.option(
        "--ledger",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File with the data set's budget over all runs; spent before noise is drawn.",
    )
    return ledger(limit(command))


def open_ledger(options: dict[str, Any]) -> FileLedger | None:
    """The ledger that the options name; one that does not exist needs a limit."""
    path, limit = options["ledger"], options["ledger_limit"]
    check_writable("--ledger", path)
    if path is None:
        if limit is not None:
            raise InvalidParameter("--ledger", "given with --ledger-limit", None)
        return None
    if limit is None:
        if not path.exists():
            raise InvalidParameter("--ledger-limit", f"given: {path.name} does not exist", None)
        return FileLedger(path)
    return FileLedger(path, limit_epsilon=limit[0], limit_delta=limit[1])
