"""``dpfda release``: release a private summary of a file of curves or points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import dpfda
from dpfda.cli._output import (
    check_outputs,
    check_writable,
    delta_option,
    draw,
    publish,
    write_columns,
)
from dpfda.cli._reading import (
    Data,
    feature_ranges,
    files_argument,
    filled_by,
    public_domain,
    public_labels,
    read_ranges,
    reading_from,
    reading_options,
    two_classes,
)
from dpfda.cli._record import check_record, open_ledger, spending_options, write_record
from dpfda.curves.files import Reading, Rows
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidParameter
from dpfda.estimators.central_base import CentralEstimator
from dpfda.estimators.file_block import check_labels, frame
from dpfda.report.documents import Documented

_MODELS = {
    "mean": "PrivateMean",
    "covariance": "PrivateCovariance",
    "density": "PrivateDensity",
    "function-on-scalar": "PrivateFunctionOnScalar",
    "kernel-machine": "PrivateKernelMachine",
    "moments": "PrivateMoments",
    "groups": "PrivateGroupComparison",
    "fpca": "PrivateFPCA",
    "synthetic": "PrivateMoments",
}
"""Estimators by command, imported only when used, so that help is quick."""


@click.command(name="release")
@click.argument("summary", metavar="SUMMARY", type=click.Choice(list(_MODELS)))
@files_argument
@click.option("--epsilon", type=float, required=True, help="Privacy budget ε.")
@delta_option
@click.option("--range", "value_range", type=(float, float), metavar="LOW HIGH",
    help="Public range of the values of a curve; if left out, found privately.")  # fmt: skip
@click.option("--bound", type=float,
    help="Instead of --range: public bound on √(average of (X(t) - center)²).")  # fmt: skip
@click.option("--center", type=float, help="Public level to subtract, with --bound.")
@click.option("--domain-range", type=(float, float), metavar="START END",
    help="Public domain of the curves.")  # fmt: skip
@click.option("--feature-ranges", metavar="RANGES",
    help="Public ranges of points or covariates: 0:1, dose=0:9,age=18:99, or JSON or a .json or "
    '.toml file, with categories of covariates: {"age": [18, 99], "sex": ["f", "m"]}.')  # fmt: skip
@click.option("--mechanism", help="Another mechanism: adaptive, allocation, iclp_qr, frl, ...")
@click.option("--inference", is_flag=True,
    help="Release a band for the mean of the population, too.")  # fmt: skip
@click.option("--design", type=click.Choice(["dense", "sparse"]), default="dense",
    show_default=True,
    help="sparse: only few points of each curve are known, the other cells are empty "
    "(mean).")  # fmt: skip
@click.option("--times", type=click.Choice(["uniform", "estimate"]), default="uniform",
    show_default=True, help="How the points are distributed, with --design sparse.")  # fmt: skip
@click.option("--covariates", help="Columns of covariates (function-on-scalar), comma-separated.")
@click.option("--target", help="Column to predict (kernel-machine).")
@click.option("--target-range", type=(float, float), metavar="LOW HIGH",
    help="Public range of the target, for squared loss.")  # fmt: skip
@click.option("--classes", help="Public labels: those of --label, or the two classes "
    "of the target for losses other than squared: no,yes.")  # fmt: skip
@click.option("--label", metavar="LABEL", help="Column of groups (moments, groups, synthetic).")
@click.option("--components", "n_components", type=int,
    help="Number of components (fpca); by default those above the noise level.")  # fmt: skip
@click.option("--curves", type=click.IntRange(min=1),
    help="Number of synthetic curves; by default the number of rows.")  # fmt: skip
@click.option("--csv", type=click.Path(dir_okay=False, path_type=Path),
    help="Write values and 95 % bands here, or synthetic curves.")  # fmt: skip
@click.option("--loss", type=click.Choice(["squared", "logistic", "smoothed_hinge"]),
    default="squared", show_default=True, help="Loss of the kernel machine.")  # fmt: skip
@reading_options(own=("label",))
@spending_options("release")
@click.pass_context
def command(
    context: click.Context,
    /,
    summary: str,
    files: tuple[Path, ...],
    plot: Path | None,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Release a summary of a file of curves or points, or of several.

    \b
    SUMMARY is one of
      mean                the mean curve, with a band
      covariance          how curves vary, and which points vary together
      density             where points lie, in one or more dimensions
      function-on-scalar  the effect of each covariate on the curve
      kernel-machine      a function of columns that predicts another one
      moments             means, sizes and covariances of groups at once
      groups              means of groups, compared
      fpca                the main ways in which curves differ
      synthetic           synthetic curves with the released means and covariances

    FILE is CSV, TSV, Parquet, Feather, NPZ or XLSX, a folder or quoted pattern of such files, or
    an address like s3://... A row is a curve (or a point, for densities and kernel machines); its
    columns are grid points. Bounds and ranges are public knowledge. If --range is left out, it is
    found privately; this needs n·ε of at least 500 with a δ, and 1000 without. Without --ledger
    every run spends its budget anew.
    """  # noqa: D301
    _refuse_foreign(context, summary)
    estimator: type[CentralEstimator] = getattr(dpfda, _MODELS[summary])
    check_outputs(out, plot)
    check_writable("--csv", options["csv"])
    told = check_record(options, out)
    covariates = [name.strip() for name in (options["covariates"] or "").split(",") if name.strip()]
    label = options.pop("label")  # the column of groups, not of classes to predict
    options["fill"] |= options["design"] == "sparse"  # empty cells are expected there
    reading = reading_from(options)
    curves = summary not in ("density", "kernel-machine")
    aside = dict.fromkeys(covariates, "--covariates")
    for option, column in (("--target", options["target"]), ("--label", label)):
        if column is not None:
            aside[column] = option
    reading, ranges = _with_ranges(files[0], reading, covariates, aside, options, curves=curves)
    if options["design"] == "sparse":  # an empty curve is not replaced by the center
        reading = replace(reading, center=None)
    data = Data.of(files, reading, options.pop("scheduler"), aside=aside, curves=curves)
    options |= {"label": label, "fill": reading.fill, "feature_ranges": ranges}
    model, *rows = _asked(summary, estimator, data.rows, covariates, options)
    view = _view(summary)  # loaded before anything is spent
    points = data.rows.grid_points if curves else None
    data.fit(model, *rows, points=points, **_beside(summary, label, model, options))
    release: Any = model.moments_ if summary in _GROUPED else model.release_
    shown: Any = model if summary in ("groups", "fpca") else release
    drawn = None
    if summary == "synthetic":
        drawn = shown = release.sample(options["curves"] or release.n, seed=options["seed"])
    publish(release, out, as_json, lambda released: view(released, model, drawn))
    source = release if summary in _GROUPED else model
    write_record(release, told, source=source, ledger=model.ledger)
    if options["csv"] is not None:
        _write_csv(release, drawn, options["csv"])
    if plot is not None:  # last, so that an error here cannot hide the release
        draw(shown, plot)


def _write_csv(release: Documented, drawn: Any, path: Path) -> None:
    """Write values with bands, or the synthetic curves."""
    if drawn is None:
        write_columns(release, path)
        return
    drawn.to_frame().to_csv(path, index=False)
    click.echo(f"{len(drawn)} synthetic curves written to {path}", err=True)


def _with_ranges(
    file: Path,
    reading: Reading,
    covariates: list[str],
    aside: dict[str, str],
    options: dict[str, Any],
    *,
    curves: bool,
) -> tuple[Reading, dict[str, Any] | None]:
    """The reading completed by public ranges, and the ranges of points or covariates by name."""
    text = options["feature_ranges"]
    given = None if text is None else read_ranges(text)
    if not curves and isinstance(given, dict) and reading.columns is None:
        reading = reading.choosing(list(given), by="--feature-ranges")
    names = covariates
    if given is not None and not curves:
        names = reading.chosen(reading.open(file, aside=aside), aside=aside)
    ranges = feature_ranges(text, names)
    if ranges is None or curves:
        return filled_by(reading, options), ranges
    words = [one.key for one in PublicColumns.of(ranges).columns if one.categories]
    if words:
        rule = "ranges of numbers: densities and kernel machines do not take categories"
        raise InvalidParameter("--feature-ranges", rule, words)
    return filled_by(reading, options, ranges), ranges


def _beside(summary: str, label: str | None, model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Arguments that describe the other columns of a file, for a fit of several files."""
    if summary == "function-on-scalar":
        return {"covariates": PublicColumns.of(model.feature_ranges)}
    if summary == "kernel-machine" and options["loss"] == "squared":
        return {"target": options["target"]}
    column = options["target"] if summary == "kernel-machine" else label
    return {} if column is None else {"label": column, "names": model._names_of_y()}


def _view(summary: str) -> Callable[[Any, Any, Any], None]:
    """The function that prints a summary from release, model and synthetic curves."""
    from dpfda.cli._output import print_components, print_moments, print_release, print_synthetic

    if summary == "fpca":
        return lambda _, model, __: print_components(model)
    if summary == "synthetic":
        return lambda moments, _, drawn: print_synthetic(moments, drawn)
    shown: Callable[[Any], None] = print_moments if summary in _GROUPED else print_release
    return lambda release, *_: shown(release)


_GROUPED = ("moments", "groups", "synthetic")
_CURVES = {"bound", "center", "value_range", "domain_range", "grid", "id"}
_OWN = {
    "mean": _CURVES | {"mechanism", "inference", "design", "times"},
    "covariance": _CURVES,
    "density": {"feature_ranges", "mechanism"},
    "function-on-scalar": _CURVES | {"covariates", "feature_ranges"},
    "kernel-machine": {"classes", "feature_ranges", "target", "target_range", "loss"},
    "moments": _CURVES | {"label", "classes"},
    "groups": _CURVES | {"label", "classes"},
    "fpca": _CURVES | {"n_components"},
    "synthetic": _CURVES | {"label", "classes", "curves"},
}


def _refuse_foreign(context: click.Context, summary: str) -> None:
    """Refuse options that apply only to other summaries."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name in set().union(*_OWN.values()) - _OWN[summary]:
            meant = ", ".join(kind for kind in _MODELS if name in _OWN[kind])
            raise InvalidParameter(parameter.opts[0], f"left out: it is for {meant}", summary)


def _asked(
    summary: str, model: Any, rows: Rows, covariates: list[str], options: dict[str, Any]
) -> tuple[Any, ...]:
    """The estimator of a summary with its parameters, and the data to fit."""
    shared = {
        key: options[key]
        for key in ("epsilon", "delta", "unit", *sorted(_OWN[summary]))
        if key in model().get_params() and options[key] is not None
    }
    shared |= {"random_state": options["seed"], "ledger": open_ledger(options)}
    if "feature_ranges" in _OWN[summary]:
        if summary == "function-on-scalar" and not covariates:
            raise InvalidParameter("--covariates", "given: names of columns", None)
        ranges = options["feature_ranges"]
        if ranges is None:
            rule = "given: public ranges of points or covariates"
            raise InvalidParameter("--feature-ranges", rule, None)
        named = summary == "function-on-scalar"
        shared["feature_ranges"] = ranges if named else list(ranges.values())
    if summary == "synthetic":
        shared["emphasis"] = "covariances"
    if "value_range" in _OWN[summary]:
        _check_ball(rows, options)
    if summary == "function-on-scalar":
        return model(**shared), frame(rows, PublicColumns.of(ranges), gaps=options["fill"]), rows.X
    if summary in _GROUPED and (options["label"] is not None or summary == "groups"):
        if options["label"] is None:
            raise InvalidParameter("--label", "given: the name of the column of groups", None)
        shared["groups"] = public_labels(options["classes"])
        labels = rows.text(options["label"])
        check_labels(labels, shared["groups"], options["label"], row=rows.row)
        return model(**shared), rows.X, labels
    if summary != "kernel-machine":
        return model(**shared), rows.X
    if options["target"] is None:
        raise InvalidParameter("--target", "given: the name of a column", None)
    if options["loss"] == "squared":
        return model(**shared), rows.X, rows.numbers([options["target"]])[:, 0]
    shared["classes"] = two_classes(options["classes"])
    labels = rows.text(options["target"])
    check_labels(labels, shared["classes"], options["target"], row=rows.row)
    return model(**shared), rows.X, labels


def _check_ball(rows: Rows, options: dict[str, Any]) -> None:
    """Check the options that bound the curves, so that errors name options."""
    span, bound, center = (options[key] for key in ("value_range", "bound", "center"))
    public_domain(rows, options["domain_range"])
    if span is not None and bound is not None:
        raise InvalidParameter("--bound", "left out with --range: both bound the curves", bound)
    if span is not None and center is not None:
        raise InvalidParameter(
            "--center", "left out with --range: the center is the midpoint of the range", center
        )
