"""How regressions and classifiers are shown on a terminal."""

from __future__ import annotations

from rich.console import Console

from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.shown import table
from dpfda.cli._release_view import print_verdict
from dpfda.protocol import shown
from dpfda.protocol.model import StudyModel
from dpfda.report.terminal import rich_table


def print_regression(model: RegressionModel) -> None:
    """Coefficients in the units of the features, the promise, and how to read them."""
    console = Console(markup=False)
    stages = f"{model.stages} stage{'s' * (model.stages != 1)}"
    same = model.link == model.mechanism  # as discriminants have no other way
    how = f"{model.link} analysis" if same else f"{model.link} by {model.mechanism}"
    console.print(f"{how}, {model.rows} rows, {stages}", markup=False)
    console.print(rich_table(table(model)))
    console.print(str(model.guarantee), markup=False)
    if model.classes is not None:
        console.print(f"classes: {', '.join(map(str, model.classes))}", markup=False)
    if model.target_range is not None:
        console.print("target: {:g} to {:g}".format(*model.target_range), markup=False)
    for note in model.notes if not model.of_curves else ():
        console.print(f"note: {note}", markup=False)
    print_verdict(console, model.verdict, model.warnings)


def print_study_model(model: StudyModel) -> None:
    """The model of a study of people or owners."""
    console = Console(markup=False)
    console.print(model.kind, markup=False)
    for one in shown.contents(model).tables:
        console.print(rich_table(one))
    console.print(str(model.guarantee), markup=False)
    for told in shown.about(model):
        console.print(told, markup=False)
    print_verdict(console, model.verdict)
