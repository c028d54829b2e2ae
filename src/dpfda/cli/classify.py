"""``dpfda classify``: a private classifier of the curves of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpfda import _validate
from dpfda.cli._output import check_outputs, draw, output_options, print_regression, publish
from dpfda.cli._reading import (
    are_several,
    files_argument,
    filled_by,
    fit_files,
    public_domain,
    public_labels,
    reading_from,
    reading_options,
    releasing,
)
from dpfda.cli._record import (
    check_record,
    ledger_options,
    open_ledger,
    record_options,
    write_record,
)
from dpfda.errors import InvalidParameter
from dpfda.estimators.file_block import RowsBlock, check_labels, grid_of
from dpfda.estimators.private_curve_classifier import PrivateCurveClassifier


@click.command(name="classify")
@files_argument
@click.option(
    "--classes",
    help=("The public labels: no,yes or a,b,c. Only a simulation may take them from the file."),
)
@click.option("--epsilon", type=float, required=True, help="Privacy budget ε of the whole fit.")
@click.option("--delta", type=float, default=1e-5, show_default=True, help="δ; 0 for pure ε.")
@click.option("--range", "--value-range", "value_range", type=(float, float), metavar="LOW HIGH",
    help="Public range of the values of a curve; if left out, found privately.")  # fmt: skip
@click.option("--domain-range", type=(float, float), metavar="START END",
    help="Public domain of the curves. Default: that of the grid points.")  # fmt: skip
@reading_options()
@click.option("--unit", default="person", show_default=True, help="Whose data one row is.")
@click.option(
    "--seed",
    type=int,
    help="Seeded simulation instead of exact noise: not private; spends --ledger too.",
)
@ledger_options
@output_options("model")
@record_options
def command(
    files: tuple[Path, ...], as_json: bool, out: Path | None, plot: Path | None, **options: Any
) -> None:
    """Fit a private classifier to a file of curves, or to several.

    FILE is CSV, TSV, Parquet, Feather, NPZ or XLSX, a folder or quoted pattern of such files, or
    an address like s3://...; a row is a curve, and --label the column of its class.
    The set of labels is public knowledge and must be given: a set taken from the file would not be
    private. The range of the values, if left out, is found privately, from n·ε = 500 on with a δ
    and 1000 without. Without --ledger every run spends its budget anew.
    """
    check_outputs(out, plot)
    told = check_record(options, out)
    reading = reading_from(options)
    label = reading.label
    if label is None:
        raise InvalidParameter("--label", "given: the column of classes", None)
    classes = options["classes"]
    if classes is not None or options["seed"] is None:
        classes = public_labels(classes)
    _validate.positive("--epsilon", options["epsilon"])
    if options["value_range"] is not None:
        _validate.interval("--range", options["value_range"])
    reading, scheduler = filled_by(reading, options), options["scheduler"]
    several = are_several(files, scheduler, reading)
    rows = reading.head(files[0]) if several else reading.rows(files[0])
    labels = rows.text(label)
    if classes is not None:
        check_labels(labels, classes, label, row=rows.row)
    classifier = PrivateCurveClassifier(
        epsilon=options["epsilon"],
        value_range=options["value_range"],
        classes=classes,
        delta=options["delta"],
        domain_range=public_domain(rows, options["domain_range"]),
        unit=options["unit"],
        ledger=open_ledger(options),
        random_state=options["seed"],
    )
    if several:
        names = public_labels(options["classes"])
        known: Any = {"grid": grid_of(rows), "label": label, "names": names}
        blocks = [RowsBlock(path, reading, **known) for path in files]
        points = rows.grid_points
        with releasing(reading):
            fit_files(classifier, blocks, scheduler=scheduler, said=rows.said, points=points)
    else:
        click.echo(rows.said, err=True)
        persons = None if reading.groups is None else rows.text(reading.groups)
        with releasing(reading):
            classifier.fit(rows.X, labels.astype(str), grid_points=rows.grid_points, groups=persons)
    publish(classifier.model_, out, as_json, print_regression)
    write_record(classifier.model_, told, ledger=classifier.ledger)
    if plot is not None:
        draw(classifier.model_, plot)
