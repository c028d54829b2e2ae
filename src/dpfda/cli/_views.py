"""Print each kind of released document on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dpfda.central.moments.curve_moments import CurveMoments, SyntheticCurves
from dpfda.central.moments.moments_report import means
from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.model_report import table as regression_table
from dpfda.central.release import Release
from dpfda.central.release_report import table
from dpfda.protocol.model import StudyModel, about, contents
from dpfda.report import Verdict
from dpfda.report.contents import show
from dpfda.report.terminal import rich_table

if TYPE_CHECKING:
    from dpfda.estimators.private_fpca import PrivateFPCA


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


def print_components(model: PrivateFPCA) -> None:
    """Mean and components at some points, what they explain, the promise."""
    console = Console(markup=False)
    console.print(rich_table(model.table()))
    console.print(model.in_words(), markup=False)
    print_public(console, model.release_)


def print_regression(model: RegressionModel) -> None:
    """Coefficients in the units of the features, the promise, and how to read them."""
    console = Console(markup=False)
    stages = f"{model.stages} stage{'s' * (model.stages != 1)}"
    same = model.link == model.mechanism  # as discriminants have no other way
    how = f"{model.link} analysis" if same else f"{model.link} by {model.mechanism}"
    console.print(f"{how}, {model.rows} rows, {stages}", markup=False)
    console.print(rich_table(regression_table(model)))
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
    for one in contents(model).tables:
        console.print(rich_table(one))
    console.print(str(model.guarantee), markup=False)
    for told in about(model):
        console.print(told, markup=False)
    print_verdict(console, model.verdict)


def print_moments(moments: CurveMoments) -> None:
    """Means at some points, sizes, what groups differ by, the promise."""
    console = Console(markup=False)
    console.print(rich_table(means(moments)))
    if moments.groups:
        sizes = zip(moments.groups, moments.sizes, strict=True)
        told = ", ".join(f"{name} about {size:.0f}" for name, size in sizes)
        console.print(f"sizes: {told}", markup=False)
    print_public(console, moments)


def print_synthetic(moments: CurveMoments, drawn: SyntheticCurves) -> None:
    """What curves were drawn from, and what they are good for."""
    print_moments(moments)
    Console(markup=False).print(
        f"{len(drawn)} synthetic curves were drawn from this release: they reveal no more than it "
        "does, hold means and covariances, and nothing else of the people.",
        markup=False,
    )


def print_document(loaded: Any) -> None:
    """Guarantee, ranges, numbers."""
    if isinstance(loaded, Release):
        print_release(loaded)
    elif isinstance(loaded, CurveMoments):
        print_moments(loaded)
    elif isinstance(loaded, RegressionModel):
        print_regression(loaded)
    else:
        print_study_model(loaded)
