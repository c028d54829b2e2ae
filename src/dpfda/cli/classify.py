"""``dpfda classify``: a private classifier of the curves of a file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from dpfda import _validate
from dpfda._validate import AnyArray, IntArray
from dpfda.central.score import private_score
from dpfda.cli._output import check_outputs, delta_option, draw, print_regression, publish
from dpfda.cli._reading import (
    Data,
    files_argument,
    filled_by,
    public_domain,
    public_labels,
    reading_from,
    reading_options,
    releasing,
)
from dpfda.cli._record import check_record, open_ledger, spending_options, write_record
from dpfda.curves.files import Rows
from dpfda.errors import BudgetExceeded, InvalidParameter, PrivacyWarning
from dpfda.estimators.file_block import check_labels
from dpfda.estimators.private_curve_classifier import PrivateCurveClassifier
from dpfda.estimators.reading import take
from dpfda.privacy.cost import SPEND_LESS, limit


@click.command(name="classify")
@files_argument
@click.option(
    "--classes",
    help=("The public labels: no,yes or a,b,c. Only a simulation may take them from the file."),
)
@click.option("--epsilon", type=float, required=True, help="Privacy budget ε of the whole fit.")
@delta_option
@click.option("--range", "value_range", type=(float, float), metavar="LOW HIGH",
    help="Public range of the values of a curve; if left out, found privately.")  # fmt: skip
@click.option("--domain-range", type=(float, float), metavar="START END",
    help="Public domain of the curves. Default: that of the grid points.")  # fmt: skip
@click.option("--evaluation-share", type=float,
    help="Leave this share of the people, such as 0.2, out of the fit, and release "
    "how often the classifier is right about them, with the same ε. Nobody is in "
    "both groups, but --ledger is charged for both.")  # fmt: skip
@reading_options()
@spending_options("model")
def command(
    files: tuple[Path, ...], as_json: bool, out: Path | None, plot: Path | None, **options: Any
) -> None:
    """Fit a private classifier to a file of curves, or to several.

    FILE is CSV, TSV, Parquet, Feather, NPZ or XLSX, a folder or quoted pattern of such files, or
    an address like s3://...; a row is a curve, and --label the column of its class.
    The set of labels is public knowledge and must be given: a set taken from the file would not be
    private. If the range of the values is left out, it is found privately; this needs n·ε of at
    least 500 with a δ, and 1000 without. Without --ledger every run spends its budget anew.
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
    reading = filled_by(reading, options)
    data = Data.of(files, reading, options["scheduler"])
    rows = data.rows
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
    where = "for several files" if data.several else "with --groups" if reading.groups else ""
    fitted, kept_out = _split(options, len(labels), classifier, where=where)
    X, own = rows.X, labels.astype(str)
    if fitted is not None:
        X, own = take(X, fitted), own[fitted]
    names = public_labels(options["classes"]) if data.several else None
    data.fit(classifier, X, own, points=rows.grid_points, label=label, names=names)
    publish(classifier.model_, out, as_json, print_regression)
    with releasing(reading):
        said = _UNKNOWN if kept_out is None else _scored(classifier, rows, labels, kept_out)
    click.echo(said, err=as_json)
    write_record(classifier.model_, told, ledger=classifier.ledger)
    if plot is not None:
        draw(classifier.model_, plot)


_UNKNOWN = (
    "How often it errs is not known. --evaluation-share 0.2 keeps a fifth of the people out of the "
    "fit and releases how often it is right about them."
)


def _split(
    options: dict[str, Any], n: int, classifier: PrivateCurveClassifier, *, where: str
) -> tuple[IntArray | None, IntArray | None]:
    """Rows for the fit and for the evaluation, drawn at random; None for all rows."""
    share, epsilon = options["evaluation_share"], options["epsilon"]
    if share is None:
        return None, None
    _validate.fraction("--evaluation-share", share)
    if where:
        rule = f"left out {where}: a row of one file must be one person"
        raise InvalidParameter("--evaluation-share", rule, share)
    size = round(share * n)
    if min(size, n - size) < _FEWEST:
        rule = f"a share that leaves {_FEWEST} people or more on either side"
        raise InvalidParameter("--evaluation-share", rule, share)
    if classifier.ledger is not None:  # both are charged: check before the first one is
        both = limit(epsilon=epsilon, delta=options["delta"]) + limit(epsilon=epsilon, delta=0.0)
        if reason := classifier.ledger.refusal(both):
            text = f"nothing was spent: fit and evaluation together: {reason}. {SPEND_LESS}"
            raise BudgetExceeded(text)
    order = np.random.default_rng(options["seed"]).permutation(n)
    return np.sort(order[size:]), np.sort(order[:size])


def _scored(
    classifier: PrivateCurveClassifier, rows: Rows, labels: AnyArray, kept_out: IntArray
) -> str:
    """A private estimate of the classifier's accuracy, as a sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # nobody is in both releases
        score = private_score(
            classifier.model_,
            take(rows.X, kept_out),
            labels[kept_out].astype(str),
            epsilon=classifier.epsilon,
            delta=0.0,  # as `_split` announces it, independently of the δ of the fit
            unit=classifier.unit,
            ledger=classifier.ledger,
            random_state=classifier.random_state,
            grid_points=rows.grid_points,
        )
    low, high = score.interval
    return (
        f"It is right about {score.accuracy:.1%} of people (95 %: {low:.1%} to {high:.1%}), by a "
        f"private count of {score.n} who are not in the fit: ε = {score.guarantee.epsilon:g} of "
        "theirs."
    )


_FEWEST = 20
"""Fewest people in the fit and in the evaluation; with fewer, the result means nothing."""
