"""``dpfda regress``: a private linear or logistic regression of one column on others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from dpfda import _validate
from dpfda.central.regression.base import RegressionMechanism
from dpfda.central.regression.model import RegressionModel
from dpfda.cli._output import check_outputs, delta_option, draw, print_regression, publish
from dpfda.cli._reading import (
    Data,
    are_several,
    feature_ranges,
    files_argument,
    filled_by,
    fit_files,
    public_domain,
    public_labels,
    read_ranges,
    reading_from,
    reading_options,
    releasing,
)
from dpfda.cli._record import check_record, open_ledger, spending_options, write_record
from dpfda.curves.files import Reading
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidParameter
from dpfda.estimators.file_block import FileBlock
from dpfda.estimators.private_curve_regression import PrivateCurveRegression
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_logistic_regression import PrivateLogisticRegression
from dpfda.privacy.ledger import BaseLedger

_STREAMED = {".csv", ".tsv", ".txt", ".parquet"}


@click.command(name="regress")
@files_argument
@click.option("--target", required=True, help="Column to predict.")
@click.option("--link", type=click.Choice(["linear", "logistic"]), default="linear",
    show_default=True, help="Type of the target: linear for a number, logistic for "
    "two classes.")  # fmt: skip
@click.option("--mechanism", type=click.Choice(sorted(RegressionMechanism.members())),
    default="moments", show_default=True, help="Mechanism of the regression.")  # fmt: skip
@click.option("--epsilon", type=float, required=True, help="Privacy budget ε of the whole fit.")
@delta_option
@click.option("--feature-ranges", metavar="RANGES",
    help="Public ranges: 0:1 for all, or for the columns that they name age=18:99,weight=30:150, "
    "or, with categories, JSON or a .json or .toml file: "
    '{"age": [18, 99], "sex": ["f", "m"]}.')  # fmt: skip
@click.option("--feature-norm-bound", type=float,
    help="Instead of --feature-ranges: public bound on a row's length.")  # fmt: skip
@click.option("--range", "value_range", type=(float, float), metavar="LOW HIGH",
    help="Instead of --feature-ranges, where a row is a curve: the public range of its "
    "values.")  # fmt: skip
@click.option("--curves", is_flag=True,
    help="A row is a curve, whose range is found privately if --range is left out.")  # fmt: skip
@click.option("--domain-range", type=(float, float), metavar="START END",
    help="Public domain of curves. Default: that of the grid points.")  # fmt: skip
@click.option("--target-range", type=(float, float), metavar="LOW HIGH",
    help="Public range of the target (linear); values outside are moved to its ends.")  # fmt: skip
@click.option("--classes", help="The public labels (logistic): no,yes or a,b,c.")
@reading_options(without={"label": "the column to predict is --target",
    "grid": "columns of a table are features, not points of a curve"})  # fmt: skip
@spending_options("model")
def command(
    files: tuple[Path, ...], as_json: bool, out: Path | None, plot: Path | None, **options: object
) -> None:
    """Fit a private linear or logistic regression.

    FILE is CSV, TSV, Parquet, Feather, NPZ or XLSX, a folder or quoted pattern of such files, or
    an address like s3://... Bounds are public knowledge and must be given:
    --feature-ranges for features in their own units, or --feature-norm-bound for rows that are
    scaled already; values outside are moved to the bound. CSV and Parquet files are read in chunks,
    once for each stage of the mechanism. Without --ledger every run spends its budget anew.

    With --range or --curves a row is a curve, its other columns are points in the order of the
    file, and the result is a slope function with a band.

    The default mechanism is designed for prediction and clips rows. To estimate coefficients,
    use --mechanism gaussian_fm.
    """
    _check(options)
    check_outputs(out, plot)
    told = check_record(options, out)
    reading = reading_from(options)
    make = _curve_model if options["curves"] else _table_model
    found, ledger = make(files, reading, options)
    publish(found, out, as_json, print_regression)
    write_record(found, told, ledger=ledger)
    if plot is not None:
        draw(found, plot)


def _curve_model(
    files: tuple[Path, ...], reading: Reading, options: dict[str, Any]
) -> tuple[RegressionModel, BaseLedger | None]:
    """Fit a regression of a number on curves."""
    target, reading = options["target"], filled_by(reading, options)
    data = Data.of(files, reading, options["scheduler"], aside={target: "--target"})
    rows = data.rows
    given = ("epsilon", "delta", "unit", "mechanism", "value_range", "target_range")
    estimator = PrivateCurveRegression(
        **{name: options[name] for name in given},
        domain_range=public_domain(rows, options["domain_range"]),
        ledger=open_ledger(options),
        random_state=options["seed"],
    )
    y = None if data.several else rows.numbers([target])[:, 0]
    data.fit(estimator, rows.X, y, points=rows.grid_points, target=target)
    return estimator.model_, estimator.ledger


def _table_model(
    files: tuple[Path, ...], reading: Reading, options: dict[str, Any]
) -> tuple[RegressionModel, BaseLedger | None]:
    """Fit a regression of a number, or of a class, on the columns of a table."""
    named = options["feature_ranges"] and read_ranges(options["feature_ranges"])
    if isinstance(named, dict) and reading.columns is None:
        reading = reading.choosing(list(named), by="--feature-ranges")
    opened = reading.open(files[0], aside=[options["target"]])
    features = reading.chosen(opened, aside={options["target"]: "--target"})
    ranges = feature_ranges(options["feature_ranges"], features)
    if (ranges is None) == (options["feature_norm_bound"] is None):
        rule = "given, one of them: bounds are public"
        raise InvalidParameter("--feature-ranges or --feature-norm-bound", rule, None)
    options["feature_ranges"], reading = ranges, filled_by(reading, options)
    estimator, scheduler = _estimator(options), options["scheduler"]
    public = None if ranges is None else PublicColumns.of(ranges)
    names = options["classes"] if options["link"] == "logistic" else None
    known = (options["target"], public, names, reading, tuple(features))
    blocks = [FileBlock(path, *known) for path in files]
    with releasing(reading):
        if are_several(files, scheduler, reading):
            fit_files(estimator, blocks, scheduler=scheduler, said=", ".join(opened.said))
        else:
            _fit(estimator, blocks[0], options["mechanism"])
    named = estimator.model_ if ranges is not None else estimator.model_.named(features)
    return named, estimator.ledger


def _fit(
    estimator: PrivateLinearRegression | PrivateLogisticRegression, block: FileBlock, mechanism: str
) -> None:
    """Fit to the whole file, or in chunks if file and mechanism allow it."""
    opened, reading = block.opened(), block.reading
    streamed = bool(_STREAMED & {suffix.lower() for suffix in opened.path.suffixes[-2:]})
    streamed = streamed and RegressionMechanism.named(mechanism).additive and not reading.groups
    said: list[str] = []

    def one_pass() -> Iterator[tuple[Any, Any]]:
        count = 0
        for X, y in block():
            yield X, y
            count += len(y)
        if count < 2:
            opened.table()  # raises the error
        if not said:
            said.append(reading.said(opened, count))
            click.echo(said[0], err=True)  # before anything is spent

    if streamed:
        estimator.fit_stream(one_pass)
        return
    table = block.kept(opened, opened.table())
    click.echo(reading.said(opened, len(table)), err=True)
    persons = None if reading.groups is None else table.text(reading.groups)
    estimator.fit(*block.chunk(opened, table), groups=persons)


def _check(options: dict[str, Any]) -> None:
    """Check options and name them as on the command line."""
    _validate.positive("--epsilon", options["epsilon"])
    _validate.delta("--delta", options["delta"])
    if options["feature_norm_bound"] is not None:
        _validate.positive("--feature-norm-bound", options["feature_norm_bound"])
    if options["value_range"] is not None:
        _validate.interval("--range", options["value_range"])
        options["curves"] = True
    if options["curves"]:
        for name in ("feature_ranges", "feature_norm_bound"):
            if options[name] is not None:
                rule = "left out with --range or --curves: rows are curves"
                raise InvalidParameter("--" + name.replace("_", "-"), rule, options[name])
        if options["link"] == "logistic":
            rule = "linear for curves (dpfda classify is for classes of curves)"
            raise InvalidParameter("--link", rule, options["link"])
    elif options["domain_range"] is not None:
        rule = "left out without --range or --curves: a table has no domain"
        raise InvalidParameter("--domain-range", rule, options["domain_range"])
    if options["link"] == "linear" and options["classes"] is not None:
        rule = "left out, or given with --link logistic, which predicts classes"
        raise InvalidParameter("--classes", rule, options["classes"])
    if options["link"] == "logistic":
        options["classes"] = public_labels(options["classes"])
    elif options["target_range"] is None:
        raise InvalidParameter("--target-range", "given: the public low and high of --target", None)
    else:
        _validate.interval("--target-range", options["target_range"])
    if options["seed"] is not None:
        _validate.whole("--seed", options["seed"], least=0)


def _estimator(
    options: dict[str, Any],
) -> PrivateLinearRegression | PrivateLogisticRegression:
    given = ("epsilon", "delta", "unit", "mechanism", "feature_ranges", "feature_norm_bound")
    shared = {name: options[name] for name in given}
    shared |= {"ledger": open_ledger(options), "random_state": options["seed"]}
    if options["link"] == "logistic":
        return PrivateLogisticRegression(**shared, classes=options["classes"])
    return PrivateLinearRegression(**shared, target_range=options["target_range"])
