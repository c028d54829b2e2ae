"""How ``dpfda release fpca`` shows components."""

from __future__ import annotations

from rich.console import Console

from dpfda.cli._release_view import print_public
from dpfda.estimators.private_fpca import PrivateFPCA
from dpfda.report.terminal import rich_table


def print_components(model: PrivateFPCA) -> None:
    """Mean and components at some points, what they explain, the promise."""
    console = Console(markup=False)
    console.print(rich_table(model.table()))
    console.print(model.in_words(), markup=False)
    print_public(console, model.release_)
