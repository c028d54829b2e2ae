"""How regressions and classifiers are shown on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from dpfda.regression.model import RegressionModel


def print_regression(model: RegressionModel) -> None:
    """Coefficients in the units of the features, the promise, and how to read them."""
    console = Console()
    title = f"{model.task} by {model.mechanism}, {model.rows} rows, {model.stages} stages"
    table = Table(title=title, title_justify="left")
    intercept, found = model.coefficients()
    stated = any(row.privacy_standard_error is not None for row in found)
    table.add_column("feature")
    table.add_column(
        "coefficient (clipped rows)" if model.fit.clips else "coefficient", justify="right"
    )
    if stated:
        table.add_column("± from privacy noise", justify="right")
    table.add_row("(intercept)", f"{intercept:.5g}")
    for row in found:
        error = row.privacy_standard_error
        shown = [] if error is None else [f"{error:.2g}"]
        table.add_row(row.feature, f"{row.value:.5g}", *shown)
    console.print(table)
    console.print(str(model.guarantee), markup=False)
    if model.classes is not None:
        console.print(f"classes: {', '.join(map(str, model.classes))}", markup=False)
    if model.target_range is not None:
        low, high = model.target_range
        console.print(f"target: {low:g} to {high:g}", markup=False)
    for note in model.notes:
        console.print(f"note: {note}", markup=False)
    for warning in model.fit.warnings:
        console.print(f"warning: {warning}", markup=False)
