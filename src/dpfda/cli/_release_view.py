"""How ``dpfda release`` and ``dpfda show`` show a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from dpfda.central.release import Release
from dpfda.central.shown import table
from dpfda.report import Verdict
from dpfda.report.table import show
from dpfda.report.terminal import rich_table


def print_release(release: Release) -> None:
    """A table of some points, the promise, and the public parameters."""
    console = Console(markup=False)
    console.print(rich_table(table(release)))
    print_public(console, release)


def print_public(console: Console, released: Any) -> None:
    """What a reader should know of anything released: promise, parameters, warnings."""
    console.print(repr(released), markup=False)
    for key, value in released.parameters.items():
        console.print(f"  {key}: {show(value)}", markup=False)
    print_verdict(console, released.verdict, released.warnings)


def print_verdict(console: Console, verdict: Verdict, warnings: Sequence[str] = ()) -> None:
    """What was found, in sentences, and what is to be doubted."""
    for sentence in verdict.findings:
        console.print(sentence, markup=False)
    for warning in verdict.added_to(warnings):
        console.print(f"warning: {warning}", markup=False)
